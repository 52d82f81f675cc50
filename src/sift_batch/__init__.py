"""The durable, polite, cancellable batch-fetch engine for Trio.

An application submits a series of targets as one batch job, gets a job id at once, and reads results
later, while it runs or after. Start with `open_store` and `open_runner`; docs/embedding.md is the guide
and docs/architecture.md the reading order of the code.
"""

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
