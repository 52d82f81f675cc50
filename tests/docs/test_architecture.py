"""Is what docs/architecture.md says of the source as a whole true?"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import sift_batch

PACKAGE = Path(sift_batch.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
EXTRAS = (
    *("click", "rich", "prometheus_client", "httpcore2", "certifi", "ada_url", "protego", "re2", "jq"),
    *("trafilatura", "lxml", "pypdfium2", "charset_normalizer"),
)


def places(pattern: str) -> list[str]:
    """Give the modules of the engine in which a pattern stands, once for each time."""
    found = []
    for path in sorted((PACKAGE / "_engine").glob("*.py")):
        found += [path.name] * len(re.findall(pattern, path.read_text(encoding="utf-8")))
    return found


def test_three_nurseries() -> None:
    """The engine opens nurseries in three places, all of them in the foreman's room."""
    assert places(r"trio\.open_nursery\(\)") == ["workers.py"] * 3


def test_importing_loads_no_extra() -> None:
    """Importing every public name loads none of the libraries of the extras."""
    program = (
        f"import sys; from sift_batch import *; print(*(name for name in {EXTRAS} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_room_is_on_the_map() -> None:
    """Each module of the engine is named on the page."""
    page = PAGE.read_text(encoding="utf-8")
    modules = {path.name for path in (PACKAGE / "_engine").glob("*.py")} - {"__init__.py"}
    assert {name for name in modules if name not in page} == set()


def test_every_room_of_a_fetch_is_on_the_map_with_its_question() -> None:
    """Each module of the pipeline has one row, whose question is the one that the module opens with."""
    page, home = PAGE.read_text(encoding="utf-8"), PACKAGE / "fetch"
    rows = re.findall(
        r"^\| \[`[\w/]+\.py`\]\(\.\./src/sift_batch/fetch/[\w/]+\.py\) \| .* \|$", page, re.MULTILINE
    )
    wanted = []
    for path in home.rglob("*.py"):
        if path != home / "__init__.py":
            name = path.relative_to(home).as_posix()
            question = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]
            wanted.append(f"| [`{name}`](../src/sift_batch/fetch/{name}) | {question} |")
    missing, left_over = set(wanted) - set(rows), set(rows) - set(wanted)
    assert missing == set(), "add to the page:\n" + "\n".join(sorted(missing))
    assert left_over == set(), "take off the page:\n" + "\n".join(sorted(left_over))
    assert len(rows) == len(wanted)
