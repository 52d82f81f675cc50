"""Is everything there, and whole, that was acknowledged? (I1)"""

from collections.abc import Iterator

from history_calls import FINISHED, Call, Index, JobBook
from history_facts import certain, may_be_deleted, may_be_evicted, may_lapse, say


def lost(index: Index) -> Iterator[str]:
    """An acknowledged job is in every later audit, unless it was deleted or is known to be gone."""
    born = sorted((b.born.end, b.id) for b in index.jobs.values() if b.born is not None and not b.gone)
    must: set[str] = set()
    taken = 0
    for begin, end, _life, found in index.audits:
        while taken < len(born) and born[taken][0] < begin:
            must.add(born[taken][1])
            taken += 1
        for job in sorted(must - found):
            book = index.jobs[job]
            may = may_be_deleted(book, end) or may_lapse(index, book, begin, strict=not book.restricted)
            call = certain(book, begin, index)
            must.discard(job)
            if call is not None and not may and not may_be_evicted(index, book):
                n = index.events[begin]["n"]
                yield say("I1 lost", job, "was acknowledged and is in no row of the audit", call.n, n)


def unreadable(index: Index) -> Iterator[str]:
    """An acknowledged job is found by its owner, unless it was deleted, has lapsed or was evicted."""
    last_audit = max((end for _begin, end, _life, _found in index.audits), default=-1)
    for book in index.jobs.values():
        removed = any(event["reason"] != "ttl" for event in book.gone)
        for read in book.missing:
            born = certain(book, read.begin, index)
            if born is None or read.caller not in (None, book.owner) or may_be_deleted(book, read.end):
                continue
            # That it was evicted is known from the next audit on.
            evicted = index.rules.max_bytes is not None and (book.restricted or read.end > last_audit)
            if removed or evicted or may_lapse(index, book, read.end, strict=False):
                continue
            text = "was acknowledged and its owner is told there is none"
            yield say("I1 unreadable", book.id, text, born.n, read.n)


def torn(index: Index) -> Iterator[str]:
    """A job is there with all its targets, as many as were submitted."""
    for book in index.jobs.values():
        for seen in book.shown():
            total = seen.facts.get("total", book.total)
            if book.total is not None and total != book.total:
                yield say("I1 torn", book.id, f"has {total} targets of the {book.total} it came with", seen.n)
            elif (
                seen.targets is not None
                and total is not None
                and [row[0] for row in seen.targets] != list(range(total))
            ):
                yield say("I1 torn", book.id, f"has {len(seen.targets)} targets of {total}", seen.n)


def from_nowhere(index: Index) -> Iterator[str]:
    """Every job comes from one submit or rerun; one that nobody can tell the end of makes at most one."""
    # The latest first: it is mostly the one.
    calls = [c for c in reversed(index.calls) if c.op in ("submit", "rerun") and c.outcome == "unknown"]
    makers: dict[str, list[int]] = {}
    taken: dict[int, str] = {}
    for book in index.jobs.values():
        if book.born is not None or not (book.seen or book.of("fetch")):
            continue
        makers[book.id] = _makers(book, calls, index)
        if not _match(book.id, makers, taken, set()):
            events = [seen.n for seen in book.seen[:1]] + [call.n for call in book.of("fetch")[:1]]
            yield say("I1 from nowhere", book.id, "was submitted by nobody", *events)


def orphans(index: Index) -> Iterator[str]:
    """There is no target without its job."""
    for event in index.orphans:
        for job in event["orphans"]:
            yield say("I1 orphans", job, "has targets and no row of its own", event["n"])


def stored_lost(index: Index) -> Iterator[str]:
    """A target whose successor was fetched has been stored, and stays so over every restart."""
    for book in index.jobs.values():
        # Of the targets before which another one started: where the last of those began.
        starts = sorted((call.begin, call.args["idx"], call.n) for call in book.of("fetch"))
        for seen in book.shown():
            for idx, state, *_rest in seen.targets or ():
                if state in FINISHED:
                    continue
                after = next((s for s in starts if s[1] > idx and s[0] < seen.begin), None)
                if after is not None and index.epoch(after[0]) == seen.epoch:
                    text = f"target {idx} is {state} although {after[1]} was fetched before that"
                    yield say("I1 stored target lost", book.id, text, after[2], seen.n)
                    break


def _makers(book: JobBook, calls: list[Call], index: Index) -> list[int]:
    """Return which of the calls may have made a job that no answer names."""
    first = min([seen.end for seen in book.seen] + [fetch.begin for fetch in book.of("fetch")])
    total = next((seen.facts["total"] for seen in book.shown() if "total" in seen.facts), None)
    found = []
    for call in calls:
        if call.begin > first or (book.owner is not None and book.owner != call.caller):
            continue
        source = index.jobs.get(call.args["job"]) if call.op == "rerun" else None
        wanted = (
            source.total if source is not None else len(call.args["targets"]) if call.op == "submit" else None
        )
        if None in (total, wanted) or total == wanted:
            found.append(call.begin)
    return found


def _match(job: str, makers: dict[str, list[int]], taken: dict[int, str], tried: set[int]) -> bool:
    """Find a call for a job, moving others to another call where there is one."""
    for call in makers[job]:
        if call not in tried:
            tried.add(call)
            if call not in taken or _match(taken[call], makers, taken, tried):
                taken[call] = job
                return True
    return False
