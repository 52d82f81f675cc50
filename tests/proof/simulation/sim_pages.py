"""How does a page answer a call? As its plan says: with a result, an error, a busy answer, or not at all.

Everything that a fetch may do and everything that it must not do is here. Nothing is checked. Next room:
`sim_hosts.py`, which checks.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import trio
from sim_plan import Facts, Plan

from sift_batch import Result, RetryLater, TargetError


class ExtensionError(BaseException):
    """What a compiled extension may raise: no `Exception`."""


class Pages:
    """All pages of a plan. `visits`: how often each was asked for, over all lives."""

    def __init__(self, plan: Plan, visits: dict[str, int], exits: Callable[[], None]) -> None:
        self.dead = False
        # Whoever sleeps in a page just now: a kill ends that.
        self.sleepers: list[trio.CancelScope] = []
        self._plan = plan
        self._visits = visits
        self._exits = exits

    async def answer(self, answer: Facts, name: str) -> Result:
        """Answer one call in this way; `name` is what a result begins with."""
        if answer.get("stubborn"):
            with trio.CancelScope(shield=not self.dead):
                await self._sleep(answer["latency"] + answer["stubborn"])
        else:
            await self._sleep(math.inf if answer["kind"] == "hang" else answer["latency"])
        return await getattr(self, f"_{answer['kind']}")(answer, name)  # type: ignore[no-any-return]

    def next_answer(self, url: str, host: str) -> Facts:
        """Return how this page is to answer now."""
        answers = self._plan.pages.get(url, [{"kind": "ok", "latency": 0.0, "size": 10}])
        answer = answers[min(self._visits.get(url, 0), len(answers) - 1)]
        self._visits[url] = self._visits.get(url, 0) + 1
        now = trio.current_time()
        for phase in self._plan.phases:
            if phase["host"] != host or not phase["from"] <= now < phase["until"]:
                continue
            if phase["what"] == "slow":
                return {**answer, "latency": answer["latency"] + phase["seconds"]}
            if phase["what"] == "busy":
                return {
                    "kind": "busy",
                    "latency": 0.0,
                    "reason": "retry_after",
                    "retry_after": phase["seconds"],
                }
            return {"kind": "target_error", "latency": 0.0}
        return answer

    async def _sleep(self, seconds: float) -> None:
        """Sleep, unless the process is killed meanwhile: then there is nothing left to wait for."""
        if not seconds:
            await trio.lowlevel.checkpoint()
            return
        with trio.CancelScope() as scope:
            self.sleepers.append(scope)
            try:
                await trio.sleep(seconds)
            finally:
                self.sleepers.remove(scope)
        if self.dead:
            raise ExtensionError

    async def _ok(self, answer: Facts, name: str) -> Result:
        return Result(f"{name} ".ljust(answer["size"], "x"))

    async def _busy(self, answer: Facts, name: str) -> Result:
        after: Any = answer.get("retry_after")
        after = float(after) if after in ("nan", "inf") else after
        if answer.get("grouped"):
            raise ExceptionGroup("busy", [RetryLater(retry_after=after), RetryLater(reason=answer["reason"])])
        ready = partial(_ready, answer) if "ready" in answer else None
        raise RetryLater("busy", retry_after=after, ready=ready, reason=answer["reason"])

    async def _target_error(self, answer: Facts, name: str) -> Result:
        raise TargetError("not there", hint="look elsewhere", status=404, code="missing")

    async def _error(self, answer: Facts, name: str) -> Result:
        kind = answer["error"]
        if kind == "group":
            raise ExceptionGroup("several", [ValueError("x"), TargetError("one of several", code="group")])
        if kind == "mixed_group":
            raise ExceptionGroup("several", [RetryLater(), TargetError("not busy alone")])
        if kind == "base":
            raise ExtensionError("no exception")
        if kind == "cancelled":
            raise BaseExceptionGroup("kept", [await _own_cancel()])
        if kind == "nested":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_break)
                await trio.sleep_forever()
        raise ValueError("" if kind == "silent" else "broken")

    async def _odd(self, answer: Facts, name: str) -> Result:
        odd: dict[str, Any] = {
            "text": name,
            "none": None,
            "nan": Result(name, {"number": math.nan}),
            "bytes": Result(name, {"raw": b"raw"}),
            "surrogate": Result(f"{name} \ud800"),
            "huge_meta": Result(name, {"text": "m" * 1_000}),
        }
        return odd[answer["odd"]]  # type: ignore[no-any-return]

    async def _exit(self, answer: Facts, name: str) -> Result:
        self._exits()
        raise SystemExit(3)


async def _ready(answer: Facts) -> None:
    await trio.sleep(answer["ready"])
    if answer["ready_raises"]:
        raise OSError("not ready")


async def _break() -> None:
    raise ValueError("in a nursery")


async def _own_cancel() -> BaseException:
    kept: BaseException = ValueError()
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as exc:  # noqa: ASYNC103 - kept on purpose: a fetch that does what it must not
            kept = exc
    return kept
