"""Is the systemd unit sound, and does the service do its work under the restrictions that it asks for?"""

import ctypes.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from unit_sandbox import Unit

from sift_batch.cli.demo_pdf import pdf
from sift_batch.fetch._process import REAP_WITHIN
from sift_batch.service._settings import load_settings

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
UNIT = FOLDER / "sift-batch.service"
PROGRAM = "/opt/sift-batch/bin/sift-batch"
SANDBOX = Path(__file__).with_name("unit_sandbox.py")
USER = 10_001

ANALYZE = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(
    ANALYZE is None, reason="systemd-analyze is not installed (apt-get install systemd)"
)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze."""
    environment = {"PATH": "/usr/bin:/bin", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"}
    return subprocess.run(
        [str(ANALYZE), *arguments], capture_output=True, text=True, timeout=30, check=False, env=environment
    )


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The unit with a program that is on this machine."""
    text = UNIT.read_text("utf-8")
    assert PROGRAM in text
    path = tmp_path / "sift-batch.service"
    path.write_text(text.replace(PROGRAM, sys.executable), "utf-8")
    return path


@needs_systemd
@pytest.mark.real
def test_systemd_finds_nothing_to_complain_of(installed: Path) -> None:
    """`systemd-analyze verify` knows every line of the unit and takes its value."""
    done = analyze("verify", "--man=no", str(installed))
    assert (done.returncode, [line for line in done.stderr.splitlines() if "sift-batch" in line]) == (0, [])


@needs_systemd
@pytest.mark.real
def test_the_unit_exposes_little(installed: Path) -> None:
    """`systemd-analyze security` rates the exposure at 2.0 of 10 or less."""
    done = analyze("security", "--offline=true", "--threshold=20", str(installed))
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze can't look at a file")
    assert done.returncode == 0, done.stdout + done.stderr


def test_stopping_is_given_enough_time() -> None:
    """The manager waits longer than the service takes to stop: its graces, and the end of its workers."""
    settings = load_settings()
    longest = settings.engine.shutdown_grace + 2 * settings.service.grace_seconds + 2 * REAP_WITHIN

    assert int(Unit(UNIT).one("TimeoutStopSec")) > longest


def test_workers_may_leave_the_network() -> None:
    """A worker needs a user namespace and a network namespace of its own, and the unit forbids neither."""
    assert set(Unit(UNIT).words("RestrictNamespaces")) == {"user", "net"}


def test_one_worker_too_large_does_not_end_the_service() -> None:
    """What the kernel kills for its memory is one process; the unit goes on."""
    assert Unit(UNIT).one("OOMPolicy") == "continue"


