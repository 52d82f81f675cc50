"""jq: what a program gives, and what it can never reach."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._document import ReadError
from sift_batch.fetch._read.jq_program import OUTPUTS, check, run

SECRET = "sesame-9f2c"


def failure(program: str, source: str = "{}") -> ReadError:
    """Return the error that a program on a document ends in."""
    with pytest.raises(ReadError) as caught:
        run(program, source)
    assert caught.value.code == "bad_option"
    return caught.value


@pytest.mark.parametrize(
    ("program", "source", "text"),
    [
        (".", '{"b": 1, "a": [2, {"c": null}]}', '{"b":1,"a":[2,{"c":null}]}'),
        (".[]", '["ä", "a\\"b", "\\u00e9\\n", 1, true]', '"ä"\n"a\\"b"\n"é\\n"\n1\ntrue'),
        (".a", '{"a": 1}\n{"a": 2}\n', "1\n2"),
        (".", '1 "a" [2]', '1\n"a"\n[2]'),
        (".", '\ufeff{"a":1}', '{"a":1}'),
        (".a, .b", '{"a": 1}', "1\nnull"),
        ("# a comment\n.a # and one more", '{"a": 1}', "1"),
        (".a # \\", '{"a": 1}', "1"),
        ("def f: .a; f", '{"a": 1}', "1"),
        ("$__loc__.line, (1\n| $__loc__.line)", "{}", "1\n2"),
        ("1, halt, 2", "{}", "1"),
        ("[inputs], (try input catch .)", "{}", '[]\n"No more inputs"'),
        (".input", '{"input": 1} {"input": 2}', "1\n2"),
        ('@sh "x \\(.)", @csv "\\([1])"', '"y"', '"x \'y\'"\n"1"'),
        ("null, [null], (null | tojson)", "{}", 'null\n[null]\n"null"'),
        ("try error catch .", '["x"]', '["x"]'),
        ("label $out | 1, break $out, 2", "{}", "1"),
        (".", '"\\u2028\\u0000\\u007f"', '"\u2028\\u0000\\u007f"'),
    ],
)
def test_outputs(program: str, source: str, text: str) -> None:
    """Each output is one line as `jq -c` prints it."""
    assert run(program, source) == (text, {})


@pytest.mark.parametrize(
    "number",
    [
        "18446744073709551617",
        "100000000000000000000",
        "-9007199254740993",
        "0.10000000000000000000001",
        "1.0",
        "-0",
        "9" * 5_000,
    ],
)
def test_numbers_that_are_passed_on(number: str) -> None:
    """A number that a program only passes on keeps every digit."""
    assert run(".[0].a", f'[{{"a": {number}}}]') == (number, {})
    assert run(".", f"[{number}]") == (f"[{number}]", {})
    assert run("map(.) | sort | .[]", f"[{number}]") == (number, {})


def test_numbers_that_lose_digits() -> None:
    """Where large integers of the document come out as others, `lossy_numbers` says so."""
    assert run(".[0] + 0", "[18446744073709551617]") == ("18446744073709552000", {"lossy_numbers": True})
    assert run(".[0] * 100", "[18446744073709551617]").facts == {"lossy_numbers": True}
    assert run(".[0] + 0", "[9007199254740993]").facts == {"lossy_numbers": True}
    assert run(".[1]", '["9007199254740993", 1]').facts == {}
    assert run("9007199254740992 * 4", "[1]").facts == {}  # nothing of the document was lost
    assert run(".[0]", '[18446744073709551617, "x"]').facts == {}


def test_numbers_that_are_none() -> None:
    """NaN is null, and what is infinite the largest number, so that every output is JSON."""
    assert run(".[], nan, infinite, -infinite", "[NaN]").text == (
        "null\nnull\n1.7976931348623157e+308\n-1.7976931348623157e+308"
    )
    json.loads(run(".", '{"a": 1e999, "b": -1e-999}').text)


def test_surrogates_become_replacement_characters() -> None:
    """A surrogate that stands alone is U+FFFD, a pair is its character, an escaped backslash stays."""
    source = '["\\ud83d", "\\ud83d\\ude00", "\\ude00x", "\\\\ud83d", "\\ud83d\\ud83d\\ude00", "\ud800"]'
    text = run(".[]", source).text
    assert text == '"\ufffd"\n"\U0001f600"\n"\ufffdx"\n"\\\\ud83d"\n"\ufffd\U0001f600"\n"\ufffd"'


def test_at_most_so_many_outputs() -> None:
    """The first 1,000 outputs are given, and `truncated` says that there were more."""
    assert run(f"range({OUTPUTS})", "{}").facts == {}
    for program in (f"range({OUTPUTS + 1})", "range(infinite)", "repeat(.)", "def f: 1, f; f"):
        text, facts = run(program, "{}")
        assert text.count("\n") == OUTPUTS - 1, program
        assert facts["truncated"] is True
        assert facts["code"] == "truncated"


def test_outputs_are_bounded_in_bytes() -> None:
    """Outputs beyond 10 MiB in all are left out as whole lines; a first one that is larger is an error."""
    text, facts = run('range(9) | "a" * 3500000', "{}")
    assert text.count("\n") == 1
    assert facts["truncated"] is True
    with pytest.raises(ReadError) as caught:
        run('"a" * 11000000', "{}")
    assert caught.value.code == "too_large"


def test_no_outputs() -> None:
    """A program without outputs matched nothing, and the hint has the size of the document."""
    text, facts = run("empty", '{"a": 1}')
    assert text == ""
    assert facts["code"] == "no_match"
    assert " 8 " in facts["hint"]


HOSTILE = [
    "env",
    "$ENV",
    "env.SIFT_SECRET",
    "$ENV.SIFT_SECRET",
    "$ENV | keys",
    "env | tojson",
    '"\\(env)"',
    '@text "\\($ENV)"',
    'getpath(["SIFT_SECRET"]) | env',
    "[.[]?] | $ENV",
    "reduce 1 as $x (0; $ENV)",
    "def f: env; f",
    "def f($x): $x; f($ENV)",
    ".) | (env",
    ".) | (env | .",
    ".) | $ENV | (.",
    ". ) # \\",
    "1) | tojson) catch .), $ENV, (try ((1",
    "1) | tojson) catch [.]), (try ((env",
    ".) | def tojson: env; (.",
    'import "NAME" as $x; $x',
    'import "NAME" as $x {search: "DIR"}; $x',
    'import "NAME" as x {search: "DIR"}; x::f',
    'include "NAME"; f',
    'include "NAME" {search: "DIR"}; f',
    '# c\nimport "NAME" as $x {search: "DIR"}; $x',
    "module {}; env",
    '"NAME" | modulemeta',
    '"DIR/NAME" | modulemeta',
    "get_search_list",
    "input_filename",
    "get_jq_origin",
    "get_prog_origin",
    "$__prog_args",
    "$__prog_name",
    "input",
    "[inputs]",
    "debug",
    "stderr",
    "debug(env)",
    "env | halt_error",
    "$ENV | error",
    "input_line_number",
    "$__loc__",
    "builtins",
    "splits(env)",
    "ltrimstr(env)",
    "halt",
    "",
    " \n ",
    "# only a comment",
]


@pytest.mark.parametrize("program", HOSTILE)
def test_no_program_reaches_the_machine(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No program sees a variable of the environment or a file, or prints; each ends in text or an error."""
    monkeypatch.setenv("SIFT_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    for name in ("mod.jq", "mod.json", f"{tmp_path.name}.jq"):
        (tmp_path / name).write_text(
            f'"{SECRET}"' if name.endswith("json") else f'module {{"a": "{SECRET}"}}; def f: "{SECRET}";'
        )
    program = program.replace("NAME", "mod").replace("DIR", str(tmp_path))
    try:
        text = run(program, '{"a": 1} ').text
    except ReadError as error:
        text = error.code + error.message + error.hint
    assert SECRET not in text
    assert "SIFT" not in text.replace("sift", "")
    assert str(tmp_path) not in text
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("program", [".)|(.", "1) # \\", ".) | def tojson: 5; (.", "1), (2"])
def test_no_program_closes_ours(program: str) -> None:
    """A program whose brackets only match inside of ours does not compile."""
    with pytest.raises(ReadError) as caught:
        check(program)
    assert "syntax error" in caught.value.message


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("", "is empty"),
        ("# c", "is empty"),
        ("1 2", "syntax error (line 1, column 3)"),
        (".a |\n  foo", "a name that is not defined (line 2, column 3)"),
        ('"é" | foo', "a name that is not defined (line 1, column 7)"),
        ('1 |\n"éé" + foo', "a name that is not defined (line 2, column 8)"),
        ("[1, 2", "syntax error (line 1, column 6)"),
        ("(1 |\n\n2", "syntax error (line 3, column 2)"),
        ('import "a" as $a; .', "asks for a module, and there are none (line 1, column 1)"),
        ("def f: 1;", "syntax error (line 1, column 10)"),
        (".\0", "NUL or a surrogate"),
        (".\ud800", "NUL or a surrogate"),
        ("[" * 4_000, "syntax error (line 1, column 4001)"),
    ],
)
def test_programs_that_do_not_compile(program: str, said: str) -> None:
    """What is wrong with a program is said in our own words, with line and column of the caller's program."""
    with pytest.raises(ReadError) as caught:
        check(program)
    assert caught.value.code == "bad_option"
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "is no JSON (line 1, column 1)"),
        (" \n ", "is no JSON (line 1, column 1)"),
        ("<html>", "is no JSON (line 1, column 1)"),
        ('{"a": 1,\n "b": }', "is no JSON (line 2, column 7)"),
        ('{"a":1}\n{"a":2}\n{bad}\n', "is no JSON (line 3, column 2)"),
        ("[1, 2", "is no JSON (line 1, column 6)"),
        ("1\0002", "is no JSON (line 1, column 2)"),
        ('"a\0b"', "is no JSON (line 1, column 3)"),
        ("1 2 x", "is no JSON (line 1, column 5)"),
        ("[" * 20_000 + "]" * 20_000, "is nested too deeply for jq (line 1, column 10001)"),
    ],
)
def test_documents_that_are_no_json(source: str, said: str) -> None:
    """What is no JSON ends in an error with line and column of the document, never in its first part."""
    assert said in failure(".", source).message


