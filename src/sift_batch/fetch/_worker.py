"""What does one worker process do? It limits itself, then reads documents until its input ends.

The limits hold before the first byte of input is looked at, and they are set by the worker itself: code
between fork and exec is not safe in a program with threads. Nothing here talks to a server, and nothing
of the engine is imported: `_frames` for the pipe, `_read` for the pages, the rest is standard library.

It must be gone soon after the application is, however that ended and whatever native code does with the
interpreter's lock meanwhile. While it waits, the end of its input tells it so. While it reads a page, no
Python code may get to run, so the kernel is told to kill it: by SIGIO once the other end of its input is
closed, by SIGALRM a little after the time for one page, by SIGXCPU once too much work was done; all three
with the default action, which needs no interpreter. Next: `_read`.
"""

import fcntl
import gc
import math
import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from .._model.values import Options
from . import _frames
from ._document import Document, ReadError, Reading

DIRECTORY_PREFIX: Final = "sift-batch-reader-"
"""How the name of the empty directory begins that a worker runs in."""

_CPU_SECONDS: Final = 20
_CPU_IN_ALL: Final = 3_600
_ALARM_AFTER: Final = 2.0
_ALARM_AT_MOST: Final = 86_400.0
_LOOK_UP_MS: Final = 5_000
_IDLE: Final = 0.05
_OPEN_FILES: Final = 16
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38

Read = Callable[[Document, Options, int], Reading]
Check = Callable[[str], None]


def main(read: Read | None = None, check: Check | None = None) -> None:
    """Serve until the input ends; the arguments are memory, seconds for a page, result size, parent.

    Ends the process. `read` and `check` stand in for the real ones in tests.
    """
    try:
        memory, seconds, result_max_bytes, parent = (float(text) for text in sys.argv[-4:])
        source, sink = _seal(int(memory))
        if read is None:
            _warm_up("sift_batch.fetch._read", "sift_batch.fetch._read.html")
        with os.fdopen(source, "rb") as requests, os.fdopen(sink, "wb", buffering=0) as answers:
            answers.write(_frames.READY)
            if read is None and not select.select([requests], [], [], _IDLE)[0]:
                _warm_up("trafilatura")  # it takes longer than all the others, and nobody waits now
            # Only now: Python may keep the bytecode of its modules, so that the next worker starts quicker.
            # Later it must not even try: each try makes a file for a moment in which a worker may be killed.
            sys.dont_write_bytecode = True
            _limit("RLIMIT_FSIZE", 0)
            while _wait_for_input(requests, int(parent)):
                # Over all three: a fork of a dead application may hold the pipe in the middle of each.
                signal.setitimer(signal.ITIMER_REAL, min(seconds + _ALARM_AFTER, _ALARM_AT_MOST))
                request = _next_request(requests)
                if request is None:
                    break
                with _ends_with(source):
                    answer = _answer(request, read or _read, check or _check, int(result_max_bytes))
                _send(answers, answer)
                signal.setitimer(signal.ITIMER_REAL, 0)
                del request, answer
    finally:
        _leave()


def _seal(memory: int) -> tuple[int, int]:
    """Give up what a reader of pages does not need. Returns the pipe's two ends, moved out of the way."""
    # Sent to all processes of a service at once, these ask the application to finish what it does.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGALRM, signal.SIGIO, signal.SIGXCPU):
        signal.signal(number, signal.SIG_DFL)  # an application that ignores them passes that on
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A library that prints would break the frames, one that reads would eat them.
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 0)
    os.dup2(2, 1)
    os.environ.clear()  # Python itself adds LC_CTYPE to an empty environment
    _drop_privileges()
    _limit("RLIMIT_AS", memory)
    _limit("RLIMIT_CPU", _CPU_SECONDS, hard=_CPU_IN_ALL)
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_NPROC", 0)
    _limit("RLIMIT_NOFILE", _OPEN_FILES)
    return source, sink


def _drop_privileges() -> None:
    """Leave the network, and the right to be looked into, where the system lets a process do so."""
    with suppress(Exception):
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)  # a crash handler would keep the page otherwise
        # As root the network alone, and where it lacks the right to that, nothing: in a user namespace
        # of its own, root could no longer read modules that belong to somebody else.
        libc.unshare(_CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET)


