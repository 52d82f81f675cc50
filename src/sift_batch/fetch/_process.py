"""How is one worker process started, talked to, and ended for certain?

Plain mechanics: which command, which pipes, which signals. When a worker is used, and for what, is
`_pool`'s business; what it may answer, `_frames`'.
"""

import os
import signal
import site
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

import trio

from . import _frames
from ._document import Reading
from ._errors import FetchError

ENTRY: Final = "sift_batch.fetch._worker"

REAP_WITHIN: Final = 5.0
"""Seconds that a killed process has to be gone."""

_READY_WITHIN: Final = 60.0
_CHUNK: Final = 128 * 2**10
_SMALL: Final = 32 * 2**10
_LIBRARIES: Final = ("trafilatura", "lxml", "pypdfium2", "jq", "re2", "charset_normalizer")
_THREAD: Final = "sift-batch reader process"


class Unready(Exception):
    """A worker never became ready: nothing of a document has reached it."""


class WorkerProcess:
    """One worker: a process, its two pipes, and whether it has said that it is ready."""

    def __init__(self, process: subprocess.Popen[bytes], into: int, out_of: int) -> None:
        self._process = process
        self._into = trio.lowlevel.FdStream(into)
        self._out_of = trio.lowlevel.FdStream(out_of)
        self._ready = False
        self.served = 0

    @classmethod
    async def start(
        cls, entry: str, numbers: Sequence[float], place: Callable[[], str], threads: trio.CapacityLimiter
    ) -> "WorkerProcess":
        """Start a worker in the directory that `place` gives, which is called in a thread.

        A cancel comes before the worker is started, or after it is there. Raises `OSError` when the
        system starts none, `RuntimeError` when it starts no thread.
        """
        spawn = partial(_spawn, entry, numbers, place)
        return cls(*await trio.to_thread.run_sync(spawn, limiter=threads, thread_name=_THREAD))

    async def wait_ready(self) -> None:
        """Wait until the worker has limited itself. Raises `Unready` when it does not in a minute."""
        if self._ready:
            return
        with trio.move_on_after(_READY_WITHIN):
            try:
                self._ready = await self._receive(len(_frames.READY)) == _frames.READY
            except (_frames.BadFrame, trio.BrokenResourceError, trio.ClosedResourceError):
                raise Unready from None
        if not self._ready:
            raise Unready

    def well(self) -> bool:
        """Say whether an idle worker lives and is silent, as it should be."""
        if not self._ready:
            return True  # it has something to say still, and `wait_ready` hears it
        try:
            os.read(self._out_of.fileno(), 1)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # it ended, or it gave an answer to a question that nobody asked yet

    async def exchange(self, request: Iterable[bytes], result_max_bytes: int) -> Reading | FetchError | str:
        """Send a request and return the answer, checked.

        Raises `BadFrame`, `trio.BrokenResourceError` or `trio.ClosedResourceError`. After one of these
        or a cancel the worker is of no more use.
        """
        for data in _writes(request):
            await self._into.send_all(data)
        prefix = await self._receive(_frames.PREFIX.size)
        limits = {"header_limit": _frames.ANSWER_LIMIT, "body_limit": result_max_bytes}
        header_size, content_size = _frames.sizes(prefix, **limits)
        rest = await self._receive(header_size + content_size)
        return _frames.parse_answer(rest[:header_size], rest[header_size:])

    async def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            data = await self._out_of.receive_some(min(size - len(received), _CHUNK))
            if not data:
                raise _frames.BadFrame
            received += data
        return bytes(received)

    def kill(self) -> None:
        """Kill the worker, and whatever it may have started: it leads a session of its own."""
        if self._process.returncode is None and _is_ours(self._process.pid):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._into.close()
        self._out_of.close()

    async def reap(self, threads: trio.CapacityLimiter, within: float) -> int | None:
        """Wait until a killed worker is gone, whatever is cancelled. Returns its code, None if unknown."""
        with trio.CancelScope(shield=True):  # the thread's own deadline ends it
            await trio.to_thread.run_sync(self._wait, within, limiter=threads, thread_name=_THREAD)
        return self._process.returncode

    def _wait(self, within: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(within)


def _writes(request: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """Give a request in pieces, one for each write, with a checkpoint at each.

    Small pieces go together: every write wakes the worker, which costs more than a copy. Large ones are
    cut, since a reader that keeps up would never make us wait.
    """
    small = bytearray()
    for piece in request:
        if len(small) + len(piece) <= _SMALL:
            small += piece
            continue
        if small:
            yield bytes(small)
            small.clear()
        with memoryview(piece) as view:
            for start in range(0, len(view), _CHUNK):
                yield view[start : start + _CHUNK]
    if small:
        yield bytes(small)


def _is_ours(pid: int) -> bool:
    """Say whether a child, dead or alive, still keeps this number from being given to another process.

    Where the application ignores SIGCHLD, the kernel takes dead children away at once.
    """
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    except AttributeError:  # macOS before Python 3.13
        return True
    return True


def _spawn(
    entry: str, numbers: Sequence[float], place: Callable[[], str]
) -> tuple[subprocess.Popen[bytes], int, int]:
    with ExitStack() as ours, ExitStack() as theirs:
        child_in, into = _pipe(theirs, ours)
        child_out, out_of = reversed(_pipe(ours, theirs))
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own arguments
            command(entry, numbers),
            stdin=child_in,
            stdout=child_out,
            stderr=subprocess.DEVNULL,
            env={},
            cwd=place(),
            start_new_session=True,  # a terminal's Ctrl-C is for the application
        )
        ours.pop_all()
    return process, into, out_of


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Return a new pipe; whoever closes its ends is registered before anything else can fail."""
    ends = os.pipe()
    reader.callback(os.close, ends[0])
    writer.callback(os.close, ends[1])
    return ends


def command(entry: str, numbers: Sequence[float]) -> list[str]:
    """Return the command of a worker. It holds numbers and paths, never anything of a target.

    Raises `OSError` when there is no interpreter to start.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        raise FileNotFoundError  # what is frozen into one file would start itself, again and again
    python = [sys.executable, "-I", *_bytecode()]
    tail = [*map(repr, numbers), str(os.getpid())]
    if entry == ENTRY and _found_when_isolated():
        return [*python, "-m", entry, *tail]
    # The application was told by other means where its modules are: a variable, the user's own
    # directory, code. An isolated interpreter knows none of these, so it is given the answer.
    paths = [path for path in sys.path if isinstance(path, str) and Path(path).is_absolute()]
    code = (
        f"import sys; sys.path[:0] = {paths!a}; from importlib import import_module as load; "
        "load(sys.argv[1]).main()"
    )
    return [*python, "-c", code, entry, *tail]


def _bytecode() -> list[str]:
    """Return the options by which a worker keeps bytecode as the application does: whether, and where.

    Libraries that were installed without any would be compiled anew by each worker, for half a second.
    """
    if sys.dont_write_bytecode:
        return ["-B"]
    prefix = sys.pycache_prefix
    return [] if prefix is None else ["-X", f"pycache_prefix={Path(prefix).absolute()}"]


def _found_when_isolated() -> bool:
    """Say whether this package and its libraries are where a bare interpreter would look for them."""
    places = site.getsitepackages()
    if str(Path(__file__).parents[2]) not in places:
        return False
    return all(PathFinder.find_spec(name, places) or not PathFinder.find_spec(name) for name in _LIBRARIES)
