"""What do callers ask for and fetches give? The words that the machine's rules draw from.

Each answer of a fetch stands beside the facts that the contract makes of it. What the engine says in its
own words (a fetch that took too long, one that was busy for too long) is asked of the engine once, in a
run in memory: the contract only says that it says so. Next: `machine_rules`.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, Final

import trio
import trio.testing
from machine_shelf import Facts, Rules

from sift_batch import (
    Caller,
    CallerClass,
    Config,
    Result,
    RetryLater,
    Target,
    TargetError,
    TargetStatus,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch

CALLERS: Final = (
    Caller("alice"),
    Caller("bob"),
    Caller("secretive", caller_class=CallerClass.RESTRICTED),
)

# The fractions keep two timers from being due at the same moment: which is first then nobody promises.
CONFIG: Final = Config(
    ttl=1_000,
    targets_per_job=4,
    jobs_per_caller=2,
    jobs_total=4,
    workers=2,
    max_bytes=1_800,
    retry_wait=20.3137,
    retry_for=130.1571,
    target_timeout=120.4519,
    job_timeout=250.5563,
    shutdown_grace=0.25,
    sweep_every=50,
    result_max_bytes=600,
)

_PLAIN: Final[tuple[tuple[str, Any], ...]] = ()
_RAW: Final[tuple[tuple[str, Any], ...]] = (("mode", "raw"), ("context", False))
_ASKED: Final[tuple[tuple[str, Any], ...]] = (("question", "<ñ> & \u2603?"), ("recover", True))
_ONE, _TWO, _THREE = "https://one.example/a", "https://two.example/b?<&>", "http://three.example/\u00e9"

SERIES_OF_TARGETS: Final[tuple[tuple[tuple[str, tuple[tuple[str, Any], ...]], ...], ...]] = (
    ((_ONE, _PLAIN),),
    ((_ONE, _PLAIN), (_TWO, _PLAIN)),
    ((_TWO, _PLAIN), (_ONE, _PLAIN)),
    ((_ONE, _PLAIN), (_THREE, _RAW), (_ONE, _PLAIN)),
    ((_TWO, _ASKED), (_THREE, _ASKED), (_THREE, _RAW)),
    ((_ONE, _RAW),),
    ((_ONE, _PLAIN),) * 5,
    (),
)
"""What is submitted: few, so that the same comes again. The last two are refused."""


def _give(content: str, **meta: Any) -> Callable[[], Result]:
    return lambda: Result(content, meta)


def _raise(error: BaseException) -> Callable[[], Result]:
    def answer() -> Result:
        raise error.with_traceback(None)

    return answer


ANSWERS: Final[tuple[tuple[Callable[[], Any], Facts], ...]] = (
    (_give("short"), Facts("short")),
    (_give("é" * 200, lang="es", pages=[1, 2]), Facts("é" * 200, (("lang", "es"), ("pages", [1, 2])))),
    (_give("\0\ud800", http_status=404), Facts("\0\ufffd", (("http_status", 404),), http_status=404)),
    (_give("€" * 300), Facts("€" * 200, (("truncated", True),))),
    (
        _raise(TargetError("not there", hint="look <elsewhere>", status=404, code="gone", retryable=True)),
        Facts(error="not there", hint="look <elsewhere>", http_status=404, code="gone", retryable=True),
    ),
    (_raise(TargetError("no")), Facts(error="no", http_status=502)),
    (_raise(ValueError("ill")), Facts(error="ill", code="internal", retryable=True)),
    (_raise(KeyError()), Facts(error="KeyError", code="internal", retryable=True)),
    (
        _raise(ExceptionGroup("", [RetryLater(), ExceptionGroup("", [TargetError("one")]), OSError("two")])),
        Facts(error="one", http_status=502),
    ),
)

BUSY: Final[tuple[tuple[float | None, bool, str], ...]] = (
    (None, False, "host"),
    (33.7, False, "retry_after"),
    (1e9, False, "retry_after"),
    (float("nan"), False, "host"),
    (None, True, "gate"),
    (None, True, "host"),
    (77.7, True, "host"),
)
"""Busy answers: their `retry_after`, whether they have a `ready`, their reason."""


def _facts(target: TargetStatus, code: str) -> Facts:
    assert target.code == code
    assert target.error
    return Facts(
        error=target.error,
        hint=target.hint,
        code=target.code,
        http_status=target.http_status,
        retryable=target.retryable,
    )


@functools.cache
def rules() -> Rules:
    """Return the settings for the model, the engine's own words among them."""

    async def ask() -> tuple[Facts, Facts]:
        patient = replace(CONFIG, job_timeout=inf)
        fetch = ScriptedFetch(hang=[0])
        fetch.busy(1)
        async with open_store(":memory:") as store, open_runner(store, fetch, patient) as runner:
            job = await runner.submit(CALLERS[0], [Target(_ONE), Target(_TWO)])
            await runner.wait(job.id)
            status = await runner.status(job.id)
            assert status is not None
            late, busy = status.targets
            assert busy.hint
            return _facts(late, "timeout"), _facts(busy, "busy")

    timeout, too_busy = trio.run(ask, clock=trio.testing.MockClock(autojump_threshold=0))
    names = ("workers", "targets_per_job", "jobs_per_caller", "jobs_total", "ttl", "max_bytes", "retry_wait")
    times = ("retry_for", "target_timeout", "job_timeout")
    settings = {name: getattr(CONFIG, name) for name in (*names, *times)}
    return Rules(**settings, timeout=timeout, too_busy=too_busy)
