"""Does the checker see what is wrong? For each rule forged histories that it sees, and it alone."""

from collections.abc import Callable
from typing import Any

import pytest
from history import RULES, HistoryRules
from history_tale import Tale, Telling

FORGED: dict[str, list[tuple[str, dict[str, Any], Telling]]] = {}


def forged(rule: str, invariant: str, **rules: Any) -> Callable[[Telling], Telling]:
    """Enter a forgery that one rule alone sees; its violation names the invariant."""

    def enter(tell: Telling) -> Telling:
        FORGED.setdefault(rule, []).append((invariant, rules, tell))
        return tell

    return enter


# ---- I1


@forged("lost", "I1")
def a_lost_job(tale: Tale) -> None:
    """An acknowledged job is not in the audit."""
    tale.submit()
    tale.audit()


@forged("lost", "I1")
def a_rerun_that_is_lost(tale: Tale) -> None:
    """An acknowledged rerun is not in the audit."""
    tale.submit("j", 1)
    tale.call("rerun", {"caller": "alice", "job": "j"}, job="k", total=1, carried=[])
    tale.audit(("j", "cancelled", "p"))


@forged("lost", "I1", ttl=60)
def lost_and_not_lapsed(tale: Tale) -> None:
    """A job is gone from the rows that can't have lapsed by the clock."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit()
    tale.now += 30
    tale.audit()


@forged("lost", "I1", durable=False)
def lost_by_a_kill(tale: Tale) -> None:
    """A killed process loses nothing, whatever a power cut may take."""
    tale.submit()
    tale.note("killed", life=1)
    tale.audit()


@forged("unreadable", "I1")
def a_job_that_its_owner_cannot_read(tale: Tale) -> None:
    """An acknowledged job is not found."""
    tale.submit()
    tale.miss()


@forged("unreadable", "I1", ttl=60)
def a_job_that_lapses_early(tale: Tale) -> None:
    """A job is not found within its TTL."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit()
    tale.now += 59
    tale.miss()


@forged("unreadable", "I1", ttl=60, max_bytes=100)
def a_job_that_is_swept_early(tale: Tale) -> None:
    """A job is said to have lapsed, and was not found before its time, nor was it evicted."""
    tale.note("clock", jump=0)
    tale.submit()
    tale.now += 59
    tale.miss()
    tale.audit()
    tale.note("gone", job="j", caller="alice", reason="ttl")


@forged("unreadable", "I1", ttl=60)
def a_touch_that_is_forgotten(tale: Tale) -> None:
    """A job lapses although an acknowledged touch was within its TTL."""
    tale.note("clock", wall=1_000.0, jump=0)
    tale.submit()
    tale.now += 59
    tale.call("touch", {"job": "j", "caller": "alice"})
    tale.now += 59
    tale.miss()


@forged("torn", "I1")
def a_torn_job(tale: Tale) -> None:
    """A job has fewer targets than its count says."""
    tale.submit()
    tale.audit(("j", "queued", "p"), total=2)


@forged("torn", "I1")
def a_job_with_fewer_targets_than_submitted(tale: Tale) -> None:
    """A job has fewer targets than were submitted, and counts so."""
    tale.submit("j", 3)
    tale.audit(("j", "queued", "pp"))


@forged("torn", "I1")
def a_torn_job_that_nobody_acknowledged(tale: Tale) -> None:
    """A job without acknowledgement is there in part."""
    tale.begin("submit", caller="alice", targets=["a", "b"], max_age=None)
    tale.note("killed", life=1)
    tale.audit(("j", "queued", "p"), total=2)


@forged("from_nowhere", "I1")
def a_job_that_nobody_submitted(tale: Tale) -> None:
    """A job is there that nobody has submitted."""
    tale.audit(("j", "queued", "p"))


@forged("from_nowhere", "I1")
def two_jobs_of_one_lost_answer(tale: Tale) -> None:
    """One submit without an answer makes two jobs."""
    tale.begin("submit", caller="alice", targets=["a"], max_age=None)
    tale.note("killed", life=1)
    tale.audit(("j", "queued", "p"), ("k", "queued", "p"))


@forged("from_nowhere", "I1")
def a_job_of_a_refused_submit(tale: Tale) -> None:
    """A submit was refused and there is a job."""
    tale.history.fail(tale.begin("submit", caller="alice", targets=["a"], max_age=None), "StoreError")
    tale.see("queued", "p")


@forged("from_nowhere", "I1")
def a_job_of_another_size(tale: Tale) -> None:
    """The one submit without an answer had three targets, and the job has one."""
    tale.begin("submit", caller="alice", targets=["a", "b", "c"], max_age=None)
    tale.audit(("j", "queued", "p"))


@forged("orphans", "I1")
def targets_without_a_job(tale: Tale) -> None:
    """Targets are left over of a job that is not there."""
    tale.audit()
    tale.note("audited", life=1, orphans=["j"])


@forged("stored_lost", "I1")
def a_stored_target_that_is_lost(tale: Tale) -> None:
    """The second target was fetched, so the first was stored; after the restart it is not."""
    tale.submit("j", 3)
    tale.fetch("j", 0)
    tale.fetching("j", 1)
    tale.note("killed", life=1)
    tale.note("opened", life=2)
    tale.see("failed", "ppp", error="restart")


# ---- I2


@forged("two_ends", "I2")
def two_terminal_states(tale: Tale) -> None:
    """A job is seen cancelled and failed, by reads of which none is the later."""
    tale.submit("j", 1)
    first = tale.begin("status", job="j", caller="alice")
    tale.see("cancelled", "p")
    tale.history.ok(first, found=True, **tale.facts("failed", "p", error="timeout"))


@forged("two_ends", "I2")
def two_errors(tale: Tale) -> None:
    """A job that failed by its time is said to have failed by a restart afterwards."""
    tale.submit("j", 1)
    tale.see("failed", "p", error="timeout")
    tale.note("killed", life=1)
    tale.note("opened", life=2)
    tale.see("failed", "p", error="restart")


@forged("left_its_state", "I2")
def back_to_the_queue(tale: Tale) -> None:
    """A running job is queued again."""
    tale.submit("j", 1)
    tale.see("running", "p")
    tale.see("queued", "p")


@forged("left_its_state", "I2")
def unsettled_again(tale: Tale) -> None:
    """A settled job is unsettled again."""
    tale.submit("j", 1)
    tale.see("cancelled", "p")
    tale.see("cancelled", "p", settled=False)


@forged("left_its_state", "I2")
def alive_again(tale: Tale) -> None:
    """A job that has ended is running again."""
    tale.submit("j", 1)
    tale.see("cancelled", "p")
    tale.see("running", "r")


@forged("version_back", "I2")
def a_version_that_goes_back(tale: Tale) -> None:
    """A later read shows an older version."""
    tale.submit("j", 1)
    tale.see("queued", "p", version=3)
    tale.see("queued", "p", version=2)


@forged("version_same", "I2")
def a_change_without_a_version(tale: Tale) -> None:
    """A job starts and its version is the same."""
    tale.submit("j", 1)
    tale.see("queued", "p", version=1)
    tale.see("running", "r", version=1)


@forged("count_back", "I2")
def a_count_that_goes_back(tale: Tale) -> None:
    """A later read counts fewer finished targets."""
    tale.submit("j", 3)
    for done in (2, 1):
        facts = {"state": "running", "settled": False, "total": 3, "done": done, "failed": 0}
        tale.call("job", {"job": "j", "caller": "alice"}, found=True, **facts)


@forged("result_changed", "I2")
def a_result_that_changes(tale: Tale) -> None:
    """A done target has another result afterwards."""
    tale.submit("j", 1)
    tale.see("done", "d", targets=[[0, "done", "one", ""]])
    tale.see("done", "d", targets=[[0, "done", "two", ""]])


