"""A worker process that does what a document tells it to: the stand-in for one that a page took over.

Started in place of the real one. It seals itself and speaks with the real one's code; only what it does
with a document is its own. The first word of the body names it, the rest is its argument.
"""

import ctypes
import json
import os
import resource
import select
import signal
import socket
import sys
from pathlib import Path

from sift_batch.fetch import _worker
from sift_batch.fetch._document import ReadError, Reading

SINK = 4
"""The number that the answers' end of the pipe has in a sealed worker."""


def main() -> None:
    """Serve, reading documents as below."""
    _worker.main(read=_read, check=_check)


def _read(document, options, result_max_bytes):
    body = b"".join(document.body)
    name, _, argument = body.partition(b" ")
    act = globals().get("_do_" + name.decode("ascii", "replace"))
    if act is None:
        return Reading(body.decode(), {"chars": len(body), "title": options.question})
    return act(argument, result_max_bytes)


def _check(program):
    if program != ".":
        raise ReadError("bad_option", "the program has an error in line 1, column 2", hint="look there")


def _do_pid(argument, limit):
    return Reading(str(os.getpid()))


def _do_exit(argument, limit):
    os._exit(int(argument))


def _do_signal(argument, limit):
    os.kill(os.getpid(), int(argument))
    return Reading("survived")


def _do_hang(argument, limit):
    # Native code that keeps the interpreter's lock and never comes back.
    pause = ctypes.PyDLL(None).pause
    while True:
        pause()


def _do_hang_without_alarm(argument, limit):
    signal.setitimer(signal.ITIMER_REAL, 0)
    _do_hang(argument, limit)


def _do_spin(argument, limit):
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (1, hard))
    while True:
        sum(range(100_000))


def _do_burn(argument, limit):
    while resource.getrusage(resource.RUSAGE_SELF).ru_utime < float(argument):
        sum(range(100_000))
    return Reading("")


def _do_drop(argument, limit):
    return Reading("y" * limit)


def _do_eat(argument, limit):
    eaten = []
    while True:
        eaten.append(bytes(2**24))


def _do_fail(argument, limit):
    raise LookupError(argument.decode())


def _do_refuse(argument, limit):
    raise ReadError("refused", "the page is not what it says", hint="look at it", reason="content_mismatch")


def _do_fork(argument, limit):
    child = os.fork()
    if not child:
        while True:
            select.select([], [], [], 60)
    return Reading(str(child))


def _do_say(argument, limit):
    while argument:
        argument = argument[os.write(SINK, argument) :]
    _do_hang(b"", limit)


def _do_print(argument, limit):
    print("a library prints")
    os.write(1, b"and so does a native one")
    return Reading(repr(os.read(0, 10)))


def _do_flood(argument, limit):
    os.write(SINK, argument)
    while True:
        os.write(SINK, b"\xff" * 2**16)


def _do_tell(argument, limit):
    limits = ("AS", "CPU", "FSIZE", "CORE", "NOFILE", "NPROC")
    facts = {
        "environment": dict(os.environ),
        "native_environment": bool(ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")[0]),
        "files": [number for number in range(256) if _attempt(lambda number=number: os.fstat(number)) == 0],
        "directory": [path.name for path in Path().iterdir()],
        "limits": {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in limits},
        "command": sys.orig_argv,
        "session": os.getsid(0) == os.getpid(),
        "written": _attempt(lambda: Path("left").write_bytes(b"x")),
        "port": _attempt(lambda: socket.create_connection(("127.0.0.1", int(argument)), 5)),
        "keeps_bytecode": not sys.dont_write_bytecode,
        "foreign": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    with_left = Path("left").exists()
    Path("left").unlink(missing_ok=True)
    return Reading(json.dumps({**facts, "left": with_left}))


def _attempt(act):
    try:
        act()
    except OSError as exc:
        return exc.errno
    return 0
