"""Does any test notice this change? One changed copy of the package, and the tests that run on it.

The tests run in a process that was forked from this one before anything of the package was imported, so
that a trial does not pay for the start of pytest each time. What is imported there is the copy, and that is
asserted. A run that does not end in time has a verdict of its own: the machine may be slow, and then no test
has noticed anything. What is to be changed is not known here.
Next: `mutant_engine` and `mutant_store`, the list.
"""

import compileall
import importlib
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = ROOT / "src"
PACKAGE: Final = "sift_batch"
_PASSED: Final = 0
_NO_TESTS: Final = 5
_CHILD_FAULT: Final = 70
_IMPORT: Final = "the import of the package"
_HEAVY: Final = (
    "trio",
    "trio.testing",
    "anyio",
    "anyio.to_thread",
    "hypothesis",
    "structlog",
    "sqlite3",
    "idna",
)
_PROFILE: Final = "mutants"
READ_SOURCE: Final = (
    "tests/observe/test_source_rules.py",
    "tests/testing/test_check_store.py::test_a_broken_store_is_caught",
    "tests/testing/test_check_store.py::test_the_suite_names_the_rule",
)
"""Tests that look for texts in the source: they would see any change, whatever it does."""


def reads_source(nodeid: str) -> bool:
    """Say whether a test is one of those that look at the source."""
    return nodeid.startswith(READ_SOURCE)


@dataclass(frozen=True)
class Mutant:
    """One change of one line, the promise that it breaks, and who is expected to notice.

    `file` is relative to the package, `tests` are paths below `tests/`. With `hangs`, no test fails of it,
    but one never ends: then, and only then, a run that is out of time is what was to be seen.
    """

    name: str
    file: str
    old: str
    new: str
    promise: str
    tests: tuple[str, ...]
    hangs: bool = False


@dataclass(frozen=True)
class Trial:
    """How one run of tests ended.

    `caught` by a failed test or a crash; a run that is out of time is `timed_out`, and not caught.
    `durations` has the seconds of each test.
    """

    caught: bool
    by: str
    seconds: float
    tests: int = 0
    timed_out: bool = False
    durations: dict[str, float] = field(default_factory=dict)

    def seconds_of(self, paths: Iterable[str]) -> float:
        """Return how long a run of some of its tests takes: paths below `tests/`, and what comes before."""
        wanted = tuple(f"tests/{path}{end}" for path in paths for end in ("::", "/", "["))
        exact = tuple(f"tests/{path}" for path in paths)
        before = self.seconds - sum(self.durations.values())
        return before + sum(
            seconds for name, seconds in self.durations.items() if name in exact or name.startswith(wanted)
        )


def changed(mutant: Mutant, source: str) -> str:
    """Return the source with the change made; `ValueError` unless the old text is there exactly once."""
    found = source.count(mutant.old)
    if found != 1:
        raise ValueError(f"{mutant.name}: the old text is {found} times in {mutant.file}, and must be once")
    return source.replace(mutant.old, mutant.new)


def source_of(file: str, base: Path = SOURCE) -> str:
    """Return the text of one file of the package as it is in the checkout, or in a snapshot."""
    return (base / PACKAGE / file).read_text(encoding="utf-8")


