"""Does a job end once, and does nothing change that has ended? (I2)"""

from collections import defaultdict
from collections.abc import Iterator
from math import inf
from typing import Any, Final

from history_calls import FINISHED, TERMINAL, Index, JobBook, Seen
from history_facts import certain, later_than, say

_REMOVED: Final = ("deleted", "budget")


def two_ends(index: Index) -> Iterator[str]:
    """A job has one terminal state, with one error."""
    for book in index.jobs.values():
        for key in ("state", "error"):
            ends: dict[tuple[int, Any], Seen] = {}
            for seen in book.shown():
                if seen.state in TERMINAL and key in seen.facts:
                    ends.setdefault((seen.epoch, seen.facts[key]), seen)
            by_epoch = defaultdict(list)
            for (epoch, value), seen in ends.items():
                by_epoch[epoch].append((value, seen.n))
            for found in by_epoch.values():
                if len(found) > 1:
                    text = " and ".join(repr(value) for value, _n in found)
                    yield say(
                        "I2 two ends", book.id, f"has ended with the {key} {text}", *(n for _v, n in found)
                    )


def left_its_state(index: Index) -> Iterator[str]:
    """A job moves queued, running, terminal, settled, and never back."""
    for book in index.jobs.values():
        for before, after in later_than(book, _rank):
            text = f"was {_words(before)} and is {_words(after)} afterwards"
            yield say("I2 left its state", book.id, text, before.n, after.n)


def version_back(index: Index) -> Iterator[str]:
    """A version never goes back."""
    for book in index.jobs.values():
        for before, after in later_than(book, lambda seen: seen.facts.get("version")):
            text = f"its version went from {before.facts['version']} to {after.facts['version']}"
            yield say("I2 version back", book.id, text, before.n, after.n)


def version_same(index: Index) -> Iterator[str]:
    """Two views of one version show the same."""
    for book in index.jobs.values():
        versions: dict[tuple[int, Any], dict[str, tuple[Any, int]]] = {}
        for seen in book.shown():
            if seen.facts.get("version") is None:
                continue
            known = versions.setdefault((seen.epoch, seen.facts["version"]), {})
            for name, value in _visible(seen).items():
                other, n = known.setdefault(name, (value, seen.n))
                if other != value:
                    text = f"version {seen.facts['version']} shows {name} as {other} and as {value}"
                    yield say("I2 version same", book.id, text, n, seen.n)


def count_back(index: Index) -> Iterator[str]:
    """The count of finished targets never goes back."""
    for book in index.jobs.values():
        for before, after in later_than(book, lambda seen: seen.facts.get("done")):
            text = f"had {before.facts['done']} targets finished and then {after.facts['done']}"
            yield say("I2 count back", book.id, text, before.n, after.n)


def result_changed(index: Index) -> Iterator[str]:
    """A finished target never changes: neither its state nor its result nor its code."""
    for book in index.jobs.values():
        ends: dict[tuple[int, int, str], tuple[Any, int]] = {}
        for seen in book.shown():
            for idx, state, *rest in seen.targets or ():
                if state not in FINISHED:
                    continue
                facts = {"state": state, "code": rest[1] if len(rest) > 1 else None}
                if seen.results:
                    facts["result"] = rest[0] if rest else None
                for name, value in facts.items():
                    if name == "code" and len(rest) < 2:
                        continue
                    other, n = ends.setdefault((seen.epoch, idx, name), (value, seen.n))
                    if other != value:
                        text = f"target {idx} has the {name} {other!r} and {value!r}"
                        yield say("I2 result changed", book.id, text, n, seen.n)


def target_back(index: Index) -> Iterator[str]:
    """A finished target stays finished."""
    for book in index.jobs.values():
        finished: dict[tuple[int, int], int] = {}
        for view, earlier in book.with_earlier():
            for other in earlier:
                for idx, state, *_rest in other.targets or ():
                    if state in FINISHED:
                        finished.setdefault((other.epoch, idx), other.n)
            for idx, state, *_rest in view.targets or ():
                before = finished.get((view.epoch, idx))
                if state not in FINISHED and before is not None:
                    yield say(
                        "I2 target back", book.id, f"target {idx} was finished and is not", before, view.n
                    )


