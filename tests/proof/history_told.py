"""Does what is told add up, and is it told to the right one? (I4 and I6)"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from history_calls import FINISHED, TERMINAL, Call, Index, JobBook, Seen
from history_facts import say

# ---- I4: counts, states and results belong together


def counts(index: Index) -> Iterator[str]:
    """A job's counts are those of its targets."""
    for book, seen, targets in _with_targets(index):
        states = [row[1] for row in targets]
        for name, found in (
            ("done", sum(state in FINISHED for state in states)),
            ("failed", states.count("failed")),
        ):
            if name in seen.facts and seen.facts[name] != found:
                text = f"counts {seen.facts[name]} targets {name} and has {found}"
                yield say("I4 counts", book.id, text, seen.n)


def results(index: Index) -> Iterator[str]:
    """A done target has a result, and no other has one."""
    for book, seen, targets in _with_targets(index):
        for idx, state, *rest in targets if seen.results else ():
            has = bool(rest) and rest[0] is not None
            if has != (state == "done"):
                yield say(
                    "I4 results",
                    book.id,
                    f"target {idx} is {state} with{'' if has else 'out'} a result",
                    seen.n,
                )


def state_and_counts(index: Index) -> Iterator[str]:
    """A job that ended by its last target ended as its targets did."""
    for book in index.jobs.values():
        for seen in book.shown():
            facts = seen.facts
            if not {"done", "failed", "total"} <= facts.keys():
                continue
            done, failed, total = facts["done"], facts["failed"], facts["total"]
            fits = {
                "done": done == total and failed == 0,
                "partial": done == total and 0 < failed < total,
                "failed": facts.get("error", "?") != "" or done == failed == total,
                "queued": done == 0 or bool(book.carried) or book.carried is None,
                "running": done < total,
            }
            if not fits.get(str(facts["state"]), failed <= done <= total):
                text = f"is {facts['state']} with {done} of {total} finished and {failed} failed"
                yield say("I4 state and counts", book.id, text, seen.n)


def live_and_settled(index: Index) -> Iterator[str]:
    """A job that is live has not settled."""
    for book in index.jobs.values():
        for seen in book.shown():
            if seen.facts.get("settled") and seen.state not in TERMINAL:
                yield say("I4 live and settled", book.id, f"is {seen.state} and settled", seen.n)


def running(index: Index) -> Iterator[str]:
    """At most one target of a job is running, and none of a settled or a queued one."""
    for book, seen, targets in _with_targets(index):
        count = sum(row[1] == "running" for row in targets)
        if count > (0 if seen.facts.get("settled") or seen.state == "queued" else 1):
            state = f"{seen.state}{' and settled' if seen.facts.get('settled') else ''}"
            yield say("I4 running", book.id, f"is {state} with {count} targets running", seen.n)


def gap(index: Index) -> Iterator[str]:
    """What is finished of a job that carried nothing over comes before what is not."""
    for book, seen, targets in _with_targets(index):
        if book.carried is None:
            continue
        left = [row[0] for row in targets if row[1] not in FINISHED and row[0] not in book.carried]
        ahead = [
            r[0] for r in targets if r[1] in FINISHED and r[0] not in book.carried and left and r[0] > left[0]
        ]
        if ahead:
            yield say("I4 gap", book.id, f"target {ahead[0]} is finished and target {left[0]} is not", seen.n)


def wrong_result(index: Index) -> Iterator[str]:
    """A done target has the result that its fetch returned."""
    for book, seen, targets in _with_targets(index):
        fetched = _fetched(book)
        for idx, state, *rest in targets if seen.results else ():
            call = fetched.get(idx)
            if state != "done" or not rest or call is None or call.value.get("digest") is None:
                continue
            if call.value["digest"] != rest[0]:
                text = f"target {idx} was fetched as {call.value['digest']} and has {rest[0]}"
                yield say("I4 wrong result", book.id, text, call.n, seen.n)


def result_from_nowhere(index: Index) -> Iterator[str]:
    """No target is done that was not fetched with success before."""
    if not any(call.op == "fetch" for call in index.calls):
        return
    for book, seen, targets in _with_targets(index):
        if book.carried is None:
            continue
        fetched = _fetched(book)
        for idx, state, *_rest in targets:
            call = fetched.get(idx)
            if state != "done" or idx in book.carried:
                continue
            if call is None or call.begin > seen.end or call.outcome == "fail" or _without_result(call):
                yield say(
                    "I4 result from nowhere", book.id, f"target {idx} is done and no fetch returned", seen.n
                )


