"""What is the least that still goes wrong? A story that failed, with everything left out that can be.

Delta debugging: leave out large parts first, then smaller ones, and keep what still breaks the same rule.
Then make what is left simple: pages that just answer, settings by default, callers that don't leave. The
order of tasks changes with every part that is left out, so each attempt may try a few schedules.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from sim_plan import Facts, Plan
from sim_run import Report, run_plan

T = TypeVar("T")
_SCHEDULES: Final = 3
_DEFAULTS: Final[Facts] = {
    "workers": 1,
    "workers_limit": 2,
    "ttl": 86_400.0,
    "jobs_per_caller": 5,
    "jobs_total": 8,
    "max_bytes": 64 * 2**20,
    "retry_wait": 2.0,
    "retry_for": 600.0,
    "target_timeout": 300.0,
    "job_timeout": 14_400.0,
    "result_max_bytes": 256 * 2**10,
    "shutdown_grace": 30.0,
    "sweep_every": 60.0,
}


class Shrinker:
    """Makes one failing plan smaller, as long as `tries` last."""

    def __init__(self, plan: Plan, report: Report, tries: int = 600) -> None:
        self.plan, self.report = plan, report
        self.tries = tries
        self._rule = report.violations[0].rule
        self._cut_off()

    def shrink(self) -> Plan:
        """Return the smallest plan that was found; `report` is what it came to."""
        size = -1
        while size != self._size() and self.tries > 0:
            size = self._size()
            self._fewer("actions")
            self._fewer("refusals")
            self._fewer("phases")
            self._simpler_setting()
            self._simpler_pages()
            self._simpler_actions()
        return self.plan

    def _size(self) -> int:
        return len(self.plan.to_json())

    def _fails(self, plan: Plan) -> bool:
        """Keep the plan if it breaks the same rule, under this schedule or another."""
        for schedule in (plan.schedule, *range(_SCHEDULES - 1)):
            if self.tries <= 0:
                return False
            self.tries -= 1
            candidate = plan.copy(schedule=schedule)
            report = run_plan(candidate)
            if report.violations and report.violations[0].rule == self._rule:
                self.plan, self.report = candidate, report
                return True
        return False

    def _cut_off(self) -> None:
        """Leave out what would come after the violation."""
        at = self.report.violations[0].at
        if at:
            plan = self.plan.copy()
            plan.actions = [action for action in plan.actions if action.at <= at]
            self._fails(plan)

    def _fewer(self, what: str) -> None:
        left_out(getattr(self.plan, what), lambda kept: self._fails(self.plan.copy(**{what: list(kept)})))

    def _simpler_setting(self) -> None:
        self._try(jitter={})
        self._try(hooks="plain")
        self._try(inside=False)
        self._try(gate={"total": 8, "per_host": 2, "batch_wait": 60.0})
        for name, value in _DEFAULTS.items():
            if self.plan.config[name] != value:
                self._try(config={**self.plan.config, name: value})

    def _simpler_pages(self) -> None:
        used = {url for action in self.plan.actions for url in action.args.get("targets", ())}
        self._try(pages={url: answers for url, answers in self.plan.pages.items() if url in used})
        for url, answers in list(self.plan.pages.items()):
            for simpler in ([{"kind": "ok", "latency": 0.0, "size": 10}], answers[:1], answers[-1:]):
                changed = self.plan.pages[url] != simpler and len(simpler) <= len(answers)
                if changed and self._try(pages={**self.plan.pages, url: simpler}):
                    break

    def _simpler_actions(self) -> None:
        for place, action in enumerate(self.plan.actions):
            if action.leave:
                self._change(place, "leave", {})
            targets = action.args.get("targets", ())
            if len(targets) > 1:
                left_out(targets, lambda kept, place=place: self._set_targets(place, kept))  # type: ignore[misc]

    def _set_targets(self, place: int, targets: Sequence[str]) -> bool:
        args = {**self.plan.actions[place].args, "targets": list(targets)}
        return bool(targets) and self._change(place, "args", args)

    def _change(self, place: int, name: str, value: Any) -> bool:
        plan = self.plan.copy()
        setattr(plan.actions[place], name, value)
        return self._fails(plan)

    def _try(self, **changed: Any) -> bool:
        if all(getattr(self.plan, name) == value for name, value in changed.items()):
            return False
        return self._fails(self.plan.copy(**changed))


def left_out(items: Sequence[T], still: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Leave out as many items as `still` allows, in blocks that become smaller."""
    kept = list(items)
    block = max(len(kept) // 2, 1)
    while kept:
        begin = 0
        while begin < len(kept):
            fewer = kept[:begin] + kept[begin + block :]
            if still(fewer):
                kept = fewer
            else:
                begin += block
        if block == 1:
            break
        block = max(block // 2, 1)
    return kept