@forged("result_changed", "I2")
def a_code_that_changes(tale: Tale) -> None:
    """A failed target has another code afterwards."""
    tale.submit("j", 1)
    tale.history.fail(tale.fetching(), "TargetError")
    tale.see("failed", "f", error="", targets=[[0, "failed", None, "busy"]])
    tale.see("failed", "f", error="", targets=[[0, "failed", None, "internal"]])


@forged("target_back", "I2")
def a_target_that_is_put_back(tale: Tale) -> None:
    """A finished target is pending later, and another is finished instead."""
    tale.submit("k", 2)
    tale.history.unknown(tale.begin("rerun", caller="alice", job="k"))
    tale.see("running", "dp")
    tale.see("running", "pd")


@forged("resurrected", "I2")
def a_deleted_job_that_is_there(tale: Tale) -> None:
    """A job was deleted and is read."""
    tale.submit("j", 1)
    tale.act("delete")
    tale.see("cancelled", "p")


@forged("resurrected", "I2", max_bytes=10)
def an_evicted_job_that_is_there(tale: Tale) -> None:
    """A job was said to be evicted and is read."""
    tale.submit("j", 1)
    tale.call("gone", {"job": "j", "caller": "alice"}, reason="budget")
    tale.see("cancelled", "p")


@forged("resurrected", "I2", ttl=10)
def a_lapsed_job_that_is_there(tale: Tale) -> None:
    """A job has lapsed and is read again, though no clock was set back."""
    tale.submit("j", 1)
    tale.miss()
    tale.call("jobs", {"caller": "alice"}, ids=["j"])


@forged("cancelled_twice", "I2")
def a_job_that_is_cancelled_twice(tale: Tale) -> None:
    """Two cancels of one job are acknowledged."""
    tale.submit("j", 1)
    tale.act("cancel")
    tale.act("cancel")


@forged("cancelled_twice", "I2")
def a_cancel_that_is_forgotten(tale: Tale) -> None:
    """A cancel was acknowledged and the job is queued afterwards."""
    tale.submit("j", 1)
    tale.act("cancel")
    tale.see("queued", "p")


@forged("cancelled_twice", "I2")
def a_cancelled_job_that_the_restart_fails(tale: Tale) -> None:
    """A cancel was acknowledged, and the restart says that the job failed."""
    tale.submit("j", 1)
    tale.act("cancel")
    tale.note("killed", life=1)
    tale.note("opened", life=2)
    tale.audit(("j", "failed", "p"), error="restart")


@forged("deleted_badly", "I2")
def a_job_that_is_deleted_twice(tale: Tale) -> None:
    """Two deletes of one job are acknowledged."""
    tale.submit("j", 1)
    tale.act("delete")
    tale.act("delete")


@forged("deleted_badly", "I2")
def a_job_that_is_deleted_in_flight(tale: Tale) -> None:
    """A job is deleted while it is fetched."""
    tale.submit("j", 1)
    fetch = tale.fetching()
    tale.act("delete")
    tale.history.ok(fetch, digest="r0")


@forged("waited_badly", "I2")
def a_wait_that_returns_early(tale: Tale) -> None:
    """A wait returns a job that has not settled."""
    tale.submit("j", 1)
    tale.call("wait", {"job": "j", "caller": "alice"}, found=True, state="cancelled", settled=False)


# ---- I3


@forged("fetched_again", "I3")
def fetched_twice(tale: Tale) -> None:
    """A target is fetched again after a result."""
    tale.submit("j", 1)
    tale.fetch("j", 0, 1)
    tale.fetch("j", 0, 2)


@forged("fetched_again", "I3")
def fetched_again_after_an_error(tale: Tale) -> None:
    """A target is fetched again after an error."""
    tale.submit("j", 1)
    tale.history.fail(tale.fetching("j", 0, 1), "TargetError")
    tale.fetch("j", 0, 2)


