"""Do the links in the documentation lead anywhere?"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """Give a page without its code blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^(`{3,})\w.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Give the anchors that the headings of a page have on the usual hosts."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def broken(page: Path) -> Iterator[str]:
    """Give the relative links of a page that lead nowhere."""
    for link in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        goal = (page.parent / path).resolve() if path else page
        is_there = goal.exists() and ROOT in goal.parents
        if not is_there or (anchor and anchor not in anchors(goal)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links(page: Path) -> None:
    """Every relative link of the page leads to a file of this checkout, and to a heading if it names one."""
    assert list(broken(page)) == []


def test_every_page_can_be_reached() -> None:
    """Each page of docs/ is linked from the README, directly or through other pages."""
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        for link in LINK.findall(prose(page)):
            goal = (page.parent / link.partition("#")[0]).resolve()
            if goal.suffix == ".md" and goal.is_file() and goal not in reached:
                waiting.append(goal)
    assert set(PAGES) - reached == set()
