"""What does a process do that must not lose anything? The work during which the real tests strike.

What is known to be on record is said at once: see `real_child.py`, the program that runs this.
"""

import json
import logging
import os
import zlib
from random import Random
from typing import Any

import trio

from sift_batch import (
    Caller,
    Config,
    JobsBusyError,
    Result,
    RetryLater,
    Runner,
    Target,
    TargetError,
    attempt,
    open_runner,
    open_store,
)

CALLER = Caller("child")
MANY = 10**6
SILENT = logging.getLogger("silent")


def say(*words: Any) -> None:
    """Write one line, whole, without any buffer of this process."""
    os.write(1, json.dumps(words).encode() + b"\n")


def checksum(content: str) -> int:
    """Return what stands for a content in a line."""
    return zlib.crc32(content.encode())


class Workload:
    """Submits, reads, cancels and deletes as fast as it can, by a seeded plan, and says what it knows."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._count = 0

    async def fetch(self, caller: Caller, target: Target) -> Result:
        """Fail now and then; else return a content that names its job and index."""
        if self._random.random() < 0.5:
            await trio.sleep(self._random.random() / 500)
        if self._random.random() < 0.2:
            raise TargetError("scripted failure")
        here = attempt.get()
        size = self._random.choice([10, 1_000, 20_000])
        return Result(f"{here.job_id}/{here.idx}/" + "x" * size, {"size": size})

    async def run(self, path: str, durability: Any) -> None:
        """Go on until somebody ends it."""
        config = Config(jobs_per_caller=MANY, jobs_total=30, workers=3, workers_limit=3, shutdown_grace=1)
        async with (
            open_store(path, durability=durability) as store,
            open_runner(store, self.fetch, config) as runner,
            trio.open_nursery() as nursery,
        ):
            say("ready")
            for _ in range(3):
                nursery.start_soon(self._submit_on_and_on, runner, nursery)

    async def _submit_on_and_on(self, runner: Runner, nursery: trio.Nursery) -> None:
        while True:
            self._count += 1
            count = self._random.randrange(1, 7)
            targets = [Target(f"http://host/{self._count}/{number}") for number in range(count)]
            try:
                submission = await runner.submit(CALLER, targets, max_age=0)
            except JobsBusyError:
                await trio.sleep(0.002)
                continue
            say("submitted", submission.id, count)
            nursery.start_soon(self._follow, runner, submission.id)
            if self._random.random() < 0.15:
                await trio.sleep(self._random.random() / 100)
                if await runner.cancel(submission.id):
                    say("cancelled", submission.id)

    async def _follow(self, runner: Runner, job_id: str) -> None:
        async with runner.results(job_id) as results:
            async for target in results:
                content = target.result.content if target.result is not None else ""
                say("stored", job_id, target.idx, target.status, checksum(content))
        if self._random.random() < 0.1:
            say("deleting", job_id)
            await runner.delete(job_id)


async def a_bit_of_everything(path: str) -> None:
    """Submit, watch, cancel, read and delete, all in one task, and say what is known."""

    async def fetch(caller: Caller, target: Target) -> Result:
        if attempt.get().number == 1:
            raise RetryLater(retry_after=0.001)
        return Result(f"{attempt.get().job_id}/{attempt.get().idx}/")

    async with open_store(path, durability="normal") as store:
        async with open_runner(store, fetch, Config(jobs_per_caller=9), log=SILENT) as runner:
            targets = [Target("http://host/0"), Target("http://host/1")]
            job_id, _ = await runner.submit(CALLER, targets, max_age=0)
            say("submitted", job_id, 2)
            async with runner.watch(job_id) as states:
                async for _state in states:
                    break
            other, _ = await runner.submit(CALLER, targets[:1], max_age=0)
            say("submitted", other, 1)
            if await runner.cancel(other):
                say("cancelled", other)
            async with runner.results(job_id) as results:
                async for target in results:
                    content = target.result.content if target.result is not None else ""
                    say("stored", job_id, target.idx, target.status, checksum(content))
            await runner.drain()
            say("deleting", job_id)
            await runner.delete(job_id)
