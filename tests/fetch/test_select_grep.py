"""grep: which lines, and in what form."""

import pytest

from sift_batch._model.values import Options
from sift_batch.fetch._document import ReadError
from sift_batch.fetch._read.pattern import compile_pattern
from sift_batch.fetch._read.selecting import Selected, select

PAGE = """\
# Relay pump

Intro of the pump.

## Install

Step one.

Step two with
a valve.

Step three.

Step four.

## Use

Open the valve.

# Parts

A pump."""


def grep(
    pattern: str, text: str = PAGE, *, context: bool | None = None, lines: bool = False, marks: bool = False
) -> Selected:
    """Return what grep chooses."""
    return select(text, Options(grep=pattern, context=context), lines=lines, marks=marks)


def test_lines_without_context() -> None:
    """Without context each matching line is given with its number in the whole text."""
    assert grep("valve") == ("10:a valve.\n18:Open the valve.", {"matches": 2})


def test_groups_with_context() -> None:
    """With context each match has its block, its neighbours and its path, and groups are set apart."""
    content, facts = grep("valve", context=True)
    assert content == (
        "Relay pump > Install\n"
        "7-Step one.\n"
        "9-Step two with\n"
        "10:a valve.\n"
        "12-Step three.\n"
        "--\n"
        "Relay pump > Use\n"
        "18:Open the valve."
    )
    assert facts == {"matches": 2}


def test_a_group_is_a_run_of_blocks() -> None:
    """Matches whose neighbourhoods touch are one group, with every line once."""
    content, _ = grep("one|four", context=True)
    assert content == (
        "Relay pump > Install\n7:Step one.\n9-Step two with\n10-a valve.\n12-Step three.\n14:Step four."
    )


def test_a_heading_that_matches() -> None:
    """A heading is given with the text after it, under the headings above it, in a group of its own."""
    content, facts = grep("Install|^Use|## Use|Step four", context=True)
    assert content == (
        "Relay pump\n"
        "5:## Install\n"
        "7-Step one.\n"
        "--\n"
        "Relay pump > Install\n"
        "12-Step three.\n"
        "14:Step four.\n"
        "--\n"
        "Relay pump\n"
        "16:## Use\n"
        "18-Open the valve."
    )
    assert facts == {"matches": 3}


def test_a_group_without_headings_has_no_path() -> None:
    """What stands under no heading has no line for a path."""
    assert grep("b", "a\n\nb\n\nc\n\nd", context=True).content == "1-a\n3:b\n5-c"
    assert grep("Relay", context=True).content == "1:# Relay pump\n3-Intro of the pump."


def test_blank_lines_in_a_fence_stay() -> None:
    """Blank lines between blocks are left out, those inside of a block are lines like others."""
    text = "a\n\n```\nx\n\ny\n```\n\nb"
    assert grep("y", text, context=True).content == "1-a\n3-```\n4-x\n5-\n6:y\n7-```\n9-b"


def test_blank_lines_and_page_marks_never_match() -> None:
    """A pattern that matches everything still matches no blank line and no page mark."""
    text = "[page 1 of 2]\n\na\n \n[page 2 of 2]\n\nb"
    assert grep("", text).content == text  # no grep at all
    assert grep("^|x*", text, marks=True) == ("3:a\n7:b", {"matches": 2})
    assert grep("page", text, marks=True).facts["code"] == "no_match"
    assert grep("page", text).facts == {"matches": 2}
    assert grep("a|b", text, marks=True, context=True).content == "3:a\n--\n7:b"


def test_anchors_and_case() -> None:
    """A line is what a pattern sees: anchors are its ends, and case counts."""
    assert grep("^Step.*[eo]\\.$").content == "7:Step one.\n12:Step three."
    assert grep("step one").facts["code"] == "no_match"
    assert grep("(?i)step one").content == "7:Step one."
    assert grep("\\AStep one").content == "7:Step one."
    assert grep("one.*two").facts["matches"] == 0  # never across lines
    assert grep("(?s)one.+two").facts["matches"] == 0


def test_lines_output() -> None:
    """In lines output a hash is no heading and the lines beside a match are its neighbours."""
    text = '"# a"\n"b"\n"c"\n"d"'
    assert grep("c", text, lines=True, context=True).content == '2-"b"\n3:"c"\n4-"d"'
    assert grep("#", "# a\nb\nc", lines=True, context=True).content == "1:# a\n2-b"


