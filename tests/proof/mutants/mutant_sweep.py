"""Which of the mechanical changes of a module does no test notice?

All the tests run once on the unchanged package, and it is taken down which of them reach which line. Then
this process, with every test collected, forks for each change: the fork grafts it and runs the tests that
reach its line, quick ones first, as long as a budget of time lasts; so a survivor says how many it was
tried on. What can't be grafted is tried on a copy of the package, by a pytest of its own.
Next: `mutant_maker`, which makes the changes, and `mutant_graft`.
"""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mutant_graft import NotGrafted, graft
from mutant_maker import Change, changes
from mutant_trial import PACKAGE, READ_SOURCE, ROOT, copy_of_package, reads_source, snapshot, source_of

_CAUGHT, _SURVIVED = 1, 0
_SLACK = 5.0
"""A trial may take so many times as long as its tests did unchanged."""


def sweep(modules: Sequence[str], tests: Sequence[str], *, jobs: int, limit: float, budget: float) -> int:
    """Try every change of some modules; print the survivors; return the exit code.

    `limit` is for one trial, `budget` for the tests in it by the time that they take unchanged; in seconds.
    """
    with snapshot() as base, copy_of_package(base) as copy:
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(copy))
        os.environ |= {"PYTHONPATH": str(copy), "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis")}
        plugin = Sweep(base, copy, modules, jobs, limit, budget)
        os.chdir(ROOT)
        code = pytest.main(
            [
                *("-o", "addopts=", "-p", "no:terminal", "-s", "-p", "no:randomly", "-p", "no:cacheprovider"),
                *(f"--basetemp={copy.parent / 'tmp'}", *(f"tests/{path}" for path in tests)),
            ],
            plugins=[plugin],
        )
    if plugin.faulty or code not in (0, 1):
        print(f"The tests do not pass on the unchanged package: {', '.join(plugin.faulty) or code}")
        return 2
    return plugin.told()


@dataclass
class _Trial:
    module: str
    change: Change
    wanted: int
    until: float
    out_of_time: bool = False


