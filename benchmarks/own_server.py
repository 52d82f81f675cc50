"""How does a benchmark serve pages from a process of its own, so that serving costs the measured one nothing?

`serve` in the child, `in_a_process` in the parent; the child ends when its standard input does.
"""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def serve(answer: Answer) -> None:
    """Serve connections on a free port of 127.0.0.1, which is printed, until standard input ends."""

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())


@contextmanager
def in_a_process(program: str) -> Iterator[str]:
    """Give the address of what the function `serve` of a benchmark serves, in a process of its own."""
    command = [sys.executable, program, "--once", "serve", "{}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()
            server.wait(10)
