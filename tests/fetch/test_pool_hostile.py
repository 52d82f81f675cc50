"""A worker that a page took over, or broke: what it can't do, and what it costs its neighbours."""

import json
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from reader_processes import ENTRY, ask, children, exists, until

from sift_batch.fetch import _frames, _worker
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._pool import open_readers

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes in /proc"),
]


def readers_of(**settings):
    """Open readers with the stand-in worker."""
    return open_readers(FetchConfig(**settings), _entry=ENTRY)


async def fails(readers, body: bytes) -> FetchError:
    """Read a document that can't be read, and give the error."""
    with trio.fail_after(60), pytest.raises(FetchError) as caught:
        await ask(readers, body)
    assert (caught.value.code, caught.value.status, caught.value.retryable) == ("extract_failed", 502, False)
    return caught.value


@pytest.mark.parametrize(
    ("body", "message", "end"),
    [
        (b"exit 0", "reading the page failed", "crashed"),
        (b"exit 3", "reading the page failed", "crashed"),
        (b"signal %d" % signal.SIGSEGV, "reading the page failed", "crashed"),
        (b"signal %d" % signal.SIGABRT, "reading the page failed", "crashed"),
        (b"signal %d" % signal.SIGKILL, "reading the page failed", "crashed"),
        (b"signal %d" % signal.SIGALRM, "reading the page took too long", "timeout"),
        (b"spin", "reading the page took too long", "timeout"),
        (b"eat", "reading the page took too much memory", "memory"),
    ],
)
async def test_a_worker_that_ends_fails_its_own_document_only(body, message, end):
    """However a worker ends, its document fails as `extract_failed`, and the next two are read."""
    before = children()
    async with readers_of(extract_memory=2**28) as readers:
        async with trio.open_nursery() as nursery:

            async def neighbour():
                assert await ask(readers, b"neighbour") == "neighbour"

            nursery.start_soon(neighbour)
            assert (await fails(readers, body)).message == message
        assert await ask(readers, b"next") == "next"
        assert readers.statistics().ended == {end: 1}
    assert children() == before


async def test_an_error_inside_a_library_fails_the_document_and_keeps_the_worker():
    """A Python error of any type is `extract_failed`, and nothing of its text comes out."""
    async with readers_of() as readers:
        error = await fails(readers, b"fail https://example.com/secret")
        assert "secret" not in error.message + error.hint
        assert await ask(readers, b"next") == "next"
        assert readers.statistics().started == 1


def frame(header: bytes, content: bytes = b"") -> bytes:
    """Give a frame with right lengths."""
    return _frames.PREFIX.pack(len(header), len(content)) + header + content


NONSENSE = {
    "a huge header": _frames.PREFIX.pack(2**32 - 1, 0) + b"x" * 1_000,
    "a huge content": _frames.PREFIX.pack(32, 2**32 - 1) + b'{"kind": "reading", "facts": {}}' + b"x" * 1_000,
    "no frame": b"HTTP/1.1 200 OK\r\n\r\n",
    "no JSON": frame(b"}"),
    "no text": frame(b'{"kind": "reading", "facts": {}}', b"\xff\xfe"),
    "an unknown code": frame(b'{"kind":"error","code":"fine","message":"m","hint":"","reason":""}'),
    "NaN": frame(b'{"kind": "reading", "facts": {"x": NaN}}'),
    "surrogates": frame(b'{"kind": "reading", "facts": {"title": "\\ud83d"}}'),
    "the answer to another question": frame(b'{"kind": "checked"}'),
}


@pytest.mark.parametrize("name", NONSENSE)
async def test_nonsense_for_an_answer_kills_the_worker_or_is_no_answer(name):
    """What is wrong is noticed at once, not at the deadline, and the next document has a fresh worker."""
    async with readers_of(extract_timeout=600.0) as readers:
        start = time.monotonic()
        await fails(readers, b"say " + NONSENSE[name])
        assert time.monotonic() - start < 30  # the deadline is far away
        with trio.fail_after(30):
            assert await ask(readers, b"next") == "next"


async def test_an_answer_cut_short_is_waited_for_until_the_deadline_and_no_longer():
    """Half an answer is no answer."""
    async with readers_of(extract_timeout=0.5) as readers:
        assert "too long" in (await fails(readers, b"say " + frame(b'{"kind": "failed"}')[:-1])).message


async def test_an_answer_before_its_question_is_never_taken_for_the_next_documents():
    """A worker that says two things at once is not used again."""
    forged = frame(b'{"kind": "reading", "facts": {}}', b"one") + frame(
        b'{"kind": "reading", "facts": {}}', b"forged"
    )
    async with readers_of(extract_workers=1) as readers:
        assert await ask(readers, b"say " + forged) == "one"
        assert await ask(readers, b"second") == "second"
        assert readers.statistics().ended == {"crashed": 1}


