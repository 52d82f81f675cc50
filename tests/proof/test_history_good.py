"""Does the checker keep quiet where nothing is wrong? Good histories, with unknowns wherever one may be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from history import History, check_history, digest_of, explain, only_about
from history_tale import Tale, Telling

from sift_batch import Caller, Result, Target, open_runner, open_store

GOOD: list[tuple[Telling, dict[str, Any]]] = []


def good(**rules: Any) -> Callable[[Telling], Telling]:
    """Enter a history in which nothing is wrong."""

    def enter(tell: Telling) -> Telling:
        GOOD.append((tell, rules))
        return tell

    return enter


@good(workers=1, jobs_total=1, jobs_per_caller=1)
def a_whole_life(tale: Tale) -> None:
    """A job comes, is busy, is fetched, read, audited and deleted."""
    tale.note("opened", life=1)
    tale.submit("j", 3)
    tale.see("queued", "ppp", version=1)
    tale.fetch("j", 0, 1, busy=True)
    tale.see("running", "rpp", version=2)
    tale.fetch("j", 0, 2)
    tale.history.fail(tale.fetching("j", 1), "TargetError")
    tale.fetch("j", 2)
    tale.call("wait", {"job": "j", "caller": "alice"}, found=True, state="partial", settled=True)
    tale.see("partial", "dfd", version=5)
    tale.miss(caller="bob")
    tale.call("jobs", {"caller": "bob"}, ids=[])
    tale.call("jobs", {"caller": None}, ids=["j"])
    tale.audit(("j", "partial", "dfd"), error="", caller="alice", version=5)
    tale.submit("j", 3, reused=True)
    tale.act("delete", caller="bob", result=False)
    tale.act("delete")
    tale.act("delete", result=False)
    tale.call("gone", {"job": "j", "caller": "alice"}, reason="deleted")
    tale.call("gone", {"job": "j", "caller": "bob"}, reason=None)
    tale.miss()
    tale.audit()


@good()
def a_submit_without_an_answer_is_there(tale: Tale) -> None:
    """A submit whose answer was lost made a job: whole, fetched and reused."""
    tale.history.unknown(tale.begin("submit", caller="alice", targets=["a", "b"], max_age=None))
    tale.fetch("j", 0)
    tale.see("running", "dr")
    tale.submit("j", urls=["a", "b"], reused=True)


@good()
def a_submit_without_an_answer_is_not_there(tale: Tale) -> None:
    """A submit whose answer was lost left nothing."""
    tale.begin("submit", caller="alice", targets=["a"], max_age=None)
    tale.note("killed", life=1)
    tale.audit()


@good()
def two_submits_without_an_answer(tale: Tale) -> None:
    """Two submits without answers made two jobs; which made which is found out by their sizes."""
    for n in (1, 2):
        tale.begin("submit", caller="alice", targets=["a"] * n, max_age=0)
    tale.begin("submit", caller="bob", targets=["a"], max_age=0)
    tale.note("killed", life=1)
    tale.audit(("i", "queued", "p"), ("j", "queued", "pp"), ("k", "queued", "p"))


@good()
def a_rerun_without_an_answer(tale: Tale) -> None:
    """A rerun whose answer was lost made a job with results that were not fetched for it."""
    tale.submit("j", 2)
    tale.fetch("j", 0)
    tale.act("cancel")
    tale.see("cancelled", "dp")
    tale.history.unknown(tale.begin("rerun", caller="alice", job="j"))
    tale.see("running", "dr", "k")
    tale.fetch("k", 1)
    tale.see("done", "dd", "k")


@good()
def a_rerun(tale: Tale) -> None:
    """A rerun carries over what was done, wherever it stood, and fetches the rest."""
    tale.submit("j", 3)
    tale.history.fail(tale.fetching("j", 0), "TargetError")
    tale.fetch("j", 1)
    tale.fetch("j", 2)
    tale.see("partial", "fdd")
    tale.call("rerun", {"caller": "alice", "job": "j"}, job="k", total=3, carried=[1, 2])
    tale.see("queued", "pdd", "k")
    tale.fetch("k", 0)
    tale.see("done", "ddd", "k")
    tale.submit("k", urls=[f"http://h/j/{idx}" for idx in range(3)], reused=True)


@good()
def cancels_without_an_answer(tale: Tale) -> None:
    """A cancel whose answer was lost may have happened, or not; either is fine."""
    for job, state, letters in (("j", "cancelled", "p"), ("k", "done", "d")):
        tale.submit(job, 1)
        fetch = tale.fetching(job, 0) if state == "done" else None
        tale.history.unknown(tale.begin("cancel", job=job, caller="alice"))
        if fetch is not None:
            tale.history.ok(fetch, digest="r0")
        tale.see(state, letters, job)


@good()
def a_cancel_while_a_target_is_fetched(tale: Tale) -> None:
    """What was in flight at a cancel is stored and the job settles."""
    tale.submit("j", 2)
    fetch = tale.fetching("j", 0)
    tale.act("cancel")
    tale.see("cancelled", "rp", settled=False)
    tale.act("cancel", result=False)
    tale.act("delete", result=False)
    tale.history.ok(fetch, digest="r0")
    tale.see("cancelled", "dp")


@good()
def a_cancel_that_overlaps_a_start(tale: Tale) -> None:
    """A target that starts while a cancel is under way starts before it was acknowledged."""
    tale.submit("j", 1)
    cancel = tale.begin("cancel", job="j", caller="alice")
    fetch = tale.fetching("j", 0)
    tale.history.ok(cancel, result=True)
    tale.history.ok(fetch, digest="r0")
    tale.see("cancelled", "d")


@good()
def a_start_before_the_gate(tale: Tale) -> None:
    """A target that had started before a cancel may come out of the gate after it."""
    tale.submit("j", 1)
    tale.note("start", job="j", idx=0, number=1)
    tale.act("cancel")
    tale.fetch("j", 0)
    tale.see("cancelled", "d")


@good()
def a_delete_without_an_answer(tale: Tale) -> None:
    """A delete whose answer was lost may have happened."""
    tale.submit("j", 1)
    tale.submit("k", 1)
    for job in "jk":
        tale.begin("delete", job=job, caller="alice")
    tale.note("killed", life=1)
    tale.audit(("j", "queued", "p"))


@good()
def a_read_while_it_is_deleted(tale: Tale) -> None:
    """A read that overlaps a delete may find the job, or not; a wait gives what it has seen."""
    tale.submit("j", 1)
    first = tale.begin("status", job="j", caller="alice")
    second = tale.begin("status", job="j", caller="alice")
    third = tale.begin("wait", job="j", caller="alice")
    tale.act("delete")
    tale.history.ok(first, found=True, **tale.facts("cancelled", "p"))
    tale.history.ok(second, found=False)
    tale.history.ok(third, found=True, state="cancelled", settled=True)


@good()
def reads_that_overlap(tale: Tale) -> None:
    """Of two reads at the same time, the one that is answered last may be the older view."""
    tale.submit("j", 2)
    fetch = tale.fetching("j", 0)
    first = tale.begin("status", job="j", caller="alice")
    tale.history.ok(fetch, digest="r0")
    tale.see("running", "dr", version=3)
    tale.history.ok(first, found=True, **tale.facts("running", "rp", version=2))


@good()
def a_kill_in_the_middle(tale: Tale) -> None:
    """A process is killed while it fetches; the restart fails what was live and keeps what was stored."""
    tale.note("opened", life=1)
    tale.submit("j", 3)
    tale.fetch("j", 0)
    tale.fetching("j", 1)
    tale.submit("k", 1)
    tale.act("cancel", job="k")
    tale.note("killed", life=1)
    tale.audit(("j", "running", "drp"), ("k", "cancelled", "p"))
    tale.note("opened", life=2)
    tale.see("failed", "dpp", error="restart")
    tale.audit(("j", "failed", "dpp"), ("k", "cancelled", "p"))
    tale.submit("l", urls=[f"http://h/j/{idx}" for idx in range(3)])
    tale.fetch("l", 0)


@good()
def a_fetch_that_ended_and_was_not_stored(tale: Tale) -> None:
    """A kill between a fetch's end and its store leaves the target as if it had not been fetched."""
    tale.note("opened", life=1)
    tale.submit("j", 2)
    tale.fetch("j", 0)
    tale.note("killed", life=1)
    tale.note("opened", life=2)
    tale.see("failed", "pp", error="restart")


