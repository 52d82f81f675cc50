"""Is nothing fetched twice, out of turn, too many at once, or after its end? (I3, I5 and the gate)"""

import heapq
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from history_calls import TERMINAL, Call, Index, JobBook
from history_facts import say

# ---- I3: a target is fetched again only after a busy answer


def fetched_again(index: Index) -> Iterator[str]:
    """A target is fetched again only after a busy answer."""
    for book, idx, calls in _by_target(index):
        for before, after in pairwise(calls):
            if not (before.fine and before.value.get("busy")) and not _overlap(before, after):
                how = "ended well" if before.fine else "failed" if before.outcome == "fail" else "was cut off"
                text = f"target {idx} is fetched again although its fetch {how}"
                yield say("I3 fetched again", book.id, text, before.n, after.n)


def numbers(index: Index) -> Iterator[str]:
    """The numbers of a target's fetches rise from 1 on; a refusal of the gate's takes one too."""
    for book, idx, calls in _by_target(index):
        last = 0
        for call in calls:
            number = call.args.get("number")
            if number is not None and number <= last:
                text = f"a fetch of target {idx} has the number {number} after {last}"
                yield say("I3 numbers", book.id, text, call.n)
            last = last if number is None else number


def fetched_after_restart(index: Index) -> Iterator[str]:
    """Nothing of a job is fetched in a later life than the one that it came in."""
    for book in index.jobs.values():
        for call in book.of("fetch"):
            if call.life > book.known_in:
                text = f"target {call.args['idx']} is fetched after a restart"
                yield say("I3 fetched after a restart", book.id, text, call.n)


def carried_fetched(index: Index) -> Iterator[str]:
    """A target that a rerun carries over is not fetched."""
    for book in index.jobs.values():
        for call in book.of("fetch"):
            if book.carried and call.args["idx"] in book.carried:
                text = f"target {call.args['idx']} was carried over and is fetched"
                yield say("I3 carried over and fetched", book.id, text, call.n)


# ---- I5: nothing starts after a job's end


def started_after_cancel(index: Index) -> Iterator[str]:
    """No target starts after a cancel was acknowledged."""
    for book in index.jobs.values():
        ended = next((c for c in book.of("cancel") if c.fine and c.value.get("result")), None)
        for call in book.of("fetch"):
            if ended is not None and call.started > ended.end:
                text = f"target {call.args['idx']} starts after the cancel was acknowledged"
                yield say("I5 started after a cancel", book.id, text, ended.n, call.n)


def started_after_end(index: Index) -> Iterator[str]:
    """No target starts after the job was seen to have ended."""
    for book in index.jobs.values():
        ended = min((s for s in book.shown() if s.state in TERMINAL), key=lambda s: s.end, default=None)
        for call in book.of("fetch"):
            if ended is not None and call.started > ended.end:
                text = f"target {call.args['idx']} starts after the job was seen {ended.state}"
                yield say("I5 started after the end", book.id, text, ended.n, call.n)


def started_after_removal(index: Index) -> Iterator[str]:
    """No target starts after the job was deleted, or said to be gone."""
    for book in index.jobs.values():
        for call in [*book.of("delete"), *book.of("gone")]:
            if not call.fine or not (call.value.get("result") or call.value.get("reason")):
                continue
            late = next((fetch for fetch in book.of("fetch") if fetch.started > call.end), None)
            if late is not None:
                text = f"target {late.args['idx']} starts after the job was gone"
                yield say("I5 started after removal", book.id, text, call.n, late.n)


def cancel_refused(index: Index) -> Iterator[str]:
    """A cancel of a job that is live before and after it is not answered with False."""
    for book in index.jobs.values():
        for call in book.of("cancel"):
            if (
                not call.fine
                or call.value.get("result") is not False
                or call.caller not in (None, book.owner)
            ):
                continue
            live = next((s for s in book.shown() if s.begin > call.end and s.state not in TERMINAL), None)
            if live is not None and book.born is not None and book.born.end < call.begin:
                yield say(
                    "I5 cancel refused", book.id, "is live, and a cancel was answered False", call.n, live.n
                )