def test_deep_documents() -> None:
    """A document that is nested 9,000 deep goes through."""
    source = "[" * 9_000 + "]" * 9_000
    assert run(".", source).text == source


@pytest.mark.parametrize(
    ("program", "source", "said"),
    [
        (".a", '{"a": 1}\n  5', "line 2, column 3 of the document: it asks for an element"),
        (".[] | .[]", "[1]", "line 1, column 1 of the document: it goes through the elements"),
        (". + 1", '1 2 "x"', "line 1, column 5 of the document: it adds values"),
        ('error("private")', "{}", "by an error of its own"),
        ("error(null)", "{}", "by an error of its own"),
        ("error([1])", "{}", "by an error of its own"),
        ('"x" | halt_error', "{}", "by an error of its own"),
        ("fromjson", '"[1"', "it parses a text that is no JSON"),
        ('"x" | test("(")', "{}", "a regular expression that is not sound"),
        ("getpath([range(65000) | 0])", "null", "a path that is too deep"),
        ("setpath([range(65000) | 0]; 1)", "null", "a path that is too deep"),
        ("delpaths([[range(65000) | 0]])", "null", "a path that is too deep"),
        ("[inputs]", "1 2", "further inputs on the value at line 1, column 1"),
        ("input", "1", "it asks for a further input, and there is none"),
        ("1, 2, error", "{}", "by an error of its own"),
    ],
)
def test_programs_that_fail(program: str, source: str, said: str) -> None:
    """A run-time error is said in our own words, with the place of the value that it happened on."""
    error = failure(program, source)
    assert said in error.message
    assert "private" not in error.message + error.hint