@good()
def a_kill_while_it_opens(tale: Tale) -> None:
    """A process may be killed after its restart step and before it says so."""
    tale.note("opened", life=1)
    tale.submit("j", 1)
    tale.note("killed", life=1)
    tale.note("killed", life=2)
    tale.audit(("j", "failed", "p"), error="restart")


@good(durable=False)
def a_power_cut(tale: Tale) -> None:
    """Without full durability a power cut may take a submit, a result, a cancel and a delete with it."""
    tale.note("opened", life=1)
    for job in "jklm":
        tale.submit(job, 2)
    tale.fetch("k", 0)
    tale.fetching("k", 1)
    tale.see("running", "dr", "k", version=3)
    tale.act("cancel", job="l")
    tale.act("cancel", job="m")
    tale.act("delete", job="m")
    tale.note("killed", life=1, power=True)
    tale.note("opened", life=2)
    for job in "klm":
        tale.see("failed", "pp", job, error="restart", version=2)
    tale.miss("j")
    tale.audit(("k", "failed", "pp"), ("l", "failed", "pp"), ("m", "failed", "pp"), error="restart")


@good(ttl=60)
def a_lapse(tale: Tale) -> None:
    """A job is there within its TTL, and may be gone after it; the store remembers why."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit("j", 1)
    tale.act("cancel")
    tale.now += 59
    tale.see("cancelled", "p", lease=1_000)
    tale.now += 5
    tale.miss()
    tale.call("gone", {"job": "j", "caller": "alice"}, reason="ttl")
    tale.audit()


@good(ttl=60)
def a_touch_by_another(tale: Tale) -> None:
    """A touch by another caller is acknowledged and keeps nothing alive."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit("j", 1)
    tale.now += 50
    tale.call("touch", {"job": "j", "caller": "bob"})
    tale.now += 50
    tale.miss()


