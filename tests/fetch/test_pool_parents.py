"""Applications of every sort around the readers: killed, limited, unusual, and packaged in odd places."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import reader_processes
from reader_processes import ENTRY, children, exists

import sift_batch
from sift_batch.fetch import _process

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes in /proc"),
]

HERE = str(Path(reader_processes.__file__).parent)
SOURCE = str(Path(sift_batch.__file__).parent.parent)

BEGIN = f"""
import os, signal, sys, threading
sys.path[:0] = [{HERE!r}, {SOURCE!r}]
import trio
from reader_processes import ask, children, exists, until
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._pool import open_readers

def readers_of(entry={ENTRY!r}, **settings):
    return open_readers(FetchConfig(**settings), _entry=entry)
"""


def program(text: str) -> list[str]:
    """Give the command of an application that does this."""
    return [sys.executable, "-c", BEGIN + textwrap.dedent(text)]


def run(text: str, *, before: str = "", **options) -> str:
    """Run an application, after a shell's settings, and give what it prints."""
    command = ["/bin/sh", "-c", f'{before}\nexec "$0" "$@"', *program(text)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def gone_within(pid: int, seconds: float) -> bool:
    """Wait until a process is gone, for a bounded time."""
    end = time.monotonic() + seconds
    while exists(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not exists(pid)


KILLED = """
    async def main():
        async with readers_of(extract_timeout={timeout}) as readers:
            await ask(readers, b"pid")
            {fork}
            print("reads", flush=True)
            await ask(readers, b"{body}")
            print("idle", flush=True)
            await trio.sleep_forever()
    trio.run(main)
"""


@contextmanager
def application(tmp_path: Path, **settings):
    """Run an application that reads a document; whatever becomes of it, nothing of it stays."""
    parent = subprocess.Popen(
        program(KILLED.format(**{"timeout": 300, "fork": "", "body": "hang", **settings})),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    workers = set()
    try:
        assert parent.stdout.readline() == "reads\n"
        workers = {pid for pid in children(parent.pid) if os.getsid(pid) == pid}
        yield parent, min(workers)
    finally:
        for group in (parent.pid, *workers):
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        parent.wait()
        parent.stdout.close()


@pytest.mark.parametrize("body", ["hang", "text"])
def test_no_worker_outlives_an_application_that_was_killed(body, tmp_path):
    """In the middle of native code that never ends, or idle: gone as soon as its application is."""
    with application(tmp_path, body=body) as (parent, worker):
        if body == "hang":
            _wait_until_it_watches(worker)
        else:
            assert parent.stdout.readline() == "idle\n"
        assert exists(worker)
        parent.kill()
        assert gone_within(worker, 4)
    if body == "text":
        assert list(tmp_path.iterdir()) == []


def _wait_until_it_watches(worker: int) -> None:
    """Wait until a worker has begun with its document: its input asks for signals then."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            flags = Path(f"/proc/{worker}/fdinfo/3").read_text().split("flags:")[1].split()[0]
        except PermissionError:  # a worker can't be looked into but by root
            time.sleep(1)
            return
        if int(flags, 8) & os.O_ASYNC:
            return
        time.sleep(0.01)
    raise AssertionError("the worker does not watch its input")


@pytest.mark.slow
@pytest.mark.parametrize("body", ["hang", "text"])
def test_no_worker_outlives_its_time_when_a_fork_of_the_application_holds_its_pipe(body, tmp_path):
    """Where the end of the input tells nothing, the kernel's alarm or a look at the parent does."""
    fork = "if not os.fork(): signal.pause()"
    with application(tmp_path, body=body, timeout=1.0, fork=fork) as (parent, worker):
        if body == "hang":
            _wait_until_it_watches(worker)
        else:
            assert parent.stdout.readline() == "idle\n"
        parent.kill()
        parent.wait()
        assert gone_within(worker, 15)


PLAIN = """
    async def main():
        async with readers_of() as readers:
            assert await ask(readers, b"one") == "one"
            try:
                await ask(readers, b"exit 3")
            except FetchError as exc:
                print(exc.code)
            with trio.move_on_after(0.3):
                await ask(readers, b"hang")
            for number in (signal.SIGALRM, signal.SIGIO, signal.SIGXCPU):
                try:
                    print(await ask(readers, b"signal %d" % number))
                except FetchError:
                    pass
            assert await ask(readers, b"two") == "two"
            print(sum(readers.statistics().ended.values()))
        print(len(children()))
"""


@pytest.mark.parametrize(
    "before",
    [
        "ulimit -n 24; ulimit -v 400000; ulimit -t 100; ulimit -f 0; exec </dev/null",
        "ulimit -c unlimited; umask 0777; trap '' INT TERM ALRM IO XCPU CHLD; exec <&-",
    ],
    ids=["limits", "signals"],
)
def test_limits_and_signals_of_the_application_do_not_break_its_readers(before):
    """What a shell may have set before is borne: lower limits stay, ignored signals end workers still."""
    assert run(PLAIN + "    trio.run(main)", before=before) == "extract_failed\n5\n0\n"


def test_an_application_that_ignores_its_childrens_end_works():
    """With SIGCHLD ignored, the kernel takes dead children away by itself: nothing hangs, none is left."""
    text = "    signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" + PLAIN + "    trio.run(main)"
    assert run(text) == "extract_failed\n5\n0\n"


def test_the_number_of_a_worker_that_is_no_more_is_never_killed():
    """Where the kernel takes dead children away, their numbers may be another process's by now."""
    text = """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    async def main():
        async with readers_of(extract_workers=1) as readers:
            pid = int(await ask(readers, b"pid"))
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not os.path.exists(f"/proc/{pid}"))
            kill = os.killpg
            os.killpg = lambda group, number: print("dead") if group == pid else kill(group, number)
            print(await ask(readers, b"text"))
    trio.run(main)
    """
    assert run(text) == "text\n"


def test_an_application_that_blocks_signals_does_not_pass_that_on():
    """A worker's own alarm ends it although the application blocks that signal."""
    text = """
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    async def main():
        async with readers_of() as readers:
            try:
                await ask(readers, b"signal %d" % signal.SIGALRM)
            except FetchError as exc:
                print(exc.message)
    trio.run(main)
    """
    assert run(text) == "reading the page took too long\n"


def test_the_readers_work_outside_the_main_thread():
    """Trio may run in any thread."""
    text = (
        PLAIN
        + """
    thread = threading.Thread(target=trio.run, args=(main,))
    thread.start()
    thread.join()
    """
    )
    assert run(text) == "extract_failed\n5\n0\n"


def test_the_readers_work_in_guest_mode():
    """Trio may be the guest of another loop."""
    text = (
        PLAIN
        + """
    import queue
    calls = queue.Queue()
    def done(outcome):
        outcome.unwrap()
        calls.put(None)
    trio.lowlevel.start_guest_run(main, run_sync_soon_threadsafe=calls.put, done_callback=done)
    while (call := calls.get()) is not None:
        call()
    """
    )
    assert run(text) == "extract_failed\n5\n0\n"


def test_an_application_that_is_interrupted_leaves_no_worker(tmp_path):
    """Ctrl-C ends the application with its workers, whatever these do."""
    with application(tmp_path) as (parent, worker):
        parent.send_signal(signal.SIGINT)
        parent.wait(20)
        assert not exists(worker)
    assert list(tmp_path.iterdir()) == []


REAL = """
import trio
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._document import Document
from sift_batch.fetch._pool import open_readers
from sift_batch import Options
async def main():
    async with open_readers(FetchConfig()) as readers:
        pages = {"text/plain": b"a page", "text/html": b"<title>A</title><p>A page of words</p>"}
        for kind, body in pages.items():
            document = Document(body=[body], content_type=kind, url="https://example.com/")
            print((await readers.read(document, Options())).content.strip())
trio.run(main)
"""


def _packages() -> list[str]:
    """Give the directories that the libraries are in."""
    return [path for path in sys.path if path.endswith("site-packages")]


@pytest.mark.parametrize("way", ["variable", "code"])
def test_packages_that_only_the_application_finds_are_found_by_its_workers(way, tmp_path):
    """A variable or the application's own code may say where the modules are; a worker finds them too."""
    paths = [SOURCE, *_packages()]
    bare = [str(Path(sys.base_prefix) / "bin" / Path(sys.executable).name), "-S"]
    if not Path(bare[0]).exists():
        pytest.skip("no interpreter without packages beside this one")
    environment = {"PATH": os.defpath}
    script = tmp_path / "application.py"
    if way == "variable":
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        script.write_text(REAL)
    else:
        script.write_text(f"import sys\nsys.path += {paths!r}\n" + REAL)
    done = subprocess.run(
        [*bare, str(script)],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.stdout) == ("", "a page\nA page of words\n")


def test_a_package_that_is_simply_installed_is_started_by_its_name(monkeypatch, tmp_path):
    """Where a bare interpreter finds everything, nothing of the application's paths is in the command."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    monkeypatch.setattr("site.getsitepackages", lambda: [SOURCE, *_packages()])
    command = _process.command(_process.ENTRY, (1, 2.0, 3))
    assert command == [sys.executable, "-I", "-m", _process.ENTRY, "1", "2.0", "3", str(os.getpid())]
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path)])
    command = _process.command(_process.ENTRY, (1, 2.0, 3))
    assert command[2] == "-c"
    assert _process.ENTRY in command


def test_a_worker_keeps_bytecode_as_the_application_does(monkeypatch, tmp_path):
    """An application that keeps none, or keeps it elsewhere, has workers that do the same."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert _process.command(_process.ENTRY, (1,))[1:3] == ["-I", "-B"]
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path))
    assert _process.command(_process.ENTRY, (1,))[1:4] == ["-I", "-X", f"pycache_prefix={tmp_path}"]


def test_a_program_frozen_into_one_file_is_not_started_again(monkeypatch):
    """What is no interpreter would run the application once more, and that one again."""
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(FileNotFoundError):
        _process.command(_process.ENTRY, (1, 2.0, 3))


def test_a_worker_imports_no_engine():
    """What a worker is made of is small: no loop, no client, no log."""
    code = (
        "import sys, sift_batch.fetch._worker\n"
        "print(sorted({'trio', 'anyio', 'httpcore2', 'structlog', 'sqlite3', 'ssl', 'lxml', 'logging'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_the_real_worker_is_started_by_name_when_installed(tmp_path):
    """The module itself is a program: sealed, it says that it is ready, and ends with its input."""
    done = subprocess.run(
        [sys.executable, "-m", _process.ENTRY, str(2**29), "30.0", "1000", str(os.getpid())],
        input=b"",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": SOURCE},
    )
    assert done.stdout == b"sift-batch reader 1\n"
    assert tmp_path.is_dir()


def test_nothing_of_python_is_written_by_a_worker(tmp_path):
    """No bytecode appears beside a module that a worker imports."""
    home = tmp_path / "modules"
    home.mkdir()
    shutil.copy(Path(HERE) / "misbehaving_reader.py", home / "another_reader.py")
    text = f"""
    sys.path.insert(0, {str(home)!r})
    async def main():
        async with readers_of("another_reader") as readers:
            print(await ask(readers, b"one"))
    trio.run(main)
    """
    assert run(text) == "one\n"
    assert [path.name for path in home.iterdir()] == ["another_reader.py"]