@forged("fetched_again", "I3")
def fetched_again_after_a_timeout(tale: Tale) -> None:
    """A target is fetched again after its fetch was cut off."""
    tale.submit("j", 1)
    tale.history.unknown(tale.fetching("j", 0, 1))
    tale.fetch("j", 0, 2)


@forged("numbers", "I3")
def a_number_twice(tale: Tale) -> None:
    """Two fetches of a target have one number."""
    tale.submit("j", 1)
    tale.fetch("j", 0, 1, busy=True)
    tale.fetch("j", 0, 1)


@forged("fetched_after_restart", "I3")
def fetched_after_a_restart(tale: Tale) -> None:
    """A target that was busy before the restart is fetched after it."""
    tale.note("opened", life=1)
    tale.submit("j", 1)
    tale.fetch("j", 0, 1, busy=True)
    tale.note("closed", life=1)
    tale.note("opened", life=2)
    tale.fetch("j", 0, 2)


@forged("carried_fetched", "I3")
def a_carried_target_that_is_fetched(tale: Tale) -> None:
    """A rerun fetches what it has carried over."""
    tale.submit("k", 2)
    tale.call("rerun", {"caller": "alice", "job": "k"}, job="j", total=2, carried=[0])
    tale.fetch("j", 0)


# ---- I5


@forged("started_after_cancel", "I5")
def started_after_a_cancel(tale: Tale) -> None:
    """A target starts after the cancel was acknowledged."""
    tale.submit("j", 2)
    tale.fetch("j", 0)
    tale.act("cancel")
    tale.fetch("j", 1)


@forged("started_after_end", "I5")
def started_after_a_timeout(tale: Tale) -> None:
    """A target starts after the job was seen to have ended."""
    tale.submit("j", 2)
    tale.see("failed", "pp", error="timeout")
    tale.fetch("j", 0)


@forged("started_after_removal", "I5")
def started_after_a_delete(tale: Tale) -> None:
    """A target starts after its job was deleted."""
    tale.submit("j", 1)
    tale.act("delete")
    tale.fetch("j", 0)


@forged("cancel_refused", "I5")
def a_cancel_that_finds_nothing(tale: Tale) -> None:
    """A cancel of a live job answers that there is nothing to cancel."""
    tale.submit("j", 1)
    tale.act("cancel", result=False)
    tale.see("queued", "p")


# ---- gate and order


@forged("too_many", "gate", per_host=None)
def nine_at_once(tale: Tale) -> None:
    """Nine fetches are open at once."""
    for number in range(9):
        tale.submit(f"j{number}", 1)
        tale.fetching(f"j{number}", host=f"h{number}")


@forged("too_many", "gate", per_host=None)
def nine_with_the_interactive_ones(tale: Tale) -> None:
    """Eight slots are taken by users, and a job is fetched."""
    for _ in range(8):
        tale.begin("slot", host="h")
    tale.submit("j", 1)
    tale.fetching("j")


@forged("too_many_of_a_host", "gate")
def three_of_a_host(tale: Tale) -> None:
    """Three fetches of one host are open at once."""
    for number in range(3):
        tale.submit(f"j{number}", 1)
        tale.fetching(f"j{number}", host="h")


@forged("two_in_flight", "gate")
def two_in_flight_of_a_target(tale: Tale) -> None:
    """A target is fetched twice at once."""
    tale.submit("j", 1)
    tale.fetching("j", 0, 1)
    tale.fetching("j", 0, 2)


@forged("out_of_turn", "order")
def two_in_flight_of_a_job(tale: Tale) -> None:
    """The second target starts before the first has ended."""
    tale.submit("j", 2)
    tale.fetching("j", 0)
    tale.fetching("j", 1)


@forged("out_of_turn", "order")
def the_second_first(tale: Tale) -> None:
    """The first target is fetched after the second."""
    tale.submit("j", 2)
    tale.fetch("j", 1)
    tale.fetch("j", 0)