async def test_a_worker_knows_nothing_and_may_do_nothing():
    """No environment, no files, no network, no target in its command, and every limit in force."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, lambda stream: stream.aclose(), 0)
        port = listeners[0].socket.getsockname()[1]
        async with readers_of(extract_memory=300 * 2**20) as readers:
            told = json.loads(await ask(readers, b"tell %d" % port))
            assert _environment_of(await ask(readers, b"pid")) == b""
        nursery.cancel_scope.cancel()
    assert told["environment"] == {}
    assert told["native_environment"] is False
    assert told["files"] == [0, 1, 2, 3, 4]
    assert told["directory"] == []
    assert told["written"] != 0
    assert told["session"]
    assert "example" not in " ".join(told["command"])
    limits = told["limits"]
    assert limits["AS"] == [300 * 2**20] * 2
    assert limits["FSIZE"] == limits["CORE"] == limits["NPROC"] == [0, 0]
    assert limits["NOFILE"] == [16, 16]
    assert 20 <= limits["CPU"][0] <= 25
    assert not {"trio", "httpcore2", "structlog", "anyio", "ssl"} & set(told["foreign"])


async def test_a_worker_that_reads_does_not_even_try_to_keep_bytecode(monkeypatch, tmp_path):
    """Where the application keeps bytecode, a worker stops when it may write no files: no try leaves one."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path))
    async with readers_of() as readers:
        assert json.loads(await ask(readers, b"tell 1"))["keeps_bytecode"] is False


def _environment_of(pid: str) -> bytes:
    """Give what a process was started with; only root may look, others see nothing."""
    with suppress(PermissionError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


async def test_a_worker_reaches_no_network_where_the_system_can_take_it_away():
    """Not even the loopback of the machine."""
    if not _can_unshare():
        pytest.skip("this system lets no process leave the network")
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, lambda stream: stream.aclose(), 0)
        port = listeners[0].socket.getsockname()[1]
        async with readers_of() as readers:
            assert json.loads(await ask(readers, b"tell %d" % port))["port"] != 0
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("user", "ways"), [(0, [0x40000000]), (1_000, [0x50000000])], ids=["root", "user"])
def test_root_never_leaves_its_own_user_namespace(monkeypatch, user, ways):
    """Root without the right to leave the network stays root: else modules of others could not be read."""
    asked = []

    class Library:
        def prctl(self, *_given):
            return 0

        def unshare(self, way):
            asked.append(way)
            return -1

    monkeypatch.setattr("ctypes.CDLL", lambda *_given, **_more: Library())
    monkeypatch.setattr("os.geteuid", lambda: user)
    _worker._drop_privileges()
    assert asked == ways


def _can_unshare() -> bool:
    import subprocess
    import sys

    code = "import ctypes; c = ctypes.CDLL(None); exit(c.unshare(0x40000000) and c.unshare(0x50000000))"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_the_cpu_limit_moves_up_with_each_document():
    """A worker that read much may still spend its seconds on the next document."""
    async with readers_of(extract_workers=1) as readers:
        first = json.loads(await ask(readers, b"tell 1"))["limits"]["CPU"][0]
        await ask(readers, b"burn 1.2")
        assert json.loads(await ask(readers, b"tell 1"))["limits"]["CPU"][0] > first
        assert readers.statistics().started == 1


async def test_what_a_library_prints_is_no_answer():
    """Standard output and input of a worker lead nowhere."""
    async with readers_of() as readers:
        assert await ask(readers, b"print") == "b''"
        assert await ask(readers, b"next") == "next"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_what_asks_the_application_to_finish_does_not_end_a_worker(number):
    """A terminal and a service manager signal every process; the page that is being read is still read."""
    async with readers_of() as readers:
        assert await ask(readers, b"signal %d" % number) == "survived"


async def test_what_a_worker_started_is_killed_with_it():
    """A process that a worker could fork does not outlive the readers."""
    async with readers_of() as readers:
        try:
            child = int(await ask(readers, b"fork"))
        except FetchError:
            return  # the limit on processes holds for everybody but root
        assert exists(child)
    await until(lambda: not exists(child))


async def test_the_parents_memory_does_not_follow_a_worker_that_never_stops_talking():
    """A worker that sends without end is cut off, whether its lengths are wrong or right."""
    async with readers_of() as readers:
        await ask(readers, b"pid")
        before = _resident()
        await fails(readers, b"flood ")
        await fails(readers, b"flood " + _frames.PREFIX.pack(_frames.ANSWER_LIMIT, 2**18))
        assert _resident() - before < 16 * 2**20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


async def test_the_loop_does_not_stall_while_large_documents_are_read():
    """Ten MiB in one piece and the largest answer hold other tasks up for less than 20 ms."""
    gaps = []

    async def clock():
        last = time.thread_time()  # not the clock on the wall: other programs take time too
        while True:
            await trio.lowlevel.checkpoint()
            now = time.thread_time()
            gaps.append(now - last)
            last = now

    async with readers_of(result_max_bytes=2**18) as readers:
        await ask(readers, b"pid")
        body = b"drop " + b"x" * 10 * 2**20
        worst = []
        for _ in range(3):
            gaps.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(clock)
                assert len(await ask(readers, body)) == 2**18
                nursery.cancel_scope.cancel()
            worst.append(max(gaps))
        assert min(worst) < 0.02
