"""Does the checker see a single lie in a history that nobody wrote by hand?"""

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from history import check_history
from history_model import CALLERS, Model
from history_tale import OVER

Events = list[dict[str, Any]]
TAMPERINGS: list[Callable[[Events, Random], bool]] = []


def tampering(change: Callable[[Events, Random], bool]) -> Callable[[Events, Random], bool]:
    """Enter a way to tamper; it says whether it found anything to tamper with."""
    TAMPERINGS.append(change)
    return change


def _pick(events: Events, random: Random, fits: Callable[[dict[str, Any]], object]) -> dict[str, Any] | None:
    found = [event for event in events if fits(event)]
    return random.choice(found) if found else None


def _acknowledged(events: Events) -> set[str]:
    return {event["job"] for event in events if event.get("op") == "submit" and event["kind"] == "ok"}


def _last_audit(events: Events) -> int:
    return max(place for place, event in enumerate(events) if event["kind"] == "audit")


def _add(events: Events, place: int, kind: str, op: str, client: str, **facts: Any) -> None:
    call = 1_000_000 + len(events)
    args = {"n": 9_999, "at": events[place - 1]["at"], "call": call, "client": client, "op": op}
    value = facts.pop("value")
    events[place:place] = [{**args, "kind": "invoke", **facts}, {**args, "kind": kind, **value}]


@tampering
def a_row_is_dropped(events: Events, random: Random) -> bool:
    """The last audit does not have a job that was acknowledged."""
    known, last = _acknowledged(events), _last_audit(events)
    row = _pick(events[last:], random, lambda e: e["kind"] == "row" and e["job"] in known)
    if row is not None:
        events.remove(row)
    return row is not None


@tampering
def a_target_is_dropped(events: Events, random: Random) -> bool:
    """A row has a target less."""
    row = _pick(events, random, lambda e: e["kind"] == "row")
    if row is not None:
        del row["targets"][random.randrange(len(row["targets"]))]
    return row is not None


@tampering
def a_row_is_invented(events: Events, random: Random) -> bool:
    """The last audit has a job that nobody has submitted."""
    row = _pick(events, random, lambda e: e["kind"] == "row")
    if row is not None:
        other = {**copy.deepcopy(row), "job": "invented", "caller": "nobody"}
        events.insert(_last_audit(events) + 1, other)
    return row is not None


@tampering
def a_count_is_changed(events: Events, random: Random) -> bool:
    """A read or a row counts one target more."""
    seen = _pick(events, random, lambda e: "done" in e)
    if seen is not None:
        seen["done"] += 1
    return seen is not None


@tampering
def a_result_is_changed(events: Events, random: Random) -> bool:
    """One view of a done target shows another result."""
    seen = _pick(
        events, random, lambda e: any(row[1] == "done" for row in e.get("targets", ()) if len(row) > 3)
    )
    if seen is not None:
        random.choice([row for row in seen["targets"] if row[1] == "done"])[2] = "forged"
    return seen is not None


@tampering
def a_result_is_dropped(events: Events, random: Random) -> bool:
    """One view of a done target shows no result."""
    seen = _pick(
        events, random, lambda e: any(row[1] == "done" for row in e.get("targets", ()) if len(row) > 3)
    )
    if seen is not None:
        random.choice([row for row in seen["targets"] if row[1] == "done"])[2] = None
    return seen is not None


@tampering
def an_end_is_changed(events: Events, random: Random) -> bool:
    """One of several views of an ended job shows another end."""
    asked = {e["call"]: e.get("job") for e in events if e["kind"] == "invoke"}
    ended = [(e, e.get("job") or asked[e["call"]]) for e in events if e.get("state") in OVER]
    twice = [e for e, job in ended if sum(other == job for _e, other in ended) > 1]
    seen = random.choice(twice) if twice else None
    if seen is not None:
        seen["state"] = "cancelled" if seen["state"] != "cancelled" else "failed"
    return seen is not None


@tampering
def an_ended_job_lives_again(events: Events, random: Random) -> bool:
    """The last row of an ended job shows it running."""
    row = _pick(events[_last_audit(events) :], random, lambda e: e.get("state") in OVER)
    if row is not None:
        row.update(state="running", settled=False)
    return row is not None


@tampering
def a_version_goes_back(events: Events, random: Random) -> bool:
    """A view shows version 0, which is before every other."""
    seen = _pick(events[_last_audit(events) :], random, lambda e: e.get("version", 0) > 1)
    if seen is not None:
        seen["version"] = 0
    rows = [e["job"] for e in events if e["kind"] == "row"]
    return seen is not None and rows.count(seen["job"]) > 1


