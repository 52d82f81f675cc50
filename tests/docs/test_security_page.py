"""Do the rules of docs/security.md hold that are about the source as a whole?"""

import ast
import re
from pathlib import Path

import sift_batch

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
PACKAGE = Path(sift_batch.__file__).parent


def importers(*libraries: str) -> set[str]:
    """Give the modules of the package that import one of these libraries."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] in libraries for name in names):
                found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_rules_are_listed_once() -> None:
    """Each rule of the page has one row, in the order of its number."""
    numbers = [
        int(n) for n in re.findall(r"^\| RED-(\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert numbers[-1] == 24


def test_hashes_of_targets_stay_inside() -> None:
    """RED-4: targets are hashed for the store's key and the command line's look-up, nowhere else."""
    assert importers("hashlib", "hmac") == {"_model/idem.py", "cli/carry.py"}


def test_no_tracing() -> None:
    """RED-24: nothing in the package imports a tracing library."""
    assert importers("opentelemetry", "ddtrace", "sentry_sdk", "newrelic", "elasticapm") == set()
