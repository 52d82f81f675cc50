"""Who reads the pages, without the application's own interpreter ever touching them?

A few worker processes, started when they are needed and kept warm. One reads one page at a time; when it
takes too long, when nobody waits for its answer any more, when it breaks or answers nonsense, it is
killed and reaped, and another takes its place. Nothing is read, decoded or parsed here, and no worker is
trusted. Next: `_process` (one worker), `_frames` (what goes through the pipe), `_worker` (the other end).
"""

import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGALRM, SIGXCPU
from typing import Final

import trio

from .._model.values import Options
from . import _frames
from ._config import FetchConfig
from ._document import Document, Reading
from ._errors import FetchError
from ._places import Places
from ._process import ENTRY, REAP_WITHIN, Unready, WorkerProcess
from ._worker import DIRECTORY_PREFIX

RECYCLE_AFTER: Final = 100
"""Documents that one process reads at most: what native libraries leak goes with it."""

_CLOSE_WITHIN: Final = 5.0
_PAGE: Final = "reading the page"
_PROGRAM: Final = "compiling the jq program"
_HINT: Final = "fetch it with mode raw or html to get it as it was served"


@dataclass(frozen=True, slots=True)
class ReaderStatistics:
    """The worker processes at one moment, and what happened to those before.

    `alive` processes, `busy` ones of them, calls `waiting` for a free one; how many were `started`,
    and how many `ended` by reason: timeout, cancelled, crashed, memory, recycled, closed.
    """

    alive: int
    busy: int
    waiting: int
    started: int
    ended: Mapping[str, int]


