"""Readers as a caller uses them: they answer, queue, are cancelled, recycled and closed."""

import os
import random
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from reader_processes import ENTRY, ask, children, document, exists, open_files, until

from sift_batch._model.values import Options
from sift_batch.fetch import _pool, _process
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._pool import open_readers
from sift_batch.fetch._process import WorkerProcess

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes in /proc"),
]


def readers_of(**settings):
    """Open readers with the stand-in worker."""
    return open_readers(FetchConfig(**settings), _entry=ENTRY)


async def test_a_document_goes_in_and_a_reading_comes_out():
    """Body pieces arrive joined, options arrive, text and facts come back."""
    async with readers_of() as readers:
        reading = await readers.read(document([b"one ", b"", b"page \xc3\xa4"]), Options(question="why?"))
    assert reading.content == "one page ä"
    assert reading.facts == {"chars": 11, "title": "why?"}


async def test_a_body_of_ten_mib_in_one_piece_and_in_many_is_read_whole():
    """No size up to the cap makes the two sides wait for each other."""
    async with readers_of(result_max_bytes=2**24) as readers:
        for body in ([b"x" * 10 * 2**20], [b"x" * 1_000] * 10_486):
            with trio.fail_after(30):
                assert len(await ask(readers, body)) == sum(map(len, body))


async def test_no_process_before_the_first_document_and_one_is_enough_for_calls_in_turn():
    """Processes come with demand, and stay warm."""
    before = children()
    async with readers_of(extract_workers=3) as readers:
        assert children() == before
        pids = {await ask(readers, b"pid") for _ in range(5)}
        assert children() - before == {int(pid) for pid in pids}
        assert len(pids) == 1


async def test_warm_starts_one_worker_and_no_second():
    """A warm worker is there before the first document, and takes it."""
    before = children()
    async with readers_of() as readers:
        await readers.warm()
        await readers.warm()
        warmed = children() - before
        assert len(warmed) == 1
        assert {int(await ask(readers, b"pid"))} == warmed


async def test_never_more_processes_than_workers():
    """Ten documents at once are read by two processes."""
    before = children()
    async with readers_of(extract_workers=2) as readers, trio.open_nursery() as nursery:
        pids = set()
        most = 0

        async def one():
            nonlocal most
            pids.add(await ask(readers, b"pid"))
            most = max(most, len(children() - before))

        for _ in range(10):
            nursery.start_soon(one)
    assert most <= 2
    assert 1 <= len(pids) <= 2


async def test_waiting_calls_are_served_first_come_first_served():
    """The order of the answers is the order of the calls, with one worker."""
    order = []
    async with readers_of(extract_workers=1, extract_timeout=1.0) as readers, trio.open_nursery() as nursery:

        async def first():
            with pytest.raises(FetchError):
                await ask(readers, b"hang")

        async def one(number):
            await ask(readers, b"pid")
            order.append(number)

        nursery.start_soon(first)
        await until(lambda: readers.statistics().busy == 1)
        for number in range(6):
            nursery.start_soon(one, number)
            await until(lambda n=number: readers.statistics().waiting == n + 1)
    assert order == list(range(6))


async def test_whoever_somebody_waits_for_is_served_before_all_others():
    """Interactive calls go before batch ones that came earlier, each class first come, first served."""
    order = []
    async with readers_of(extract_workers=1) as readers, trio.open_nursery() as nursery:
        slow = trio.CancelScope()

        async def first():
            with slow:
                await ask(readers, b"hang")

        async def one(name, interactive):
            await readers.read(document(b"text"), Options(), interactive=interactive)
            order.append(name)

        nursery.start_soon(first)
        await until(lambda: readers.statistics().busy == 1)
        for number, name in enumerate(["batch 1", "batch 2", "person 1", "batch 3", "person 2"]):
            nursery.start_soon(one, name, name.startswith("person"))
            await until(lambda n=number: readers.statistics().waiting == n + 1)
        slow.cancel()
    assert order == ["person 1", "person 2", "batch 1", "batch 2", "batch 3"]


