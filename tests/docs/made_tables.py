"""Which tables of the documentation are made from the code?

`python tests/docs/made_tables.py` writes them into their pages.
"""

import ast
import re
from collections.abc import Callable
from pathlib import Path

import sift_batch
from sift_batch.service._codes import KINDS
from sift_batch.service._metrics import SERVICE_METRICS

DOCS = Path(__file__).parents[2] / "docs"
PACKAGE = Path(sift_batch.__file__).parent


def codes() -> str:
    """Return the table of all codes."""
    rows = [
        f"| `{code}` | {kind.status} | {'yes' if kind.retryable else 'no'} | {kind.title} | {kind.http} |"
        for code, kind in KINDS.items()
    ]
    return "\n".join(
        ["| code | status | again | what it means | what to do |", "|---|---|---|---|---|", *rows]
    )


def metrics() -> str:
    """Return the table of the service's own metrics, and that of their labels' values."""
    names = [
        f"| `{name}` | {metric.kind} | {', '.join(f'`{label}`' for label in metric.labels)} | {metric.text} |"
        for name, metric in SERVICE_METRICS.items()
    ]
    labels = [
        f"| `{label}` of `{name.removeprefix('sift_batch_')}` | `{'`, `'.join(values)}` |"
        for name, metric in SERVICE_METRICS.items()
        for label, values in metric.labels.items()
    ]
    return "\n".join(
        [
            *("| metric of the service | kind | labels | what it says |", "|---|---|---|---|", *names, ""),
            *("| label of the service | values |", "|---|---|", *labels),
        ]
    )


def rooms(folder: str) -> Callable[[], str]:
    """Return what makes the table of a folder's modules with the questions that they open with."""

    def make() -> str:
        rows = []
        for path in sorted((PACKAGE / folder).glob("*.py")):
            if path.name != "__init__.py":
                question = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0]
                rows.append(f"| [`{path.name}`](../src/sift_batch/{folder}/{path.name}) | {question} |")
        return "\n".join(["| where | question |", "|---|---|", *rows])

    return make


TABLES: dict[str, tuple[Path, Callable[[], str]]] = {
    "codes": (DOCS / "service.md", codes),
    "service metrics": (DOCS / "limits-and-settings.md", metrics),
    **{
        f"rooms of {folder}": (DOCS / "architecture.md", rooms(folder))
        for folder in ("service", "_client", "mcp", "cli")
    },
}
"""Each table's mark, its page, and what makes it."""


def section(page: Path, mark: str) -> re.Match[str]:
    """Return the part of a page between two marks."""
    found = re.search(
        rf"(?<=<!-- begin of {mark} -->\n).*?(?=<!-- end of {mark} -->)", page.read_text("utf-8"), re.DOTALL
    )
    assert found is not None, f"{page.name} has no marks for {mark}"
    return found


if __name__ == "__main__":
    for mark, (page, make) in TABLES.items():
        text, found = page.read_text("utf-8"), section(page, mark)
        page.write_text(text[: found.start()] + make() + "\n" + text[found.end() :], "utf-8")
