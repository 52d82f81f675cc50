"""Is the mutation gate itself to be trusted: is its list in order, and can it fail?"""

import subprocess
import sys
from pathlib import Path

import pytest
from mutant_engine import ENGINE
from mutant_maker import changes
from mutant_store import STORE
from mutant_trial import ROOT, SOURCE, Mutant, changed, source_of

MUTANTS = (*ENGINE, *STORE)
GATE = Path(__file__).with_name("mutants.py")
TWO = """
import sys
from mutants import Mutant, gate
TESTS = ("store/test_lifecycle.py",)
FILE = "_model/lifecycle.py"
mutants = [
    Mutant("a comment", FILE, "if failed == 0:", "if failed == 0:  # none", "", TESTS),
    Mutant("no end", FILE, "if failed == 0:", "while True: pass\\n    if failed == 0:", "", TESTS),
]
sys.exit(gate(mutants, jobs=2, limit=6.0, broader=()))
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_changes_its_file(mutant: Mutant) -> None:
    """A mutant's old text is in its file exactly once, and the changed file compiles to something else."""
    source = source_of(mutant.file)
    assert source.count(mutant.old) == 1
    text = changed(mutant, source)
    assert compile(text, mutant.file, "exec").co_code
    assert text != source


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
    """No room of the engine is left out."""
    rooms = [
        *("_engine/drain.py", "_engine/workers.py", "_engine/closing.py", "_engine/ending.py"),
        *(
            "_engine/intake.py",
            "_engine/busy.py",
            "_engine/attempt.py",
            "_engine/encode.py",
            "_engine/feeds.py",
        ),
        *("_engine/streams.py", "_engine/upkeep.py", "_engine/ledger.py", "_engine/signals.py"),
        *("_engine/runner.py", "_engine/passing.py", "_gate/gate.py", "_gate/plan.py", "_gate/claims.py"),
        *("_gate/hosts.py", "_store/steps.py", "_store/arrival.py", "_store/removal.py", "_store/queries.py"),
        *("_store/writer.py", "_store/files.py", "_store/schema.py", "_store/sqlite.py"),
        *("_model/lifecycle.py", "_model/config.py", "_model/idem.py", "_model/values.py"),
        *("_observe/events.py", "_observe/redact.py", "_observe/exceptions.py", "_observe/seal.py"),
        *("_observe/lines.py", "_observe/log.py"),
    ]
    assert {mutant.file for mutant in MUTANTS} == set(rooms)


@pytest.mark.slow
def test_the_gate_catches_a_real_mutant() -> None:
    """A listed mutant is caught, by a test of those that are expected to, and the gate is content."""
    done = _run(str(GATE), "--only", "a job that failed throughout", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "a job that failed throughout is partial: caught by tests/store/test_lifecycle.py::" in done.stdout
    assert "1 of 1 mutants caught" in done.stdout


@pytest.mark.slow
def test_the_gate_reports_what_nobody_notices() -> None:
    """A change that no test notices is a survivor, and the gate fails; a run without end is caught."""
    done = _run("-c", TWO)
    assert done.returncode == 1, done.stderr
    assert "SURVIVOR: a comment" in done.stdout
    assert "no end: caught by the time limit of 6 s" in done.stdout
    assert "1 of 2 mutants caught" in done.stdout


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=GATE.parent,
        capture_output=True,
        text=True,
        timeout=120,
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
