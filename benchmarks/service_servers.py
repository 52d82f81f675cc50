"""What stands behind the port? The service, and the floors: each in a process of its own, on one core.

- `service`: the whole service with a fetch that is told by the URL what to do: `/quick` answers at once,
  `/wait` when it is released, `/drain` after ten milliseconds with 50 KB. An interactive fetch of `/release`
  releases what waits, one of `/stall` says how late the loop has been at worst since it was asked last.
- `bare`: an application of a few lines on the same server: as many bytes as the path says, nothing else.
- `file`: the same with the service's own look at host and key, which reads a JSON file for each answer.

The floors run on `sift_batch.service`'s own server, so that a ratio is about what the service adds to it.
Who asks is in `service_client.py`.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

STREAMS = 1_000
CALLERS = ("ann", "bob")
RESULT = "A line of a page that somebody has written about the weather.\n" * 32
LONG_RESULT = "x" * 50_000
_TICK = 0.001
_SERVER_CORE, _CLIENT_CORE = 0, 1


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: where, with which key for each caller, as which process."""

    port: int
    keys: Mapping[str, str]
    pid: int

    def resident(self) -> int:
        """Return the bytes of memory that the process has for itself."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024

    def descriptors(self) -> int:
        """Return how many files and sockets the process has open."""
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())


@contextmanager
def running(kind: str, **arguments: Any) -> Iterator[Server]:
    """Run a server of a kind round the block, pinned to one core where there are two."""
    pin(_CLIENT_CORE)
    command = [sys.executable, __file__, kind, json.dumps(arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            told = json.loads(child.stdout.readline() or "null")
            if told is None:
                raise RuntimeError(f"the {kind} server did not start")
            yield Server(told["port"], told["keys"], child.pid)
        finally:
            # Its end of the pipe is how it hears that it is over.
            child.stdin and child.stdin.close()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()


def pin(core: int) -> None:
    """Keep this process on one core, so that who asks takes nothing from who answers."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {core})


def raise_file_limit() -> None:
    """Allow as many open files as the system lets us have."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Lateness:
    """How late the loop is: a task that sleeps a millisecond again and again keeps the worst of it."""

    def __init__(self) -> None:
        self._worst = 0.0

    async def tick(self) -> None:
        """Watch the loop."""
        import trio

        while True:
            began = time.perf_counter()
            await trio.sleep(_TICK)
            self._worst = max(self._worst, time.perf_counter() - began - _TICK)

    def take(self) -> str:
        """Return the worst since this was called last, in seconds."""
        worst, self._worst = self._worst, 0.0
        return str(worst)


class Fetch:
    """The fetch of the service that is measured; the URL says what it does."""

    def __init__(self, lateness: Lateness) -> None:
        import trio

        self._release = trio.Event()
        self._lateness = lateness

    async def __call__(self, caller: Any, target: Any) -> Any:
        """Answer for a job."""
        import trio

        from sift_batch import Result

        if "/wait" in target.url:
            await self._release.wait()
        elif "/drain" in target.url:
            await trio.sleep(0.01)
            return Result(LONG_RESULT)
        else:
            await trio.lowlevel.checkpoint()
        return Result(RESULT, {"title": "Weather", "url": target.url})

    async def interactive(self, caller: Any, target: Any, *, patience: float = 0.0) -> Any:
        """Release, and say how late the loop was."""
        import trio

        from sift_batch import Result

        await trio.lowlevel.checkpoint()
        if target.url.endswith("/release"):
            self._release.set()
            self._release = trio.Event()
        return Result(self._lateness.take())

    async def check(self, target: Any) -> None:
        """Refuse nothing; a checkpoint, as the pipeline's own."""
        import trio

        await trio.lowlevel.checkpoint()


def service(folder: str, workers: int = 2, *, watched: bool = False) -> Any:
    """Return the main function of the whole service, with its store in `folder`; `watched`: its loop is."""
    import trio

    from sift_batch.service._open import open_service
    from sift_batch.service._settings import load_settings

    lateness = Lateness()
    fetch = Fetch(lateness)

    @contextmanager
    def opened(config: Any, *, gate: Any) -> Iterator[Fetch]:
        yield fetch

    async def main() -> None:
        keys = _callers_file(Path(folder) / "callers.toml")
        settings = load_settings(
            environ={},
            flags={
                "service.data": folder,
                "service.callers": str(Path(folder) / "callers.toml"),
                "service.port": 0,
                "service.connections": STREAMS * 8 // 7 + 100,  # one caller may hold seven eighths of them
                "service.backlog": STREAMS,  # all at once; the floor has the longest queue that there is
                "service.idle_seconds": 60,
                "service.grace_seconds": 1,
                "engine.jobs_total": 10**6,
                "engine.jobs_per_caller": 10**6,
                "engine.workers": workers,
                "engine.workers_limit": workers,
                "engine.shutdown_grace": 0,
                "engine.max_bytes": 2**33,
            },
        )
        async with trio.open_nursery() as beside, open_service(settings, fetcher=_as_async(opened)) as made:
            if watched:
                beside.start_soon(lateness.tick)
            _tell(made.port, keys)
            await _end_of_input()
            beside.cancel_scope.cancel()

    return main


