"""What may a request's body hold? The forms of all bodies, and what is known of options beforehand.

The same notes and bounds that the checks use: the names are those of `sift_batch.Options`, the bounds those
of the fetch. How a body is read is `_submissions`'.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Final, NotRequired, TypedDict

from sift_batch import Options
from sift_batch.fetch._address import LIMIT
from sift_batch.fetch._options import MODES, SIZES, WITHOUT

from ._schema_notes import Note
from ._submissions import MAX_AGE, MAX_CHARS

_MOST: Final = {name: most for name, most, _ in SIZES}
_NO_NUL: Final = r"^[^\x00]*$"
# What every URL is that the fetch takes; its own grammar refuses more.
_URL: Final = r'^[Hh][Tt][Tt][Pp][Ss]?://[^\x00-\x20"<>\\^`{|}/?#@]+([/?#][^\x00-\x20"<>\\^`{|}]*)?$'
_ITEM: Final = r"(-?0*[1-9][0-9]*|0*[1-9][0-9]*-(0*[1-9][0-9]*)?)"
_PAGES: Final = f"^({_ITEM}(,{_ITEM})*)?$"

OPTION_NOTES: Final[Mapping[str, Note]] = {
    "mode": Note("what of the page is wanted; empty is `markdown`", values=MODES),
    "question": Note(
        "gives the passages that answer it best; it needs a word",
        format="question",
        pattern=_NO_NUL,
        max_length=_MOST["question"],
    ),
    "pages": Note(
        "pages of a PDF: `3`, `-1` (from the end), `2-5` or `7-`, joined by commas",
        format="pages",
        pattern=_PAGES,
        max_length=_MOST["pages"],
    ),
    "grep": Note(
        "gives the lines that match: a regular expression as RE2 has it",
        format="re2",
        pattern=_NO_NUL,
        max_length=_MOST["grep"],
    ),
    "jq": Note("a jq program, for JSON", format="jq", pattern=_NO_NUL, max_length=_MOST["jq"]),
    "context": Note("what stands round a match as well; null: as it suits the other options"),
    "recover": Note("an archived copy, where the page is gone"),
}
"""Each option of a target."""

Url = Annotated[
    str,
    Note(
        "an absolute http or https URL without a user name",
        format="http-url",
        pattern=_URL,
        min_length=1,
        max_length=LIMIT,
    ),
]


class AnyOptions(TypedDict):
    """Stands for the options of a job or of a target; its schema is made from `sift_batch.Options`."""


class TargetOptions(AnyOptions):
    """The options of one target: those that exclude each other are not given together."""


class WholeOptions(TargetOptions):
    """All options that a page is fetched with."""


class TargetOrder(TypedDict):
    """A target. Its own options win over those of the job."""

    url: Url
    options: NotRequired[TargetOptions | None]


class BatchOrder(TypedDict):
    """A job that is to be done. `GET /v1/limits` says how many targets it may have."""

    targets: Annotated[list[Url | TargetOrder], Note(min_items=1)]
    options: NotRequired[Annotated[AnyOptions | None, Note("fills in what a target's own options leave out")]]
    max_age: NotRequired[
        Annotated[
            float | None,
            Note(
                "seconds: an equal job that ended longer ago does not answer; without it, any does",
                minimum=0,
                maximum=MAX_AGE,
            ),
        ]
    ]


class FetchOrder(TypedDict):
    """A page that is wanted now."""

    url: Url
    options: NotRequired[WholeOptions | None]
    max_chars: NotRequired[
        Annotated[int | None, Note("at most so many, in whole blocks", minimum=1, maximum=MAX_CHARS)]
    ]


def option_rules() -> list[dict[str, Any]]:
    """Return what must not be given together, as schemas. An empty text counts as not given."""
    rules = [
        _together("jq", "pages"),
        _with_modes("jq", [mode for mode in MODES if mode not in ("", "markdown")]),
    ]
    return [*rules, *(_with_modes(name, list(modes)) for name, modes in WITHOUT)]


def rules_text() -> str:
    """Return the same in words."""
    modes = [f"`{name}` with the modes {', '.join(f'`{mode}`' for mode in given)}" for name, given in WITHOUT]
    return f"Not together: `jq` with `pages` or any `mode`; {'; '.join(modes)}."


def context_rule() -> dict[str, Any]:
    """Return what `context` needs, as a schema."""
    return {
        "if": {"properties": {"context": {"const": True}}, "required": ["context"]},
        "then": {"anyOf": [_given("grep"), _given("question")]},
    }


def option_names() -> list[str]:
    """Return the names of all options."""
    return [field.name for field in fields(Options)]


def _given(*names: str) -> dict[str, Any]:
    return {"properties": {name: {"minLength": 1} for name in names}, "required": list(names)}


def _together(*names: str) -> dict[str, Any]:
    return {"not": _given(*names)}


def _with_modes(name: str, modes: list[str]) -> dict[str, Any]:
    given = {"properties": {name: {"minLength": 1}, "mode": {"enum": modes}}, "required": [name, "mode"]}
    return {"not": given}
