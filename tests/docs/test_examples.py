"""Do the examples of README.md and docs/ work as they stand?

The blocks of one page run in order in one namespace, in a folder of their own, as a reader who types them
in would run them. A block that runs something ends with `trio.run(...)`.
"""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples(page: Path) -> list[str]:
    """Give the Python blocks of a page, as text."""
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(page)
    return [str(example.parsed) for example in document.examples()]


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block of the page runs, in order, to its end."""
    monkeypatch.chdir(tmp_path)
    for example in Sybil(parsers=[PythonCodeBlockParser(), SkipParser()]).parse(page).examples():
        example.evaluate()


def test_readme_example_is_short() -> None:
    """The README embeds the engine in at most 15 lines that nobody has to add to."""
    (example,) = examples(ROOT / "README.md")
    assert len(example.rstrip().splitlines()) <= 15
    assert "open_runner" in example
    assert "trio.run(" in example


def test_readme_example_prints_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's program prints the error of a target that failed, in place of its content."""
    monkeypatch.chdir(tmp_path)
    (example,) = examples(ROOT / "README.md")
    fetched = 'return Result(f"the page at {target.url}")'
    assert fetched in example
    exec(example.replace(fetched, 'raise OSError("no route")'), {})
    assert capsys.readouterr().out.splitlines() == [
        "https://example.org/ no route",
        "https://example.com/ no route",
    ]


def test_readme_example_fetches_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second run of the README's program answers from the stored job."""
    monkeypatch.chdir(tmp_path)
    (example,) = examples(ROOT / "README.md")
    exec(example, {})
    first = capsys.readouterr().out
    exec(example.replace("return Result(", 'raise OSError("fetched again")  # Result('), {})
    assert capsys.readouterr().out == first


def test_serve_has_four_lines() -> None:
    """The `serve` of the guide has four lines."""
    (block,) = [text for text in examples(ROOT / "docs/embedding.md") if "async def serve(" in text]
    serve, _, _ = block.partition("\n\n")
    assert len(serve.splitlines()) == 4