async def test_warm_does_not_wait_in_line():
    """Getting ready for a page never waits behind the pages of others."""
    async with readers_of(extract_workers=1) as readers:
        assert readers._places.take_nowait()  # somebody is about to start a worker
        with trio.fail_after(30):
            await readers.warm()
        assert readers.statistics().started == 0
        readers._places.give_back()


async def test_a_directory_is_made_in_a_thread_and_once(tmp_path, monkeypatch):
    """The loop does not wait for a slow file system, and two starts at once have one directory."""
    makers = []

    def make(**given):
        makers.append(threading.current_thread())
        time.sleep(0.05)
        (tmp_path / f"{given['prefix']}{len(makers)}").mkdir()
        return str(tmp_path / f"{given['prefix']}{len(makers)}")

    monkeypatch.setattr("tempfile.mkdtemp", make)
    async with readers_of(extract_workers=2) as readers, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(ask, readers, b"pid")
    assert len(makers) == 1
    assert makers[0] is not threading.current_thread()
    assert list(tmp_path.iterdir()) == []


async def test_a_worker_that_never_gets_ready_is_no_fault_of_the_page():
    """Dead before it read a byte: `internal`, which may pass, and no word of the page."""
    async with open_readers(FetchConfig(), _entry="no_such_module") as readers:
        for _ in range(2):
            with pytest.raises(FetchError) as caught:
                await ask(readers, b"text")
            assert (caught.value.code, caught.value.retryable) == ("internal", True)
            assert caught.value.hint == "try again later"


async def test_a_worker_that_is_silent_when_it_should_be_ready_is_given_up(monkeypatch):
    """The wait for a new worker is bounded, whatever the time for a page, and is no fault of the page."""
    monkeypatch.setattr(_process, "_READY_WITHIN", 0.5)
    monkeypatch.setattr(_process, "command", lambda *_given: ["/bin/sleep", "600"])
    before = children()
    async with readers_of(extract_timeout=600.0) as readers:
        with trio.fail_after(30), pytest.raises(FetchError) as caught:
            await ask(readers, b"text")
    assert caught.value.code == "internal"
    assert children() == before


async def test_leaving_the_block_has_one_deadline_for_all_workers(monkeypatch):
    """Workers that the system does not let go cost one deadline together, and count as closed."""
    monkeypatch.setattr(_pool, "_CLOSE_WITHIN", 1.0)
    kept = []
    async with readers_of(extract_workers=6) as readers:
        for _ in range(6):
            readers._idle.append(await readers._start())
        kept += readers._alive
        kill = WorkerProcess.kill
        monkeypatch.setattr(WorkerProcess, "kill", lambda _worker: None)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert (readers.statistics().alive, readers.statistics().ended) == (0, {"closed": 6})
    for worker in kept:
        kill(worker)
        worker._process.wait(20)


async def test_waiting_for_a_worker_does_not_count_as_reading():
    """A page that waits behind a slow one for longer than its own time is read all the same."""
    async with readers_of(extract_workers=1, extract_timeout=0.7) as readers, trio.open_nursery() as nursery:
        failed = []

        async def slow():
            with pytest.raises(FetchError, match="took too long"):
                await ask(readers, b"hang")
            failed.append(trio.current_time())

        for _ in range(2):
            nursery.start_soon(slow)
        await until(lambda: readers.statistics().waiting == 1)
        assert await ask(readers, b"text") == "text"
        assert len(failed) == 2


async def test_a_cancel_while_waiting_leaves_nothing():
    """Who is cancelled in the queue takes no worker with it, and the next in the queue is served."""
    async with readers_of(extract_workers=1, extract_timeout=1.0) as readers, trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        got = []

        async def given_up():
            with scope:
                await ask(readers, b"given up")

        async def patient():
            got.append(await ask(readers, b"patient"))

        async def slow():
            with pytest.raises(FetchError):
                await ask(readers, b"hang")

        nursery.start_soon(slow)
        await until(lambda: readers.statistics().busy == 1)
        nursery.start_soon(given_up)
        await until(lambda: readers.statistics().waiting == 1)
        nursery.start_soon(patient)
        await until(lambda: readers.statistics().waiting == 2)
        scope.cancel()
        await until(lambda: readers.statistics().waiting == 1)
    assert scope.cancelled_caught
    assert got == ["patient"]