class Readers:
    """Reads documents in worker processes. Made by `open_readers`."""

    def __init__(self, config: FetchConfig, entry: str) -> None:
        self._config = config
        self._entry = entry
        # Made by the first thread that starts a worker, in `_place`; the lock is held meanwhile.
        self._directory: str | None = None
        self._one_directory = threading.Lock()
        self._closed = False
        # A place is the right to use one worker. Whoever holds one finds a process in `_idle`, or room
        # for a new one: every process that lives is either in `_idle` or in the hands of one holder.
        self._places = Places(config.extract_workers)
        self._idle: list[WorkerProcess] = []
        self._alive: set[WorkerProcess] = set()
        self._started = 0
        self._ended: Counter[str] = Counter()
        # Starting and reaping must not wait for an application that fills Trio's own threads.
        self._threads = trio.CapacityLimiter(config.extract_workers + 1)

    def statistics(self) -> ReaderStatistics:
        """Return how many workers there are, and how the others ended."""
        return ReaderStatistics(
            alive=len(self._alive),
            busy=len(self._alive) - len(self._idle),
            waiting=self._places.waiting,
            started=self._started,
            ended=dict(self._ended),
        )

    async def read(self, document: Document, options: Options, interactive: bool = False) -> Reading:
        """Return what `document` says, as `options` ask.

        Waits for a free worker: those for whom somebody waits (`interactive`) before all others, and
        first come, first served. A worker that is new has up to a minute to be ready, then there are
        `extract_timeout` seconds for the page. If cancelled, the worker is killed and nothing is left.

        Raises `FetchError`: what the reader says; `extract_failed` when it crashed, was killed, or ran
        out of time or memory; `internal`, which is no fault of the page, when there was no worker.
        """
        answer = await self._ask(partial(_frames.read_request, document, options), _PAGE, interactive)
        if isinstance(answer, Reading):
            return answer
        raise _failed(_PAGE)

    async def check_jq(self, program: str) -> None:
        """Compile a jq program in a worker. Raises `FetchError`: `bad_option`, or as `read` does.

        The worker ends with that. A program could have taken it over, and must not see the pages of
        others; a new one costs less than a worker kept for programs alone.
        """
        if await self._ask(partial(_frames.check_request, program), _PROGRAM, True) != "checked":
            raise _failed(_PROGRAM)

    async def warm(self) -> None:
        """Start a worker if there is none, without waiting until it is ready.

        For a caller who is about to have a document. Raises `FetchError` when none can be started.
        """
        self._check_open()
        # No free place: then workers are being started already.
        if not self._alive and self._places.take_nowait():
            try:
                self._idle.append(await self._start())
            finally:
                self._places.give_back()

    async def _ask(
        self, request: Callable[[], Iterable[bytes]], what: str, interactive: bool
    ) -> Reading | str:
        self._check_open()
        async with self._places.one(interactive=interactive):
            worker = await self._take()
            answer, end = None, "cancelled"  # unless the next line comes to an end by itself
            try:
                answer, end = await self._exchange(worker, request(), what)
            finally:
                worker.served += 1
                if not end and (worker.served >= RECYCLE_AFTER or what is _PROGRAM):
                    end = "recycled"
                if end or self._closed:  # shields itself, with a deadline
                    end = await self._end(worker, end)  # noqa: ASYNC102
                else:
                    self._idle.append(worker)
            if end == "recycled":
                await self._replace()
            self._check_open()
            if isinstance(answer, FetchError):
                raise answer
            if answer is None or end == "memory":
                raise _failed(what, end)
            return answer

    async def _exchange(
        self, worker: WorkerProcess, request: Iterable[bytes], what: str
    ) -> tuple[Reading | FetchError | str | None, str]:
        """Return the answer, and why the worker must go, "" when it may stay."""
        try:
            await worker.wait_ready()
        except Unready:
            return _no_worker(), "crashed"
        try:
            with trio.move_on_after(self._config.extract_timeout):
                answer = await worker.exchange(request, self._config.result_max_bytes)
                if not _answers_another(answer, what):
                    return answer, "memory" if answer == "memory" else ""
                return None, "crashed"
        except (_frames.BadFrame, trio.BrokenResourceError, trio.ClosedResourceError):
            return None, "crashed"
        return None, "timeout"

    async def _take(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.well():
                return worker
            await self._end(worker, "crashed")  # while nobody looked; that fails no document
        return await self._start()

    async def _start(self) -> WorkerProcess:
        self._check_open()
        numbers = (self._config.extract_memory, self._config.extract_timeout, self._config.result_max_bytes)
        try:
            worker = await WorkerProcess.start(self._entry, numbers, self._place, self._threads)
        except (OSError, RuntimeError):  # no process, or no thread to start it in
            raise _no_worker() from None
        self._started += 1
        self._alive.add(worker)
        if self._closed:
            await self._end(worker, "closed")
            self._check_open()
        return worker

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("the readers are closed")

    async def _replace(self) -> None:
        """Start another worker in place of one that has read enough, to be warm when it is needed."""
        with suppress(FetchError, trio.ClosedResourceError):
            self._idle.append(await self._start())

    def _place(self) -> str:
        """Return an empty directory. Made again when something that tidies up took it away.

        Runs in a thread: a file system may take its time.
        """
        with self._one_directory:
            if self._directory is None or not Path(self._directory).is_dir():
                try:
                    self._directory = tempfile.mkdtemp(prefix=DIRECTORY_PREFIX)
                    os.chmod(self._directory, 0o700)  # noqa: PTH101 - whatever the umask takes away
                except OSError:
                    return "/"
            return self._directory

    async def _end(self, worker: WorkerProcess, end: str, within: float = REAP_WITHIN) -> str:
        """Kill and reap a worker, whatever is cancelled. Returns why it ended, as far as can be told."""
        worker.kill()
        code = await worker.reap(self._threads, within)
        if worker in self._alive:  # closing may have been here first
            self._alive.discard(worker)
            if self._closed:
                end = "closed"
            elif end == "crashed" and code in (-SIGXCPU, -SIGALRM):
                end = "timeout"
            self._ended[end] += 1
        return end

    async def aclose(self) -> None:
        """Kill and reap every worker, and remove their directory. Calls that still run fail."""
        self._closed = True
        self._idle.clear()
        for worker in self._alive:
            worker.kill()  # all at once, so that the slowest end is the only one waited for
        deadline = time.monotonic() + _CLOSE_WITHIN  # processes end in real time, whatever Trio's clock says
        try:
            with trio.move_on_after(_CLOSE_WITHIN, shield=True):
                # Whoever still holds a worker notices now, and is waited for: it may be starting one.
                for _ in range(self._config.extract_workers):
                    await self._places.take()
        finally:  # a Ctrl-C may strike any wait of the main task
            for worker in list(self._alive):
                # One deadline for all; what the system is slow to let go is given up, killed as it is.
                left = max(0.0, deadline - time.monotonic())
                await self._end(worker, "closed", left)  # noqa: ASYNC102 - shields itself
            if self._directory is not None:
                with suppress(OSError):
                    os.rmdir(self._directory)  # noqa: PTH106 - quick, and no file is in it


@asynccontextmanager
async def open_readers(config: FetchConfig, *, _entry: str = ENTRY) -> AsyncIterator[Readers]:
    """Give readers of pages: at most `extract_workers` processes, the first one when it is needed.

    When the block is left, in whichever way, every process is killed and reaped and their directory is
    gone; calls that still run elsewhere raise `trio.ClosedResourceError`.
    """
    readers = Readers(config, _entry)
    try:
        yield readers
    finally:
        with trio.CancelScope(shield=True):  # each wait in there has a deadline of its own
            await readers.aclose()


def _answers_another(answer: Reading | FetchError | str, what: str) -> bool:
    """Say whether this is the answer to a question of the other sort."""
    return answer == "checked" if what is _PAGE else isinstance(answer, Reading)


def _no_worker() -> FetchError:
    message = "no process could be started to read the page"
    return FetchError("internal", message, hint="try again later")


def _failed(what: str, end: str = "crashed") -> FetchError:
    text = {"timeout": "took too long", "memory": "took too much memory"}.get(end, "failed")
    return FetchError("extract_failed", f"{what} {text}", hint=_HINT if what is _PAGE else "")
