"""What do the processes do that the real tests start, interrupt and kill?

Run as a program: `real_child.py ROLE PATH [JSON]`. What it has been told is on record (an acknowledged
submit, a result that was read back) it writes to standard output at once, one JSON list a line, so that
the parent knows of it even if this process dies in the next instruction.
"""

import json
import os
import signal
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from random import Random
from types import FrameType
from typing import Any

import trio
from real_workload import CALLER, MANY, Workload, a_bit_of_everything, say

from sift_batch import (
    Caller,
    Config,
    Result,
    StoreError,
    StoreInUseError,
    Target,
    attempt,
    open_runner,
    open_store,
)


def work(path: str, seed: int, durability: str) -> None:
    """Work until killed."""
    trio.run(Workload(seed).run, path, durability)


def interrupts(path: str, seed: int, rounds: int) -> None:
    """Work again and again, each time until Ctrl-C strikes at a random moment."""
    random = Random(seed)
    for number in range(rounds):
        timer = threading.Timer(random.random() * 0.08, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            try:
                trio.run(Workload(seed + number).run, path, "normal")
            finally:
                timer.join()
        except* KeyboardInterrupt:
            # In a group if it struck in one of the workload's own tasks.
            say("interrupted", number)
    say("threads", sum("sift" in thread.name for thread in threading.enumerate()))


class Tracer:
    """Presses Ctrl-C before one line of the package, the `strike_at`-th that the main thread runs."""

    def __init__(self, strike_at: int) -> None:
        self._strike_at = strike_at
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> "Tracer | None":
        """See one event of the interpreter's."""
        if "sift_batch" not in frame.f_code.co_filename:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._strike_at:
                signal.raise_signal(signal.SIGINT)
        return self


def interrupt_each_line(path: str, stride: int) -> None:
    """Do a bit of everything again and again; each time a Ctrl-C strikes some lines later."""
    strike_at = 1
    while True:
        tracer = Tracer(strike_at)
        try:
            sys.settrace(tracer)
            try:
                trio.run(a_bit_of_everything, path)
            finally:
                sys.settrace(None)
        except KeyboardInterrupt:
            say("interrupted", strike_at)
        if tracer.lines < strike_at:
            break
        strike_at += stride
    say("threads", sum("sift" in thread.name for thread in threading.enumerate()))


def recover(path: str, die_at: int | None) -> None:
    """Open a runner, which puts right what the last one left; die at the given step of that, if any.

    A step is a hundred instructions of SQLite's machine. The clock stands still.
    """
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        if steps == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0

    class Counting(sqlite3.Connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.set_progress_handler(step, 100)

    plain = sqlite3.connect
    sqlite3.connect = lambda *args, **kwargs: plain(*args, factory=Counting, **kwargs)  # type: ignore[assignment]

    async def main() -> None:
        async with open_store(path) as store, open_runner(store, _never, now=lambda: 2_000_000_000.0):
            say("recovered", steps)

    trio.run(main)


async def _never(caller: Caller, target: Target) -> Result:
    await trio.sleep_forever()
    raise AssertionError


def leave_live(path: str, jobs: int) -> None:
    """Store many live jobs, some of them with a fetch in flight, and wait to be killed."""

    async def main() -> None:
        config = Config(jobs_per_caller=MANY, jobs_total=MANY, workers=4, workers_limit=4)
        async with (
            open_store(path, durability="normal") as store,
            open_runner(store, _never, config) as runner,
        ):
            for job in range(jobs):
                targets = [Target(f"http://host/{job}/{number}") for number in range(8)]
                submission = await runner.submit(CALLER, targets)
                say("submitted", submission.id, len(targets))
            say("ready")
            await trio.sleep_forever()

    trio.run(main)


def fetch_slowly(path: str, seconds: float) -> None:
    """Drain one job of two targets, each of which takes a while."""

    async def fetch(caller: Caller, target: Target) -> Result:
        say("fetching", attempt.get().idx)
        await trio.sleep(seconds)
        return Result("slow")

    async def main() -> None:
        async with open_store(path) as store, open_runner(store, fetch) as runner:
            targets = [Target("http://host/0"), Target("http://host/1")]
            say("submitted", (await runner.submit(CALLER, targets)).id, 2)
            await trio.sleep_forever()

    trio.run(main)


def stop_on_sigterm(path: str, seconds: float) -> None:
    """Do what an application does about SIGTERM: cancel the scope round the runner."""

    async def fetch(caller: Caller, target: Target) -> Result:
        say("fetching", attempt.get().idx)
        await trio.sleep(seconds)
        return Result("slow")

    async def main() -> None:
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async with trio.open_nursery() as nursery:

                @nursery.start_soon
                async def stop() -> None:
                    async for _ in signals:
                        nursery.cancel_scope.cancel()

                async with open_store(path) as store, open_runner(store, fetch) as runner:
                    targets = [Target("http://host/0"), Target("http://host/1")]
                    say("submitted", (await runner.submit(CALLER, targets)).id, 2)
                    await trio.sleep_forever()

    trio.run(main)


def own_twice(path: str) -> None:
    """Own a store, and try to own it a second time in this process while it takes submits."""

    async def main() -> None:
        async with (
            open_store(path) as store,
            open_runner(store, _never, Config(jobs_per_caller=MANY, jobs_total=MANY)) as runner,
        ):
            say("ready")
            number = 0
            while True:
                async with open_store(path) as again:
                    with suppress(StoreInUseError):
                        async with open_runner(again, _never):
                            say("owned twice")
                number += 1
                say("submitted", (await runner.submit(CALLER, [Target(f"http://host/{number}")])).id, 1)
                await trio.sleep(0.005)

    trio.run(main)


def lock(path: str, seconds: float) -> None:
    """Keep a store's file locked for a while, as a backup or a curious person might."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("locked")
    time.sleep(seconds)
    connection.execute("ROLLBACK")
    connection.close()


def look(path: str, times: int) -> None:
    """Come, look at a store with plain SQLite, as an inquisitive person does, and go, many times over."""
    say("ready")
    for _ in range(times):
        connection = sqlite3.connect(path)
        connection.execute("SELECT count(*) FROM batch_target").fetchall()
        connection.close()
        time.sleep(0.002)


def own_briefly(path: str) -> None:
    """Try to own a store once and say what came of it."""

    async def main() -> None:
        try:
            async with open_store(path) as store, open_runner(store, _never):
                say("owned")
        except StoreError as exc:
            say(type(exc).__name__)

    trio.run(main)


ROLES = {
    role.__name__: role
    for role in (
        work,
        interrupts,
        interrupt_each_line,
        recover,
        leave_live,
        fetch_slowly,
        stop_on_sigterm,
        own_twice,
        lock,
        look,
        own_briefly,
    )
}

if __name__ == "__main__":
    ROLES[sys.argv[1]](sys.argv[2], **json.loads(sys.argv[3]))
