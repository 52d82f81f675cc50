"""Is the mutation gate itself to be trusted: is its list in order, and can it fail?"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from mutant_engine import ENGINE
from mutant_maker import changes
from mutant_store import STORE
from mutant_trial import ROOT, SOURCE, Mutant, Trial, changed, source_of

MUTANTS = (*ENGINE, *STORE)
GATE = Path(__file__).with_name("mutants.py")
WITHOUT = {
    "_engine/__init__.py": "a docstring alone",
    "_gate/__init__.py": "a docstring alone",
    "_model/__init__.py": "a docstring alone",
    "_observe/__init__.py": "a docstring alone",
    "_store/__init__.py": "a docstring alone",
    "_model/crash.py": "a place for the crash tests, which does nothing without them",
    "_model/errors.py": "errors and their fields: nothing is decided",
    "_model/events.py": "a protocol",
    "_model/hooks.py": "hooks that do nothing",
    "_model/store.py": "a protocol and its values",
}
"""The modules without a mutant, and why."""

SURVIVES = """
import sys
from mutants import Mutant, gate
TESTS = ("store/test_lifecycle.py",)
FILE = "_model/lifecycle.py"
mutants = [Mutant("a comment", FILE, "if failed == 0:", "if failed == 0:  # none", "", TESTS)]
sys.exit(gate(mutants, jobs=1, limit=60.0, broader=()))
"""

# No machine is quick enough for a loop without end: so a limit may be as short as it likes.
ENDLESS = """
import sys
from mutants import Mutant, gate
TESTS = ("store/test_lifecycle.py",)
FILE = "_model/lifecycle.py"
OLD, NEW = "if failed == 0:", "while True: pass\\n    if failed == 0:"
mutants = [
    Mutant("expected", FILE, OLD, NEW, "", TESTS, hangs=True),
    Mutant("unexpected", FILE, OLD, NEW, "", TESTS),
]
sys.exit(gate(mutants, jobs=1, limit=1.0, slack=1.0, broader=()))
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_changes_its_file(mutant: Mutant) -> None:
    """A mutant's old text is in its file exactly once, and the changed file says something else."""
    source = source_of(mutant.file)
    assert source.count(mutant.old) == 1
    text = changed(mutant, source)
    compile(text, mutant.file, "exec")
    assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(source))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_names_tests_that_exist(mutant: Mutant) -> None:
    """Whoever is expected to catch a mutant is there."""
    assert mutant.promise
    assert mutant.tests
    for path in mutant.tests:
        file, _, function = path.partition("::")
        assert (ROOT / "tests" / file).exists(), path
        assert not function or f"def {function}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_no_two_mutants_are_the_same() -> None:
    """Each mutant has a name and a change of its own."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_room_has_mutants() -> None:
    """No module of the engine is without a mutant, but for those that say why."""
    package = SOURCE / "sift_batch"
    rooms = ("_engine", "_gate", "_store", "_observe", "_model")
    found = {path.relative_to(package).as_posix() for room in rooms for path in (package / room).glob("*.py")}
    found.add("_passing.py")  # it stands below the engine, since the fetch needs it as well
    listed = {mutant.file for mutant in MUTANTS}
    assert listed.isdisjoint(WITHOUT)
    assert found == listed | WITHOUT.keys()


@pytest.mark.slow
def test_the_gate_catches_a_real_mutant() -> None:
    """A listed mutant is caught, by a test of those that are expected to, and the gate is content."""
    done = _run(str(GATE), "--only", "a job that failed throughout", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "a job that failed throughout is partial: caught by tests/store/test_lifecycle.py::" in done.stdout
    assert "1 of 1 mutants caught" in done.stdout


@pytest.mark.slow
def test_the_gate_reports_what_nobody_notices() -> None:
    """A change that no test notices is a survivor, and the gate fails."""
    done = _run("-c", SURVIVES)
    assert done.returncode == 1, done.stderr
    assert "SURVIVOR: a comment" in done.stdout
    assert "0 of 1 mutants caught" in done.stdout


@pytest.mark.slow
def test_a_run_out_of_time_has_caught_nothing() -> None:
    """A run that is out of time fails the gate, unless the mutant says that it hangs."""
    done = _run("-c", ENDLESS)
    assert done.returncode == 1, done.stderr
    assert "expected: caught by the time limit of" in done.stdout
    assert "unexpected: TIMED OUT: the time limit of" in done.stdout
    assert "TIMED OUT: unexpected (_model/lifecycle.py" in done.stdout
    assert "1 of 2 mutants caught" in done.stdout


def test_the_time_of_some_tests_is_theirs_and_of_what_comes_before() -> None:
    """How long a trial may take comes from its own tests in the unchanged run, and from the start of it."""
    durations = {
        "tests/a/test_x.py::test_1[p]": 1.0,
        "tests/a/test_x.py::test_2": 2.0,
        "tests/b/y.py::t": 4.0,
    }
    trial = Trial(False, "", 17.0, durations=durations)
    assert trial.seconds_of(["a/test_x.py"]) == trial.seconds_of(["a"]) == 13.0
    assert trial.seconds_of(["a/test_x.py::test_1"]) == 11.0
    assert trial.seconds_of(["a", "b/y.py::t"]) == 17.0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=GATE.parent,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_mutant_whose_text_is_gone_is_refused() -> None:
    """A change that can't be made is an error, never a mutant that was caught."""
    gone = Mutant("gone", "_engine/encode.py", "no such text", "", "", ())
    with pytest.raises(ValueError, match="0 times in"):
        changed(gone, source_of(gone.file))


def test_mechanical_changes_are_small_and_complete() -> None:
    """The maker finds each place of a function where it could be wrong, and nothing in its docstring."""
    source = '''def first(rows: list[int], limit: int = 3) -> bool:
    """Say 1 < 2 and 3."""
    if rows and len(rows) <= limit:
        rows.clear()
        return True
    return not min(rows) + 1
'''
    made = {(change.line, change.what.replace("  ", " ")) for change in changes(source)}
    assert made == {
        (1, "3 → 4"),
        (3, "and → or "),
        (3, "<= → < "),
        (3, "<= → > "),
        (4, "rows.clear() → pass"),
        (5, "return True → return None"),
        (5, "True → False"),
        (6, "return not min(rows) + 1 → return None"),
        (6, "not → nothing"),
        (6, "min → max"),
        (6, "+ → - "),
        (6, "1 → 2"),
    }


def test_mechanical_changes_reach_into_sql() -> None:
    """A comparison, an order and a guard in a text of SQL are changed too."""
    source = 'rows = ask("SELECT id FROM job WHERE lease >= ? AND settled = 1 ORDER BY rowid DESC")\n'
    made = {change.what for change in changes(source)}
    assert {">= → >", "AND → OR", "settled = 1 → settled = 0", "DESC → nothing"} <= {
        what.replace("  ", " ").strip() for what in made
    }


def test_every_mechanical_change_compiles() -> None:
    """What the maker makes of the engine's own modules can be run."""
    for file in ("_engine/busy.py", "_store/removal.py"):
        assert (SOURCE / "sift_batch" / file).exists()
        for change in changes(source_of(file)):
            compile(change.source, file, "exec")
