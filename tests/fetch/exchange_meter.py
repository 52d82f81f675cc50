"""A program: make exchanges with a hostile server, and say what each cost this process.

    python exchange_meter.py PORT NAME...

prints one line of JSON per name: the code it ended in, by how many bytes the memory rose at most, and
the longest time (of this thread's own CPU, in seconds) that the loop did nothing else.
"""

import gc
import json
import sys
import time
from pathlib import Path

import trio

from sift_batch.fetch._client import Client
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._guard import Guard


class Stalls(trio.abc.Instrument):
    """Measures how long each turn of the loop takes."""

    def __init__(self) -> None:
        self.began = time.thread_time()
        self.worst = 0.0

    def after_io_wait(self, timeout: float) -> None:
        """A turn begins."""
        self.began = time.thread_time()

    def before_io_wait(self, timeout: float) -> None:
        """A turn has ended."""
        self.worst = max(self.worst, time.thread_time() - self.began)


def memory(field: str) -> int:
    """Read how much memory this process has (VmRSS) or had at most (VmHWM), in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def forget_the_highest() -> None:
    """Let the highest mark of memory start again from here."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")


async def measure(client: Client, guard: Guard, url: str, before: int) -> dict[str, object]:
    """Make one exchange; `before` is the memory that it is compared with."""
    forget_the_highest()
    stalls = Stalls()
    trio.lowlevel.add_instrument(stalls)
    code = ""
    with trio.move_on_after(30):
        try:
            await client.get(guard.parse(url))
        except FetchError as error:
            code = error.code
    trio.lowlevel.remove_instrument(stalls)
    return {"code": code, "rise": memory("VmHWM") - before, "stall": stalls.worst}


async def main(port: str, names: list[str]) -> None:
    """Measure one after the other. The first is made twice, since it loads what all need."""
    config = FetchConfig(allow=("127.0.0.0/8",), ports=None)
    guard = Guard(config)
    client = Client(config, guard)
    await measure(client, guard, f"http://127.0.0.1:{port}/{names[0]}", 0)
    before = memory("VmRSS")
    for name in names:
        found = await measure(client, guard, f"http://127.0.0.1:{port}/{name}", before)
        print(json.dumps({"name": name, **found}))


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2:])
