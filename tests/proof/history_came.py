"""Is a job made only when it may be, and does a restart leave nothing alive? (submits, restarts, bounds)"""

import heapq
from bisect import bisect_left
from collections.abc import Iterator
from math import inf
from typing import Any

from history_calls import TERMINAL, Call, Index, JobBook, Seen
from history_facts import certain, say

# ---- submits


def reused_wrongly(index: Index) -> Iterator[str]:
    """A submit is answered by a job of the same targets that has neither failed nor been cancelled."""
    for call, book in _reuses(index):
        if book.urls is not None and book.urls != call.args["targets"]:
            yield say("submit reused wrongly", book.id, "answered a submit of other targets", call.n)
        ended = [s for s in book.shown() if s.state in ("failed", "cancelled") and s.end < call.begin]
        ended_at = [(s.n, s.state) for s in ended]
        ended_at += [
            (c.n, "cancelled")
            for c in book.of("cancel")
            if c.fine and c.value.get("result") and c.end < call.begin
        ]
        for n, state in ended_at[:1]:
            yield say(
                "submit reused wrongly", book.id, f"answered a submit although it is {state}", n, call.n
            )


def too_old(index: Index) -> Iterator[str]:
    """With a `max_age` of 0 no finished job answers."""
    for call, book in _reuses(index):
        ended = next((s for s in book.shown() if s.state in TERMINAL and s.end < call.begin), None)
        if call.args.get("max_age") == 0 and ended is not None:
            yield say(
                "submit too old", book.id, "had ended and answered a submit with max_age 0", ended.n, call.n
            )


def made_twice(index: Index) -> Iterator[str]:
    """A submit makes no second job while an equal one could answer."""
    books: dict[tuple[Any, ...], list[JobBook]] = {}
    for book in index.jobs.values():
        if book.urls is not None and book.born is not None:
            books.setdefault((book.owner, *book.urls), []).append(book)
    for equal in books.values():
        for new in equal:
            born = new.born
            assert born is not None
            if born.op != "submit":
                continue
            for old in equal:
                if old is not new and certain(old, born.begin, index) is not None:
                    yield from _answerable(index, old, born)


def over_the_caps(index: Index) -> Iterator[str]:
    """No job is made while there are as many live ones as there may be."""
    lasting = []
    for book in index.jobs.values():
        live = [seen.begin for seen in book.shown() if seen.state not in TERMINAL]
        if book.born is not None and live:
            lasting.append((book.born.end, max(live), book.id))
    lasting.sort()
    for limit, of_caller in ((index.rules.jobs_total, False), (index.rules.jobs_per_caller, True)):
        if limit is not None:
            yield from _over(index, lasting, limit, of_caller)


def _over(index: Index, lasting: list[tuple[float, int, str]], limit: int, of_caller: bool) -> Iterator[str]:
    born = [b for b in index.jobs.values() if b.born and not (b.carried and len(b.carried) == b.total)]
    live: list[tuple[int, str]] = []
    taken = 0
    for book in sorted(born, key=lambda book: book.born.begin if book.born else 0):
        call = book.born
        assert call is not None
        while taken < len(lasting) and lasting[taken][0] < call.begin:
            heapq.heappush(live, lasting[taken][1:])
            taken += 1
        while live and live[0][0] <= call.begin:
            heapq.heappop(live)
        # Live before the call began and after it was answered, so all the time.
        there = [job for until, job in live if until > call.end]
        if of_caller:
            there = [job for job in there if index.jobs[job].owner == book.owner]
        if len(there) >= limit:
            whose = f"of {book.owner}" if of_caller else "in all"
            yield say("submit over the caps", book.id, f"came to {len(there)} live jobs {whose}", call.n)


# ---- restarts and bounds


def survived_restart(index: Index) -> Iterator[str]:
    """After a restart no job of an earlier life is live or unsettled."""
    for book in index.jobs.values():
        for seen in book.shown():
            if seen.life <= book.known_in or _before_opening(index, seen):
                continue
            if seen.state not in TERMINAL or seen.facts.get("settled") is False:
                text = (
                    f"is {seen.state}{'' if seen.facts.get('settled') else ', not settled,'} after a restart"
                )
                yield say("restart", book.id, text, seen.n)


def ended_by_restart(index: Index) -> Iterator[str]:
    """A restart fails only what was live, and nothing fails by a restart in the life that it came in."""
    for book in index.jobs.values():
        for seen in book.shown():
            born = book.born
            if seen.facts.get("error") != "restart" or born is None:
                continue
            if not any(born.begin < end < seen.end for end in index.ends) and seen.life == born.life:
                yield say("restart too early", book.id, "failed by a restart, and there was none", seen.n)


def bounds(index: Index) -> Iterator[str]:
    """Nothing that is measured goes over its limit."""
    for event in index.memory:
        if event["value"] > event["limit"]:
            text = f"{event['name']} is {event['value']}, over its limit of {event['limit']}"
            yield f"I8 bounds: {text} (event {event['n']})"


def _reuses(index: Index) -> Iterator[tuple[Call, JobBook]]:
    for book in index.jobs.values():
        for call in book.of("submit"):
            if call.value.get("reused"):
                yield call, book


def _answerable(index: Index, old: JobBook, born: Call) -> Iterator[str]:
    max_age = born.args.get("max_age")
    for seen in old.shown():
        state = seen.state
        if seen.begin < born.end:
            continue
        # One that had lapsed then may be in the rows still, or be there again if the clock was set back.
        unlapsed = not seen.row or index.rules.ttl == inf
        finished = max_age is None and state in ("done", "partial") and unlapsed
        if state not in TERMINAL or (finished and not any(at > born.begin for at in index.set_back)):
            yield say(
                "submit made twice",
                old.id,
                f"is {state}, and an equal submit made another job",
                born.n,
                seen.n,
            )
            return


def _before_opening(index: Index, seen: Seen) -> bool:
    """Whether a view is from a time between two lives, or of the file before its restart."""
    ends, opens = bisect_left(index.ends, seen.begin), bisect_left(index.openings, seen.begin)
    return ends > 0 and (opens == 0 or index.ends[ends - 1] > index.openings[opens - 1])