@good(ttl=60)
def a_lapse_that_no_submit_sees(tale: Tale) -> None:
    """A job that has lapsed answers no submit, and may be in the rows still."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit("j", urls=["a"])
    tale.fetch("j", 0)
    tale.now += 70
    tale.submit("k", urls=["a"])
    tale.audit(("j", "done", "d"), ("k", "queued", "p"))


@good()
def a_result_that_the_store_refused_to_the_end(tale: Tale) -> None:
    """What the store refuses until the grace is over is not stored, though its job may have ended."""
    tale.note("opened", life=1)
    tale.submit("j", 2)
    tale.fetch("j", 0)
    tale.note("closed", life=1)
    tale.audit(("j", "failed", "pp"), error="timeout")


@good(ttl=60)
def a_lapse_that_was_not_swept(tale: Tale) -> None:
    """A job that has lapsed is in the rows until it is swept, also after a restart."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit("j", 1)
    tale.act("cancel")
    tale.now += 70
    tale.miss()
    tale.call("gone", {"job": "j", "caller": "alice"}, reason="ttl")
    tale.audit(("j", "cancelled", "p"))


@good(ttl=60)
def a_lapse_and_a_clock_that_goes_back(tale: Tale) -> None:
    """A job that has lapsed and was not swept is there again once the clock is set back."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit("j", urls=["a"])
    tale.fetch("j", 0)
    tale.note("clock", wall=2_000.0, jump=1_000)
    tale.miss()
    tale.submit("k", urls=["a"], reused=False)
    tale.note("clock", wall=1_001.0, jump=-1_000)
    tale.see("done", "d")
    tale.miss("k")


@good(ttl=60)
def a_lapse_by_a_clock_that_nobody_knows(tale: Tale) -> None:
    """Where the clock was not noted, a job may have lapsed."""
    tale.submit("j", 1)
    tale.miss()


@good(ttl=60, max_bytes=100)
def a_restricted_job_that_is_gone(tale: Tale) -> None:
    """Of a restricted caller's job nobody knows why it is gone."""
    tale.submit("j", 1, restricted=True)
    tale.act("cancel")
    tale.audit()
    tale.call("gone", {"job": "j", "caller": "alice"}, reason=None)


