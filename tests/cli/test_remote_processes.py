"""Real processes against a live service: pipes, signals, charsets, terminals, a service that starts again."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from remote_rig import Live

from sift_batch import TargetError

pytestmark = pytest.mark.real


@pytest.fixture
def live(tmp_path):
    """A service."""
    live = Live(tmp_path / "data", **{"engine.jobs_per_caller": 16})
    live.start()
    yield live
    live.stop()


@pytest.fixture
def against(live, start, run):
    """Start a command against the service; `against.run` runs it to its end."""

    def against(name: str, *args: str, **more):
        return start(name, *live.flags, *args, **more)

    against.run = lambda name, *args, **more: run(name, *live.flags, *args, **more)
    return against


def test_a_closed_pipe_is_quiet(live, against):
    """Nobody reads: each command ends as it would have, and says nothing, not even at exit."""
    live.fetch.fail("http://a.example/bad", TargetError("not there", code="page_not_found", status=404))
    live.fetch.answer("http://a.example/big", "x" * 200_000)
    job_id = live.submit("http://a.example/big", "http://a.example/bad")
    live.settle(job_id)
    commands = {
        ("submit", "http://a.example/big", "http://a.example/bad", "--max-age", "0"): 0,
        ("status", job_id): 0,
        ("list",): 0,
        ("results", job_id): 1,
        ("watch", job_id): 1,
        ("cancel", "--json", job_id): 0,
        ("rerun", job_id): 0,
        ("fetch", "http://a.example/big"): 0,
    }
    started = {}
    for command in commands:
        started[command] = against(*command)
        started[command].process.stdout.close()
        started[command].process.stdin.close()
    for command, code in commands.items():
        process = started[command].process
        assert (command[0], process.wait(60), process.stderr.read()) == (command[0], code, b"")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_closed_descriptors_are_no_crash(live, closed, tmp_path):
    """Without standard output it is exit 3 and a word; without the others all is as ever."""
    command = [sys.executable, "-m", "sift_batch", "list", *live.flags]
    got = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *command], capture_output=True, timeout=60)
    if closed == ">&-":
        assert got.returncode == 3
        assert b"standard output is closed" in got.stderr
    else:
        assert (got.returncode, got.stdout) == (0, b"")
    assert b"Traceback" not in got.stderr


def test_odd_charsets_are_no_crash(live, against):
    """Whatever the charset of standard output, what it has not is written out."""
    live.fetch.answer("http://a.example/zwölf", "zwölf 五時 \U0001f686")
    live.fetch.answer("http://a.example/zw%C3%B6lf", "zwölf 五時 \U0001f686")
    odd = [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
        {"LANG": "xx_YY.nonsense", "PYTHONIOENCODING": "latin-1"},
    ]
    started = [against("fetch", "http://a.example/zwölf", env=env) for env in odd]
    ended = [one.end() for one in started]
    assert [done.code for done in ended] == [0, 0, 0]
    assert ended[0].out == ended[1].out == b"zw\\xf6lf \\u4e94\\u6642 \\U0001f686\n"
    assert ended[2].out == b"zw\xf6lf \\u4e94\\u6642 \\U0001f686\n"
    assert [done.err for done in ended] == [""] * 3


class Silent:
    """A server that takes requests and never answers; `asked` counts them."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self._held: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "Silent":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for stream in self._held:
            stream.close()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            self._held.append(stream)
            stream.recv(1)
            self.asked.release()


def test_a_signal_ends_every_command_at_once(start):
    """Ctrl-C is 130 and SIGTERM 143, while a service does not answer; no traceback."""
    commands = [
        ("submit", "http://a.example/"),
        ("status", "--wait", "50", "x"),
        ("watch", "x"),
        ("results", "--follow", "x"),
        ("fetch", "http://a.example/"),
        ("list",),
    ]
    with Silent() as server:
        env = {"SIFT_BATCH_SERVER": server.url, "SIFT_BATCH_KEY": "siftb_" + "k" * 40}
        started = [start(*command, env=env) for command in commands]
        for _ in started:
            assert server.asked.acquire(timeout=60)
        numbers = [signal.SIGINT, signal.SIGTERM] * 3
        for one, number in zip(started, numbers, strict=True):
            one.signal(number)
        ended = [one.end() for one in started]
    assert [done.code for done in ended] == [130, 143] * 3
    assert ended[0].err == "the job may be submitted already; `sift-batch list` shows it, if it is\n"
    assert [done.err for done in ended[1:3]] == ["", ""]


