"""What is refused before anything is fetched, and what is not."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._model.values import Options
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._options import MODES, PageRange, check_options, chosen_pages, parse_pages


def refusal(**options: Any) -> FetchError:
    """Return the error with which options are refused."""
    with pytest.raises(FetchError) as caught:
        check_options(Options(**options))
    assert caught.value.code == "bad_option"
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "options",
    [
        {"jq": ".", "pages": "1"},
        *({"jq": ".", "mode": mode} for mode in MODES if mode not in ("", "markdown")),
        *({"pages": "1", "mode": mode} for mode in ("html", "links", "meta", "raw")),
        *({"grep": "a", "mode": mode} for mode in ("raw", "meta")),
        *({"question": "a", "mode": mode} for mode in ("html", "raw", "meta")),
        {"context": True},
        {"context": True, "jq": "."},
        {"mode": "pdf"},
        {"mode": "Markdown"},
        {"mode": " "},
        {"question": " ?! "},
        {"question": "\u3002"},
        {"grep": "("},
        {"grep": "((a{1000}){1000})"},
        {"grep": "(?=a)"},
    ],
)
def test_refused(options: dict[str, Any]) -> None:
    """What makes no sense is refused, with what is allowed in the hint."""
    refusal(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        *({"mode": mode} for mode in MODES),
        {"mode": "markdown", "jq": ".", "grep": "a", "question": "b", "context": True},
        {"jq": "this is compiled elsewhere ("},
        *({"pages": "1", "mode": mode} for mode in ("", "markdown", "text", "full")),
        *({"grep": "a", "mode": mode} for mode in ("text", "full", "html", "links")),
        *({"question": "a", "mode": mode} for mode in ("text", "full", "links")),
        {"context": False},
        {"context": True, "grep": "a"},
        {"context": True, "question": "a"},
        {"question": "水"},
        {"grep": " "},
        {"grep": "\\C"},
        {"recover": True},
    ],
)
def test_accepted(options: dict[str, Any]) -> None:
    """What makes sense passes."""
    check_options(Options(**options))


@pytest.mark.parametrize(
    ("name", "fits", "too_long"),
    [
        ("grep", "a" * 1_024, "a" * 1_025),
        ("grep", "é" * 512, "é" * 512 + "a"),
        ("jq", "1" * 4_096, "1" * 4_097),
        ("jq", "é" * 2_048, "é" * 2_049),
        ("question", "é" * 1_000, "a" * 1_001),
        ("pages", ",".join(["1"] * 100), ",".join(["1"] * 101)),
    ],
)
def test_sizes(name: str, fits: str, too_long: str) -> None:
    """Patterns and programs are measured in bytes, questions and pages in characters, to the one."""
    check_options(Options(**{name: fits}))  # type: ignore[arg-type]
    assert "at most" in refusal(**{name: too_long}).hint


@pytest.mark.parametrize("name", ["grep", "jq", "question", "pages"])
def test_no_text(name: str) -> None:
    """NUL and surrogates are refused in every option, and never get into a message."""
    for value in ("1\0", "\ud800"):
        error = refusal(**{name: value})
        (error.message + error.hint).encode()
        assert "\0" not in error.message


@pytest.mark.parametrize(
    ("pages", "ranges"),
    [
        ("3", [(3, 3)]),
        ("-1", [(-1, -1)]),
        ("2-5,7-", [(2, 5), (7, None)]),
        ("1-999999999999", [(1, 999_999_999_999)]),
        ("3-3,1,007", [(3, 3), (1, 1), (7, 7)]),
    ],
)
def test_pages(pages: str, ranges: list[tuple[int, int | None]]) -> None:
    """Each form of `pages` means its range."""
    assert parse_pages(pages) == tuple(PageRange(*found) for found in ranges)


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ("0", "no page 0"),
        ("-0", "no page 0"),
        ("0-3", "no page 0"),
        ("3-0", "no page 0"),
        ("10-5", "before it begins"),
        ("1,,3", "empty item"),
        (",", "empty item"),
        ("1,", "empty item"),
        (" 2 ", "no blanks"),
        ("1 -2", "no blanks"),
        ("-3--1", "count from the end"),
        ("-3-", "count from the end"),
        ("-3-5", "count from the end"),
        ("-", "no page and no range"),
        ("--1", "count from the end"),
        ("1--2", "no page and no range"),
        ("1-2-3", "no page and no range"),
        ("\u0663", "no page and no range"),
        ("\uff11", "no page and no range"),
        ("+1", "no page and no range"),
        ("1.5", "no page and no range"),
        ("1_0", "no page and no range"),
        ("all", "no page and no range"),
        ("9" * 5_000, "too long"),
    ],
)
def test_bad_pages(pages: str, said: str) -> None:
    """What is no page and no range is refused with what is wrong and what is allowed."""
    error = refusal(pages=pages)
    assert said in error.message
    assert said == "too long" or "numbered from 1" in error.hint
    with pytest.raises(FetchError):
        parse_pages(pages)


@pytest.mark.parametrize(
    ("pages", "total", "chosen"),
    [
        ("-1", 5, [5]),
        ("-2,1", 5, [1, 4]),
        ("5-,2-3,3-4,3", 6, [2, 3, 4, 5, 6]),
        ("2-99", 3, [2, 3]),
        ("1-999999999999", 2, [1, 2]),
        ("9" * 199, 2, []),
        ("-" + "9" * 199, 2, []),
        ("4-", 3, []),
        ("-4", 3, []),
        ("3", 2, []),
        ("1", 0, []),
        ("-1", 0, []),
        ("1-", 0, []),
    ],
)
def test_chosen_pages(pages: str, total: int, chosen: list[int]) -> None:
    """Chosen pages come in the document's order, each once, and what is past an end is left out."""
    assert chosen_pages(parse_pages(pages), total) == chosen