# ---- the gate, and one job's order


def too_many(index: Index) -> Iterator[str]:
    """No more fetches are open at once than the gate has slots."""
    yield from _crowds(index, index.rules.total, lambda call: "", "gate total", "slots in all")


def too_many_of_a_host(index: Index) -> Iterator[str]:
    """No more fetches of one host are open at once than the gate allows."""
    yield from _crowds(
        index, index.rules.per_host, lambda call: call.args.get("host"), "gate host", "slots a host"
    )


def two_in_flight(index: Index) -> Iterator[str]:
    """One job has one fetch in flight."""
    for book in index.jobs.values():
        for before, after in pairwise(book.of("fetch")):
            if _overlap(before, after) and before.args["idx"] == after.args["idx"]:
                text = f"target {after.args['idx']} is fetched twice at once"
                yield say("gate in flight", book.id, text, before.n, after.n)


def out_of_turn(index: Index) -> Iterator[str]:
    """Targets are fetched in order, each after the one before has ended."""
    for book in index.jobs.values():
        for before, after in pairwise(book.of("fetch")):
            first, second = before.args["idx"], after.args["idx"]
            if second < first or (second > first and _overlap(before, after)):
                text = f"target {second} starts " + ("after" if second < first else "before the end of")
                yield say("order of targets", book.id, f"{text} target {first}", before.n, after.n)


def too_many_workers(index: Index) -> Iterator[str]:
    """No more jobs drain at once than there are workers: from a job's first fetch to its last."""
    limit = index.rules.workers
    if limit is None:
        return
    spans = []
    for book in index.jobs.values():
        calls = book.of("fetch")
        if calls:
            spans.append((calls[0].begin, calls[-1].begin, calls[0].n, book.id))
    ends: list[tuple[float, str]] = []
    for begin, end, n, job in sorted(spans):
        while ends and ends[0][0] < begin:
            heapq.heappop(ends)
        heapq.heappush(ends, (end, job))
        if len(ends) > limit:
            yield say("order workers", job, f"is the job number {len(ends)} that drains, of {limit}", n)


def overtaken(index: Index) -> Iterator[str]:
    """Queued jobs start in the order in which they were submitted."""
    started = [
        (b.of("fetch")[0], b.born) for b in index.jobs.values() if b.of("fetch") and b.born is not None
    ]
    for book in index.jobs.values():
        queued = [seen for seen in book.shown() if seen.state == "queued"]
        if book.born is None or not queued:
            continue
        last = max(queued, key=lambda seen: seen.begin)
        for fetch, born in started:
            if book.born.end < born.begin and fetch.begin < last.begin and fetch.life == last.life:
                text = "is queued still, and one that was submitted later is fetched"
                yield say("order of jobs", book.id, text, fetch.n, last.n)
                break


def _by_target(index: Index) -> Iterator[tuple[JobBook, int, list[Call]]]:
    for book in index.jobs.values():
        targets: dict[int, list[Call]] = {}
        for call in book.of("fetch"):
            targets.setdefault(call.args["idx"], []).append(call)
        for idx, calls in targets.items():
            yield book, idx, calls


def _overlap(before: Call, after: Call) -> bool:
    return after.begin < before.end


def _crowds(
    index: Index, limit: int | None, key: Callable[[Call], Any], rule: str, words: str
) -> Iterator[str]:
    if limit is None:
        return
    open_calls: dict[Any, list[tuple[float, int]]] = {}
    for call in index.calls:
        if call.op not in ("fetch", "slot") or call.args.get("gated") is False:
            continue
        ends = open_calls.setdefault(key(call), [])
        while ends and ends[0][0] < call.begin:
            heapq.heappop(ends)
        heapq.heappush(ends, (call.end, call.n))
        if len(ends) > limit:
            job = call.args.get("job", "-")
            yield say(
                rule, job, f"{len(ends)} are open at once of {limit} {words}", *sorted(n for _end, n in ends)
            )
