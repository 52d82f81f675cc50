"""`sift-batch serve` as a real process, and a web site on loopback for it to fetch from."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from api_rig import Client, Reply, read_reply

from sift_batch.service._keys import digest_of, digest_text

COMMAND = (sys.executable, "-m", "sift_batch")
PROGRAM = (sys.executable, str(Path(__file__).with_name("serve_program.py")))
LOOPBACK = ("--allow", "127.0.0.0/8", "--ports", "any")
_READY = re.compile(r"listening on http://([^ ]+):([0-9]+) metrics http://([^ ]+):([0-9]+)\n")


class Plain(Client):
    """Sends requests as they are told, and takes whatever comes back for an answer."""

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request and read its response."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            await stream.send_all(self.head(method, path, raw, named))
            return await read_reply(stream, method)


class Served:
    """A process that serves: its ports, what it writes, and its end."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, errors: Path, line: str) -> None:
        self.process, self.folder, self.line = process, folder, line
        self._errors = errors
        found = _READY.fullmatch(
            line
            if line.startswith("l")
            else "listening on {} metrics {}\n".format(*json.loads(line).values())
        )
        assert found, (line, self.stderr)
        self.host, self.port, self.metrics_port = found[1], int(found[2]), int(found[4])

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self.folder / "data"

    @property
    def key(self) -> str:
        """The key of the single user."""
        return (self.data / "key").read_text().strip()

    def client(self, key: str | None = None) -> Plain:
        """Return a client, of the single user without a key."""
        return Plain(self.port, key or self.key)

    @property
    def stderr(self) -> str:
        """What it wrote to standard error until now."""
        return self._errors.read_text(encoding="utf-8")

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of its log."""
        return [json.loads(line) for line in self.stderr.splitlines()]

    def named(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of one event."""
        return [line for line in self.events if line.get("event") == event]

    async def metrics(self) -> dict[str, float]:
        """Return every series with its value."""
        reply = await Plain(self.metrics_port, None).get("/metrics")
        assert reply.status == 200, reply.body
        lines = [line for line in reply.body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    async def ends(self, seconds: float = 30.0) -> int:
        """Return its exit code."""
        with trio.fail_after(seconds):
            while self.process.poll() is None:  # noqa: ASYNC110 - a process of `subprocess` has no event
                await trio.sleep(0.01)
        return self.process.returncode

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return await self.ends()


def environment(**more: str) -> dict[str, str]:
    """Return this environment without settings of ours, and more."""
    return {name: text for name, text in os.environ.items() if not name.startswith("SIFT_BATCH_")} | more


@asynccontextmanager
async def served(
    folder: Path,
    *flags: str,
    command: tuple[str, ...] = COMMAND,
    env: dict[str, str] | None = None,
    **options: Any,
) -> AsyncIterator[Served]:
    """Run the service in a folder on free ports until the block is left; stopped hard then."""
    errors = folder / f"stderr-{time.monotonic_ns()}.log"
    args = [*command, "serve", "--data", "data", "--port", "0", "--metrics-port", "0", *LOOPBACK, *flags]
    with errors.open("wb") as out:
        process = subprocess.Popen(  # noqa: ASYNC220 - quick, and its end is waited for without Trio too
            args, cwd=folder, env=environment(**(env or {})), stdout=subprocess.PIPE, stderr=out, **options
        )
    assert process.stdout is not None
    try:
        with trio.fail_after(40):
            line = await trio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
        yield Served(process, folder, errors, line.decode())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


async def refused(folder: Path, *starts: tuple[str, ...], **env: str) -> list[tuple[int, list[str]]]:
    """Start services that don't start; return their exit codes and what they write that is no log line."""
    with trio.fail_after(30):
        done = await trio.run_process(
            PROGRAM,
            stdin=json.dumps([["serve", *flags] for flags in starts]).encode(),
            cwd=folder,
            env=environment(SERVE_FORKS="1", **env),
            capture_stdout=True,
        )
    found = []
    for code, out, err in json.loads(done.stdout):
        assert out == ""
        found.append((code, [line for line in err.splitlines() if '"event":' not in line]))
    return found


def entry(name: str, key: str, caller_class: str = "fleet") -> str:
    """Return an entry of a callers file."""
    digest = digest_text(digest_of(key.encode()))
    return f'[[caller]]\nname = "{name}"\nclass = "{caller_class}"\nkeys = ["{digest}"]\n'


def write_callers(path: Path, *entries: str) -> None:
    """Write a callers file."""
    path.touch(0o600)
    path.write_text("".join(entries))


class Site:
    """Answers on every address of 127.0.0.0/8 in the way that the first part of the path says."""

    def __init__(self) -> None:
        self.port = 0
        self.asked: list[str] = []
        self.holding = trio.Event()
        """Somebody has asked for a page that is held."""
        self.let_go = trio.Event()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of a path."""
        return f"http://{host}:{self.port}{path}"

    async def answer(self, stream: trio.SocketStream) -> None:
        """Answer one connection."""
        head = b""
        try:
            while b"\r\n\r\n" not in head:
                data = await stream.receive_some(65_536)
                if not data:
                    return
                head += data
                if head.startswith(b"\x16"):  # who speaks TLS to it learns at once that it does not
                    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    return
            path = head.split(b" ", 2)[1].decode()
            self.asked.append(path)
            await self._answer(stream, path.split("/")[1].partition("?")[0], path)
            await stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(self, stream: trio.SocketStream, kind: str, path: str) -> None:
        word = path.rpartition("/")[2].partition("?")[0]
        if kind == "hold":
            self.holding.set()
            await self.let_go.wait()
        if kind == "reset":
            return
        status, headers = (
            {"404": "404 Not Found", "403": "403 Forbidden", "500": "500 Oh No"}.get(kind, "200 OK"),
            "",
        )
        body = f"<html><head><title>{word}</title></head><body><p>{word} to be read</p></body></html>"
        kinds = {"json": "application/json", "pdf": "application/pdf", "odd": f"text/{word}"}
        if kind == "json":
            body = f'{{"a": "{word}"}}'
        if kind == "redirect":
            status, headers = "302 Found", f"Location: http://10.1.2.3/{word}\r\n"
        if kind == "cut":
            headers = "Content-Length: 5000\r\n"
        if kind == "garbage":
            status = f"{word} \x01"
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kinds.get(kind, 'text/html')}\r\n{headers}"
        await stream.send_all(f"{head}Connection: close\r\n\r\n{body}".encode())


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Serve a site round a block."""
    made = Site()
    async with trio.open_nursery() as tasks:
        listeners = await trio.open_tcp_listeners(0, host="0.0.0.0")  # all of 127.0.0.0/8
        made.port = listeners[0].socket.getsockname()[1]
        tasks.start_soon(trio.serve_listeners, made.answer, listeners)
        yield made
        tasks.cancel_scope.cancel()


async def eventually(holds: Callable[[], Any], seconds: float = 20.0) -> None:
    """Return once something holds, awaited if it is to be."""
    with trio.fail_after(seconds):
        while True:
            found = holds()
            if await found if hasattr(found, "__await__") else found:
                return
            await trio.sleep(0.02)