ITEMS = st.one_of(
    st.integers(1, 12).map(str),
    st.integers(1, 12).map("-{}".format),
    st.integers(1, 12).map("{}-".format),
    st.tuples(st.integers(1, 12), st.integers(0, 12)).map(lambda pair: f"{pair[0]}-{sum(pair)}"),
)


@given(st.lists(ITEMS, min_size=1, max_size=6), st.integers(0, 12))
def test_chosen_pages_one_by_one(items: list[str], total: int) -> None:
    """A page is chosen if and only if one of the items names it."""

    def names(item: str, page: int) -> bool:
        if item.startswith("-"):
            return page == total + 1 - int(item[1:])
        first, dash, last = item.partition("-")
        return int(first) <= page <= (int(last or total) if dash else int(first))

    wanted = [page for page in range(1, total + 1) if any(names(item, page) for item in items)]
    assert chosen_pages(parse_pages(",".join(items)), total) == wanted


def test_bad_pattern_says_what_and_where() -> None:
    """A bad pattern is refused with its fault and its place, not with the text of the library."""
    assert refusal(grep="ab[z-a]").message == (
        "the grep pattern has a character class or range that there is not (line 1, column 4)"
    )


def test_nothing_heavy_is_loaded() -> None:
    """Checking options loads no library but the engine of patterns, and that only for a pattern."""
    code = (
        "import sys\n"
        "from sift_batch._model.values import Options\n"
        "from sift_batch.fetch._options import check_options\n"
        "heavy = {'re2', 'jq', 'trafilatura', 'lxml', 'pypdf', 'pypdfium2', 'charset_normalizer'}\n"
        "check_options(Options(question='a', pages='1'))\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "check_options(Options(grep='a'))\n"
        "assert heavy & set(sys.modules) == {'re2'}, heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("pattern", [r"\pL{1000}", r"(?i)[\pL]{990}", r"(\pL{50}){19}", r"[\pL\pN\pS]{900}"])
def test_a_pattern_of_great_size_is_refused_before_it_is_built(pattern):
    """A short pattern that stands for megabytes is refused with an eighth of a worker's memory for it."""
    import re2

    seen, build = [], re2.compile

    def noted(text, options):
        seen.append(options.max_mem)
        return build(text, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(re2, "compile", noted)
        with pytest.raises(FetchError, match="too much memory") as caught:
            check_options(Options(grep=pattern))
    assert caught.value.code == "bad_option"
    assert seen == [2**20]