@good(max_bytes=100)
def an_eviction(tale: Tale) -> None:
    """A job that the byte budget took is gone, and the audit knows why."""
    tale.submit("j", 1)
    tale.act("cancel")
    tale.miss()
    tale.audit()
    tale.note("gone", job="j", caller="alice", reason="budget")


@good()
def max_age(tale: Tale) -> None:
    """With a `max_age` a finished job may or may not answer; a live one does."""
    tale.submit("j", urls=["a"])
    tale.submit("j", urls=["a"], reused=True, max_age=0)
    tale.fetch("j", 0)
    tale.see("done", "d")
    tale.submit("j", urls=["a"], reused=True, max_age=5)
    tale.submit("k", urls=["a"], max_age=0)
    tale.see("done", "d")


@good(workers=2)
def a_full_gate(tale: Tale) -> None:
    """Eight at once and two a host are allowed; a kill frees every slot."""
    for _ in range(3):
        tale.note("opened", life=1)
        for number in range(6):
            tale.begin("slot", host=f"h{number // 2}")
        for number in (6, 7):
            job = f"j{number}{tale.now}"
            tale.submit(job, 1)
            tale.fetching(job, host="h3")
        tale.note("killed", life=1)


@good(jobs_total=1)
def a_job_that_may_have_ended(tale: Tale) -> None:
    """A job that was not seen live after a submit may have ended before it."""
    tale.submit("j", 1)
    tale.see("queued", "p")
    tale.submit("k", 1)
    tale.history.fail(tale.begin("submit", caller="bob", targets=["a"]), "JobsBusyError")


@good()
def targets_that_were_never_fetched(tale: Tale) -> None:
    """A target that a held host refused to the end is failed and was never fetched."""
    tale.submit("j", 2)
    tale.fetch("j", 1)
    tale.see("partial", "fd", targets=[[0, "failed", None, "busy"], [1, "done", "r1", ""]])


@good()
def a_target_whose_time_is_up_before_the_gate(tale: Tale) -> None:
    """A target may start and fail by its time before it comes past the gate."""
    tale.submit("j", 2)
    tale.note("start", job="j", idx=0, number=1)
    tale.note("start", job="j", idx=1, number=1)
    tale.fetch("j", 1)
    tale.see("partial", "fd", targets=[[0, "failed", None, "timeout"], [1, "done", "r1", ""]])


@good()
def a_summary(tale: Tale) -> None:
    """A read without results shows none."""
    tale.submit("j", 1)
    tale.fetch("j", 0)
    facts = tale.facts("done", "d", targets=[[0, "done", None, ""]])
    tale.call("status", {"job": "j", "caller": "alice", "results": False}, found=True, **facts)
    tale.see("done", "d")


@pytest.mark.parametrize(("tell", "rules"), GOOD, ids=[tell.__name__ for tell, _rules in GOOD])
def test_a_good_history_gives_no_violation(tell: Telling, rules: dict[str, Any]) -> None:
    """Where nothing is wrong, or where it may be right, nothing is found."""
    tale = Tale(**rules)
    tell(tale)
    assert tale.violations() == [], explain(tale.history.events)


def test_a_history_of_several_processes_is_merged(tmp_path: Path) -> None:
    """Histories are merged by time, calls keep their answers, and a torn last line is dropped."""
    times = iter(range(100))
    files = [tmp_path / "parent", tmp_path / "child"]
    parent, child = (History(file, clock=lambda: next(times)) for file in files)
    with parent, child:
        first = parent.invoke("parent", "submit", caller="alice", targets=["a"])
        second = child.invoke("child", "submit", caller="bob", targets=["b"])
        parent.ok(first, job="j", reused=False)
        child.ok(second, job="k", reused=False)
        parent.note("killed", life=1)
    with files[1].open("ab") as file:
        file.write(b'{"n": 7, "at"')
    merged = History.read(*files)
    assert [event["at"] for event in merged] == [0, 1, 2, 3, 4]
    assert [event["n"] for event in merged] == [0, 1, 2, 3, 4]
    assert [event.get("call") for event in merged] == [0, 1, 0, 1, None]
    assert check_history(merged) == []
    merged.append({"n": 5, "at": 5, "kind": "audit", "life": 1})
    assert len(check_history(merged)) == 2


