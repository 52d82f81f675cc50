"""The durable, polite, cancellable batch-fetch engine for Trio.

An application submits a series of targets as one batch job, gets a job id at once, and reads results
later, while it runs or after. Start with `open_store` and `open_runner`; docs/embedding.md is the guide
and docs/architecture.md the reading order of the code.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._engine.runner import Runner
    from ._gate.gate import Gate, GateStatistics
    from ._gate.hosts import host_key
    from ._model.config import Config
    from ._model.errors import (
        CallerBusyError,
        JobsBusyError,
        NoTargetsError,
        RetryLater,
        StoreError,
        StoreInUseError,
        StoreVersionError,
        SubmitError,
        TargetError,
        TooManyTargetsError,
    )
    from ._model.hooks import Hooks
    from ._model.lifecycle import JobState, TargetState
    from ._model.store import Store
    from ._model.values import (
        Attempt,
        Caller,
        CallerClass,
        FetchFunc,
        Job,
        JobStatus,
        Options,
        Progress,
        Result,
        RunnerStatistics,
        Submission,
        Target,
        TargetStatus,
        attempt,
    )
    from ._observe.redact import redact_urls
    from ._observe.seal import seal_logging
    from ._open import open_runner
    from ._store.reader import Reader, open_reader
    from ._store.sqlite import open_store

__version__ = "0.1.0"

# Where each public name lives. It is imported when it is first asked for, so that a program that only
# wants its command line's help, or one value, does not wait for the engine, Trio and SQLite.
_HOMES = {
    "Runner": "_engine.runner",
    "Gate": "_gate.gate",
    "GateStatistics": "_gate.gate",
    "host_key": "_gate.hosts",
    "Config": "_model.config",
    "CallerBusyError": "_model.errors",
    "JobsBusyError": "_model.errors",
    "NoTargetsError": "_model.errors",
    "RetryLater": "_model.errors",
    "StoreError": "_model.errors",
    "StoreInUseError": "_model.errors",
    "StoreVersionError": "_model.errors",
    "SubmitError": "_model.errors",
    "TargetError": "_model.errors",
    "TooManyTargetsError": "_model.errors",
    "Hooks": "_model.hooks",
    "JobState": "_model.lifecycle",
    "TargetState": "_model.lifecycle",
    "Store": "_model.store",
    "Attempt": "_model.values",
    "Caller": "_model.values",
    "CallerClass": "_model.values",
    "FetchFunc": "_model.values",
    "Job": "_model.values",
    "JobStatus": "_model.values",
    "Options": "_model.values",
    "Progress": "_model.values",
    "Result": "_model.values",
    "RunnerStatistics": "_model.values",
    "Submission": "_model.values",
    "Target": "_model.values",
    "TargetStatus": "_model.values",
    "attempt": "_model.values",
    "redact_urls": "_observe.redact",
    "seal_logging": "_observe.seal",
    "open_runner": "_open",
    "Reader": "_store.reader",
    "open_reader": "_store.reader",
    "open_store": "_store.sqlite",
}

__all__ = [
    "Attempt",
    "Caller",
    "CallerBusyError",
    "CallerClass",
    "Config",
    "FetchFunc",
    "Gate",
    "GateStatistics",
    "Hooks",
    "Job",
    "JobState",
    "JobStatus",
    "JobsBusyError",
    "NoTargetsError",
    "Options",
    "Progress",
    "Reader",
    "Result",
    "RetryLater",
    "Runner",
    "RunnerStatistics",
    "Store",
    "StoreError",
    "StoreInUseError",
    "StoreVersionError",
    "Submission",
    "SubmitError",
    "Target",
    "TargetError",
    "TargetState",
    "TargetStatus",
    "TooManyTargetsError",
    "attempt",
    "host_key",
    "open_reader",
    "open_runner",
    "open_store",
    "redact_urls",
    "seal_logging",
]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
