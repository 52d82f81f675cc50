"""How results get into the page."""

from pathlib import Path

import pytest
import readme

PAGE = "before\n<!-- results: a -->\nold\n<!-- end: a -->\nbetween\n<!-- results: b -->\n<!-- end: b -->\n"


def test_bench_one_section_is_replaced(tmp_path: Path) -> None:
    """Writing a section changes that section and nothing else, however often."""
    page = tmp_path / "README.md"
    page.write_text(PAGE)
    for text in ("first", r"second \1 {x}"):
        readme.write("a", text, file=page)
    assert page.read_text() == PAGE.replace("\nold\n", "\n\nsecond \\1 {x}\n\n")


def test_bench_an_unknown_section_is_refused(tmp_path: Path) -> None:
    """A section that the page does not have is an error, and the page stays."""
    page = tmp_path / "README.md"
    page.write_text(PAGE)
    with pytest.raises(LookupError, match="'c'"):
        readme.write("c", "text", file=page)
    assert page.read_text() == PAGE


def test_bench_the_page_has_every_section() -> None:
    """Each command with `--write` finds its section."""
    text = readme.README.read_text()
    for name in ("numbers", "growth", "fetching", "service", "quality", "politeness", "peers"):
        assert text.count(f"<!-- results: {name} -->") == text.count(f"<!-- end: {name} -->") == 1