def test_bad_settings_are_not_tried_again() -> None:
    """The exit code of settings that are refused keeps systemd from starting again and again."""
    unit = Unit(UNIT)
    done = subprocess.run(
        [sys.executable, "-m", "sift_batch", "serve", "--port", "x"],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == int(unit.one("RestartPreventExitStatus"))
    assert unit.one("Restart") == "on-failure"


def test_the_example_settings_are_valid() -> None:
    """The settings file that goes with the unit can be read, and lets nobody but this machine in."""
    settings = load_settings(FOLDER / "sift-batch.toml", flags={"service.data": "/var/lib/sift-batch"})

    assert settings.service.callers == "/etc/sift-batch/callers.toml"
    assert settings.service.server_name == ("batch.example.org",)
    assert (settings.service.host, settings.service.metrics_host) == ("127.0.0.1", "127.0.0.1")


PAGE = b"<html><title>Tides</title><body><h1>Tides</h1><p>High water is at noon.</p><p>Bring boots.</p>"


class Site(BaseHTTPRequestHandler):
    """A page, a PDF and a document of data."""

    PAGES: ClassVar = {
        "/page": ("text/html", PAGE),
        "/pdf": ("application/pdf", pdf("Tides", ["High water is at noon."])),
        "/data": ("application/json", b'{"tide": {"high": "noon"}}'),
    }

    def do_GET(self) -> None:
        """Answer a request."""
        kind, body = self.PAGES[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def site() -> Iterator[str]:
    """Serve the site; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class Sandboxed:
    """A service that runs in the unit's sandbox."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        line = process.stdout.readline() if process.stdout else ""
        assert line.startswith("listening on "), line
        self._address = line.split()[2]
        self._key = (folder / "data" / "key").read_text("utf-8").strip()
        self._opener = build_opener(ProxyHandler({}))

    def ask(self, path: str, body: Any = None) -> Any:
        """Send a request, and give the JSON of its answer."""
        request = Request(self._address + path, headers={"Authorization": f"Bearer {self._key}"})
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with self._opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def children(self) -> list[int]:
        """The numbers of its worker processes."""
        task = Path(f"/proc/{self.process.pid}/task")
        return [int(word) for file in task.glob("*/children") for word in file.read_text("utf-8").split()]


@contextmanager
def sandboxed() -> Iterator[Sandboxed]:
    """Run the service under the unit's restrictions."""
    with tempfile.TemporaryDirectory(prefix="sift-batch-deploy-") as name:
        command = [sys.executable, "-m", "sift_batch", "serve", "--data", f"{name}/data"]
        command += ["--port", "0", "--metrics-port", "0", "--allow", "127.0.0.0/8", "--ports", "any"]
        process = subprocess.Popen(
            [sys.executable, str(SANDBOX), str(UNIT), name, str(USER), *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        watchdog = threading.Timer(60, process.kill)
        watchdog.start()
        try:
            yield Sandboxed(process, Path(name))
        finally:
            watchdog.cancel()
            process.kill()
            process.communicate()


@needs_systemd
@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(
    ctypes.util.find_library("seccomp") is None, reason="libseccomp is not installed (it comes with systemd)"
)
def test_the_service_works_in_its_sandbox() -> None:
    """Under the unit's filter, which holds for the workers too, pages of every kind are fetched and read.

    Each worker has left the network; SIGHUP is taken, and SIGTERM ends the service in good order.
    """
    with site() as address, sandboxed() as service:
        targets = [
            f"{address}/page",
            f"{address}/pdf",
            {"url": f"{address}/data", "options": {"jq": ".tide.high"}},
            {"url": f"{address}/page", "options": {"grep": "boots", "context": False}},
            {"url": f"{address}/page", "options": {"question": "when is high water"}},
        ]
        job = service.ask("/v1/batch", {"targets": targets})
        job = service.ask(f"/v1/batch/{job['id']}?wait=55")
        results = service.ask(f"/v1/batch/{job['id']}/results")["items"]
        workers = service.children()
        status = [Path(f"/proc/{pid}/status").read_text("utf-8") for pid in (service.process.pid, *workers)]
        networks = networks_of(service.process.pid, *workers)
        service.process.send_signal(signal.SIGHUP)
        again = service.ask("/v1/limits")
        service.process.send_signal(signal.SIGTERM)
        code = service.process.wait(timeout=20)

    assert [item["code"] for item in results] == ["", "", "", "", ""], results
    assert [word in item["result"]["content"] for item, word in zip(results, WORDS, strict=True)] == [
        True
    ] * 5
    assert workers
    assert all("\nSeccomp:\t2\n" in text and "\nNoNewPrivs:\t1\n" in text for text in status)
    assert len(networks) == 0 or networks[0] not in networks[1:]
    assert again["live_jobs"] == []
    assert code == 0


WORDS = ("noon", "noon", "noon", "boots", "noon")


def networks_of(*pids: int) -> list[str]:
    """The network namespaces of processes; none where these tests may not see them, or none can be made."""
    user = USER if os.geteuid() == 0 else None
    if subprocess.run(["unshare", "--user", "--net", "true"], user=user, check=False).returncode:
        return []
    try:
        return [str(Path(f"/proc/{pid}/ns/net").readlink()) for pid in pids]
    except PermissionError:
        return []
