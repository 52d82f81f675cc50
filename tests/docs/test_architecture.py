"""Is what docs/architecture.md says of the source as a whole true?"""

import re
import subprocess
import sys
from pathlib import Path

import sift_batch

PACKAGE = Path(sift_batch.__file__).parent
EXTRAS = ("click", "rich", "httpcore2", "charset_normalizer", "prometheus_client")


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
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = {path.name for path in (PACKAGE / "_engine").glob("*.py")} - {"__init__.py"}
    assert {name for name in modules if name not in page} == set()
