"""Was each page asked for when it may be, and never when not?

`Fetches` gives the fetch that a runner gets. Around the gate it checks what a call must be: of a running
job, the next target in order, alone, in time. The account of busy answers is kept here once more, in its own
words, so that each next try has a time at which it must come. How pages answer is in `sim_pages.py`. Next
room: `sim_clients.py`, the callers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import trio
from history import History, digest_of
from sim_gate import GateWatch, host_of
from sim_pages import ExtensionError, Pages
from sim_plan import Facts, Plan
from sim_watch import Watch

from sift_batch import Caller, Result, RetryLater, Target, attempt

Key = tuple[str, int]
_MOMENT: Final = 1e-6


@dataclass(slots=True)
class Try:
    """One target on its way: `due` is when its next try must come, None while it may come at any time."""

    url: str
    number: int = 0
    began: float = 0.0
    entered: bool = False
    refused_at: float | None = None
    answers: int = 0
    spent: float = 0.0
    ended: float = 0.0
    counts: bool = False
    waiting: bool = False
    due: float | None = None
    call: int | None = None
    planned: Facts = field(default_factory=dict)


class Fetches:
    """All fetches of one runner. `verdicts`: what became of each target, until it is stored."""

    def __init__(
        self,
        plan: Plan,
        visits: dict[str, int],
        watch: Watch,
        history: History,
        gates: GateWatch,
        may: Callable[[Key], str],
        exits: Callable[[], None],
        closing: Callable[[], bool],
    ) -> None:
        self.watch, self.gates = watch, gates
        self._history = history
        self.open: dict[str, int] = {}
        self.tries: dict[Key, Try] = {}
        self.verdicts: dict[Key, tuple[str, str | None]] = {}
        self.pages = Pages(plan, visits, exits)
        self.dead = False
        # Jobs that somebody tries to end: their next target has no time to come at.
        self.loose: set[str] = set()
        self._may = may
        self._closing = closing
        self._config = plan.config
        self._gated = gates.gate.batch(self._inside)

    # ---- what the runner calls

    async def fetch(self, caller: Caller, target: Target) -> Result:
        """Answer one call; what is checked is whether there should have been one."""
        at = attempt.get()
        key = (at.job_id, at.idx)
        self._begin(key, at.number, target.url)
        try:
            result: Result = await self._gated(caller, target)
        except BaseException as exc:
            self._end(key, exc)
            raise
        self._end(key, result)
        return result

    def _begin(self, key: Key, number: int, url: str) -> None:
        if self.dead:
            return
        job, idx = key
        name = f"target {idx} of {self.watch.label(job)}"
        wrong = self._may(key)
        if wrong:
            self.watch.wrong("fetch.start", f"{name} is fetched: {wrong}")
        if job in self.open:
            self.watch.wrong("fetch.alone", f"{name} is fetched while target {self.open[job]} is")
        self.open[job] = idx
        known = self.tries.setdefault(key, Try(url))
        if number != known.number + 1 or (known.number and not known.waiting):
            self.watch.wrong("fetch.again", f"{name} is fetched as number {number} after {known.number}")
        now = trio.current_time()
        if known.waiting:
            late = known.due is not None and now > known.due + _MOMENT and job not in self.loose
            if late or (known.due is not None and now < known.due - _MOMENT):
                self.watch.wrong("busy.time", f"{name} is tried again at {now} and not at {known.due}")
            elif now < known.ended - _MOMENT:
                self.watch.wrong("busy.time", f"{name} is tried again before its time")
            known.spent += (now - known.ended) if known.counts else 0.0
        self.gates.batch.pop(key, None)
        known.number, known.began, known.entered, known.waiting, known.due = number, now, False, False, None
        self.watch.count("fetches")

    def _end(self, key: Key, answer: Any) -> None:
        if self.dead:
            return
        job, idx = key
        known = self.tries[key]
        self.open.pop(job, None)
        known.ended = trio.current_time()
        name = f"{self.watch.label(job)}/{idx}"
        if isinstance(answer, trio.Cancelled):
            self.verdicts[key] = ("timeout", None)
            early = known.ended < known.began + self._config["target_timeout"] - _MOMENT
            if early and not self._closing():
                self.watch.wrong(
                    "fetch.cut", f"target {idx} of {self.watch.label(job)} is cut off before its time"
                )
            self._tell(known, self._history.unknown)
            self.watch.say("fetch", f"{name} cancelled")
            return
        busy = known.planned if known.entered else self._refusal(key, answer)
        if busy is not None and busy["kind"] == "busy":
            self._tell(known, self._history.ok, busy=True)
            self._wait(key, known, busy)
            self.watch.say("fetch", f"{name} busy: {busy['reason']}, again at {known.due}")
        elif isinstance(answer, Result) and self._fits(known.planned):
            text = (
                answer.content.replace("\ud800", "\ufffd")
                .encode()[: self._config["result_max_bytes"]]
                .decode()
            )
            self.verdicts[key] = ("done", text)
            self._tell(known, self._history.ok, digest=digest_of(text))
            self.watch.say("fetch", f"{name} ok")
        else:
            self.verdicts[key] = ("failed", None)
            self._tell(known, self._history.fail, type(answer).__name__)
            self.watch.say("fetch", f"{name} {type(answer).__name__}")

    def _tell(self, known: Try, answer: Callable[..., None], *values: Any, **facts: Any) -> None:
        call, known.call = known.call, None
        if call is not None:
            answer(call, *values, **facts)

    def _fits(self, planned: Facts) -> bool:
        odd = planned.get("odd")
        return odd not in ("nan", "bytes") and (
            odd != "huge_meta" or self._config["result_max_bytes"] > 2_000
        )

    def _refusal(self, key: Key, answer: Any) -> Facts:
        """Return what a refusal of the gate itself means."""
        known = self.tries[key]
        known.refused_at = trio.current_time() if known.refused_at is None else known.refused_at
        if not isinstance(answer, RetryLater):
            self.watch.wrong("gate.refusal", f"the gate refused by {type(answer).__name__}")
        if answer.reason == "gate":
            self.gates.batch[key] = (host_of(known.url), known.refused_at)
            return {"kind": "busy", "reason": "gate", "told": True}
        return {"kind": "busy", "reason": "host", "retry_after": answer.retry_after}

    def _wait(self, key: Key, known: Try, busy: Facts) -> None:
        """Plan the next try, or that there must be none."""
        known.answers += 1
        known_reason = busy["reason"] in ("gate", "host", "retry_after") and not busy.get("grouped")
        reason = busy["reason"] if known_reason else "host"
        known.counts = reason != "gate"
        left = self._config["retry_for"] - known.spent if known.counts else math.inf
        if left < _MOMENT:
            self.verdicts[key] = ("too busy", None)
            return
        known.waiting = True
        if "told" in busy:
            known.due = None
            return
        after = _seconds(busy.get("retry_after"))
        first = self._config["retry_wait"]
        fallback = (
            after if after is not None else min(first * 2 ** min(known.answers - 1, 60), max(first, 60.0))
        )
        ready = busy.get("ready")
        unlimited = ready is not None and "retry_after" not in busy
        limit, fallback = min(math.inf if unlimited else fallback, left), min(fallback, left)
        if ready is None or ready > limit:
            wait = max(limit, 0.1)
        elif busy["ready_raises"] and ready < limit:
            wait = max(fallback, ready, 0.1)
        else:
            wait = ready if reason == "gate" and ready < limit else max(ready, 0.1)
        if ready == limit:
            # Both at once: told or timed out, raised or not, each may win.
            known.due = None
            return
        known.due = known.ended + wait

    def kill(self) -> None:
        """The process is killed: whoever sleeps here wakes, and nothing counts any more."""
        self.dead = self.pages.dead = True
        for scope in self.pages.sleepers:
            scope.cancel()

    def late(self, running: set[str]) -> None:
        """Look, while nothing moves, for a target of a running job whose time has come and gone."""
        now = trio.current_time()
        for (job, idx), known in self.tries.items():
            late = known.waiting and known.due is not None and now > known.due + _MOMENT
            if late and job in running and job not in self.loose:
                name = f"target {idx} of {self.watch.label(job)}"
                self.watch.wrong("busy.late", f"{name} was to be tried again at {known.due}")

    def forget(self, job: str) -> None:
        """Forget a job that has settled."""
        for key in [key for key in self.tries if key[0] == job]:
            del self.tries[key]
            self.verdicts.pop(key, None)
            self.gates.batch.pop(key, None)
        self.loose.discard(job)

    # ---- behind the gate

    async def _inside(self, caller: Caller, target: Target) -> Result:
        at = attempt.get()
        known = self.tries[(at.job_id, at.idx)]
        host = host_of(target.url)
        if self.dead:
            raise ExtensionError
        known.entered = True
        since = trio.current_time() if known.refused_at is None else known.refused_at
        self.gates.enter(host, batch=True, since=since)
        known.call = self._history.invoke(
            "engine", "fetch", job=at.job_id, idx=at.idx, number=at.number, host=host, batch=True
        )
        try:
            answer = self.pages.next_answer(target.url, host)
            known.planned = answer
            self.watch.say("fetch", f"{self.watch.label(at.job_id)}/{at.idx} #{at.number} {target.url}")
            return await self.pages.answer(answer, f"{at.job_id}/{at.idx}/{at.number}")
        finally:
            self.gates.leave(host)


def _seconds(value: Any) -> float | None:
    if isinstance(value, int | float) and math.isfinite(value) and value > 0:
        return float(value)
    return None