async def test_a_cancel_while_reading_kills_the_worker_before_the_call_returns():
    """The caller's cancel ends the process even in native code, and reaps it."""
    before = children()
    async with readers_of() as readers:
        await ask(readers, b"pid")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, readers, b"hang")
                await until(lambda: readers.statistics().busy == 1)
                scope.cancel()
        assert children() == before
        assert readers.statistics().ended == {"cancelled": 1}
        assert await ask(readers, b"next") == "next"


async def test_a_page_that_takes_too_long_is_given_up_and_its_neighbour_is_read():
    """The wall deadline fails one target, kills its worker, and costs the other nothing."""
    async with readers_of(extract_workers=2, extract_timeout=1.0) as readers:
        await ask(readers, b"pid")
        start = time.monotonic()
        async with trio.open_nursery() as nursery:

            async def slow():
                with pytest.raises(FetchError, match="reading the page took too long") as caught:
                    await ask(readers, b"hang_without_alarm")
                assert (caught.value.code, caught.value.status) == ("extract_failed", 502)

            nursery.start_soon(slow)
            assert await ask(readers, b"neighbour") == "neighbour"
        assert 0.9 < time.monotonic() - start < 15
        assert readers.statistics().ended["timeout"] == 1


async def test_a_jq_program_is_checked_in_a_worker():
    """A good program passes, a bad one is a bad option with its place."""
    async with readers_of() as readers:
        await readers.check_jq(".")
        with pytest.raises(FetchError, match="line 1, column 2") as caught:
            await readers.check_jq("{")
        assert (caught.value.code, caught.value.hint) == ("bad_option", "look there")


async def test_a_worker_that_compiled_a_program_reads_no_page():
    """A program, good or bad, could have taken its worker over: pages are read by another one."""
    async with readers_of(extract_workers=1) as readers:
        pids = [await ask(readers, b"pid")]
        for program in (".", "{"):
            with suppress(FetchError):
                await readers.check_jq(program)
            pids.append(await ask(readers, b"pid"))
        assert len(set(pids)) == 3
        assert readers.statistics().ended == {"recycled": 2}


async def test_what_the_reader_says_comes_out_as_a_fetch_error():
    """Code, message, hint and reason of a refusal arrive; the worker stays."""
    async with readers_of() as readers:
        with pytest.raises(FetchError) as caught:
            await ask(readers, b"refuse")
        error = caught.value
        assert (error.code, error.message, error.hint, error.reason) == (
            "refused",
            "the page is not what it says",
            "look at it",
            "content_mismatch",
        )
        assert await ask(readers, b"next") == "next"
        assert readers.statistics().started == 1


async def test_a_worker_is_recycled_after_its_last_document(monkeypatch):
    """No process reads more documents than it may; the next one is there already."""
    monkeypatch.setattr(_pool, "RECYCLE_AFTER", 3)
    async with readers_of(extract_workers=1) as readers:
        pids = [await ask(readers, b"pid") for _ in range(7)]
        assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [3, 3, 1]
        statistics = readers.statistics()
        assert (statistics.alive, statistics.started, statistics.ended) == (1, 3, {"recycled": 2})


async def test_an_idle_worker_that_died_fails_no_document():
    """Who is killed between two documents, by the system for example, is replaced unseen."""
    async with readers_of(extract_workers=1) as readers:
        pid = int(await ask(readers, b"pid"))
        os.kill(pid, 9)
        await until(lambda: not exists(pid))
        assert await ask(readers, b"text") == "text"
        assert readers.statistics().ended == {"crashed": 1}


