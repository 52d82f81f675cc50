"""Submit: what is refused, in which order, and what is stored when it returns."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from flow_desk import ALICE, BOB, START, Heard, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    CallerBusyError,
    JobsBusyError,
    NoTargetsError,
    Options,
    SubmitError,
    Target,
    TooManyTargetsError,
)
from sift_batch.testing import ScriptedFetch, WallClock


async def test_no_targets_are_refused(autojump_clock: MockClock) -> None:
    """A series without targets raises `NoTargetsError` and stores nothing."""
    heard = Heard()
    async with running(ScriptedFetch(), hooks=heard) as runner:
        for empty in ([], (), iter([]), {}):
            with pytest.raises(NoTargetsError):
                await runner.submit(ALICE, empty)
        assert await runner.jobs() == []
    assert heard.of("refused") == [("no_targets",)] * 4


async def test_more_targets_than_the_limit_are_refused(autojump_clock: MockClock) -> None:
    """One target more than `targets_per_job` raises `TooManyTargetsError` with the limit."""
    heard = Heard()
    async with running(ScriptedFetch(), hooks=heard, targets_per_job=3) as runner:
        with pytest.raises(TooManyTargetsError) as caught:
            await runner.submit(ALICE, targets(4))
        assert caught.value.limit == 3
        assert await runner.jobs() == []
        submission = await runner.submit(ALICE, targets(3))
        job, _ = await drained(runner, submission.id)
        assert job.targets_total == 3
    assert heard.of("refused") == [("too_many_targets",)]


async def test_an_infinite_series_is_read_no_further_than_one_too_many(autojump_clock: MockClock) -> None:
    """Of a series without end, no more than `targets_per_job` + 1 targets are read."""
    read = 0

    def endless() -> Iterator[Target]:
        nonlocal read
        for n in itertools.count():
            read += 1
            yield Target(f"http://a.test/{n}")

    async with running(ScriptedFetch(), targets_per_job=5) as runner:
        with pytest.raises(TooManyTargetsError):
            await runner.submit(ALICE, endless())
    assert read == 6


@pytest.mark.parametrize("odd", ["http://a.test/", b"x", None, 7, ("http://a.test/", Options())])
async def test_what_is_no_target_is_named_by_its_index(odd: Any, autojump_clock: MockClock) -> None:
    """Something in the series that is no `Target` raises `TypeError` with its index, and never its value."""
    async with running(ScriptedFetch()) as runner:
        with pytest.raises(TypeError, match=r"targets\[2\]") as caught:
            await runner.submit(ALICE, [*targets(2), odd, Target("http://a.test/3")])
        assert "http" not in str(caught.value)
        assert await runner.jobs() == []


@pytest.mark.parametrize("text", ["http://a.test/", "", "x" * 100, b"http://a.test/"])
async def test_a_text_in_place_of_the_series_is_a_type_error(text: Any, autojump_clock: MockClock) -> None:
    """A `str` in place of the series, however long, raises `TypeError` with an index."""
    async with running(ScriptedFetch()) as runner:
        with pytest.raises(TypeError, match=r"targets\[0\]"):
            await runner.submit(ALICE, text)
        assert await runner.jobs() == []


@pytest.mark.parametrize("series", [None, 5, Target("http://a.test/")])
async def test_what_is_no_series_is_a_type_error(series: Any, autojump_clock: MockClock) -> None:
    """Something that can't be iterated, or a lone `Target`, raises `TypeError`."""
    async with running(ScriptedFetch()) as runner:
        with pytest.raises(TypeError):
            await runner.submit(ALICE, series)


async def test_the_refusals_have_an_order(autojump_clock: MockClock) -> None:
    """Too many comes before a wrong type, a wrong type before an equal job, an equal job before the caps."""
    fetch = ScriptedFetch(hang=["http://a.test/0"])
    async with running(fetch, targets_per_job=2, jobs_total=2) as runner:
        mixed: list[Any] = ["no target", *targets(2)]
        with pytest.raises(TooManyTargetsError):
            await runner.submit(ALICE, mixed)
        first = await runner.submit(ALICE, targets(2))
        with pytest.raises(TypeError):
            await runner.submit(ALICE, mixed[:2])  # the caps are full, and it is not about them
        assert await runner.submit(ALICE, targets(2)) == (first.id, True)
        with pytest.raises(NoTargetsError):
            await runner.submit(ALICE, [])
        with pytest.raises(CallerBusyError):
            await runner.submit(ALICE, targets(1))
        fetch.release()


