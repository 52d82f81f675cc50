"""Who called what, when, and what did each learn of which job? A history put in order for the rules.

A call takes effect at some moment between its `invoke` and its answer; what one call learned counts as
earlier than another only if it was answered before the other began. A call that nobody can tell the end
of may take effect up to the end of its life: of the process, or of the runner. Nothing is judged here.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

Event = dict[str, Any]
TERMINAL: Final = frozenset({"done", "partial", "failed", "cancelled"})
FINISHED: Final = frozenset({"done", "failed"})
READS: Final = frozenset({"status", "job", "wait"})
_ROUNDING: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRules:
    """How the run was set up. None, and an endless `ttl`, say that there was no such limit.

    `durable` is False where a power cut may take the last moments with it: nothing is asked then across
    a note "killed" that has `power=True`.
    """

    total: int | None = 8
    per_host: int | None = 2
    ttl: float = inf
    max_bytes: int | None = None
    workers: int | None = None
    jobs_total: int | None = None
    jobs_per_caller: int | None = None
    durable: bool = True


@dataclass(slots=True)
class Call:
    """One call; `end` is where its answer stands, or infinite where there is none that counts."""

    begin: int
    n: int
    op: str
    args: Event
    life: int
    end: float = inf
    outcome: str = "unknown"
    value: Event = field(default_factory=dict)
    started: float = -1

    @property
    def caller(self) -> Any:
        """Who asked, as far as the engine was told; None asks for everybody."""
        return self.args.get("caller")

    @property
    def fine(self) -> bool:
        """Whether it was acknowledged."""
        return self.outcome == "ok"

    @property
    def may_have(self) -> bool:
        """Whether it may have changed something: acknowledged with no "nothing was there", or unknown."""
        return self.outcome == "unknown" or (self.fine and self.value.get("result", True) is not False)


@dataclass(slots=True)
class Seen:
    """A job as one read, or one row of an audit, showed it."""

    begin: int
    end: float
    n: int
    life: int
    epoch: int
    # The job's state, None where only its presence was seen.
    state: str | None
    facts: Event
    targets: list[list[Any]] | None
    results: bool
    row: bool


@dataclass(slots=True)
class JobBook:
    """Everything that a history tells of one job."""

    id: str
    born: Call | None = None
    owner: str | None = None
    restricted: bool = False
    urls: list[str] | None = None
    total: int | None = None
    carried: frozenset[int] | None = None
    first: int = -1
    known_in: int = 0
    calls: dict[str, list[Call]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    missing: list[Call] = field(default_factory=list)
    gone: list[Event] = field(default_factory=list)
    _shown: list[Seen] | None = None
    _by_end: list[Seen] = field(default_factory=list)

    def of(self, op: str) -> list[Call]:
        """Return the calls of one operation on this job, in the order in which they began."""
        return self.calls.get(op, [])

    def shown(self) -> list[Seen]:
        """Return what was seen with a state, in the order in which the reads began."""
        if self._shown is None:
            self._shown = sorted((s for s in self.seen if s.state is not None), key=lambda s: s.begin)
            self._by_end = sorted(self._shown, key=lambda s: s.end)
        return self._shown

    def with_earlier(self) -> Iterator[tuple[Seen, list[Seen]]]:
        """Give each view with those that are earlier than it, and were not so for the view before it."""
        shown, taken = self.shown(), 0
        for view in shown:
            first = taken
            while taken < len(self._by_end) and self._by_end[taken].end < view.begin:
                taken += 1
            yield view, self._by_end[first:taken]


class Index:
    """A history by calls, jobs, lives and audits."""

    def __init__(self, events: list[Event], rules: HistoryRules) -> None:
        self.events = events
        self.rules = rules
        self.calls: list[Call] = []
        self.jobs: dict[str, JobBook] = {}
        # Of each audit: where it begins, where it ends, its life, and the jobs that it found.
        self.audits: list[tuple[int, int, int, set[str]]] = []
        self.memory: list[Event] = []
        self.orphans: list[Event] = []
        # Where each life was opened; where fetches of a life can't go on any more; where the clock was set.
        self.openings: list[int] = []
        self.ends: list[int] = []
        self.clocks: list[tuple[int, float, float]] = []
        self.set_back: list[int] = []
        self._life = 0
        self._cuts: list[int] = []
        # Targets that the engine called the fetch for, whether or not they came past the gate.
        self.started: set[tuple[str, int]] = set()
        self._open: dict[int, Call] = {}
        self._starts: dict[tuple[str, int, Any], int] = {}
        for place, event in enumerate(events):
            self._take(place, event)
        self._close_lives()
        for call in self.calls:
            self._file(call)

    def job(self, job_id: str, place: int, life: int) -> JobBook:
        """Return a job's book; `place` is where it was first heard of."""
        book = self.jobs.get(job_id)
        if book is None:
            book = self.jobs[job_id] = JobBook(job_id, first=place, known_in=life)
        return book

    def wall(self, place: float) -> float | None:
        """Return the wall clock at an event, None where it was never noted."""
        last = bisect_right(self.clocks, place, key=lambda clock: clock[0]) - 1
        if last < 0:
            return None
        _place, at, wall = self.clocks[last]
        now: float = self.events[int(min(place, len(self.events) - 1))]["at"]
        return wall + (now - at)

    def walls(self, begin: float, end: float) -> tuple[int, int] | None:
        """Return the least and the greatest wall clock from one event to another, in whole seconds."""
        first = bisect_left(self.clocks, begin, key=lambda clock: clock[0])
        last = bisect_right(self.clocks, end, key=lambda clock: clock[0])
        places = [begin, end, *(near for at, _, _ in self.clocks[first:last] for near in (at - 1, at))]
        walls = [wall for place in places if (wall := self.wall(place)) is not None]
        return (int(min(walls)), int(max(walls))) if walls else None

    def epoch(self, place: int) -> int:
        """Return how many power cuts that may take something lie before an event."""
        return bisect_left(self._cuts, place)

    def _take(self, place: int, event: Event) -> None:
        kind = event["kind"]
        if kind == "invoke":
            call = Call(place, event["n"], event["op"], event, self._life)
            self._open[event["call"]] = call
            self.calls.append(call)
        elif "call" in event:
            answered = self._open.pop(event["call"], None)
            if answered is not None:
                answered.outcome, answered.value = kind, event
                answered.end = place
        else:
            self._take_note(place, event, kind)

    def _take_note(self, place: int, event: Event, kind: str) -> None:
        if kind == "opened":
            self._life += 1
            self.openings.append(place)
        elif kind in ("closed", "killed"):
            self.ends.append(place)
            if kind == "killed" and event.get("power") and not self.rules.durable:
                self._cuts.append(place)
        elif kind == "start":
            self._starts[event["job"], event["idx"], event.get("number")] = place
            self.started.add((event["job"], event["idx"]))
        elif kind == "clock":
            before = self.wall(place)
            wall: float = event["wall"] if "wall" in event else event["at"]
            if before is not None and wall < before - _ROUNDING:
                self.set_back.append(place)
            self.clocks.append((place, event["at"], wall))
        elif kind == "audit":
            self.audits.append((place, place, self._life, set()))
        elif kind == "row":
            self._take_row(place, event)
        elif kind == "gone":
            self.job(event["job"], place, self._life).gone.append(event)
        elif kind == "memory":
            self.memory.append(event)
        elif kind == "audited" and event.get("orphans"):
            self.orphans.append(event)

    def _take_row(self, place: int, event: Event) -> None:
        if not self.audits:
            self.audits.append((place, place, self._life, set()))
        begin, _end, life, found = self.audits[-1]
        found.add(event["job"])
        self.audits[-1] = (begin, place, life, found)
        book = self.job(event["job"], place, self._life)
        if book.owner is None:
            book.owner = event.get("caller")
        book.seen.append(
            Seen(
                place,
                place,
                event["n"],
                self._life,
                self.epoch(place),
                event["state"],
                event,
                event.get("targets"),
                True,
                True,
            )
        )

    def _close_lives(self) -> None:
        """Let no call without an answer go on beyond the end of its life."""
        for call in self.calls:
            if call.end == inf:
                after = bisect_right(self.ends, call.begin)
                call.end = self.ends[after] if after < len(self.ends) else inf
            if call.op == "fetch":
                key = call.args["job"], call.args["idx"], call.args.get("number")
                call.started = self._starts.get(key, call.begin)

    def _file(self, call: Call) -> None:
        job_id = call.value.get("job") if call.op in ("submit", "rerun") else call.args.get("job")
        if call.op == "jobs" and call.fine:
            for found in call.value.get("ids", ()):
                self.job(found, call.begin, call.life).seen.append(self._seen(call, {}, None))
        if job_id is None or (call.op in ("submit", "rerun") and not call.fine):
            return
        book = self.job(job_id, call.begin, call.life)
        if call.begin < book.first:
            book.first, book.known_in = call.begin, call.life
        book.calls.setdefault(call.op, []).append(call)
        if call.op in ("submit", "rerun"):
            self._file_birth(call, book)
        elif call.op == "gone" and call.fine and call.value.get("reason") is not None:
            book.gone.append(call.value)
        elif call.op in READS and call.fine:
            if not call.value.get("found"):
                book.missing.append(call)
            else:
                book.seen.append(self._seen(call, call.value, call.value.get("targets")))

    def _file_birth(self, call: Call, book: JobBook) -> None:
        if call.op == "submit" and call.value.get("reused"):
            return
        book.born, book.owner = call, call.caller
        book.restricted = bool(call.args.get("restricted"))
        if call.op == "submit":
            book.urls, book.total, book.carried = call.args["targets"], len(call.args["targets"]), frozenset()
        else:
            book.total, book.carried = call.value["total"], frozenset(call.value["carried"])
            source = self.jobs.get(call.args["job"])
            book.urls = source.urls if source is not None else None
            book.restricted = book.restricted or (source is not None and source.restricted)

    def _seen(self, call: Call, facts: Event, targets: Any) -> Seen:
        state, epoch = facts.get("state"), self.epoch(call.begin)
        results = call.args.get("results", True) is not False
        n = call.value["n"]
        return Seen(call.begin, call.end, n, call.life, epoch, state, facts, targets, results, False)