def bare(*, watched: bool = False) -> Any:
    """Return the main function of the floor."""
    import trio

    news: list[trio.Event] = [trio.Event()]
    lateness = Lateness()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        _, kind, *sizes = scope["path"].split("/")
        if kind == "events":
            await _bare_events(send, *map(int, sizes))
        elif kind == "follow":
            await _bare_follow(receive, send, news, int(sizes[0]))
        elif kind in ("release", "stall"):
            if kind == "release":
                news[0].set()
                news[0] = trio.Event()
            await answer(send, lateness.take().encode())
        else:
            if scope["method"] == "POST":
                while (await receive())["more_body"]:
                    pass
            await answer(send, b"" if kind == "304" else b"x" * int(sizes[0]), 304 if kind == "304" else 200)

    return partial(_serve, app, {}, lateness.tick if watched else trio.sleep_forever)


def file(folder: str) -> Any:
    """Return the main function of an application that reads a JSON file for each answer."""
    import trio

    from sift_batch.service._addressed import Names
    from sift_batch.service._callers import open_callers
    from sift_batch.service._response import json_bytes

    path = Path(folder) / "status.json"
    keys = _callers_file(Path(folder) / "callers.toml")
    callers, names = open_callers(Path(folder) / "callers.toml"), Names(["127.0.0.1"])

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if not names.has(scope["headers"]) or callers.find(given) is None:
            await answer(send, b"", 401)
        elif scope["path"] == "/threaded":
            raw = await trio.Path(path).read_bytes()
            await answer(send, json_bytes(json.loads(raw)))
        else:
            await answer(send, json_bytes(json.loads(path.read_bytes())))

    return partial(_serve, app, keys, trio.sleep_forever)


async def answer(send: Any, body: bytes, status: int = 200) -> None:
    """Send a whole answer with the headers that the service's own have."""
    from sift_batch.service._response import SECURITY_HEADERS

    headers = [*SECURITY_HEADERS, (b"content-type", b"application/json")]
    if status != 304:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _bare_events(send: Any, count: int, size: int) -> None:
    await _start_stream(send)
    event = b"event: target\ndata: " + b"x" * size + b"\n\n"
    for _ in range(count):
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _bare_follow(receive: Any, send: Any, news: list[Any], size: int) -> None:
    import trio

    await _start_stream(send)
    event = b"event: job\ndata: " + b"x" * size + b"\n\n"
    async with trio.open_nursery() as tasks:

        @tasks.start_soon
        async def listen() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        while True:
            change = news[0]
            await send({"type": "http.response.body", "body": event, "more_body": True})
            await change.wait()


async def _start_stream(send: Any) -> None:
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _serve(app: Any, keys: Mapping[str, str], beside: Any) -> None:
    import trio

    from sift_batch.service._limits import ServerLimits
    from sift_batch.service._problems import server_answer
    from sift_batch.service._server import serve

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    limits = ServerLimits(connections=STREAMS + 100, idle_seconds=60, grace_seconds=1)
    stop = trio.Event()
    async with trio.open_nursery() as tasks:
        await tasks.start(partial(serve, app, listeners, stop=stop, limits=limits, answers=server_answer))
        tasks.start_soon(beside)
        _tell(listeners[0].socket.getsockname()[1], keys)
        await _end_of_input()
        tasks.cancel_scope.cancel()


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _as_async(opened: Any) -> Any:
    from contextlib import asynccontextmanager

    @asynccontextmanager
    async def made(config: Any, *, gate: Any) -> Any:
        with opened(config, gate=gate) as fetch:
            yield fetch

    return made


def _callers_file(path: Path) -> dict[str, str]:
    from sift_batch.service._keys import digest_of, digest_text, new_key

    keys = {name: new_key() for name in CALLERS}
    lines = []
    for name, key in keys.items():
        digest = digest_text(digest_of(key.encode()))
        lines.append(f'[[caller]]\nname = "{name}"\nclass = "fleet"\nkeys = ["{digest}"]\n')
    path.touch(0o600)
    path.write_text("".join(lines))
    return keys


def _tell(port: int, keys: Mapping[str, str]) -> None:
    print(json.dumps({"port": port, "keys": dict(keys)}), flush=True)


async def _end_of_input() -> None:
    import trio

    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        while await stream.receive_some():
            pass


if __name__ == "__main__":
    import trio

    pin(_SERVER_CORE)
    raise_file_limit()
    kinds = {"service": service, "bare": bare, "file": file}
    trio.run(kinds[sys.argv[1]](**json.loads(sys.argv[2])))
