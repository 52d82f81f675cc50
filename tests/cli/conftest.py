"""The command line as a real process, and a web site on loopback for it to fetch from."""

import functools
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from remote_rig import Live, ran

import sift_batch.cli.remote as remote

# The sites of these tests are on this machine, on whatever port was free.
LOOPBACK = ("--allow", "127.0.0.0/8", "--allow", "::1/128", "--ports", "any")


class Site:
    """Answers every path: `/hold…` once it is let go, `/404…` with 404, `/busy…` first with 429.

    `/later…` is 429 for ever, and asks for a minute. `/big…` is a page of 60,000 characters. Every
    other path is a page with its own name.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[str] = []
        self.holding = threading.Semaphore(0)
        self.let_go = threading.Event()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of a path."""
        return f"http://{host}:{self.port}{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def __init__(self, *args: object, site: Site) -> None:
        self.site = site
        super().__init__(*args)

    def do_GET(self) -> None:
        site = self.site
        site.asked.append(self.path)
        if self.path.startswith("/hold"):
            site.holding.release()
            site.let_go.wait(30)
        status = 404 if self.path.startswith("/404") else 200
        if self.path.startswith("/busy") and site.asked.count(self.path) == 1:
            status = 429
        if self.path.startswith("/later"):
            status = 429
        body = f"page {self.path}".encode() if not self.path.startswith("/big") else b"x" * 60_000
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        if status == 429:
            self.send_header("Retry-After", "60" if self.path.startswith("/later") else "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        # A client that was killed in mid-answer is what some tests are about.
        return


@pytest.fixture
def site() -> Iterator[Site]:
    """Give a running site."""
    made: list[Site] = []
    server = _Server(("127.0.0.1", 0), lambda *args: _Handler(*args, site=made[0]))
    made.append(Site(server.server_port))
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    yield made[0]
    made[0].let_go.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Done:
    """A process that has ended."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        self.err = err.decode()

    @property
    def views(self) -> list[dict]:
        """The lines on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


class Running:
    """A process that runs; stopped hard when its test ends."""

    def __init__(self, args: tuple[str, ...], cwd: Path, env: dict[str, str], **more: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sift_batch", *args],
            cwd=cwd,
            env={**os.environ, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self, stdin: bytes = b"") -> Done:
        """Wait for the end."""
        out, err = self.process.communicate(stdin, timeout=60)
        return Done(self.process.returncode, out, err)


@pytest.fixture
def start(tmp_path):
    """Start the command line in an empty folder; `run` may call this machine, unless it is `guarded`."""
    running: list[Running] = []

    def start(
        *args: str, env: dict[str, str] | None = None, guarded: bool = False, **more: object
    ) -> Running:
        if args and args[0] == "run" and not guarded:
            args = ("run", *LOOPBACK, *args[1:])
        running.append(Running(args, tmp_path, env or {}, **more))
        return running[-1]

    yield start
    for one in running:
        one.process.kill()
        one.process.wait()
        for pipe in (one.process.stdin, one.process.stdout, one.process.stderr):
            pipe.close()


@pytest.fixture
def run(start):
    """Run the command line to its end."""

    def run(*args: str, stdin: bytes = b"", **more: object) -> Done:
        return start(*args, **more).end(stdin)

    return run


def lines_of(path: Path) -> list[dict]:
    """Return the views in an output file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def read():
    """Read the views in an output file."""
    return lines_of


@pytest.fixture
def in_this_process(monkeypatch):
    """Commands may run here: they leave this process's logging alone, and know of no service."""
    monkeypatch.setattr(remote, "seal_process", lambda: None)
    for name in ("SIFT_BATCH_SERVER", "SIFT_BATCH_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def live(tmp_path):
    """A service of its own."""
    live = Live(tmp_path / "data")
    live.start()
    yield live
    live.release()
    live.stop()


@pytest.fixture
def sift(live, capfd):
    """Run a command against the service."""
    return lambda name, *args: ran(capfd, name, *live.flags, *args)
