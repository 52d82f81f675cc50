"""The errors that callers, fetches and stores meet. None of their texts holds a target."""

from collections.abc import Awaitable, Callable


class SubmitError(Exception):
    """A submit or a rerun was refused. Nothing was stored."""


class NoTargetsError(SubmitError):
    """A job needs at least one target."""

    def __init__(self) -> None:
        super().__init__("a job needs at least one target")


class TooManyTargetsError(SubmitError):
    """More targets than a job may have; `limit` says how many it may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a job may have at most {limit} targets; submit the rest as another job")
        self.limit = limit


class CallerBusyError(SubmitError):
    """The caller has as many live jobs as it may have; `job_id` names the newest of them."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"this caller already has a live job, {job_id}; wait for it or cancel it")
        self.job_id = job_id


class JobsBusyError(SubmitError):
    """There are as many live jobs as there may be in all; try again later."""

    def __init__(self) -> None:
        super().__init__("there are as many live jobs as there may be in all; try again later")


class TargetError(Exception):
    """What a fetch raises when a target failed for good.

    `message` and `hint` are stored and read by the caller. `status` is the HTTP status that an API
    would answer with, `code` a short machine-readable word, and `retryable` says whether a later
    try could help.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        status: int = 502,
        code: str = "",
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
        self.code = code
        self.retryable = retryable


class RetryLater(Exception):
    """What a fetch raises when there is no room now: the target waits and is tried again.

    `retry_after` is a number of seconds. `ready` is an async function that returns when another
    try makes sense. `reason` is "gate", "host" or "retry_after"; anything else counts as "host".
    A value of `retry_after` that is not finite or not above 0 is replaced by the runner's own backoff;
    with a `ready` beside any `retry_after`, whichever comes first ends the wait.
    """

    def __init__(
        self,
        message: str = "busy",
        *,
        retry_after: float | None = None,
        ready: Callable[[], Awaitable[object]] | None = None,
        reason: str = "host",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after
        self.ready = ready
        self.reason = reason


class StoreError(Exception):
    """A store could not do a step; what the step was to change has not changed."""


class StoreInUseError(StoreError):
    """Another runner owns the store."""


class StoreVersionError(StoreError):
    """The store was written by a newer version of this package."""
