"""What is certain by a history, and what may have been? Nothing is judged here."""

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from history_calls import Call, Index, JobBook, Seen


def say(invariant: str, job: str, text: str, *events: float) -> str:
    """Return one violation."""
    numbers = ", ".join(str(int(n)) for n in events if n != inf)
    return f"{invariant}, job {job}: {text} (events {numbers})"


def certain(book: JobBook, place: float, index: Index) -> Call | None:
    """Return the call that made the job, if that was acknowledged before `place`."""
    born = book.born
    if born is None or born.end >= place or index.epoch(born.begin) != index.epoch(int(place)):
        return None
    return born


def may_be_deleted(book: JobBook, place: float) -> bool:
    """Whether somebody may have deleted the job before `place`."""
    return any(call.may_have and call.begin < place for call in book.of("delete"))


def may_be_evicted(index: Index, book: JobBook) -> bool:
    """Whether the byte budget may have taken the job: of other jobs the store remembers that."""
    return book.restricted and index.rules.max_bytes is not None


def may_lapse(index: Index, book: JobBook, place: float, *, strict: bool) -> bool:
    """Whether the job may have lapsed before `place`; where the clock is not known, unless `strict`."""
    ttl, born = index.rules.ttl, book.born
    if ttl == inf:
        return False
    if born is None or index.wall(born.begin) is None:
        return not strict
    if any(place > born.begin for place in index.set_back):
        return True
    walls = index.walls(born.begin, place)
    lease = _lease(index, book, born, place)
    return walls is None or walls[1] - lease > ttl


def _lease(index: Index, book: JobBook, born: Call, place: float) -> int:
    """Return what the job's lease was at least, before `place`."""
    first = index.walls(born.begin, born.end)
    assert first is not None
    lease = first[0]
    own = [call for call in book.of("touch") if call.caller in (None, book.owner)]
    for call in sorted([*(c for c in book.of("submit") if c is not born), *own], key=lambda call: call.begin):
        then = index.walls(call.begin, call.end) if call.fine and call.end < place else None
        # One that had lapsed by then can't be touched back.
        if then is not None and then[1] - lease <= index.rules.ttl:
            lease = max(lease, then[0])
    views = (s.facts["lease"] for s in book.seen if s.end < place and s.facts.get("lease") is not None)
    return int(max([lease, *views]))


def later_than(book: JobBook, key: Callable[[Seen], Any]) -> Iterator[tuple[Seen, Seen]]:
    """Give each pair of an earlier view and a later one whose `key` is smaller; None keys are passed over."""
    best: dict[int, tuple[Any, Seen]] = {}
    for view, earlier in book.with_earlier():
        for other in earlier:
            value = key(other)
            if value is not None and (other.epoch not in best or value >= best[other.epoch][0]):
                best[other.epoch] = value, other
        value = key(view)
        if value is not None and view.epoch in best and value < best[view.epoch][0]:
            yield best[view.epoch][1], view