def test_a_long_line() -> None:
    """Of a line over 2,000 characters context gives the piece of the match, and its neighbours."""
    line = "a" * 1_999 + " " + "é" * 1_999 + " needle" + "c" * 1_990 + " " + "d" * 1_500
    content, facts = grep("needle", line, context=True)
    assert content == f"1-{'é' * 1_999}\n1:needle{'c' * 1_990}\n1-{'d' * 1_500}"
    assert facts == {"matches": 1}
    assert grep("needle", line).content == f"1:{line}"


def test_nothing_matched() -> None:
    """What matches nothing is empty, with the size of the whole text in the hint."""
    content, facts = grep("nowhere")
    assert content == ""
    assert facts["code"] == "no_match"
    assert facts["matches"] == 0
    assert f" {len(PAGE)} " in facts["hint"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(.*)*x", "(\\w+)*:", "(a|aa)+$"])
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    """A pattern that takes for ever elsewhere is done with a long line at once."""
    grep(pattern, "a" * 2_000_000 + "b")
    grep(pattern, "a" * 41)


def test_characters_are_never_cut() -> None:
    """A pattern on single bytes, or with NUL in it, and a text with surrogates give whole characters."""
    assert grep("\\C", "é\n\nb").content == "1:é\n3:b"
    assert grep("\\C\\C$", "é").content == "1:é"
    assert grep("x\0", "é").content == ""
    assert grep("b", "a\ud800b").content == "1:a\ud800b"


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("a(b", "not closed (line 1, column 2)"),
        ("x\\(a(\n(b)[(]", "not closed (line 1, column 5)"),
        ("(a)\n(b", "not closed (line 2, column 1)"),
        ("x[a-", "[...] that is not closed (line 1, column 2)"),
        ("a)", "a ) that closes no group (line 1, column 2)"),
        ("é**", "two repetitions in a row (line 1, column 2)"),
        ("*a", "nothing before it to repeat (line 1, column 1)"),
        ("a\\", "backslash at the end that escapes nothing (line 1, column 2)"),
        ("(?<=a)b", "look-around is not available (line 1, column 1)"),
        ("(a)\\1", "an escape that there is not (line 1, column 4)"),
        ("[z-a]", "a character class or range that there is not (line 1, column 2)"),
        ("a{1001}", "less (line 1, column 2)"),
        ("((a{1000}){1000})", "too many times"),
        ("(\\pL{1000})", "too much memory"),
        ("a\ud800", "surrogate"),
    ],
)
def test_bad_patterns(pattern: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    """What is wrong with a pattern is said in our own words, with the place, and nothing is printed."""
    with pytest.raises(ReadError) as caught:
        compile_pattern(pattern)
    assert caught.value.code == "bad_option"
    assert said in caught.value.message
    assert capfd.readouterr() == ("", "")


def test_context_is_bounded() -> None:
    """Very many groups under very long headings end in an error and not in gigabytes."""
    text = f"# {'h' * 1_999}\n" + "x\n\ny\n\ny\n\ny\n\n" * 20_000
    with pytest.raises(ReadError) as caught:
        grep("x", text, context=True)
    assert caught.value.code == "too_large"


LONG = " ".join(f"w{n}" for n in range(2_000))  # about 10,000 characters in one line


@pytest.mark.parametrize("limit", [100, 1_000, 9_000])
def test_a_line_longer_than_a_result_gives_the_pieces_with_a_match(limit: int) -> None:
    """Of a line that no result can hold, the pieces with a match come; of the others, all."""
    text = f"w1500 first\n{LONG}\nw1500 last"
    content, facts = select(text, Options(grep="w1500|w1900"), lines=False, marks=False, limit=limit)
    first, *pieces, last = content.split("\n")
    assert (first, last) == ("1:w1500 first", "3:w1500 last")
    assert [piece[:2] for piece in pieces] == ["2:", "2:"]
    assert "w1500" in pieces[0]
    assert "w1900" in pieces[1]
    assert all(len(piece) <= 2_002 for piece in pieces)
    assert len(content) <= limit
    assert (facts["matches"], facts["truncated"], facts["code"]) == (3, True, "truncated")
    assert facts["chars_total"] == len(text) + len("1:2:3:")
    assert "context" in facts["hint"]


def test_a_long_line_that_fits_is_given_whole() -> None:
    """A line of more than 2,000 characters stays one where a result can hold it, and nothing is noted."""
    found = select(LONG, Options(grep="w1500"), lines=False, marks=False, limit=len(LONG) + 2)
    assert found == (f"1:{LONG}", {"matches": 1})
