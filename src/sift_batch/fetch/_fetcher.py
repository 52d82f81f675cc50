"""What does an application hold in its hands? The fetch, its two classes, and the checks at its edge.

`open_fetcher` puts the pipeline together and gives a `Fetcher`, which stands behind the gate by itself.
What is decided here: who may call it and with what, what a busy answer means for a job, and what
happens to calls under way when it is closed. What one target gives is `_pipeline`, the next room.
"""

import os
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from .._gate.gate import Gate
from .._model.errors import RetryLater
from .._model.values import Attempt, Caller, Result, Target, attempt
from .._protected import Protected
from ._busy import LONGEST_HOLD
from ._config import FetchConfig
from ._deadline import Deadline
from ._errors import FetchError
from ._extra import require_extra, without_extra
from ._guard import Guard
from ._hops import Trip
from ._jobs import Jobs
from ._options import check_options
from ._pipeline import Pipeline
from ._pool import ReaderStatistics, open_readers
from ._way_out import alone, with_one_error

T = TypeVar("T")

_DEFAULTS: Final = FetchConfig()
_SHORT_HOLD: Final = LONGEST_HOLD + 1.0  # whatever a clock makes of it


def open_fetcher(
    config: FetchConfig = _DEFAULTS, *, gate: Gate | None = None
) -> AbstractAsyncContextManager["Fetcher"]:
    """Give a fetch for a runner: the whole pipeline, behind `gate` (None: a gate of its own).

        async with open_fetcher() as fetch, open_runner(store, fetch) as runner: ...

    It stands behind the gate by itself; don't wrap it again. When the block is left, calls under way end
    with `trio.ClosedResourceError`, as later ones do, and the worker processes are gone.

    Raises on entering: `ImportError` when a part of the extra `fetch` is not installed, `TypeError` for
    what is no `FetchConfig` or no `Gate`, `ValueError` for a `ca_file` that can't be loaded and an
    `archive` that may not be called, `RuntimeError` outside a Trio run (under asyncio, say).
    """
    return Protected(_opened(config, gate))


@asynccontextmanager
@enable_ki_protection
async def _opened(config: FetchConfig, gate: Gate | None) -> AsyncGenerator["Fetcher"]:
    _check("config", config, FetchConfig)
    if gate is not None:
        _check("gate", gate, Gate)
    require_extra()
    from ._client import Client

    if config.ca_file is not None:
        # Now, and not at the first https page, whose caller could do nothing about it.
        await trio.to_thread.run_sync(check_authorities, config.ca_file, thread_name="sift-batch tls")
    guard = Guard(config)
    async with open_readers(config) as readers, open_readers(config) as restricted:
        client = Client(config, guard)
        fetcher = Fetcher(Pipeline(config, gate or Gate(), guard, client, readers, restricted))
        try:
            yield fetcher
        finally:
            fetcher.close()