@forged("too_many_workers", "order", workers=1)
def two_jobs_at_one_worker(tale: Tale) -> None:
    """A second job starts before the first has ended."""
    tale.submit("j", 2)
    tale.submit("k", 1)
    tale.fetch("j", 0)
    tale.fetch("k", 0)
    tale.fetch("j", 1)


@forged("overtaken", "order")
def a_job_that_is_overtaken(tale: Tale) -> None:
    """A job that was submitted later is fetched while the earlier one is queued."""
    tale.submit("j", 1)
    tale.submit("k", 1)
    tale.fetch("k", 0)
    tale.see("queued", "p")


# ---- I4


@forged("counts", "I4")
def a_count_that_is_not_that_of_the_rows(tale: Tale) -> None:
    """A job counts one finished target and has two."""
    tale.submit("j", 3)
    tale.see("running", "ddp", done=1)


@forged("counts", "I4")
def failures_that_are_not_counted(tale: Tale) -> None:
    """A job counts no failure and has one."""
    tale.submit("j", 2)
    tale.see("running", "fp", failed=0)


@forged("results", "I4")
def done_without_a_result(tale: Tale) -> None:
    """A target is done and has no result."""
    tale.submit("j", 1)
    tale.see("done", "d", targets=[[0, "done", None, ""]])


@forged("results", "I4")
def a_result_of_a_failed_target(tale: Tale) -> None:
    """A target has failed and has a result."""
    tale.submit("j", 1)
    tale.see("failed", "f", error="", targets=[[0, "failed", "r0", ""]])


@forged("state_and_counts", "I4")
def done_with_a_failure(tale: Tale) -> None:
    """A job is done although a target of it failed."""
    tale.submit("j", 2)
    tale.see("done", "df")


@forged("state_and_counts", "I4")
def done_too_early(tale: Tale) -> None:
    """A job is done although a target of it is pending."""
    tale.submit("j", 2)
    tale.see("done", "dp")


@forged("state_and_counts", "I4")
def failed_for_no_reason(tale: Tale) -> None:
    """A job has failed without an error, and not all its targets have."""
    tale.submit("j", 2)
    tale.see("failed", "fp", error="")


@forged("live_and_settled", "I4")
def live_and_settled(tale: Tale) -> None:
    """A job is running and settled."""
    tale.submit("j", 1)
    tale.see("running", "p", settled=True)


@forged("running", "I4")
def running_in_a_settled_job(tale: Tale) -> None:
    """A settled job has a target running."""
    tale.submit("j", 1)
    tale.see("cancelled", "r")


@forged("running", "I4")
def two_running(tale: Tale) -> None:
    """A job has two targets running."""
    tale.submit("j", 2)
    tale.see("running", "rr")


@forged("gap", "I4")
def a_gap(tale: Tale) -> None:
    """The second target is stored before the first."""
    tale.submit("j", 2)
    tale.see("running", "pd")


@forged("wrong_result", "I4")
def the_wrong_result(tale: Tale) -> None:
    """A target has another result than its fetch returned."""
    tale.submit("j", 1)
    tale.fetch("j", 0, digest="other")
    tale.see("done", "d")


@forged("result_from_nowhere", "I4")
def a_result_that_nobody_fetched(tale: Tale) -> None:
    """A target is done and was never fetched."""
    tale.submit("k", 1)
    tale.fetch("k", 0)
    tale.submit("j", 1)
    tale.see("done", "d")


@forged("result_from_nowhere", "I4")
def a_result_of_a_fetch_that_failed(tale: Tale) -> None:
    """A target is done and its fetch failed."""
    tale.submit("j", 1)
    tale.history.fail(tale.fetching(), "TargetError")
    tale.see("done", "d")


