"""Where does a peer's Redis come from? A server of its own for each run, on loopback, in the run's folder."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from work import AT_ONCE, Setting

PROGRAM = "redis-server"
SETTINGS = (
    Setting(
        "appendfsync everysec",
        durable=False,
        how="an append-only file, synced once a second",
        workers=AT_ONCE,
    ),
    Setting(
        "appendfsync always",
        durable=True,
        how="an append-only file, synced at each write",
        workers=AT_ONCE,
    ),
)
"""How a peer on Redis can be run; a name is the line of the server's configuration."""
_PATIENCE = 10.0


class Server(NamedTuple):
    """A running server."""

    url: str
    pid: int

    def cpu(self) -> float:
        """Return the seconds of CPU that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        """Return the most memory that it ever had, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmHWM"))


def available() -> bool:
    return shutil.which(PROGRAM) is not None


@contextlib.contextmanager
def running(folder: Path, *, setting: str, before: Sequence[str] = ()) -> Iterator[Server]:
    """Run a server that keeps its data in `folder`. `setting` is a line of its configuration."""
    port = _free_port()
    options = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""]
    options += ["--appendonly", "yes", *f"--{setting}".split()]
    command = [*before, PROGRAM, *options]
    pid_file = folder / "redis.pid"
    with subprocess.Popen([*command, "--pidfile", str(pid_file)], stdout=subprocess.DEVNULL) as process:
        try:
            _wait_until_there(port)
            yield Server(f"redis://127.0.0.1:{port}", int(pid_file.read_text()))
        finally:
            # The server itself and not what runs it: strace ends with it.
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(int(pid_file.read_text()), 15)
            process.wait(_PATIENCE)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait_until_there(port: int) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"PING\r\n")
                if connection.recv(16).startswith(b"+PONG"):
                    return
        except OSError:
            if time.monotonic() > until:
                raise
        time.sleep(0.02)
