"""May this store take the place of the one that comes with the package? The published suite.

The rules are in the modules `_store_*`, one function each. They know a store by its protocol alone.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from .._model.store import Store
from . import (
    _store_calls,
    _store_drain,
    _store_ends,
    _store_lease,
    _store_owner,
    _store_reads,
    _store_removal,
    _store_rerun,
    _store_submit,
)
from ._ledger import OWNER, T0, Ledger
from ._rules import Rule

_SUITES: Final = (
    _store_submit,
    _store_drain,
    _store_ends,
    _store_owner,
    _store_lease,
    _store_rerun,
    _store_reads,
    _store_calls,
    _store_removal,
)

STORE_RULES: Final[tuple[Rule[Ledger], ...]] = tuple(rule for suite in _SUITES for rule in suite.rule.all())
"""What `check_store` checks, in this order; the `text` of each is the promise in one sentence."""


async def check_store(factory: Callable[[], AbstractAsyncContextManager[Store]]) -> None:
    """Return if the stores that `factory` opens keep every rule of a `Store`.

        async def test_my_store() -> None:
            await check_store(lambda: open_store(":memory:"))

    `factory()` gives an async context manager of a new, empty store; it is called once for each rule.
    Runs inside a Trio run, on any clock. Takes seconds: one rule removes 10,001 jobs. Raises
    `AssertionError` at the first rule that is broken, with its text; `STORE_RULES` has all of them.
    """
    for rule in STORE_RULES:
        async with factory() as store:
            await store.acquire(OWNER, now=T0)
            await rule.run(Ledger(store))
            await store.release(OWNER)
