"""Real pages that ship with Debian, beside what a person reads on them."""

from pathlib import Path

import pytest

from sift_batch.fetch._read import html

PYTHON = Path("/usr/share/doc/python3.11/html")
SQLITE = Path("/usr/share/doc/sqlite3")


def read(folder: Path, package: str, name: str) -> str:
    """Return the main content of a page of a package; skip where that is missing."""
    file = folder / name
    if not file.exists():
        pytest.skip(f"the Debian package {package} is not installed")
    return html.markdown(file.read_text("utf-8"), f"https://docs.example/{name}")


def test_a_module_of_pythons_library() -> None:
    """Prose, signatures as code and indented code are there; the sidebar and its search are not."""
    found = read(PYTHON, "python3.11-doc", "library/shelve.html")
    assert found.startswith(
        "# [`shelve`](https://docs.example/library/shelve.html#module-shelve) — Python object"
    )
    assert "`shelve.open(filename, flag='c', protocol=None, writeback=False)`" in found
    assert "```python3\nwith shelve.open('spam') as db:\n    db['eggs'] = 'eggs'\n```" in found
    assert "## Restrictions" in found
    assert "# as d was opened WITHOUT writeback=True, beware:" in found
    for furniture in ("Table of Contents", "Previous topic", "Report a Bug", "Copyright", "[ ]"):
        assert furniture not in found


def test_tables_of_pythons_library() -> None:
    """A table of the documentation keeps its header and its rows."""
    found = read(PYTHON, "python3.11-doc", "library/json.html")
    assert "| JSON | Python |\n| --- | --- |\n| object | dict |\n| array | list |" in found


def test_a_page_of_links() -> None:
    """The index of the library, nothing but links, comes out whole."""
    found = read(PYTHON, "python3.11-doc", "library/index.html")
    assert "- [Introduction](https://docs.example/library/intro.html)" in found
    assert "`shelve` — Python object persistence" in found
    assert found.count("](https://docs.example/library/") > 200


def test_a_page_of_sqlites_documentation() -> None:
    """Old markup without landmarks: headings and list items are there, the site's menu is not."""
    found = read(SQLITE, "sqlite3-doc", "quickstart.html")
    assert found.startswith("Here is what you do to start experimenting with SQLite")
    assert "At a shell or DOS prompt, enter" in found
    assert "```" in found
    assert "Small. Fast. Reliable." not in found