def test_a_program_is_as_new_for_each_document() -> None:
    """After an error, a stop or a halt the same program reads the next document from its start."""
    program = "if . == 0 then halt elif . == 1 then error else range(.) end"
    for source in ("0", "1", "5000", "2 [", "2"):
        for _ in range(2):
            try:
                text = run(program, source).text
            except ReadError:
                text = "error"
        expected = {"0": "", "1": "error", "2 [": "error", "2": "0\n1"}.get(source)
        assert expected is None or text == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON, min_size=1, max_size=4), st.booleans())
def test_documents_pass_through(values: list[object], ascii_only: bool) -> None:
    """The program `.` gives each value of a document on one line, equal in order and in every digit."""
    source = "\n".join(json.dumps(value, ensure_ascii=ascii_only) for value in values)
    text, facts = run(".", source)
    lines = text.split("\n")
    assert facts == {}
    assert [json.dumps(json.loads(line)) for line in lines] == [json.dumps(value) for value in values]


@pytest.mark.skipif(shutil.which("jq") is None, reason="the command jq is missing: apt-get install jq")
@pytest.mark.parametrize(
    "program",
    [
        ".",
        ".items[]",
        ".items[] | {name, price}",
        "[.items[] | select(.price > 2) | .name]",
        ".items | map(.tags[]?) | unique",
        ".items | sort_by(.price) | .[].name",
        ".items | group_by(.tags | length) | map(length)",
        "[paths(scalars)] | length",
        "to_entries | map(.key)",
        '.items[] | "\\(.name): \\(.price)"',
        ".items[] | [.name, .price] | @csv, @tsv, @json, @html, @uri",
        ".items[].name | ascii_downcase, length, explode",
        "del(.items[0]) | keys",
        '.missing?.deep // "none"',
        "[limit(3; range(10))], (nan | isnan), infinite",
        "empty",
        ".. | strings",
        "reduce .items[] as $item (0; . + $item.price)",
        '.items[] | if .tags then "t" else "n" end',
        '[.items[].name | test("^[a-z]"), sub("a"; "b")]',
        "with_entries(.value |= tostring)",
    ],
)
def test_as_the_command_line_prints_it(program: str) -> None:
    """What the library gives is what `jq -c` prints, byte for byte."""
    source = json.dumps(
        {
            "zeta": [1, 0.5, -3, 17],
            "items": [
                {"name": 'pümp\t"x"', "price": 3, "tags": ["a", "b"]},
                {"price": 2.5, "name": "<Valve & 水>", "tags": []},
                {"name": "abc\u0001\u007f", "price": 0.1},
            ],
            "alpha": None,
        }
    )
    source += '\n{"items": [{"name": "second", "price": 4, "tags": null}]}'
    done = subprocess.run(
        ["jq", "-c", program], input=source.encode(), capture_output=True, check=True, timeout=20
    )
    assert run(program, source).text == done.stdout.decode().removesuffix("\n")