@tampering
def a_fetch_is_repeated(events: Events, random: Random) -> bool:
    """A target is fetched once more although its fetch had ended."""
    ended = _pick(
        events, random, lambda e: e.get("op") == "fetch" and e["kind"] != "invoke" and not e.get("busy")
    )
    if ended is None:
        return False
    asked = next(e for e in events if e["kind"] == "invoke" and e["call"] == ended["call"])
    args = {name: asked[name] for name in ("job", "idx", "host")}
    place = events.index(ended) + 1
    _add(events, place, "ok", "fetch", "engine", **args, number=99, value={"digest": f"r{args['idx']}"})
    return True


@tampering
def a_cancel_comes_before_a_fetch(events: Events, random: Random) -> bool:
    """A cancel was acknowledged before a fetch of its job."""
    asked = _pick(events, random, lambda e: e.get("op") == "fetch" and e["kind"] == "invoke")
    if asked is not None:
        place = events.index(asked)
        _add(events, place, "ok", "cancel", "client", job=asked["job"], caller=None, value={"result": True})
    return asked is not None


@tampering
def another_caller_reads(events: Events, random: Random) -> bool:
    """A read that found a job was another caller's."""
    known = {}
    for event in events:
        if event.get("op") == "submit" and event["kind"] == "ok":
            known[event["job"]] = next(e for e in events if e.get("call") == event["call"])["caller"]
    read = _pick(
        events, random, lambda e: e.get("op") == "status" and e["kind"] == "invoke" and e["job"] in known
    )
    if read is None:
        return False
    answer = next(e for e in events if e.get("call") == read["call"] and e["kind"] == "ok")
    if not answer["found"]:
        return False
    read["caller"] = next(caller for caller in CALLERS if caller != known[read["job"]])
    return True


@tampering
def a_list_shows_too_much(events: Events, random: Random) -> bool:
    """A caller's list has a job of another's."""
    owners = {e["job"]: e["caller"] for e in events if e["kind"] == "row"}
    asked = _pick(events, random, lambda e: e.get("op") == "jobs" and e["kind"] == "invoke" and e["caller"])
    if asked is None:
        return False
    others = [job for job, owner in owners.items() if owner != asked["caller"]]
    answer = next(e for e in events if e.get("call") == asked["call"] and e["kind"] == "ok")
    answer["ids"] = [*answer["ids"], *others[:1]]
    return bool(others)


@tampering
def a_fetch_never_returned(events: Events, random: Random) -> bool:
    """A result is stored whose fetch was cut off."""
    shown = {
        (e["job"], row[0]) for e in events if e["kind"] == "row" for row in e["targets"] if row[1] == "done"
    }
    calls = {
        e["call"]: (e["job"], e["idx"]) for e in events if e.get("op") == "fetch" and e["kind"] == "invoke"
    }
    acknowledged = _acknowledged(events)
    ended = _pick(
        events,
        random,
        lambda e: "digest" in e and calls[e["call"]] in shown and calls[e["call"]][0] in acknowledged,
    )
    if ended is not None:
        ended["kind"] = "unknown"
        del ended["digest"]
    return ended is not None


@tampering
def a_job_survives_a_restart(events: Events, random: Random) -> bool:
    """A job that a restart failed is queued still in the audit that follows."""
    row = _pick(events, random, lambda e: e.get("error") == "restart" and e["kind"] == "row")
    if row is not None:
        row.update(state="queued", error="")
    return row is not None


@tampering
def an_acknowledged_submit_was_refused(events: Events, random: Random) -> bool:
    """A submit was refused and its job is there, while no other answer was lost."""
    if any(e.get("op") == "submit" and e["kind"] == "unknown" for e in events):
        return False
    jobs = {e["job"] for e in events if e["kind"] == "row"}
    answer = _pick(events, random, lambda e: e.get("op") == "submit" and e.get("job") in jobs)
    if answer is not None:
        answer.update(kind="fail", error="StoreError")
    return answer is not None


@pytest.mark.parametrize("seed", range(40))
def test_the_tiny_model_tells_good_histories(seed: int) -> None:
    """Nothing is found in a history of a model that does everything right."""
    model = Model(seed)
    model.tell()
    assert model.violations() == []


@pytest.mark.parametrize("tamper", TAMPERINGS, ids=[tamper.__name__ for tamper in TAMPERINGS])
def test_one_lie_is_seen(tamper: Callable[[Events, Random], bool]) -> None:
    """Whatever history the model tells, and wherever it is tampered with, the checker sees it."""
    tampered = 0
    for seed in range(25):
        model = Model(seed)
        model.tell()
        events = copy.deepcopy(model.history.events)
        if tamper(events, Random(seed)):
            tampered += 1
            assert check_history(events, model.rules), f"seed {seed}"
    assert tampered >= 3
