"""What does a caller's jq program make of a JSON document?

The library's jq runs in this process and can read its environment and files: the program runs inside
another one that takes those names away, and it can't leave it. The worker's empty environment and
limits are the first line; this is the second. It chooses nothing of the output: next is `selecting`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, NoReturn, Protocol

from .._document import ReadError
from .json_place import Place, place_of_fault, place_of_value

OUTPUTS: Final = 1_000
"""A program gives at most so many lines."""
OUTPUT_BYTES: Final = 10 * 2**20
"""And at most so many bytes of UTF-8."""

# What a program could learn of the machine, taken away by name. `tojson` prints a value as `jq -c` does
# (the library's own printing loses digits), an error comes as a list, and a null says that the program
# is done with an input: so the three can't be mixed up, whatever the program gives.
_BEFORE: Final = (
    "def env: {}; def input_filename: null; def get_search_list: []; "
    "def get_jq_origin: null; def get_prog_origin: null; "
    'def modulemeta: error("there are no modules"); '
    "def halt_error: error; def halt_error($code): error; "
)
_OPEN: Final = "{} as $ENV | (try (("
# The empty line ends a comment of the program's last line, even one that a backslash continues.
_AFTER: Final = "\n\n) | tojson) catch [.]), null"

# jq hands inputs to a program as it asks for them; the library has no way to. With one input there is
# nothing further, and jq's own answer is known. With more, no answer is better than a wrong one.
_NO_MORE: Final = 'def input: error("No more inputs"); def inputs: empty; '
_NOT_HERE: Final = 'def input: error("sift: inputs"); def inputs: error("sift: inputs"); '
_ASKS_INPUT: Final = re.compile(r"\binputs?\b")

_COMPILE_PLACE: Final = re.compile(r"at <top-level>, line (\d{1,6}), column (\d{1,6})")
_PARSE_PLACE: Final = re.compile(r"at line (\d{1,9}), column (\d{1,9})")
_BIG: Final = re.compile(r"\d{16}")
_NUMBERS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)', re.DOTALL)
_INEXACT_FROM: Final = 2**53  # below, a double holds every integer

_SURROGATE_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)

_FAULTS: Final = (
    # what jq says, and what we say
    ("Cannot iterate over", "it goes through the elements of what is no array or object"),
    ("Cannot index", "it asks for an element that a value of this type does not have"),
    ("Cannot use", "it uses a value of the wrong type as a key"),
    ("cannot be added", "it adds values that can't be added"),
    ("cannot be subtracted", "it subtracts values that can't be subtracted"),
    ("cannot be multiplied", "it multiplies values that can't be multiplied"),
    ("cannot be divided", "it divides by zero, or values that can't be divided"),
    ("cannot be parsed as a number", "it makes a number of a text that is none"),
    ("has no keys", "it asks for the keys of what has none"),
    ("has no length", "it asks for the length of what has none"),
    ("Regex failure", "it has a regular expression that is not sound"),
    ("Path too deep", "it makes a path that is too deep"),
    ("too large", "it makes a value that is too large"),
    ("too long", "it makes a value that is too long"),
    ("while parsing", "it parses a text that is no JSON"),
    ("No more inputs", "it asks for a further input, and there is none"),
    ("there are no modules", "it asks for a module, and there are none"),
)


class Ran(NamedTuple):
    """What a program gave, each output one line, and what `Result.meta` is told of it."""

    text: str
    facts: dict[str, Any]


class _Program(Protocol):
    def input_text(self, text: str) -> Any: ...


def check(program: str) -> None:
    """Raise `ReadError` `bad_option`, with line and column where jq knows them, unless it compiles."""
    _compiled(program, _NO_MORE)


def run(program: str, source: str) -> Ran:
    """Run `program` on each JSON value of `source` and return what it gives, as `jq -c` prints it.

    Numbers that the program passes on keep their digits; `lossy_numbers` says that the document has
    integers from 2**53 on and the program made others of them. At most `OUTPUTS` lines and `OUTPUT_BYTES`
    are given: what would be more is left out as whole lines, and `truncated` says so.
    Raises `ReadError`: `bad_option` if the program does not compile or fails, or `source` is no JSON;
    `too_large` if already the first output is over the limit.
    """
    source = _with_whole_characters(source)
    nul = source.find("\0")
    if nul >= 0:  # the library would take the text as ended here
        _no_json(Place(source.count("\n", 0, nul) + 1, nul - source.rfind("\n", 0, nul)))
    lines, facts = _outputs(_ready(program, source), source)
    if not lines and not facts:
        facts |= _no_output(len(source))
    if _is_lossy(source, lines):
        facts["lossy_numbers"] = True
    return Ran("\n".join(lines), facts)


def _ready(program: str, source: str) -> _Program:
    """Return the program compiled, with `input` and `inputs` as this document allows."""
    if _ASKS_INPUT.search(program) and _values(source) > 1:
        return _compiled(program, _NOT_HERE)
    return _compiled(program, _NO_MORE)


def _values(source: str) -> int:
    import jq

    try:
        return sum(1 for _ in jq.compile("null").input_text(source))
    except ValueError:
        return 0  # no JSON: the run finds it again and says where


def _outputs(program: _Program, source: str) -> tuple[list[str], dict[str, Any]]:
    lines: list[str] = []
    size = done = 0
    try:
        for output in program.input_text(source):
            if output is None:
                done += 1
                continue
            if not isinstance(output, str):
                raise _failed(output, source, done)
            size += len(output.encode("utf-8", "surrogatepass")) + 1
            if len(lines) == OUTPUTS or size > OUTPUT_BYTES:
                return lines, _too_many(lines)
            lines.append(output)
    except ValueError as error:
        told = _told(error.args)
        said = _PARSE_PLACE.search(told)
        place = place_of_fault(source) or (Place(int(said[1]), int(said[2])) if said else None)
        _no_json(place, "is nested too deeply for jq" if "depth limit" in told else "is no JSON")
    if not done and not lines and not source.strip(" \t\r\n\ufeff"):
        _no_json(Place(1, 1))
    return lines, {}


def _no_output(chars: int) -> dict[str, Any]:
    hint = f"the jq program gave no output for the document of {chars} characters; . gives all of it"
    return {"code": "no_match", "hint": hint}


def _too_many(lines: list[str]) -> dict[str, Any]:
    if not lines:
        raise ReadError(
            "too_large",
            "the jq program gives a value that is too large",
            hint=f"a program may give {OUTPUT_BYTES:,} bytes; ask for a part of the value",
        )
    hint = f"the first {len(lines):,} outputs of the jq program; ask for fewer, or for a part of each"
    return {"truncated": True, "code": "truncated", "hint": hint}


def _failed(caught: Any, source: str, done: int) -> ReadError:
    """Return the error of a program that failed on the document's value number `done` from 0.

    jq knows no place in the program once it runs; the place is that of the value.
    """
    said = caught[0] if isinstance(caught, list) and caught else None
    place = place_of_value(source, done)
    where = f"line {place.line}, column {place.column} of the document" if place else f"value {done + 1}"
    if said == "sift: inputs":
        return ReadError(
            "bad_option",
            f"the jq program asks for further inputs on the value at {where}",
            hint="each value of the document is an input by itself; input and inputs give no others here",
        )
    fault = "by an error of its own"
    if isinstance(said, str):
        fault = next((ours for theirs, ours in _FAULTS if theirs in said), fault)
    joint = " " if fault.startswith("by ") else ": "
    return ReadError(
        "bad_option",
        f"the jq program failed on the value at {where}{joint}{fault}",
        hint="use ? or // where a value may be missing or of another type",
    )


def _no_json(place: Place | None, fault: str = "is no JSON") -> NoReturn:
    where = f" (line {place.line}, column {place.column})" if place else ""
    raise ReadError(
        "bad_option",
        f"the document {fault}{where}",
        hint="jq is for JSON, several JSON values and JSON Lines; leave jq out for other documents",
    )


@lru_cache(maxsize=32)
def _compiled(program: str, inputs: str) -> _Program:
    """Compile `program` inside ours. The targets of one job often have the same one."""
    import jq

    if "\0" in program or any("\ud800" <= char <= "\udfff" for char in program):
        raise ReadError("bad_option", "the jq program holds NUL or a surrogate")
    before = _BEFORE + inputs + _OPEN
    try:
        compiled: _Program = jq.compile(before + program + _AFTER)
    except ValueError as error:
        raise _no_program(program, len(before), error.args) from None
    try:
        # A program whose brackets close ours compiles inside it and not by itself. Only now: by itself
        # it could name files, which ours does not let through.
        jq.compile(program)
    except ValueError as error:
        raise _no_program(program, 0, error.args) from None
    return compiled


def _no_program(program: str, shift: int, said: tuple[object, ...]) -> ReadError:
    told = _told(said)
    found = _COMPILE_PLACE.search(told)
    where = ""
    if found:
        line, column = int(found[1]), int(found[2])
        place = _in_program(program, line, column - shift if line == 1 else column)
        where = f" (line {place.line}, column {place.column})"
    if not _without_comments(program):
        return ReadError("bad_option", f"the jq program is empty{where}", hint='"." gives the document')
    fault = "does not compile"
    if "is not defined" in told:
        fault = "uses a name that is not defined"
    elif re.search(r"unexpected (import|include|module)\b", told):
        fault = "asks for a module, and there are none"
    elif "syntax error" in told:
        fault = "has a syntax error"
    return ReadError("bad_option", f"the jq program {fault}{where}", hint="see the manual of jq 1.8")


def _told(said: tuple[object, ...]) -> str:
    """Return what the library says, to look for places in it; it never goes further."""
    return said[0] if said and isinstance(said[0], str) else ""


def _in_program(program: str, line: int, column: int) -> Place:
    """Return a place that jq gave, in characters of the caller's program; its end if it lies behind."""
    lines = program.split("\n")
    if line > len(lines):
        line, column = len(lines), len(lines[-1].encode()) + 1
    before = lines[line - 1].encode()[: max(column - 1, 0)]
    return Place(line, len(before.decode("utf-8", "ignore")) + 1)


def _without_comments(program: str) -> str:
    return re.sub(r"#[^\n]*", "", program).strip()


def _with_whole_characters(source: str) -> str:
    """Return the document with U+FFFD for surrogates that stand alone, written out or as they are."""
    source = source.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if "\\ud" not in source and "\\uD" not in source:
        return source
    return _SURROGATE_ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], source)


def _is_lossy(source: str, lines: list[str]) -> bool:
    """Return whether the document has integers that a double can't hold, and some output has others."""
    if not _BIG.search(source) or not any(_BIG.search(line) or "e+" in line for line in lines):
        return False
    given = {number for number in _numbers(source) if _is_inexact(number)}
    return bool(given) and any(
        _is_inexact(number) and number not in given for line in lines for number in _numbers(line)
    )


def _numbers(text: str) -> Iterator[str]:
    """Give the numbers of JSON text, without their signs."""
    return (found[1] for found in _NUMBERS.finditer(text) if found[1])


def _is_inexact(number: str) -> bool:
    if not number.isdecimal():
        return "e+" in number  # so a double is printed that has become too large; numbers passed on have "E+"
    return len(number) > 16 or int(number) >= _INEXACT_FROM
