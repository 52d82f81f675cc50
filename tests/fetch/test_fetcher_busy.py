"""What a busy host means: holds at the gate, waits, and the one try of later targets."""

import time
from email.utils import formatdate

import pytest
import trio
from fetcher_stage import FLEET, Stage, answer, failure

from sift_batch import Config, RetryLater, Target, open_runner, open_store
from sift_batch._model.values import Attempt
from sift_batch.fetch import FetchError
from sift_batch.fetch._jobs import Jobs

URL = "http://slow.org/a"


async def busy_once(stage: Stage, url: str = URL) -> RetryLater:
    """Fetch, and give the refusal."""
    with pytest.raises(RetryLater) as caught:
        await stage.batch(url)
    return caught.value


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_holds_the_host_for_both_classes(status, autojump_clock):
    """A Retry-After keeps everybody away from the host for so long, and the gate shows it."""
    stage = Stage()
    stage.site.give(URL, answer(status, retry_after="30"), answer())
    busy = await busy_once(stage)
    assert (busy.reason, busy.retry_after, busy.ready) == ("retry_after", 30, None)
    assert (stage.gate.statistics().held, stage.gate.statistics().in_use) == (1, 0)
    with pytest.raises(RetryLater) as caught:
        await stage.fetch.interactive(FLEET, Target("http://slow.org/b"))
    assert caught.value.reason == "host"
    assert caught.value.retry_after == pytest.approx(30)
    assert (await stage.fetch.interactive(FLEET, Target(URL), patience=60)).content == "the page"
    assert [when for _, when in stage.site.asked] == [0, pytest.approx(30)]


@pytest.mark.parametrize("value", ["soon", "-5", "5, 10", "1e3", ""])
async def test_without_a_usable_time_the_hold_grows(value, autojump_clock):
    """Busy answers without a usable Retry-After hold the host 2, 4, 8 … 60 s; another answer ends that."""
    stage = Stage()
    stage.site.give(URL, *[answer(429, retry_after=value)] * 7, answer(404), answer(429))
    waits = []
    for _ in range(7):
        busy = await busy_once(stage)
        assert busy.reason == "host"
        waits.append(busy.retry_after)
        await trio.sleep(busy.retry_after)
    assert waits == [2, 4, 8, 16, 32, 60, 60]
    with pytest.raises(FetchError):
        await stage.batch(URL)
    assert (await busy_once(stage)).retry_after == 2


async def test_two_requests_at_once_are_busy_once(autojump_clock):
    """Two requests that were under way at the same time make the hold grow once."""
    stage = Stage()
    stage.site.seconds = 1
    stage.site.give(URL, answer(429))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(busy_once, stage)
        nursery.start_soon(busy_once, stage)
    await trio.sleep(2)
    assert (await busy_once(stage)).retry_after == 4


@pytest.mark.parametrize(("given", "held"), [("0", 1), ("5000", 100), ("9" * 5_000, 100)])
async def test_a_retry_after_is_clamped(given, held, autojump_clock):
    """A Retry-After counts as at least one second and at most the limit."""
    stage = Stage(retry_after_limit=100)
    stage.site.give(URL, answer(429, retry_after=given))
    assert (await busy_once(stage)).retry_after == held


async def test_a_date_counts_from_now(autojump_clock):
    """A Retry-After with a date holds the host until then by the wall clock."""
    stage = Stage()
    stage.site.give(URL, answer(429, retry_after=formatdate(time.time() + 30, usegmt=True)))
    busy = await busy_once(stage)
    assert (busy.reason, busy.retry_after) == ("retry_after", pytest.approx(30, abs=5))


async def test_a_503_without_retry_after_is_a_fault(autojump_clock):
    """A 503 without a Retry-After is a fault of the site, and holds nobody."""
    stage = Stage()
    stage.site.give(URL, answer(503))
    with pytest.raises(FetchError) as caught:
        await stage.batch(URL)
    assert caught.value.code == "server_error"
    assert stage.gate.statistics().held == 0


async def test_a_refusal_of_the_gate_passes_as_it_is(autojump_clock):
    """The first hop raises the gate's own refusal at once, with the `ready` that waits in line."""
    stage = Stage()
    stage.site.give(URL, answer())
    async with stage.busy(URL):
        busy = await busy_once(stage)
        assert (busy.reason, stage.site.asked) == ("gate", [])
    await busy.ready()
    assert (await stage.batch(URL)).content == "the page"


async def test_interactive_waits_for_its_first_slot(autojump_clock):
    """The interactive class waits for a slot as long as its patience, and no longer."""
    stage = Stage()
    stage.site.give(URL, answer())
    async with stage.busy(URL):
        with pytest.raises(RetryLater):
            await stage.fetch.interactive(FLEET, Target(URL), patience=5)
        assert trio.current_time() == 5
    assert (await stage.fetch.interactive(FLEET, Target(URL), patience=5)).content == "the page"