@forged("result_from_nowhere", "I4")
def a_result_of_a_fetch_that_was_cut_off(tale: Tale) -> None:
    """A target is done and its fetch was cancelled."""
    tale.submit("j", 1)
    tale.history.unknown(tale.fetching())
    tale.see("done", "d")


@forged("failed_from_nowhere", "I4")
def a_result_that_became_a_failure(tale: Tale) -> None:
    """A target has failed and its fetch returned a result."""
    tale.submit("j", 1)
    tale.fetch("j", 0)
    tale.see("failed", "f", error="")


@forged("failed_from_nowhere", "I4")
def a_failure_that_nobody_met(tale: Tale) -> None:
    """A target has failed that was never fetched."""
    tale.submit("k", 1)
    tale.fetch("k", 0)
    tale.submit("j", 1)
    tale.see("failed", "f", error="")


@forged("not_stored", "I4")
def a_result_that_was_dropped(tale: Tale) -> None:
    """A job has settled and what its fetch returned is not there."""
    tale.submit("j", 1)
    tale.fetch("j", 0)
    tale.see("cancelled", "p")


# ---- I6


@forged("seen_by_another", "I6")
def anothers_job_is_read(tale: Tale) -> None:
    """A caller reads another caller's job."""
    tale.submit("j", 1)
    tale.see("queued", "p", caller="bob")


@forged("seen_by_another", "I6")
def anothers_job_is_counted(tale: Tale) -> None:
    """A caller's list has another caller's job."""
    tale.submit("j", 1)
    tale.call("jobs", {"caller": "bob"}, ids=["j"])


@forged("changed_by_another", "I6")
def anothers_job_is_cancelled(tale: Tale) -> None:
    """A caller cancels another caller's job."""
    tale.submit("j", 1)
    tale.act("cancel", caller="bob")


@forged("changed_by_another", "I6")
def anothers_job_is_run_again(tale: Tale) -> None:
    """A caller runs another caller's job again."""
    tale.submit("j", 1)
    tale.call("rerun", {"caller": "bob", "job": "j"}, job="k", total=1, carried=[])


@forged("changed_by_another", "I6")
def anothers_job_answers(tale: Tale) -> None:
    """A caller's submit is answered by another caller's job."""
    tale.submit("j", 1)
    tale.submit("j", 1, caller="bob", reused=True)


@forged("changed_by_another", "I6")
def anothers_end_is_told(tale: Tale) -> None:
    """A caller hears why another caller's job is gone."""
    tale.submit("j", 1)
    tale.call("gone", {"job": "j", "caller": "bob"}, reason="ttl")


@forged("named_to_another", "I6")
def anothers_job_is_named(tale: Tale) -> None:
    """A refusal names another caller's job."""
    tale.submit("j", 1)
    tale.history.fail(tale.begin("submit", caller="bob", targets=["a"]), "CallerBusyError", job="j")


# ---- submits, restarts, bounds


@forged("reused_wrongly", "submit")
def a_failed_job_answers(tale: Tale) -> None:
    """A submit is answered by a job that has failed."""
    tale.submit("j", 1)
    tale.see("failed", "p", error="timeout")
    tale.submit("j", 1, reused=True)


@forged("reused_wrongly", "submit")
def a_cancelled_job_answers(tale: Tale) -> None:
    """A submit is answered by a job that was cancelled."""
    tale.submit("j", 1)
    tale.act("cancel")
    tale.submit("j", 1, reused=True)


@forged("reused_wrongly", "submit")
def a_job_of_other_targets_answers(tale: Tale) -> None:
    """A submit is answered by a job of other targets."""
    tale.submit("j", 1)
    tale.submit("j", urls=["http://other/"], reused=True)


@forged("too_old", "submit")
def a_finished_job_answers_max_age_0(tale: Tale) -> None:
    """A submit with a `max_age` of 0 is answered by a job that has ended."""
    tale.submit("j", 1)
    tale.see("done", "d")
    tale.submit("j", 1, reused=True, max_age=0)


