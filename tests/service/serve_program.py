"""A program: `sift-batch` in a process that is prepared by variables; its arguments are the command's.

SERVE_DEBUG: every logger is at DEBUG. SERVE_NAMES: names that end in `.org` are looked up here, on
loopback, but for those that begin with `nowhere.`. SERVE_BUG: asking why a job is gone raises an error with
this text. SERVE_WITHOUT: this module can't be imported. SERVE_FORKS: standard input has a list of argument
lists, each run in a fork of this process; their exit codes and what they wrote come out as JSON.
"""

import json
import logging
import os
import socket
import sys
import tempfile
from typing import Any

if os.environ.get("SERVE_WITHOUT"):
    sys.modules[os.environ["SERVE_WITHOUT"]] = None  # type: ignore[assignment]

from sift_batch.cli import main


def look_names_up_here() -> None:
    """Answer for names that nobody outside knows."""
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if not name.rstrip(".").endswith(".org"):
            return real(host, *args, **options)
        if name.startswith("nowhere."):
            raise socket.gaierror(socket.EAI_NONAME, f"{name} is not known")
        return real("127.0.0.1", *args, **options)

    socket.getaddrinfo = getaddrinfo


def raise_when_asked_why_gone(text: str) -> None:
    """Have a bug whose error tells everything."""
    import sift_batch

    async def gone(self: Any, job_id: str, *, caller: str) -> str | None:
        raise LookupError(text)

    sift_batch.Runner.gone = gone  # type: ignore[method-assign]


def run_forks() -> None:
    """Run each list of arguments in a fork, one after the other."""
    import sift_batch.service._open  # noqa: F401  once for all of them

    found = []
    for args in json.load(sys.stdin):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                code = main(args)
                sys.stdout.flush()
                os._exit(code)
            _, status = os.waitpid(child, 0)
            out.seek(0)
            err.seek(0)
            found.append([os.waitstatus_to_exitcode(status), out.read().decode(), err.read().decode()])
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    if os.environ.get("SERVE_DEBUG"):
        logging.getLogger().setLevel(logging.DEBUG)
        logging.getLogger("sift_batch").setLevel(logging.DEBUG)
    if os.environ.get("SERVE_NAMES"):
        look_names_up_here()
    if os.environ.get("SERVE_BUG"):
        raise_when_asked_why_gone(os.environ["SERVE_BUG"])
    if os.environ.get("SERVE_FORKS"):
        run_forks()
    else:
        sys.exit(main(sys.argv[1:]))