async def test_the_caps_have_an_order(autojump_clock: MockClock) -> None:
    """The caller's own cap is checked before the cap of all, and names the live job."""
    heard = Heard()
    fetch = ScriptedFetch(hang=["http://a.test/0"])
    async with running(fetch, hooks=heard, jobs_total=2) as runner:
        first = await runner.submit(ALICE, targets(1))
        await runner.submit(BOB, targets(1))
        with pytest.raises(CallerBusyError) as caught:
            await runner.submit(ALICE, targets(2))
        assert caught.value.job_id == first.id
        with pytest.raises(JobsBusyError):
            await runner.submit(Caller("dora"), targets(1))
        assert isinstance(caught.value, SubmitError)
        assert len(await runner.jobs()) == 2
        fetch.release()
        await runner.drain()
        # A finished job takes no room.
        await runner.submit(ALICE, targets(2))
        await runner.submit(Caller("dora"), targets(1))
    assert heard.of("refused") == [("caller_busy",), ("jobs_busy",)]


async def test_a_caller_may_have_several_jobs(autojump_clock: MockClock) -> None:
    """`jobs_per_caller` live jobs of one caller pass, the next one is refused with the newest of them."""
    fetch = ScriptedFetch(hang=[0])
    async with running(fetch, jobs_per_caller=3) as runner:
        ids = [(await runner.submit(ALICE, targets(n + 1))).id for n in range(3)]
        with pytest.raises(CallerBusyError) as caught:
            await runner.submit(ALICE, targets(9))
        assert caught.value.job_id == ids[-1]
        fetch.release()


async def test_a_job_is_stored_when_submit_returns(autojump_clock: MockClock) -> None:
    """When `submit` returns, the job (`queued`, created and lease now) and all its targets are stored."""
    clock = WallClock(START)
    fetch = ScriptedFetch(hang=[0])
    async with running(fetch, now=clock) as runner:
        await runner.submit(BOB, targets(1))  # takes the only worker
        await fetch.wait_started(1)
        await trio.sleep(7)
        options = Options(mode="text", context=False, recover=True)
        series = [Target("http://a.test/x", options), *targets(2)]
        submission = await runner.submit(ALICE, series)
        status = await runner.status(submission.id)
        assert status is not None
        job, stored = status
        assert not submission.reused
        assert len(bytes.fromhex(job.id)) == 16
        assert job.id == submission.id == job.id.lower()
        assert (job.status, job.settled, job.caller, job.error) == ("queued", False, "alice", "")
        assert job.created_at == job.lease == START + 7
        assert (job.started_at, job.finished_at, job.rerun_of) == (None, None, None)
        assert (job.targets_total, job.targets_done, job.targets_failed) == (3, 0, 0)
        assert [(t.idx, t.url, t.options) for t in stored] == [
            (idx, target.url, target.options) for idx, target in enumerate(series)
        ]
        assert {t.status for t in stored} == {"pending"}
        fetch.release()


async def test_ids_are_all_different(autojump_clock: MockClock) -> None:
    """No two jobs get the same id."""
    async with running(ScriptedFetch()) as runner:
        ids = set()
        for n in range(50):
            submission = await runner.submit(ALICE, targets(1, f"h{n}.test"))
            await runner.wait(submission.id)
            ids.add(submission.id)
        assert len(ids) == 50


@pytest.mark.parametrize("caller", ["alice", None, 3, b"alice"])
async def test_a_caller_must_be_a_caller(caller: Any, autojump_clock: MockClock) -> None:
    """A submit by what is no `Caller` raises `TypeError`, before the series is read."""
    read = iter(targets(1))
    async with running(ScriptedFetch()) as runner:
        with pytest.raises(TypeError):
            await runner.submit(caller, read)
        assert len(list(read)) == 1


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x\udfff", "x" * 1_025, "x" * 100_000])
def test_a_bad_caller_name_is_refused(name: str) -> None:
    """A name that is empty, too long, or holds NUL or a surrogate raises `ValueError` without showing it."""
    with pytest.raises(ValueError, match="name") as caught:
        Caller(name)
    assert not name or name not in str(caught.value)


async def test_odd_but_good_caller_names_are_kept(autojump_clock: MockClock) -> None:
    """Names of 1,024 characters, of any script and with quotes come back as they were."""
    names = ["x" * 1_024, "😀" * 1_024, "'; DROP TABLE batch_job; --", " ", "%", "é", "e\u0301", "\x01"]
    async with running(ScriptedFetch()) as runner:
        ids = {(await runner.submit(Caller(name), targets(1))).id for name in names}
        assert len(ids) == len(names)
        for name in names:
            (job,) = await runner.jobs(name)
            assert job.caller == name
        await runner.drain()


async def test_an_error_in_the_series_comes_out_as_itself(autojump_clock: MockClock) -> None:
    """A series that raises while it is read stores nothing, and its error comes out as it is."""

    def broken() -> Iterator[Target]:
        yield Target("http://a.test/0")
        raise LookupError("mine")

    async with running(ScriptedFetch()) as runner:
        with pytest.raises(LookupError, match="mine"):
            await runner.submit(ALICE, broken())
        assert await runner.jobs() == []
        assert runner.statistics().queued == 0
