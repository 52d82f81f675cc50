"""Which tables of the documentation are made from the service's code?

`python tests/docs/service_page.py` writes them into their pages.
"""

import re
from collections.abc import Callable
from pathlib import Path

from sift_batch.service._codes import KINDS

DOCS = Path(__file__).parents[2] / "docs"


def codes() -> str:
    """Return the table of all codes."""
    rows = [
        f"| `{code}` | {kind.status} | {'yes' if kind.retryable else 'no'} | {kind.title} | {kind.http} |"
        for code, kind in KINDS.items()
    ]
    return "\n".join(
        ["| code | status | again | what it means | what to do |", "|---|---|---|---|---|", *rows]
    )


TABLES: dict[str, tuple[Path, Callable[[], str]]] = {"codes": (DOCS / "service.md", codes)}
"""Each table's mark, its page, and what makes it."""


def section(page: Path, mark: str) -> re.Match[str]:
    """Return the part of a page between two marks."""
    found = re.search(
        rf"(?<=<!-- {mark}: begin -->\n).*?(?=<!-- {mark}: end -->)", page.read_text("utf-8"), re.DOTALL
    )
    assert found is not None, f"{page.name} has no marks for {mark}"
    return found


if __name__ == "__main__":
    for mark, (page, make) in TABLES.items():
        text, found = page.read_text("utf-8"), section(page, mark)
        page.write_text(text[: found.start()] + make() + "\n" + text[found.end() :], "utf-8")