def failed_from_nowhere(index: Index) -> Iterator[str]:
    """No target is failed whose fetch returned a result, or that was never fetched, unless it was busy."""
    if not any(call.op == "fetch" for call in index.calls):
        return
    for book, seen, targets in _with_targets(index):
        fetched = _fetched(book)
        for idx, state, *rest in targets:
            call = fetched.get(idx)
            if state != "failed" or book.carried is None:
                continue
            # What the gate or a held host refused to the end was never fetched; nor was what started, and
            # whose time was up before it came past the gate.
            started = (book.id, idx) in index.started
            if call is None and not started and len(rest) > 1 and rest[1] != "busy":
                text = f"target {idx} is failed and was not fetched"
                yield say("I4 failed from nowhere", book.id, text, seen.n)
            elif call is not None and call.fine and call.value.get("digest") is not None:
                text = f"target {idx} was fetched and is failed"
                yield say("I4 failed from nowhere", book.id, text, call.n, seen.n)


def not_stored(index: Index) -> Iterator[str]:
    """In a job that settled in the life of a fetch, what that fetch gave is stored.

    In the rows after that life it need not be: what the store refuses until the grace is over is given up.
    """
    for book, seen, targets in _with_targets(index):
        if not seen.facts.get("settled"):
            continue
        fetched = _fetched(book)
        for idx, state, *_rest in targets:
            call = fetched.get(idx)
            if call is None or call.life != seen.life or state in FINISHED or call.end > seen.begin:
                continue
            if bisect_left(index.ends, call.end) != bisect_left(index.ends, seen.begin):
                continue
            if call.outcome == "fail" or (call.fine and call.value.get("digest") is not None):
                text = f"has settled with target {idx} {state} although its fetch ended"
                yield say("I4 not stored", book.id, text, call.n, seen.n)


# ---- I6: nobody sees another's job


def seen_by_another(index: Index) -> Iterator[str]:
    """No caller finds another caller's job, in no read and in no list."""
    for book in index.jobs.values():
        if book.owner is None:
            continue
        for seen in book.seen:
            who = None if seen.row else index.events[seen.begin].get("caller")
            if who not in (None, book.owner):
                yield say("I6 seen by another", book.id, f"is {book.owner}'s and was shown to {who}", seen.n)


def changed_by_another(index: Index) -> Iterator[str]:
    """No caller cancels, deletes, reruns or reuses another caller's job, or hears why it is gone."""
    for book in index.jobs.values():
        if book.owner is None:
            continue
        for op in ("cancel", "delete", "gone"):
            for call in book.of(op):
                told = call.fine and (call.value.get("result") or call.value.get("reason"))
                if told and call.caller not in (None, book.owner):
                    text = f"is {book.owner}'s and {op} answered {call.caller}"
                    yield say("I6 changed by another", book.id, text, call.n)
    for call in index.calls:
        source = index.jobs.get(call.args.get("job", "")) if call.op == "rerun" and call.fine else None
        reused = index.jobs.get(call.value["job"]) if call.op == "submit" and call.fine else None
        for its, words in ((source, "was run again for"), (reused, "answered a submit of")):
            if its is not None and its.owner not in (None, call.caller):
                text = f"is {its.owner}'s and {words} {call.caller}"
                yield say("I6 changed by another", its.id, text, call.n)


def named_to_another(index: Index) -> Iterator[str]:
    """No refusal names another caller's job."""
    for call in index.calls:
        job = call.value.get("job") if call.outcome == "fail" else None
        named = index.jobs.get(job) if isinstance(job, str) else None
        if named is not None and named.owner not in (None, call.caller):
            yield say("I6 named to another", named.id, f"a refusal names it to {call.caller}", call.n)


def _with_targets(index: Index) -> Iterator[tuple[JobBook, Seen, list[list[Any]]]]:
    for book in index.jobs.values():
        for seen in book.shown():
            if seen.targets is not None:
                yield book, seen, seen.targets


def _fetched(book: JobBook) -> dict[int, Call]:
    """Return the last fetch of each target."""
    return {call.args["idx"]: call for call in book.of("fetch")}


def _without_result(call: Call) -> bool:
    return bool(call.value.get("busy")) or (call.outcome == "unknown" and "call" in call.value)