@contextmanager
def snapshot() -> Iterator[Path]:
    """Give a copy of the package as it is now, compiled: what all trials of one run are copied from."""
    with tempfile.TemporaryDirectory(prefix="sift-batch-snapshot-") as folder:
        base = Path(folder, "src")
        shutil.copytree(SOURCE, base, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(base, quiet=2)
        yield base


@contextmanager
def copy_of_package(base: Path, file: str | None = None, text: str = "") -> Iterator[Path]:
    """Give the folder of a copy of the snapshot in which `file` has the text `text`."""
    with tempfile.TemporaryDirectory(prefix="sift-batch-mutant-") as folder:
        copy = Path(folder, "src")
        shutil.copytree(base, copy)
        if file is not None:
            changed = copy / PACKAGE / file
            changed.write_text(text, encoding="utf-8")
            # A compiled file is told from a stale one by its second and its size, which may be the same.
            for compiled in (changed.parent / "__pycache__").glob(f"{changed.stem}.*"):
                compiled.unlink()
        yield copy


def warm_up() -> None:
    """Import what every run of tests needs, but nothing of the package."""
    for name in _HEAVY:
        importlib.import_module(name)
    assert PACKAGE not in sys.modules


def run_tests(copy: Path, tests: Sequence[str], *, limit: float) -> Trial:
    """Run tests (paths below the checkout) on a copy, up to the first that fails or `limit` seconds."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sift-batch-trial-") as folder:
        child = os.fork()
        if not child:
            try:
                _child(copy, tests, Path(folder))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(_CHILD_FAULT)
        ended = _wait(child, began + limit)
        seconds = time.monotonic() - began
        notes, log = Path(folder, "notes"), Path(folder, "log")
        if ended is None:
            return Trial(False, f"the time limit of {limit:.0f} s", seconds, timed_out=True)
        seen: dict[str, Any] = json.loads(notes.read_text()) if notes.exists() else {"imported": False}
        if not seen["imported"] or (ended == _CHILD_FAULT and seen["failed"] != _IMPORT):
            raise RuntimeError(f"a trial could not be made: {log.read_text(errors='replace')[-2_000:]}")
        if ended == _NO_TESTS:
            raise RuntimeError(f"no test ran: {' '.join(tests)}")
        by = seen["failed"] or f"the end of the run with code {ended}"
        return Trial(ended != _PASSED, by, seconds, seen["passed"], durations=seen["durations"])


def _wait(child: int, until: float) -> int | None:
    """Return the exit code of a child, or None if it had to be killed."""
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.01)


def _child(copy: Path, tests: Sequence[str], folder: Path) -> None:
    """Run pytest on the copy, in a process group of its own, and end the process."""
    os.setsid()
    os.chdir(ROOT)
    log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(copy))
    # For the processes that tests start, and so that nothing is left in the checkout.
    os.environ |= {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
    }
    _quick_properties()
    notes = Notes(copy, folder)
    notes.import_package()
    base = folder / "tmp"
    code = pytest.main(
        [
            # What was imported before the fork can't be rewritten by pytest, and need not be.
            *("-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning"),
            *("-q", "-x", "-p", "no:randomly", "-p", "no:cacheprovider", "--tb=short"),
            *(f"--hypothesis-profile={_PROFILE}", f"--basetemp={base}", "--no-header"),
            *tests,
        ],
        plugins=[notes],
    )
    notes.write()
    os._exit(int(code))


def _quick_properties() -> None:
    # The first example that fails is enough, and the same one each time.
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(_PROFILE, phases=phases, derandomize=True, database=None)


class Notes:
    """A plugin of pytest that takes down what happened, and asserts that the copy is what was tested."""

    def __init__(self, copy: Path, folder: Path) -> None:
        self._copy = copy
        self._folder = folder
        self.seen: dict[str, Any] = {"failed": "", "passed": 0, "imported": False, "durations": {}}

    def import_package(self) -> None:
        """Import the package, and see where it came from."""
        self.seen["failed"] = _IMPORT
        found = importlib.util.find_spec(PACKAGE)
        assert found is not None
        assert Path(str(found.origin)).is_relative_to(self._copy), found.origin
        self.seen["imported"] = True
        self.write()
        module = importlib.import_module(PACKAGE)
        assert Path(str(module.__file__)).is_relative_to(self._copy), module.__file__
        self.seen["failed"] = ""
        self.write()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the tests that read the source."""
        items[:] = [item for item in items if not reads_source(item.nodeid)]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Take down the first failure, what passed before, and how long each test took."""
        if report.failed and not self.seen["failed"]:
            self.seen["failed"] = report.nodeid
            self.write()
        self.seen["passed"] += report.when == "call" and report.passed
        durations = self.seen["durations"]
        durations[report.nodeid] = durations.get(report.nodeid, 0.0) + report.duration

    def pytest_collectreport(self, report: Any) -> None:
        """Take down a test file that could not be read: what it imports is broken."""
        if report.failed and not self.seen["failed"]:
            self.seen["failed"] = f"the import of {report.nodeid}"
            self.write()

    def write(self) -> None:
        """Leave the notes for the parent."""
        (self._folder / "notes").write_text(json.dumps(self.seen))


def in_parallel(work: Callable[..., Any], arguments: Iterable[Sequence[Any]], jobs: int) -> Iterator[Any]:
    """Call `work` with each of the arguments in `jobs` processes; yield what they return as it comes."""
    import concurrent.futures
    import multiprocessing

    # Forked, and from a process without threads: what is imported by now is imported for all.
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        for done in concurrent.futures.as_completed([pool.submit(work, *given) for given in arguments]):
            yield done.result()