def resurrected(index: Index) -> Iterator[str]:
    """A job that is gone stays gone."""
    for book in index.jobs.values():
        for end, n, why in _departures(index, book):
            # One that has lapsed is in the rows until it is swept.
            rows_too = why in _REMOVED or index.rules.ttl == inf
            back = next((s for s in book.seen if s.begin > end and (rows_too or not s.row)), None)
            if back is not None and index.epoch(int(end)) == back.epoch:
                yield say("I2 resurrected", book.id, f"was gone ({why}) and is there again", n, back.n)


def cancelled_twice(index: Index) -> Iterator[str]:
    """A job is cancelled once, and then it is cancelled and nothing else."""
    for book in index.jobs.values():
        done = [call for call in book.of("cancel") if call.fine and call.value.get("result")]
        if len(done) > 1:
            yield say("I2 cancelled twice", book.id, "was cancelled twice", *(call.n for call in done))
        for call in done[:1]:
            for seen in book.shown():
                other = seen.state in TERMINAL - {"cancelled"} or (
                    seen.state not in TERMINAL and seen.begin > call.end
                )
                if other and index.epoch(call.begin) == seen.epoch:
                    text = f"the cancel was acknowledged, and it is {seen.state}"
                    yield say("I2 cancelled twice", book.id, text, call.n, seen.n)
                    break


def deleted_badly(index: Index) -> Iterator[str]:
    """A job is deleted once, and only when no fetch of it is under way."""
    for book in index.jobs.values():
        done = [call for call in book.of("delete") if call.fine and call.value.get("result")]
        if len(done) > 1:
            yield say("I2 deleted badly", book.id, "was deleted twice", *(call.n for call in done))
        for call in done:
            for fetch in book.of("fetch"):
                if fetch.begin < call.begin and fetch.end > call.end:
                    yield say(
                        "I2 deleted badly", book.id, "was deleted while it was fetched", fetch.n, call.n
                    )


def waited_badly(index: Index) -> Iterator[str]:
    """A wait returns a settled job."""
    for book in index.jobs.values():
        for call in book.of("wait"):
            if call.fine and call.value.get("found") and not call.value.get("settled"):
                yield say("I2 waited badly", book.id, "a wait returned before it had settled", call.n)


def _departures(index: Index, book: JobBook) -> Iterator[tuple[float, int, str]]:
    """Give where the job was certainly gone for good, and how."""
    for call in book.of("delete"):
        if call.fine and call.value.get("result"):
            yield call.end, call.n, "deleted"
    for call in [*book.of("gone"), *book.missing]:
        why = call.value.get("reason", "not found")
        if call.op == "gone" and (not call.fine or why is None):
            continue
        known = certain(book, call.begin, index) is not None and call.caller in (None, book.owner)
        if call.op != "gone" and not known:
            continue
        # One that has lapsed and was not swept is there again if the clock was set back.
        if why in _REMOVED or not any(place > call.begin for place in index.set_back):
            yield call.end, call.n, why


def _rank(seen: Seen) -> int | None:
    if seen.state is None:
        return None
    live = {"queued": 0, "running": 1}.get(seen.state)
    return live if live is not None else 3 if seen.facts.get("settled") else 2


def _words(seen: Seen) -> str:
    return f"{seen.state}{' and settled' if seen.facts.get('settled') else ''}"


def _visible(seen: Seen) -> dict[str, Any]:
    names = ("state", "settled", "done", "failed", "error")
    shown = {name: seen.facts[name] for name in names if name in seen.facts}
    if seen.targets is not None:
        shown["targets"] = [row[1] for row in seen.targets]
    return shown
