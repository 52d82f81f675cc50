"""What happened, in which order, and who was told what? The record that the methods of proof share.

A history is a list of plain events: a call was made (`invoke`), it was answered (`ok`), refused (`fail`),
or nobody can say (`unknown`); a `note` is a fact that is no call. A call that was never answered counts as
unknown, so a killed process needs to say nothing. Calls, with what they were asked and what they answered:

    submit    caller, restricted, targets (URLs), max_age   job, reused     a refusal may name a job
    rerun     caller, job                                   job, total, carried (the indexes)
    cancel    caller, job                                   result          and so delete
    touch     caller, job
    status    caller, job, results=True                     found, and the facts of a job; and so job, wait
    jobs      caller                                        ids
    gone      caller, job                                   reason
    fetch     job, idx, number, host                        digest, or busy=True
    slot      host                                          from the moment that it was entered

The facts of a job are state, settled, version, total, done, failed, lease, error and targets, a list of
[idx, state, digest or None, code] that is whole; what is left out is not asked about. A caller of None asks
for everybody. A `fetch` is recorded inside the gate's slot; what returns no good result is a `fail`, what
was cancelled is `unknown`. Between the engine's call and a slot stands a checkpoint: note a "start" (job,
idx, number) outside of the gate, or a cancel in between looks like a start after it.

Notes: "opened" once a runner is open, "closed" or "killed" (power=True: a power cut) when it ends;
"clock" (wall, jump) when it is known or set, without a wall if the recorder's own clock is it; "audit",
"row", "gone" and "audited" by `History.audit`; "memory" (name, value, limit).

What must hold of a history is in `history_rules.py`, which names the rooms of the single questions.
"""

import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from history_calls import HistoryRules
from history_rules import RULES, check_history

__all__ = ["RULES", "History", "HistoryRules", "check_history", "digest_of", "explain"]

Event = dict[str, Any]
_OWN: Final = frozenset({"n", "at", "kind", "call", "client", "op"})


class History:
    """Records events in order; with `file`, each is a line of JSON that is written before it counts.

    The line goes out by one write(2): it is there for others even if this process is killed in the next
    moment. A file that exists is continued. `clock` gives the time that histories are merged by, so
    processes that write one history need one clock (`time.monotonic` is one for a whole machine).
    Without `remember` nothing stays in memory: what is recorded is in the file alone.
    """

    def __init__(
        self,
        file: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        remember: bool = True,
    ) -> None:
        self.events: list[Event] = []
        self._clock = clock
        self._remember = remember
        self._lock = threading.Lock()
        self._next = 0
        self._open: dict[int, tuple[str, str]] = {}
        self._descriptor: int | None = None
        if file is not None:
            self._next = _mend(file)
            self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> "History":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what is recorded from now on stays in memory only."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def invoke(self, client: str, op: str, /, **args: Any) -> int:
        """Record that `client` is about to call `op`; return the call's number."""
        with self._lock:
            call = self._next
            self._open[call] = client, op
            self._add("invoke", {"call": call, "client": client, "op": op}, args)
        return call

    def ok(self, call: int, /, **value: Any) -> None:
        """Record that the call was acknowledged, with what it returned."""
        self._answer("ok", call, value)

    def fail(self, call: int, error: str, /, **facts: Any) -> None:
        """Record that the call was refused: certainly nothing happened."""
        self._answer("fail", call, {"error": error, **facts})

    def unknown(self, call: int, /, **facts: Any) -> None:
        """Record that nobody can say: killed, cancelled while under way, its answer lost."""
        self._answer("unknown", call, facts)

    def note(self, kind: str, /, **facts: Any) -> None:
        """Record a fact that is no call."""
        with self._lock:
            self._add(kind, {}, facts)

    def audit(self, connection: sqlite3.Connection, life: int) -> None:
        """Note every stored job as a `row`, and every removed one that is remembered as `gone`.

        The connection may be any that can read the store's tables. What is noted holds at one moment only
        if nobody writes meanwhile.
        """
        targets: dict[str, list[list[Any]]] = {}
        for job, idx, state, code, result in connection.execute(
            "SELECT job_id, idx, status, code, result FROM batch_target ORDER BY job_id, idx"
        ):
            content = None if result is None else json.loads(result)["content"]
            digest = None if content is None else digest_of(content)
            targets.setdefault(job, []).append([idx, state, digest, code])
        rows = connection.execute(
            "SELECT id, status, settled, error, targets_total, targets_done, targets_failed, nbytes, "
            "caller, version, lease FROM batch_job ORDER BY rowid"
        ).fetchall()
        names = ("state", "settled", "error", "total", "done", "failed", "nbytes", "caller")
        gone = connection.execute("SELECT id, caller, reason FROM batch_gone").fetchall()
        self.note("audit", life=life, jobs=len(rows))
        for job, *values, version, lease in rows:
            facts = dict(zip(names, values, strict=True), version=version, lease=lease)
            facts["settled"] = bool(facts["settled"])
            self.note("row", job=job, **facts, targets=targets.pop(job, []))
        for job, caller, reason in gone:
            self.note("gone", job=job, caller=caller, reason=reason)
        self.note("audited", life=life, orphans=sorted(targets))

    @classmethod
    def read(cls, *files: Path) -> list[Event]:
        """Merge the files of several processes into one history, by time; numbers are given anew.

        A torn last line is dropped: what it was about to say was never said.
        """
        merged: list[tuple[float, int, int, Event]] = []
        for number, file in enumerate(files):
            for place, event in enumerate(_lines(file)):
                merged.append((event["at"], number, place, event))
        merged.sort(key=lambda item: item[:3])
        calls: dict[tuple[int, int], int] = {}
        events = []
        for n, (_at, number, _place, event) in enumerate(merged):
            if "call" in event:
                event["call"] = calls.setdefault((number, event["call"]), len(calls))
            event["n"] = n
            events.append(event)
        return events

    def _answer(self, kind: str, call: int, value: dict[str, Any]) -> None:
        with self._lock:
            client, op = self._open.pop(call)
            self._add(kind, {"call": call, "client": client, "op": op}, value)

    def _add(self, kind: str, call: dict[str, Any], facts: dict[str, Any]) -> None:
        if not _OWN.isdisjoint(facts):
            raise ValueError(f"an event's own fields can't be facts: {sorted(_OWN & facts.keys())}")
        event: Event = {"n": self._next, "at": self._clock(), "kind": kind, **call, **facts}
        self._next += 1
        if self._descriptor is not None:
            os.write(self._descriptor, json.dumps(event).encode() + b"\n")
        if self._remember:
            self.events.append(event)