class Sweep:
    """A plugin of pytest that runs the collected tests once, and then again for each change."""

    def __init__(
        self, base: Path, copy: Path, modules: Sequence[str], jobs: int, limit: float, budget: float
    ) -> None:
        import coverage

        self._base = base
        self._files = {module: str(copy / PACKAGE / module) for module in modules}
        self._jobs = jobs
        self._limit = limit
        self._budget = budget
        self._coverage: Any = coverage.Coverage(
            data_file=None, include=list(self._files.values()), config_file=False, messages=False
        )
        self._coverage.start()
        found = importlib.import_module(PACKAGE)
        assert Path(str(found.__file__)).is_relative_to(copy), found.__file__
        self._running: dict[int, _Trial] = {}
        self._items: dict[str, Any] = {}
        self._durations: dict[str, float] = {}
        self._again: list[str] | None = None
        self._forked = False
        self.faulty: list[str] = []
        self._count: Counter[tuple[str, str]] = Counter()

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take down how long a test took, or that it failed; in a fork the first failure is the end."""
        if report.failed and self._again is not None:
            self._again.append(report.nodeid)
        elif report.failed and self._forked:
            os._exit(_CAUGHT)
        elif report.failed:
            self.faulty.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self._durations[report.nodeid] = report.duration

    def pytest_runtestloop(self, session: Any) -> bool:
        """Run everything once, and then what each change needs."""
        self._items = {item.nodeid: item for item in session.items if not reads_source(item.nodeid)}
        self._run(list(self._items.values()), cover=True)
        self._coverage.stop()
        if not self.faulty:
            self._leave_out_what_runs_once()
            print(f"{len(self._durations)} tests", flush=True)
            for module in self._files:
                self._sweep(module)
            while self._running:
                self._collect()
        return True

    def _sweep(self, module: str) -> None:
        reached = self._coverage.get_data().contexts_by_lineno(self._files[module])
        for change in changes(source_of(module, self._base)):
            while len(self._running) >= self._jobs:
                self._collect()
            wanted = self._chosen({name for line in change.lines for name in reached.get(line, [])})
            if wanted:
                self._start(module, change, [self._items[name] for name in wanted])
            else:
                self._tell(module, change, "not reached", "NO TEST REACHES IT")

    def _leave_out_what_runs_once(self) -> None:
        """Run everything again in a fork without any change: what fails there says nothing of a change."""
        with tempfile.NamedTemporaryFile() as file:
            child = os.fork()
            if not child:
                self._again = []
                try:
                    self._run([self._items[name] for name in self._durations])
                    Path(file.name).write_text("\n".join(self._again))
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            for name in Path(file.name).read_text().splitlines():
                print(f"  left out, since it can't be run twice: {name}")
                del self._durations[name]

    def _run(self, items: Sequence[Any], *, cover: bool = False) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            if cover:
                self._coverage.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def _chosen(self, names: Set[str]) -> list[str]:
        """Return the tests of one line, the quick ones first, as many as the budget allows."""
        if "" in names:
            names = self._durations.keys()  # it runs on import: everything may depend on it
        chosen, spent = [], 0.0
        known = [name for name in names if name in self._durations]
        for name in sorted(known, key=lambda name: (self._durations[name], name)):
            spent += self._durations[name]
            if spent > self._budget:
                break
            chosen.append(name)
        return chosen

    def _start(self, module: str, change: Change, items: Sequence[Any]) -> None:
        child = os.fork()
        if child:
            unchanged = sum(self._durations[item.nodeid] for item in items)
            until = time.monotonic() + max(self._limit, _SLACK * self._jobs * unchanged)
            self._running[child] = _Trial(module, change, len(items), until)
            return
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            self._forked = True
            name = f"{PACKAGE}.{module.removesuffix('.py').replace('/', '.')}"
            try:
                graft(name, change.source)
            except NotGrafted:
                os._exit(self._on_a_copy(module, change, items))
            except Exception:
                os._exit(_CAUGHT)  # the module can't be imported any more
            self._run(items)
            os._exit(_SURVIVED)
        except BaseException:
            os._exit(_CAUGHT)

    def _on_a_copy(self, module: str, change: Change, items: Sequence[Any]) -> int:
        files = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in items))
        with copy_of_package(self._base, module, change.source) as copy:
            os.environ["PYTHONPATH"] = str(copy)
            quiet = ("-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider")
            left_out = (f"--deselect={name}" for name in READ_SOURCE)
            command = [sys.executable, "-m", "pytest", *quiet, *left_out, *files]
            return min(subprocess.run(command, check=False).returncode, 1)

    def _collect(self) -> None:
        """Note each trial that has ended, and end those whose time is up."""
        for child, trial in list(self._running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                del self._running[child]
                if trial.out_of_time:
                    self._tell(
                        trial.module, trial.change, "timed out", "no test failed, but none ended in time"
                    )
                elif os.waitstatus_to_exitcode(status) == _SURVIVED:
                    self._tell(trial.module, trial.change, "survived", f"survived {trial.wanted} tests")
                else:
                    self._count[trial.module, "caught"] += 1
            elif time.monotonic() > trial.until and not trial.out_of_time:
                trial.out_of_time = True
                os.killpg(child, signal.SIGKILL)
        time.sleep(0.005)

    def _tell(self, module: str, change: Change, verdict: str, text: str) -> None:
        self._count[module, verdict] += 1
        print(f"  {module}:{change.line}: {change.what}: {text}", flush=True)

    def told(self) -> int:
        """Print the sums; return the exit code."""
        for module in self._files:
            verdicts = ("caught", "survived", "timed out", "not reached")
            sums = ", ".join(f"{self._count[module, verdict]} {verdict}" for verdict in verdicts)
            print(f"{module}: {sums}")
        return 1 if any(count for (_, verdict), count in self._count.items() if verdict != "caught") else 0