async def test_a_later_hop_waits_and_no_hop_is_fetched_twice(autojump_clock):
    """A later hop holds no slot of the first host while it waits for its own, within the deadline."""
    stage = Stage()
    other = "http://other.org/"
    stage.site.give(URL, answer(302, location=other))
    stage.site.give(other, answer())
    async with trio.open_nursery() as nursery:
        async with stage.busy(other):
            nursery.start_soon(stage.batch, URL)
            await trio.sleep(10)
            assert (stage.site.urls, stage.gate.statistics().in_use) == ([URL], 2)
    assert stage.site.asked == [(URL, 0), (other, 10)]


@pytest.mark.parametrize("reason", ["gate", "host"])
async def test_a_later_hop_that_gets_no_slot_is_busy_at_the_deadline(reason, autojump_clock):
    """A later hop whose host has no room until the deadline gives way then."""
    stage = Stage(total_timeout=20)
    other = "http://other.org/"
    stage.site.give(URL, answer(302, location=other))
    if reason == "host":
        stage.gate.hold(other, 300)
    async with stage.busy(other if reason == "gate" else "http://third.org/"):
        busy = await busy_once(stage)
    assert (busy.reason, trio.current_time(), stage.site.urls) == (reason, 20, [URL])


async def test_a_busy_later_hop_holds_its_own_host(autojump_clock):
    """A busy answer of a later hop holds the host that gave it, and not the first one."""
    stage = Stage()
    other = "http://other.org/"
    stage.site.give(URL, answer(302, location=other))
    stage.site.give(other, answer(429, retry_after="50"))
    await busy_once(stage)
    with pytest.raises(RetryLater):
        async with stage.gate.slot(other):
            pass
    async with stage.gate.slot(URL):
        pass


async def run_job(stage: Stage, *urls: str, **settings):
    """Run one job to its end; give its targets."""
    async with open_store(":memory:") as store:
        async with open_runner(store, stage.fetch, Config(**settings)) as runner:
            job = await runner.submit(FLEET, [Target(url) for url in urls])
            await runner.wait(job.id)
            return (await runner.status(job.id)).targets


async def test_after_a_target_failed_as_busy_later_ones_get_one_try(autojump_clock):
    """Once a host cost a job a target, the job's later targets on that host are tried once each."""
    stage = Stage()
    urls = [f"http://slow.org/{n}" for n in range(4)]
    for url in urls[:3]:
        stage.site.give(url, answer(429, retry_after="50"))
    stage.site.give(urls[3], answer())
    elsewhere = "http://quick.org/"
    stage.site.give(elsewhere, answer(429, retry_after="50"), answer())
    targets = await run_job(stage, *urls[:3], elsewhere, urls[3], retry_for=120)
    assert [target.code for target in targets] == ["busy", "busy", "busy", "", ""]
    # The first had all its time, its last try at a held gate; the next two waited out a hold each.
    assert [stage.site.urls.count(url) for url in urls] == [3, 1, 1, 1]
    assert stage.site.urls.count(elsewhere) == 2
    assert targets[1].retryable
    assert targets[1].hint


async def test_the_one_try_is_a_request_when_the_gate_lets_it(autojump_clock):
    """The one try of a later target asks the site, and its busy answer is a failure at once."""
    stage = Stage()
    first, pause, second = "http://slow.org/0", "http://quick.org/", "http://slow.org/1"
    stage.site.give(first, answer(429, retry_after="10"))
    stage.site.give(pause, answer(429, retry_after="15"), answer())
    stage.site.give(second, answer(429, retry_after="10"))
    targets = await run_job(stage, first, pause, second, retry_for=20)
    assert [target.code for target in targets] == ["busy", "", "busy"]
    assert stage.site.urls.count(second) == 1


async def test_a_long_hold_is_the_one_try(autojump_clock):
    """Where a host has asked for more than a minute, the job's later targets there fail at once."""
    stage = Stage()
    urls = [f"http://slow.org/{n}" for n in range(30)]
    stage.site.give(urls[0], answer(429, retry_after="600"))
    began = trio.current_time()
    targets = await run_job(stage, *urls, retry_for=120)
    assert {target.code for target in targets} == {"busy"}
    assert stage.site.urls == urls[:1]
    assert trio.current_time() - began == pytest.approx(120, abs=1)