def digest_of(content: str) -> str:
    """Return what stands for a result's content in a history: short, and different for another content."""
    data = content.encode("utf-8", "replace")
    return f"{zlib.crc32(data):08x}:{len(data)}"


def only_about(events: list[Event], jobs: Collection[str]) -> list[Event]:
    """Return what of a history is about these jobs, or may be.

    Calls that name no job go, but for submits that nobody can tell the end of, as long as a job is left
    that may be theirs. Of the notes before the first event that is kept only the last clock stays.
    """
    named: dict[int, str | None] = {}
    last: dict[int, Event] = {}
    for event in events:
        if "call" in event:
            named[event["call"]] = event.get("job") or named.get(event["call"])
            last[event["call"]] = event
    births = {named[call] for call, e in last.items() if e["op"] in ("submit", "rerun") and e["kind"] == "ok"}

    def stays(event: Event) -> bool:
        if "call" not in event:
            return event["kind"] not in ("audit", "audited") if "job" not in event else event["job"] in jobs
        end, job = last[event["call"]], named[event["call"]]
        open_birth = end["op"] in ("submit", "rerun") and end["kind"] != "ok" and end["kind"] != "fail"
        return job in jobs or end["kind"] == "invoke" or (open_birth and not births.issuperset(jobs))

    kept = [event for event in events if stays(event)]
    first = next((place for place, event in enumerate(kept) if "call" in event), len(kept))
    clocks = [event for event in kept[:first] if event["kind"] == "clock"]
    return clocks[-1:] + kept[first:]


def explain(events: Iterable[Event], job: str | None = None) -> str:
    """Return a history as lines to read, of one job or of all."""
    lines = []
    named: dict[int, str | None] = {}
    for event in events:
        about = event.get("job")
        if "call" in event:
            about = named[event["call"]] = about or named.get(event["call"])
        if job is not None and about != job and ("call" in event or about is not None):
            continue
        facts = " ".join(f"{name}={value}" for name, value in event.items() if name not in _OWN)
        who = f"{event.get('client', ''):<10} {event.get('op', ''):<7}" if "call" in event else " " * 18
        call = f"#{event['call']:<5}" if "call" in event else " " * 6
        lines.append(f"{event['n']:>6} {event['at']:>12.3f} {event['kind']:<8}{call}{who} {facts}")
    return "\n".join(lines)


def _lines(file: Path) -> Iterable[Event]:
    lines = file.read_bytes().split(b"\n")
    # After the last newline there is nothing, or a line that a kill has cut in two.
    for line in lines[:-1]:
        yield json.loads(line)


def _mend(file: Path) -> int:
    """Cut a torn last line off a file that is to be continued; return the first number that is free."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return 0
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(file, whole)
    return 1 + max((event["n"] for event in _lines(file)), default=-1)
