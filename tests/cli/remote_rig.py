"""A service in a thread of this process, with a scripted fetch behind it; and the command line beside it."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from sift_batch import Caller, Target
from sift_batch.cli import main
from sift_batch.service._open import open_service
from sift_batch.service._settings import load_settings
from sift_batch.testing import ScriptedFetch


class Fetch(ScriptedFetch):
    """A scripted fetch with the two calls that a service makes beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.refuse: dict[str, Exception] = {}

    async def interactive(self, caller: Any, target: Any, *, patience: float = 0.0) -> Any:
        """Answer as in a batch."""
        return await self(caller, target)

    async def check(self, target: Any) -> None:
        """Refuse the URLs that are to be refused."""
        await trio.lowlevel.checkpoint()
        if target.url in self.refuse:
            raise self.refuse[target.url].with_traceback(None)


class Live:
    """A service that runs in a thread, in single-user mode; it can be stopped and started again."""

    def __init__(self, folder: Path, **flags: Any) -> None:
        self.folder = folder
        self.fetch = Fetch()
        self.port = 0
        self._flags = {"service.metrics_port": 0, "engine.shutdown_grace": 0.2, **flags}
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def key_file(self) -> Path:
        """The file with its key."""
        return self.folder / "key"

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that name it."""
        return "--server", self.url, "--key-file", str(self.key_file)

    def start(self) -> None:
        """Start it, on the port that it had before."""
        began: list[BaseException] = []
        ready = threading.Event()

        def run() -> None:
            try:
                trio.run(self._serve, ready)
            except BaseException as error:
                began.append(error)
                ready.set()

        self._thread = threading.Thread(target=run)
        self._thread.start()
        assert ready.wait(10)
        assert not began, began

    def stop(self) -> None:
        """Stop it in good order."""
        if self._thread is not None:
            self._do(self._stop.set)
            self._thread.join(20)
            assert not self._thread.is_alive()
            self._thread = None

    def release(self) -> None:
        """Let all fetches that hang go on."""
        self._do(self.fetch.release)

    def wait_started(self, n: int) -> None:
        """Return once so many fetches have begun in all."""
        self._run(self.fetch.wait_started, n)

    def wait_open(self, n: int) -> None:
        """Return once so many waits and streams are open."""
        stop = time.monotonic() + 60
        while len(self._service.app._shared.open._open) < n:
            assert time.monotonic() < stop
            time.sleep(0.02)

    def submit(self, *urls: str) -> str:
        """Submit a job past the command line; return its id."""
        caller = Caller("local")
        runner = self._service.runner
        return self._run(runner.submit, caller, [Target(url) for url in urls]).id

    def settle(self, job_id: str) -> None:
        """Return once a job has settled."""
        self._run(self._service.runner.wait, job_id)

    def states(self) -> list[str]:
        """The statuses of all jobs, newest first."""
        return [job.status.value for job in self._run(self._service.runner.jobs, "local")]

    def _run(self, call: Callable[..., Any], *args: object) -> Any:
        return trio.from_thread.run(call, *args, trio_token=self._token)

    def _do(self, call: Callable[[], object]) -> None:
        trio.from_thread.run_sync(call, trio_token=self._token)

    async def _serve(self, ready: threading.Event) -> None:
        self._stop = trio.Event()
        self._token = trio.lowlevel.current_trio_token()
        given = {"service.data": str(self.folder), "service.port": self.port, **self._flags}
        settings = load_settings(None, {}, given)
        async with open_service(settings, fetcher=self._opened) as service:
            self.port, self._service = service.port, service
            ready.set()
            await self._stop.wait()

    @asynccontextmanager
    async def _opened(self, _config: Any, *, gate: Any) -> AsyncIterator[Fetch]:
        yield self.fetch


class Said:
    """How a command ended, and what it wrote."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        """Standard output's JSON."""
        return json.loads(self.out)

    @property
    def views(self) -> list[Any]:
        """The JSON lines on standard output."""
        return [json.loads(line) for line in self.out.splitlines()]


def ran(capfd: Any, *args: str) -> Said:
    """Run the command line in this process."""
    capfd.readouterr()
    code = main(args)
    out, err = capfd.readouterr()
    return Said(code, out, err)
