"""Who sleeps until the plan has something for them, and who minds the time meanwhile?

Nothing is decided here: `settle` runs `Plan.decide` and wakes who got something. There is no task
behind it: when time alone can change the plan, one of those who sleep anyway, the keeper, wakes then
and settles for all. The next room is `gate`.
"""

import trio
from trio.lowlevel import enable_ki_protection

from .claims import Claim
from .plan import Plan


class Sleepers:
    """The tasks that sleep for a claim."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        # Whoever sleeps and was not woken yet; while there is anybody, one of them is the keeper.
        self._asleep: dict[Claim, _Sleeper] = {}
        self._keeper: Claim | None = None

    @enable_ki_protection
    async def sleep(self, claim: Claim, deadline: float) -> None:
        """Sleep until `claim` was granted, the deadline has come, or there may be something to settle."""
        sleeper = self._asleep[claim] = _Sleeper(deadline)
        try:
            with sleeper.scope:
                self._set_alarm()
                await trio.lowlevel.wait_task_rescheduled(sleeper.abort)
        finally:
            self._remove(claim)

    @enable_ki_protection
    def settle(self) -> None:
        """Decide for all who wait, wake who got something, and see to it that somebody minds the time."""
        for claim in self._plan.decide(trio.current_time()):
            sleeper = self._asleep.get(claim)
            if sleeper is not None and sleeper.task is not None:
                self._remove(claim)
                trio.lowlevel.reschedule(sleeper.task)
        self._set_alarm()

    def _remove(self, claim: Claim) -> None:
        self._asleep.pop(claim, None)
        if self._keeper is claim:
            self._keeper = None

    def _set_alarm(self) -> None:
        if self._keeper is None:
            # Who came last mostly leaves last.
            self._keeper = next(reversed(self._asleep), None)
        if self._keeper is not None:
            keeper = self._asleep[self._keeper]
            wake_at = min(keeper.deadline, self._plan.next_change())
            if keeper.scope.deadline != wake_at:
                keeper.scope.deadline = wake_at


class _Sleeper:
    """One task. `task` is None once its deadline, the alarm or a cancel has woken it."""

    __slots__ = ("deadline", "scope", "task")

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.scope = trio.CancelScope(deadline=deadline)
        self.task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

    def abort(self, _: object) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED
