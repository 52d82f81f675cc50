"""What may a fetch do to the engine? A scripted network in which the Nth call ends in a chosen way.

Without a fault every URL has its part in the play (`torture_play.py`): it answers, is busy for a
while, fails once, or takes long. Each call is written into the book and the history.
"""

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Final
from urllib.parse import urlsplit

import trio
from history import digest_of
from torture_book import Book, Called
from torture_plan import FATAL
from torture_ways import WAYS

from sift_batch import Attempt, Caller, FetchFunc, Gate, Result, RetryLater, Target, TargetError, attempt

LARGE: Final = "large " * 600
TARGET_SECONDS: Final = 20.0


class TornFetch:
    """The network of the play; the calls that `faults` number (from 1) end as they say."""

    def __init__(self, book: Book, faults: Mapping[int, str]) -> None:
        self._book = book
        self._faults = dict(faults)
        # How many calls had a slot, and what was done to which.
        self.count = 0
        self.struck: list[str] = []
        self._started: dict[str, trio.Event] = {}
        # Which job asked for a URL first: a rerun finds another world.
        self._first: dict[str, str] = {}
        self._refused: set[str] = set()
        # The calls under way.
        self._current: dict[Attempt, Called] = {}

    async def wait_started(self, url: str) -> None:
        """Return once this URL was asked for, or after a minute: in a torn round it may never be."""
        with trio.move_on_after(60):
            await self._started.setdefault(url, trio.Event()).wait()

    def behind(self, gate: Gate) -> FetchFunc:
        """Return the fetch to be injected: this network behind a gate, each call written down."""
        gated = gate.batch(self._in_slot)

        async def fetch(caller: Caller, target: Target) -> Result:
            now = attempt.get()
            call = Called(now.job_id, now.idx, now.number, _host(target.url), self._book.tick())
            self._book.calls.append(call)
            self._current[now] = call
            try:
                return await gated(caller, target)
            except BaseException as exc:
                # What the gate refuses or a cancellation ends at its door was never in a slot.
                if not call.entered:
                    call.end = _end_of(exc)
                raise
            finally:
                call.ended = self._book.tick()
                del self._current[now]

        return fetch

    async def _in_slot(self, caller: Caller, target: Target) -> Result:
        call, history = self._current[attempt.get()], self._book.history
        call.entered = self._book.tick()
        number = history.invoke(
            "engine",
            "fetch",
            job=call.job_id,
            idx=call.idx,
            number=call.number,
            host=call.host,
            batch=True,
        )
        self._started.setdefault(target.url, trio.Event()).set()
        first = self._first.setdefault(target.url, call.job_id) == call.job_id
        self.count += 1
        call.way = self._faults.pop(self.count, "")
        if call.way:
            self.struck.append(call.way)
        began = trio.current_time()
        try:
            value = await (WAYS[call.way][1]() if call.way else self._play(target.url, first))
        except BaseException as exc:
            # The way says how a call ends that is not cut; what strikes it from outside goes before.
            in_time = trio.current_time() < began + TARGET_SECONDS
            cut = in_time and trio.current_effective_deadline() == -inf and _is_cancelled(exc)
            call.end = "cut" if cut else (WAYS[call.way][0] if call.way else _end_of(exc))
            if call.way in FATAL and not cut:
                self._book.fatal_at = trio.current_time()
            raise
        else:
            call.end = WAYS[call.way][0] if call.way else "ok"
            if call.end == "ok":
                call.digest = digest_of(_stored(value.content))
            return value
        finally:
            self._tell(number, call)

    def _tell(self, number: int, call: Called) -> None:
        history = self._book.history
        if call.end == "ok":
            history.ok(number, digest=call.digest)
        elif call.end == "busy":
            history.ok(number, busy=True)
        elif call.end == "failed":
            history.fail(number, call.way or "scripted")
        else:
            history.unknown(number)

    async def _play(self, url: str, first: bool) -> Result:
        name = url.removeprefix("http://").partition("/")[2]
        match name:
            case "one/1" if first and url not in self._refused:
                self._refused.add(url)
                raise RetryLater(retry_after=2.0)
            case "one/2" if first:
                raise TargetError("not there", status=404)
            case "two/1":
                await trio.sleep(1)
                raise RetryLater(retry_after=30)
            case "ten/0":
                raise RetryLater(ready=partial(trio.sleep, 30))
            case "seven/0":
                raise RetryLater(ready=partial(trio.sleep, 500), reason="gate")
            case "five/0":
                return Result(LARGE)
        await trio.sleep(5 if name.startswith(("three", "six")) else 1)
        return Result(f"content of {url} for {'one' if first else 'another'}")


def _end_of(exc: BaseException) -> str:
    if isinstance(exc, trio.Cancelled):
        return "cut"
    return "busy" if isinstance(exc, RetryLater) else "failed"


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _is_cancelled(exc: BaseException) -> bool:
    if isinstance(exc, BaseExceptionGroup):
        return any(map(_is_cancelled, exc.exceptions))
    return isinstance(exc, trio.Cancelled)


def _stored(text: str) -> str:
    """Return a content as a store holds it: U+FFFD for what no reader could encode."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