def check_authorities(path: str | os.PathLike[str]) -> None:
    """Raise `ValueError` unless the file has certificates. It reads the file: call it in a thread."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except (OSError, ValueError):
        raise ValueError("ca_file can't be loaded; give it a file of certificates in PEM form") from None


def check_target(target: Target, config: FetchConfig = _DEFAULTS) -> None:
    """Raise `FetchError` for a target that would be refused whatever its site says.

    Its URL (grammar, port, name, literal address) and its options, but for a jq program: that one
    `fetch.check` compiles, in a worker. Nothing is looked up or called. Raises `ImportError` when a URL
    or a pattern needs the extra `fetch` and it is not installed.
    """
    _check("target", target, Target)
    _check("config", config, FetchConfig)
    try:
        Guard(config).parse(target.url)
        check_options(target.options)
        return
    except ImportError as error:
        raise without_extra() from error
    except FetchError as error:
        refusal = alone(error)
    raise refusal


class Fetcher:
    """The fetch that `open_fetcher` gives. Call it for the batch class: `await fetch(caller, target)`."""

    gated = True
    """It stands behind a gate by itself: `Gate.batch` refuses it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._jobs = Jobs()
        self._closed = False
        # One for each call under way; `close` cancels them.
        self._calls: set[trio.CancelScope] = set()

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Fetch one target in the batch class of the gate.

        If cancelled, no slot is held, no socket open and no worker busy with it. Raises `FetchError` for
        a target that failed; `RetryLater` when there is no room now, at the gate or at the site;
        `trio.ClosedResourceError` once the fetcher is closed.
        """
        trip = self._trip(caller, target, batch=True, patience=0.0)
        now = attempt.get(None)
        self._jobs.called(now)
        try:
            return await self._under_way(lambda: self._pipeline.fetch(trip, target))
        except RetryLater as busy:
            if not self._is_enough(now, trip, busy):
                raise
        finally:
            self._jobs.answered(now, trip.answered - {trip.busy_host})
        raise _enough()

    async def interactive(self, caller: Caller, target: Target, *, patience: float = 0.0) -> Result:
        """Fetch one target for somebody who waits, before the batch class.

        Waits at most `patience` seconds for the first slot (infinity: for ever), and raises `RetryLater`
        when none came free, or when the site is busy. Everything else is as in a batch.
        """
        trip = self._trip(caller, target, batch=False, patience=patience)
        return await self._under_way(lambda: self._pipeline.fetch(trip, target))

    interactive.gated = True  # type: ignore[attr-defined]  # it takes the same form as a fetch

    async def check(self, target: Target) -> None:
        """Raise `FetchError` for a target that would be refused whatever its site says.

        As `check_target`, and its jq program is compiled in a worker. Nothing is looked up or called.
        """
        _check("target", target, Target)
        await self._under_way(lambda: self._pipeline.check(target))

    def statistics(self) -> ReaderStatistics:
        """Return how the worker processes do that read pages, but for those of restricted callers."""
        return self._pipeline.reader_statistics()

    def close(self) -> None:
        """Let no call begin any more, and end those under way with `trio.ClosedResourceError`."""
        self._closed = True
        for scope in self._calls:
            scope.cancel()

    def _is_enough(self, now: Attempt | None, trip: Trip, busy: RetryLater) -> bool:
        """Return whether a refusal is a failure, since the job has lost a target to that host before."""
        if not trip.busy_host or not self._jobs.found_busy(now, trip.busy_host):
            return False
        # The one try is a request: a short hold is waited out before it. A long one would cost each of
        # the job's later targets as much time as it cost the first.
        return trip.status is not None or (busy.retry_after or 0.0) > _SHORT_HOLD

    def _trip(self, caller: Caller, target: Target, *, batch: bool, patience: float) -> Trip:
        _check("caller", caller, Caller)
        _check("target", target, Target)
        if not patience >= 0:
            raise ValueError(f"patience must be at least 0, not {patience!r}")
        return Trip(
            caller=caller,
            batch=batch,
            patience_until=trio.current_time() + patience,
            deadline=Deadline(self._pipeline.config.total_timeout),
        )

    async def _under_way(self, call: Callable[[], Awaitable[T]]) -> T:
        await trio.lowlevel.checkpoint()
        if self._closed:
            raise trio.ClosedResourceError("this fetcher is closed")
        scope = trio.CancelScope()
        self._calls.add(scope)
        try:
            with scope:
                return await with_one_error(call)
        except FetchError:
            if not self._closed:
                raise
            # The workers went away under it.
        finally:
            self._calls.discard(scope)
        raise trio.ClosedResourceError("this fetcher was closed")


def _check(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be a {kind.__name__}, not {type(value).__name__}")


def _enough() -> FetchError:
    hint = "an earlier target of this job waited for this site in vain; submit the target again later"
    return FetchError("busy", "the site asks for patience", hint=hint)