def test_ctrl_c_leaves_the_job_alone(live, against):
    """While a job is followed, Ctrl-C ends the following and says how to go on; the job goes on."""
    live.fetch.hang("http://a.example/hang")
    wait = against("submit", "--wait", "http://a.example/1", "http://a.example/hang")
    job_id = wait.process.stdout.readline().decode().strip()
    watch = against("watch", job_id)
    follow = against("results", "--follow", job_id)
    assert watch.process.stdout.readline()
    assert follow.process.stdout.readline()
    live.wait_open(3)
    for one in (watch, wait, follow):
        one.signal(signal.SIGINT)
    ended = [one.end() for one in (watch, wait, follow)]
    assert [done.code for done in ended] == [130, 130, 130]
    assert f"the job goes on; `sift-batch watch {job_id}` follows it" in ended[0].err
    assert f"the job goes on; `sift-batch watch {job_id}` follows it" in ended[1].err
    assert "the same command again writes all its lines" in ended[2].err
    assert live.states() == ["running"]
    live.release()


def test_a_service_that_starts_again_is_found_again(live, against):
    """A watch and a follow go on over a restart of the service, and every line is written once."""
    live.fetch.hang("http://a.example/hang")
    urls = ("http://a.example/1", "http://a.example/hang", "http://a.example/3")
    job_id = live.submit(*urls)
    watch = against("watch", job_id)
    follow = against("results", "--follow", job_id)
    assert watch.process.stdout.readline()
    assert json.loads(follow.process.stdout.readline())["idx"] == 0
    live.wait_open(2)
    live.stop()
    time.sleep(0.2)  # both look for it while it is away
    live.start()
    watched, followed = watch.end(), follow.end()
    assert (watched.code, followed.code) == (1, 1)
    for done in (watched, followed):
        assert "the service went away; trying again for 60 s" in done.err
        assert "the service was restarted meanwhile" in done.err
    assert watched.out.decode().splitlines()[-1].endswith("3 targets: 1 done, 2 not fetched")
    assert [view["idx"] for view in followed.views] == [1, 2]


class _Terminal:
    def __init__(self, *args: str, **env: str) -> None:
        master, slave = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sift_batch", *args],
            env={**os.environ, "TERM": "xterm", **env},
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self._master, self.shown = master, ""

    def read_until(self, text: str) -> None:
        """Read on until `text` was shown; "" reads to the end."""
        stop = time.monotonic() + 60
        while not text or text not in self.shown:
            assert time.monotonic() < stop, self.shown
            if not select.select([self._master], [], [], 1)[0]:
                continue
            try:
                data = os.read(self._master, 65_536)
            except OSError:
                data = b""
            if not data:
                assert not text, self.shown
                os.close(self._master)
                return
            self.shown += data.decode()


def test_a_terminal_has_a_bar(live, against):
    """On a terminal a bar shows how far the job is; NO_COLOR has no colours; 20 columns are no crash."""
    live.fetch.hang("http://a.example/hang")
    live.fetch.fail("http://a.example/bad", TargetError("not there", code="page_not_found", status=404))
    job_id = live.submit("http://a.example/bad", "http://a.example/hang")
    wide = _Terminal("watch", *live.flags, job_id, COLUMNS="100", NO_COLOR="1")
    narrow = _Terminal("watch", *live.flags, job_id, COLUMNS="20")
    wide.read_until("1/2 1 failed  1 in flight")
    narrow.read_until("\x1b[")
    live.release()
    for one in (wide, narrow):
        one.read_until("")
        assert one.process.wait(60) == 1
        assert "partial: 2 targets: 1 done, 1 failed" in one.shown
        assert "target 0: failed: page_not_found: not there" in one.shown
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", wide.shown)