async def test_gate_refusals_never_use_up_the_one_try(autojump_clock):
    """In a job that lost a target to a host, a full gate still only means to wait."""
    stage = Stage()
    first, pause, second = "http://slow.org/0", "http://quick.org/", "http://slow.org/1"
    stage.site.give(first, answer(429, retry_after="10"))
    stage.site.give(pause, answer(429, retry_after="15"), answer())
    stage.site.give(second, answer())

    async def crowd() -> None:
        await trio.sleep(25)
        async with stage.gate.slot(first, patience=1_000):
            await trio.sleep(300)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(crowd)
        targets = await run_job(stage, first, pause, second, retry_for=20)
    assert [target.code for target in targets] == ["busy", "", ""]
    assert stage.site.asked[-1][1] == pytest.approx(330)


async def test_every_hop_stands_in_the_line_of_its_class(autojump_clock):
    """A later hop of a batch fetch waits in the batch line, one of an interactive fetch before it."""
    stage = Stage()
    other = "http://other.org/"
    stage.site.give(URL, answer(302, location=other))
    stage.site.give(other, answer())
    async with trio.open_nursery() as nursery:
        async with stage.busy(other):
            nursery.start_soon(stage.batch, URL)
            nursery.start_soon(stage.fetch.interactive, FLEET, Target(URL))
            await trio.testing.wait_all_tasks_blocked()
            now = stage.gate.statistics()
            assert (now.waiting_batch, now.waiting_interactive) == (1, 1)


async def test_a_target_that_came_through_costs_nothing(autojump_clock):
    """A host that was busy for a while and then answered costs the later targets nothing."""
    stage = Stage()
    urls = ["http://slow.org/0", "http://slow.org/1"]
    for url in urls:
        stage.site.give(url, answer(429, retry_after="5"), answer(429, retry_after="5"), answer())
    targets = await run_job(stage, *urls)
    assert [target.code for target in targets] == ["", ""]


async def test_a_host_that_answers_again_is_lost_no_more(autojump_clock):
    """Once a lost host has answered a target of the job, the next ones have all the patience again."""
    stage = Stage()
    lost, answered, later = (f"http://slow.org/{n}" for n in range(3))
    stage.site.give(lost, answer(429, retry_after="30"))
    stage.site.give(answered, answer(404))
    stage.site.give(later, answer(429, retry_after="10"), answer())
    targets = await run_job(stage, lost, answered, later, retry_for=40)
    assert [target.code for target in targets] == ["busy", "page_not_found", ""]


async def test_a_host_that_redirects_to_a_busy_page_of_its_own_is_still_lost(autojump_clock):
    """A redirect is no proper answer of a host whose page is busy: the target has its one try."""
    stage = Stage()
    lost, later = "http://slow.org/0", "http://slow.org/1"
    stage.site.give(lost, answer(429, retry_after="10"))
    stage.site.give(later, answer(302, location="/2"))
    stage.site.give("http://slow.org/2", answer(429, retry_after="10"))
    targets = await run_job(stage, lost, later, "http://slow.org/2", retry_for=35)
    assert [target.code for target in targets] == ["busy"] * 3
    assert [stage.site.urls.count(url) for url in (later, "http://slow.org/2")] == [1, 2]


async def test_an_applications_own_hold_is_no_busy_answer(autojump_clock):
    """A hold that no busy answer made does not count against a job that has lost a target to the host."""
    stage = Stage()
    lost, later = "http://slow.org/0", "http://slow.org/1"
    stage.site.give(lost, answer(429, retry_after="50"))
    stage.site.give(later, answer())

    async def hold() -> None:
        await trio.sleep(130)
        stage.gate.hold(lost, 90)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        targets = await run_job(stage, lost, later, retry_for=120)
    assert [target.code for target in targets] == ["busy", ""]
    assert stage.site.asked[-1] == (later, pytest.approx(220))


async def test_the_interactive_class_is_never_tried_less(autojump_clock):
    """A busy answer to an interactive fetch is always `RetryLater`."""
    stage = Stage()
    stage.site.give(URL, answer(429, retry_after="5"))
    for _ in range(2):
        with pytest.raises(RetryLater):
            await stage.fetch.interactive(FLEET, Target(URL), patience=10)


def test_jobs_are_forgotten():
    """However many jobs meet busy hosts, the memory of them stays small."""
    jobs = Jobs()
    for n in range(5_000):
        jobs.found_busy(Attempt(str(n), 0, 1), "slow.org")
    assert len(jobs._jobs) <= 512
    assert not jobs.found_busy(Attempt("0", 1, 1), "slow.org")


async def test_a_hold_of_a_passing_failure_is_none(autojump_clock):
    """A failure that is no busy answer holds nobody."""
    stage = Stage(retries=0)
    stage.site.give(URL, failure("connect"))
    with pytest.raises(FetchError):
        await stage.batch(URL, mode="text")
    assert stage.gate.statistics().held == 0