async def test_leaving_the_block_leaves_no_process_no_file_and_no_directory(tmp_path, monkeypatch):
    """Normal end, error and cancel alike: all is gone when the block is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before, files = children(), open_files()
    for way in ("return", "raise", "cancel"):
        with trio.CancelScope() as scope:
            try:
                async with readers_of() as readers:
                    await ask(readers, b"pid")
                    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir()] == [0o700]
                    if way == "raise":
                        raise LookupError
                    if way == "cancel":
                        scope.cancel()
                        await trio.lowlevel.checkpoint()
            except LookupError:
                assert way == "raise"
        assert children() == before
        assert list(tmp_path.iterdir()) == []
        assert readers.statistics().alive == 0
    assert open_files() == files


async def test_calls_that_run_while_the_block_is_left_end_too():
    """A call elsewhere, reading, waiting or to come, fails at once and leaves no process."""
    before = children()
    errors = []

    async def stray(readers, body):
        try:
            await ask(readers, body)
        except trio.ClosedResourceError:
            errors.append(body)

    async with trio.open_nursery() as nursery:
        with trio.fail_after(20):
            async with readers_of(extract_workers=1) as readers:
                nursery.start_soon(stray, readers, b"hang")
                await until(lambda: readers.statistics().busy == 1)
                nursery.start_soon(stray, readers, b"waits")
                await until(lambda: readers.statistics().waiting == 1)
            assert children() == before
            await stray(readers, b"late")
    assert sorted(errors) == [b"hang", b"late", b"waits"]


async def test_a_worker_that_is_being_started_while_the_block_is_left_does_not_stay():
    """Leaving waits for the start that it can't stop, and then ends what came of it."""
    before, files = children(), open_files()

    async def stray(readers):
        with pytest.raises(trio.ClosedResourceError):
            await ask(readers, b"pid")

    async with trio.open_nursery() as nursery:
        async with readers_of() as readers:
            nursery.start_soon(stray, readers)
            for _ in range(3):
                await trio.lowlevel.checkpoint()
            assert readers.statistics().started == 0
        assert (readers.statistics().started, readers.statistics().alive) == (1, 0)
        assert (children(), open_files()) == (before, files)


async def test_an_empty_directory_that_was_tidied_away_is_made_again(tmp_path, monkeypatch):
    """Programs that clean the temporary directory do not stop the reading."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async with readers_of(extract_workers=1) as readers:
        await ask(readers, b"pid")
        for path in tmp_path.iterdir():
            path.rmdir()
        with pytest.raises(FetchError):
            await ask(readers, b"exit 1")
        assert await ask(readers, b"text") == "text"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
async def test_no_interpreter_is_an_internal_error_that_may_pass(monkeypatch, executable):
    """When no process can be started, the target fails as `internal`, and no slot is lost."""
    async with readers_of(extract_workers=1) as readers:
        with monkeypatch.context() as patch:
            patch.setattr("sys.executable", executable)
            for _ in range(3):
                with pytest.raises(FetchError) as caught:
                    await ask(readers, b"text")
                assert (caught.value.code, caught.value.retryable) == ("internal", True)
        assert await ask(readers, b"text") == "text"


@pytest.mark.slow
async def test_after_two_hundred_random_cancels_nothing_is_left():
    """Cancelled at any moment, starting, sending, reading, reaping: no process, no file, no slot is lost."""
    chance = random.Random(4)
    before, files = children(), open_files()
    bodies = [b"pid", b"hang", b"exit 1", b"x" * 2**20]
    async with readers_of(extract_workers=2, result_max_bytes=2**21) as readers:
        for _ in range(50):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(_cancelled, readers, chance.choice(bodies), chance.uniform(0, 0.06))
        assert readers.statistics().busy == 0
        assert len(children() - before) == readers.statistics().alive <= 2
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(ask, readers, b"pid")
    assert children() == before
    assert open_files() == files


async def _cancelled(readers, body, seconds):
    with trio.move_on_after(seconds):
        with suppress(FetchError):
            await ask(readers, body)
