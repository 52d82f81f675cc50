"""How is a runner put together? The one place that knows both the engine and the loggers."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from ._engine.runner import Runner, open_engine
from ._model.config import Config
from ._model.hooks import Hooks
from ._model.store import Store
from ._model.values import FetchFunc
from ._observe.log import open_event_log
from ._protected import Protected

_DEFAULTS = Config()


def open_runner(
    store: Store,
    fetch: FetchFunc,
    config: Config = _DEFAULTS,
    *,
    hooks: Hooks | None = None,
    now: Callable[[], float] = time.time,
    log: Any = None,
) -> AbstractAsyncContextManager[Runner]:
    """Run an engine round a block: `async with open_runner(store, fetch) as runner`.

    On opening, jobs that an earlier process left live become `failed` with the error `restart`.
    `fetch` is called for one target at a time per job, in the context in which the block was entered.
    `now` is the wall clock, in unix seconds. `log` is a structlog or `logging` logger; None takes
    structlog's `sift_batch` if the application has configured structlog, else `logging`'s.

    Leaving the block, in whatever way, or cancelling the scope round it begins the closing: no target
    starts any more, fetches in flight have `config.shutdown_grace` seconds and are then cancelled.
    So a timeout round the block may come out that much later. What the body raised comes out as
    itself; a `KeyboardInterrupt` or `SystemExit` of a fetch ends the grace and comes out bare.

    Raises `StoreInUseError` while another runner owns the store, in any process, and `StoreError`.
    """
    return Protected(open_engine(store, fetch, config, hooks=hooks, now=now, log=open_event_log(log)))
