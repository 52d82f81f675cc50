"""The memory of `roster.py`: it counts the live jobs, and keeps nothing of a settled one."""

import trio

from sift_batch import Caller, CallerClass
from sift_batch._engine.roster import LiveJob, Roster
from sift_batch._observe.log import open_event_log


def _job(name: str, caller: Caller | None = None) -> LiveJob:
    return LiveJob(name, caller or Caller("c"), open_event_log(), 0.0)


def _roster() -> tuple[Roster, list[int], list[int]]:
    depths: list[int] = []
    flights: list[int] = []
    return Roster(depths.append, flights.append), depths, flights


def test_a_job_is_known_from_its_submit_to_its_settling() -> None:
    """A job is found from its submit on, listed once it is stored, and gone once it has settled."""
    roster, depths, _ = _roster()
    job = _job("a")
    roster.expect(job)
    assert (roster.find("a"), roster.get("a"), len(roster)) == (job, None, 0)
    assert roster.stored("a") is job
    assert (roster.find("a"), roster.get("a"), roster.jobs()) == (job, job, [job])
    roster.ended(job)
    assert (roster.live, len(roster)) == (0, 1)
    roster.settled(job)
    assert (roster.find("a"), roster.get("a"), len(roster)) == (None, None, 0)
    assert depths == [1, 0]


def test_each_change_counts_once() -> None:
    """Noting twice that a job is stored, has ended or settled changes the count of live jobs once."""
    roster, depths, _ = _roster()
    job = _job("a")
    roster.expect(job)
    for _ in range(2):
        assert roster.stored("a") is job
    for _ in range(2):
        roster.ended(job)
    for _ in range(2):
        roster.settled(job)
    assert roster.stored("a") is None
    assert depths == [1, 0]


def test_a_job_that_settles_has_ended() -> None:
    """A job that settles before anybody noted its end is counted down all the same."""
    roster, depths, _ = _roster()
    job = _job("a")
    roster.expect(job)
    roster.stored("a")
    roster.settled(job)
    assert (roster.live, job.ended, depths) == (0, True, [1, 0])


def test_a_submit_that_came_to_nothing_leaves_nothing() -> None:
    """A forgotten job was never counted and can't be found."""
    roster, depths, _ = _roster()
    job = _job("a")
    roster.expect(job)
    roster.forget(job)
    assert roster.find("a") is None
    assert roster.stored("a") is None
    assert depths == []


def test_ids_of_any_type_find_nothing() -> None:
    """A look-up by what is no id finds nothing and never raises."""
    roster, _, _ = _roster()
    for odd in (None, 3, b"a", ["a"], "", object()):
        assert roster.get(odd) is None
        assert roster.find(odd) is None


def test_flights_are_counted() -> None:
    """Fetches go up and down by one; a result that still has to be stored is in flight, and no fetch."""
    roster, _, flights = _roster()
    first, second = _job("a"), _job("b")
    for job in (first, second):
        job.warned = True
        roster.fetch_began(job, 5.0)
        assert (job.fetching, job.attempt_deadline, job.warned) == (True, 5.0, False)
    for job in (first, second):
        roster.fetch_ended(job)
    assert flights == [1, 2, 1, 0]
    assert (first.in_flight, first.fetching) == (True, False)


async def test_who_waits_for_a_stop_is_woken_by_the_last_one() -> None:
    """Several who try to end a job at once hold it until the last of them is done."""
    job = _job("a")
    job.stops = 2
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.stops_over.park)
        await trio.testing.wait_all_tasks_blocked()
        job.stop_over()
        assert job.stops_over.statistics().tasks_waiting == 1
        job.stop_over()
        assert job.stops_over.statistics().tasks_waiting == 0


def test_a_restricted_callers_job_is_restricted() -> None:
    """A job is as discreet as its caller."""
    assert _job("a", Caller("c", caller_class=CallerClass.RESTRICTED)).restricted
    assert not _job("a").restricted


def test_a_live_job_shows_nothing() -> None:
    """The `repr` of a live job shows neither its caller nor anything else of it."""
    assert "s3cret" not in repr(_job("a", Caller("s3cret", "s3cret", "s3cret")))