@forged("made_twice", "submit")
def two_jobs_of_one_key(tale: Tale) -> None:
    """A second job is made while an equal one is live."""
    tale.submit("j", urls=["a"])
    tale.submit("k", urls=["a"])
    tale.see("queued", "p")


@forged("made_twice", "submit")
def a_done_job_that_did_not_answer(tale: Tale) -> None:
    """A second job is made while an equal one is done."""
    tale.submit("j", urls=["a"])
    tale.see("done", "d")
    tale.submit("k", urls=["a"])
    tale.see("done", "d")


@forged("over_the_caps", "submit", jobs_total=1)
def more_live_jobs_than_there_may_be(tale: Tale) -> None:
    """A job is made while as many are live as there may be."""
    tale.submit("j", 1)
    tale.submit("k", 1, caller="bob")
    tale.see("queued", "p")


@forged("over_the_caps", "submit", jobs_per_caller=1)
def more_live_jobs_of_a_caller(tale: Tale) -> None:
    """A job is made while its caller has as many live ones as it may have."""
    tale.submit("j", 1)
    tale.submit("k", 1)
    tale.see("queued", "p")


@forged("survived_restart", "restart")
def a_job_that_lives_on(tale: Tale) -> None:
    """A job of the life before is live after the restart."""
    tale.note("opened", life=1)
    tale.submit("j", 1)
    tale.note("closed", life=1)
    tale.note("opened", life=2)
    tale.see("queued", "p")


@forged("survived_restart", "restart")
def a_job_that_is_left_unsettled(tale: Tale) -> None:
    """A cancelled job of the life before has not settled after the restart."""
    tale.note("opened", life=1)
    tale.submit("j", 1)
    tale.act("cancel")
    tale.note("killed", life=1)
    tale.note("opened", life=2)
    tale.see("cancelled", "p", settled=False)


@forged("ended_by_restart", "restart")
def failed_by_a_restart_that_was_none(tale: Tale) -> None:
    """A job failed by a restart in the life that it came in."""
    tale.submit("j", 1)
    tale.see("failed", "p", error="restart")


@forged("bounds", "I8")
def over_a_bound(tale: Tale) -> None:
    """The write-ahead log is larger than it may be."""
    tale.note("memory", name="wal", value=65 * 2**20, limit=64 * 2**20)


CASES = [
    pytest.param(rule, *case, id=f"{rule}-{case[2].__name__}")
    for rule, cases in FORGED.items()
    for case in cases
]


@pytest.mark.parametrize(("rule", "invariant", "rules", "tell"), CASES)
def test_a_forged_history_is_seen_by_its_rule_alone(
    rule: str, invariant: str, rules: dict[str, Any], tell: Telling
) -> None:
    """Each forged history gives a violation that names its invariant, and none once its rule is left out."""
    tale = Tale(**rules)
    tell(tale)
    found = tale.violations()
    assert found
    assert all(line.startswith(invariant) for line in found), found
    assert tale.violations(rule) == []


def test_every_rule_is_needed() -> None:
    """There is no rule without a forged history that it alone sees."""
    assert set(FORGED) == set(RULES)


def test_a_violation_names_its_job_and_its_events() -> None:
    """A violation says which job, and which events to look at."""
    tale = Tale()
    tale.submit("some-job")
    tale.audit()
    (line,) = tale.violations()
    assert line == "I1 lost, job some-job: was acknowledged and is in no row of the audit (events 0, 2)"


@pytest.mark.parametrize("name", ["total", "per_host", "workers", "jobs_total", "jobs_per_caller"])
def test_what_has_no_limit_is_not_asked(name: str) -> None:
    """A limit that is None forbids nothing."""
    tale = Tale(**{"per_host": None, "total": None, name: None})
    for number in range(50):
        tale.submit(f"j{number}", 1)
        tale.fetching(f"j{number}")
    assert tale.violations() == []
    assert HistoryRules().total == 8
