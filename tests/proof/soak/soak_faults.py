"""What goes wrong while it runs? Each kind of fault about once in a hundred, by a seeded die.

The store refuses steps and is slow, hooks and loggers raise, and a fetch ends in every way that one can.
Every fetch is recorded as it is met. Who calls is in `soak_load.py`.
"""

import logging
from collections import Counter
from random import Random
from typing import Any, Final

import trio
from history import History, digest_of
from soak_troubles import TROUBLES, Panic

from sift_batch import Caller, Gate, Hooks, Result, RetryLater, StoreError, Target, attempt, host_key

RATE: Final = 0.01
SECRET: Final = "soak-secret"
RESULT_LIMIT: Final = 4_096


class FlakyStore:
    """A store that refuses one step in a hundred before anything of it has happened, and is slow at times."""

    def __init__(self, store: Any, random: Random, faults: Counter[str]) -> None:
        self._store = store
        self._random = random
        self._faults = faults

    def __getattr__(self, operation: str) -> Any:
        step = getattr(self._store, operation)

        async def flaky(*args: Any, **options: Any) -> Any:
            roll = self._random.random()
            if roll < RATE and operation != "release":
                self._faults["store"] += 1
                await trio.lowlevel.checkpoint()
                raise StoreError(f"{operation} was made to fail")
            if roll < 2 * RATE:
                self._faults["store slow"] += 1
                await trio.sleep(self._random.random() / 20)
            return await step(*args, **options)

        return flaky


class RaisingHooks(Hooks):
    """Hooks of which one call in a hundred raises."""

    def __init__(self, random: Random, faults: Counter[str]) -> None:
        self.calls: Counter[str] = Counter()
        self._random = random
        self._faults = faults

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name == "calls":
            return super().__getattribute__(name)

        def hook(*_values: object) -> None:
            self.calls[name] += 1
            if self._random.random() < RATE:
                self._faults["hook"] += 1
                raise self._random.choice([ValueError, SystemExit, Panic])("a hook breaks")

        return hook


class CountingFilter(logging.Filter):
    """Counts the lines of a logger and keeps none; raises at one in a hundred, as a broken logger does."""

    def __init__(self, random: Random, faults: Counter[str]) -> None:
        super().__init__()
        self.lines: Counter[str] = Counter()
        self.longest = 0
        self.told: int = 0
        self._random = random
        self._faults = faults

    def filter(self, record: logging.LogRecord) -> bool:
        """Count a line."""
        line = f"{record.getMessage()} {record.__dict__}"
        self.lines[record.levelname] += 1
        self.longest = max(self.longest, len(record.getMessage()))
        self.told += SECRET in line
        if self._random.random() < RATE:
            self._faults["logger"] += 1
            raise OSError("a logger breaks")
        return False


class Fetching:
    """The fetch of a soak: through the gate, recorded, and in one call of five in some kind of trouble."""

    def __init__(self, history: History, gate: Gate, random: Random, faults: Counter[str]) -> None:
        self._history = history
        self._random = random
        self._faults = faults
        self._in_slot = gate.batch(self._fetch)
        self.started = 0

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Note that the engine has started a target, and fetch it once the gate lets it."""
        here = attempt.get()
        self.started += 1
        self._history.note("start", job=here.job_id, idx=here.idx, number=here.number)
        return await self._in_slot(caller, target)

    async def _fetch(self, caller: Caller, target: Target) -> Result:
        here = attempt.get()
        call = self._history.invoke(
            "engine",
            "fetch",
            job=here.job_id,
            idx=here.idx,
            number=here.number,
            host=host_key(target.url),
            batch=True,
        )
        try:
            result = await self._page(here.job_id, here.idx)
        except RetryLater:
            self._history.ok(call, busy=True)
            raise
        except BaseExceptionGroup as group:
            if group.split(RetryLater)[1] is None:
                self._history.ok(call, busy=True)
            else:
                self._history.fail(call, "group")
            raise
        except trio.Cancelled:
            self._history.unknown(call)
            raise
        except BaseException as exc:
            self._history.fail(call, type(exc).__name__)
            raise
        if type(result) is not Result or result.meta:
            self._history.fail(call, "bad_result")
        else:
            self._history.ok(call, digest=digest_of(result.content[:RESULT_LIMIT]))
        return result

    async def _page(self, job_id: str, idx: int) -> Result:
        roll = self._random.random()
        number = int(roll / RATE)
        if number < len(TROUBLES):
            trouble = TROUBLES[number]
            self._faults[trouble.__name__.strip("_").replace("_", " ")] += 1
            return await trouble()
        await trio.sleep(self._random.random() / 50)
        size = self._random.choice([10, 100, 1_000, 6_000])
        return Result(f"{job_id}/{idx}/{self._random.getrandbits(64)}/{'x' * size}")
