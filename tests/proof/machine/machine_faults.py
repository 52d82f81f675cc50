"""Which faults must the machine see? Engines that break one promise each, planted on purpose.

Most are stores that do one step of the protocol a little wrong; the others are settings that are not
those of the model, as an engine would behave that counts wrong. Used by `test_machine`.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, Final

from machine_words import CONFIG

from sift_batch import Config, Store


class Altered:
    """A store whose calls of one operation are altered by `alter`, which gets the call and its arguments."""

    def __init__(self, store: Store, operation: str, alter: Callable[..., Any]) -> None:
        self._store = store
        self._operation = operation
        self._alter = alter

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)
        if name != self._operation:
            return call
        return lambda *args, **named: self._alter(call, *args, **named)


def _with(**changes: Any) -> Callable[..., Any]:
    """Return what calls an operation with some arguments replaced."""

    async def alter(call: Any, *args: Any, **named: Any) -> Any:
        return await call(*args, **{**named, **changes})

    return alter


async def _late(call: Any, *args: Any, now: int, **named: Any) -> Any:
    return await call(*args, now=now - 1, **named)


async def _never(call: Any, *args: Any, **named: Any) -> Any:
    return await call(*args, **{**named, "max_bytes": 2**60})


async def _twice(call: Any, *args: Any, **named: Any) -> Any:
    """Answer with the removed job again, so that its bytes are taken off twice."""
    removed = await call(*args, **named)
    return None if removed is None else removed._replace(nbytes=removed.nbytes * 2)


async def _unsorted(call: Any, *args: Any, **named: Any) -> Any:
    found = await call(*args, **named)
    return None if found is None else found[::-1]


async def _cut(call: Any, owner: str, job_id: str, idx: int, outcome: Any, **named: Any) -> Any:
    """Lose the status."""
    return await call(owner, job_id, idx, outcome._replace(http_status=None), **named)


STORES: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "a cancel that anybody may make": ("stop", _with(caller=None)),
    "a cancel that settles a job whose fetch is in flight": ("stop", _with(in_flight=False)),
    "a cancel that forgets to settle": ("stop", _with(in_flight=True)),
    "a touch that anybody may make": ("touch", _with(caller=None)),
    "a touch that wakes the dead": ("touch", _with(ttl=inf)),
    "a delete that anybody may make": ("delete", _with(caller=None)),
    "a lapsed job that answers a resubmit": ("submit", _with(ttl=inf)),
    "a resubmit that knows no age": ("submit", _with(max_age=None)),
    "a record that is dated back": ("record", _late),
    "a record that loses a part": ("record", _cut),
    "a rerun of what has lapsed": ("rerun", _with(ttl=inf)),
    "a budget that nobody keeps": ("evict", _never),
    "bytes that are taken off twice": ("evict", _twice),
    "a list that begins with the oldest": ("jobs", _unsorted),
    "a read of what has lapsed": ("status", _with(ttl=inf)),
    "a list that shows all callers' jobs": ("jobs", _with(caller=None)),
    "a memory of what went that anybody may ask": ("gone", _with(caller="alice")),
}

CONFIGS: Final[dict[str, Config]] = {
    "a third worker": replace(CONFIG, workers=3, workers_limit=3),
    "one job more of a caller": replace(CONFIG, jobs_per_caller=3),
    "one job more in all": replace(CONFIG, jobs_total=5),
    "one target more": replace(CONFIG, targets_per_job=5),
    "a job that is kept for a second longer": replace(CONFIG, ttl=1_001),
    "a budget that is a little larger": replace(CONFIG, max_bytes=1_900),
    "a first wait that is too long": replace(CONFIG, retry_wait=52.0),
    "a target that may be busy for longer": replace(CONFIG, retry_for=200.0),
    "a fetch that may take longer": replace(CONFIG, target_timeout=190.0),
    "a job whose time is never up": replace(CONFIG, job_timeout=inf),
    "a result that is cut later": replace(CONFIG, result_max_bytes=700),
}
