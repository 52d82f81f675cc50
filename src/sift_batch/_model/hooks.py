"""What a runner tells the application as it works: subclass `Hooks` and override what you need."""

from .values import Job


class Hooks:
    """No-op methods, called by a runner in its own tasks. Keep them short; they must not block.

    Whatever a hook raises, `SystemExit` included, is logged once and ends there. Seconds are Trio's,
    never the wall clock's. Labels are from closed sets, so that they can become metric labels as they
    are.
    """

    def job(self, outcome: str) -> None:
        """A job was `created` or `reused`, or ended `done`, `partial`, `failed` or `cancelled`."""

    def target(self, error: Exception | None, seconds: float, result_bytes: int) -> None:
        """A target was stored. `seconds` went into its fetches; busy waits are not counted."""

    def target_restricted(self, failed: bool) -> None:
        """A target of a restricted caller was stored; called in place of `target`."""

    def job_seconds(self, seconds: float) -> None:
        """A job ended, `seconds` after its submit. Not called for jobs of an earlier process."""

    def ended(self, job: Job) -> None:
        """A job ended: once per job, after the commit that made it terminal, restarts included."""

    def queued(self, seconds: float) -> None:
        """The first fetch of a job began, `seconds` after its submit."""

    def depth(self, live: int) -> None:
        """There are `live` jobs now: after every change, and once on opening."""

    def in_flight(self, n: int) -> None:
        """`n` targets are being fetched now: after every change, and once on opening."""

    def busy(self, reason: str, waited: float) -> None:
        """A busy wait of `gate`, `host` or `retry_after` ended after `waited` seconds."""

    def refused(self, reason: str) -> None:
        """A submit was refused: `no_targets`, `too_many_targets`, `caller_busy`, `jobs_busy`, `store`."""

    def store(self, operation: str, seconds: float) -> None:
        """A step of the store returned or failed after `seconds`."""

    def stored(self, nbytes: int) -> None:
        """All stored jobs have `nbytes` bytes now: after every change, and once on opening."""

    def swept(self, jobs: int) -> None:
        """A sweep removed `jobs` lapsed jobs."""

    def evicted(self, jobs: int, nbytes: int) -> None:
        """The byte budget removed `jobs` settled jobs with `nbytes` bytes in all."""