def _limit(name: str, soft: int, *, hard: int | None = None) -> None:
    """Set one limit, the hard one never above that which was given. Where there is no such limit: nothing."""
    number = getattr(resource, name, None)
    if number is None:
        return
    given = resource.getrlimit(number)[1]
    hard = soft if hard is None else hard
    if given != resource.RLIM_INFINITY:
        hard = min(hard, given)
    with suppress(ValueError, OSError, OverflowError):
        resource.setrlimit(number, (min(soft, hard), hard))


def _warm_up(*names: str) -> None:
    """Import what the usual page needs, so that the first one does not pay for it."""
    from importlib import import_module

    gc.disable()  # next to nothing of a module is garbage, and looking for it takes a tenth of a start
    for name in names:
        with suppress(Exception):
            import_module(name)
    gc.freeze()  # modules stay: the collector need not look at them for each page
    gc.enable()


def _wait_for_input(requests: BinaryIO, parent: int) -> bool:
    """Wait for a request. False: the application is gone, and a fork of it may hold the pipe open."""
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while not poll.poll(_LOOK_UP_MS):
        if os.getppid() != parent:
            return False
    return True


def _next_request(requests: BinaryIO) -> tuple[bytes, bytes] | None:
    prefix = requests.read(_frames.PREFIX.size)
    if len(prefix) < _frames.PREFIX.size:
        return None
    limits = {"header_limit": _frames.REQUEST_LIMIT, "body_limit": 2**32}
    header_size, body_size = _frames.sizes(prefix, **limits)
    header = requests.read(header_size)
    body = requests.read(body_size)
    return (header, body) if len(header) == header_size and len(body) == body_size else None


@contextmanager
def _ends_with(source: int) -> Iterator[None]:
    """Have the kernel end this process, in the block, when nobody waits for it or it works too much."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit_cpu(math.ceil(used.ru_utime + used.ru_stime) + _CPU_SECONDS)
    flags = fcntl.fcntl(source, fcntl.F_GETFL)
    with suppress(OSError):
        fcntl.fcntl(source, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(source, fcntl.F_SETFL, flags | os.O_ASYNC)
    # The signal tells of a change: the pipe may have been closed before it was asked for.
    poll = select.poll()
    poll.register(source, 0)
    if poll.poll(0):
        _leave()
    yield
    # Off before the answer goes out: the next request is no reason to die.
    with suppress(OSError):
        fcntl.fcntl(source, fcntl.F_SETFL, flags)


def _limit_cpu(seconds: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_CPU, (seconds if hard == resource.RLIM_INFINITY else min(seconds, hard), hard)
        )


def _answer(
    request: tuple[bytes, bytes], read: Read, check: Check, result_max_bytes: int
) -> tuple[bytes, bytes]:
    try:
        header = _frames.parse_request(request[0])
        if header["op"] == "check_jq":
            check(header["program"])
            return _frames.plain_answer("checked")
        document = Document(body=[request[1]], content_type=header["content_type"], url=header["url"])
        reading = read(document, Options(**header["options"]), result_max_bytes)
        return _frames.reading_answer(reading, result_max_bytes)
    except ReadError as error:
        return _frames.error_answer(error)
    except MemoryError:
        return _frames.plain_answer("memory")
    except Exception:  # a library's error on a hostile page has any type
        return _frames.plain_answer("failed")


def _send(answers: BinaryIO, answer: tuple[bytes, bytes]) -> None:
    view = memoryview(b"".join(answer))  # one write: each wakes the application
    while view:
        view = view[answers.write(view) :]


def _read(document: Document, options: Options, result_max_bytes: int) -> Reading:
    from ._read import read

    return read(document, options, result_max_bytes=result_max_bytes)


def _check(program: str) -> None:
    from ._read.jq_program import check

    check(program)


def _leave() -> None:
    # An application that was killed could not remove the directory.
    with suppress(OSError):
        here = Path.cwd()
        if here.name.startswith(DIRECTORY_PREFIX):
            here.rmdir()
    os._exit(0)


if __name__ == "__main__":
    main()