def test_a_history_is_continued_after_a_kill(tmp_path: Path) -> None:
    """A file that exists is continued with numbers of its own, its torn last line cut off."""
    file = tmp_path / "history"
    with History(file) as history:
        history.ok(history.invoke("a", "submit", caller="alice", targets=["a"]), job="j", reused=False)
    with file.open("ab") as torn:
        torn.write(b'{"n": 2, "at": 1.0, "ki')
    with History(file) as history:
        history.ok(history.invoke("a", "cancel", job="j", caller="alice"), result=True)
    events = History.read(file)
    assert [event["kind"] for event in events] == ["invoke", "ok", "invoke", "ok"]
    assert len({event["call"] for event in events}) == 2


def test_a_line_is_on_its_way_before_the_call_goes_on(tmp_path: Path) -> None:
    """What was recorded is in the file at once, for a reader beside it."""
    file = tmp_path / "history"
    with History(file) as history:
        history.invoke("a", "drain")
        assert len(History.read(file)) == 1


def test_keeping_some_jobs_leaves_a_history_that_checks() -> None:
    """Forgetting jobs that are over takes all their events, and nothing of the others."""
    tale = Tale()
    for job in "jk":
        tale.submit(job, 1)
        tale.fetch(job, 0)
        tale.see("done", "d", job)
    tale.history.fail(tale.begin("submit", caller="bob", targets=["a"]), "JobsBusyError")
    open_call = tale.begin("submit", caller="bob", targets=["a"])
    tale.history.events = only_about(tale.history.events, {"k"})
    assert {event.get("job") for event in tale.history.events} == {"k", None}
    assert tale.history.events[-1]["call"] == open_call
    assert tale.violations() == []
    tale.audit()
    assert len(tale.violations()) == 1


async def test_an_audit_notes_the_rows_of_a_store(tmp_path: Path) -> None:
    """What an audit notes of a real store, together with what was called, is a good history."""

    async def fetch(caller: Caller, target: Target) -> Result:
        return Result("content")

    history = History()
    with trio.fail_after(30):
        async with open_store(":memory:") as store, open_runner(store, fetch) as runner:
            history.note("opened", life=1)
            for name in "ab":
                call = history.invoke("client", "submit", caller="alice", targets=[name])
                job, reused = await runner.submit(Caller("alice"), [Target(name)])
                history.ok(call, job=job, reused=reused)
                await runner.wait(job)
                if name == "a":
                    call = history.invoke("client", "delete", caller="alice", job=job)
                    history.ok(call, result=await runner.delete(job))
            history.audit(store._inline._connection, life=1)  # type: ignore[attr-defined]
    kinds = [event["kind"] for event in history.events[-4:]]
    assert kinds == ["audit", "row", "gone", "audited"]
    row = history.events[-3]
    assert row["targets"] == [[0, "done", digest_of("content"), ""]]
    assert check_history(history.events) == []


def test_a_readable_history_has_a_line_for_each_event_of_a_job() -> None:
    """`explain` shows a job's events with what was asked and answered."""
    tale = Tale()
    tale.submit("j", 1)
    tale.submit("k", 1)
    tale.act("cancel")
    lines = explain(tale.history.events, "j").splitlines()
    assert any("cancel" in line and "result=True" in line for line in lines)
    assert not any("job=k" in line for line in lines)


def test_a_lost_answer_is_kept_for_the_job_that_may_be_its() -> None:
    """A submit without an answer is remembered as long as a job is left that nothing else explains."""
    tale = Tale()
    tale.history.unknown(tale.begin("submit", caller="alice", targets=["a"]))
    tale.fetch("j", 0)
    tale.history.events = only_about(tale.history.events, {"j"})
    assert tale.violations() == []
    assert only_about(tale.history.events, ()) == []
