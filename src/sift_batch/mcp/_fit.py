"""How much does an answer hold? Never more than was asked for, counted over everything that is in it.

An answer is one JSON text; its length, names, quotes and escapes included, is what counts. Plain functions
over views. Next: `_calls`, which asks for less where something does not fit.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from ._arguments import View

DEFAULT: Final = 20_000
MOST: Final = 40_000
LEAST: Final = 2_000
_CUT: Final = 200
_LONGEST_LIST: Final = 5


def text_of(view: Any) -> str:
    """Return the JSON text of a view. Half a character, which no UTF-8 can hold, becomes `?`."""
    text = json.dumps(view, ensure_ascii=False, separators=(",", ":"))
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def fits(view: Any, budget: int) -> bool:
    """Return whether the text of a view has at most `budget` characters."""
    return len(text_of(view)) <= budget


def goes_twice(view: Any, text: str) -> bool:
    """Return whether an answer may hold a view as text and as an object, and still not be too long."""
    return len(text) + len(json.dumps(view, ensure_ascii=False)) <= MOST


def how_many(view: View, items: Sequence[View], budget: int) -> int:
    """Return how many of `items`, from the first on, the page `view` can hold."""
    left = budget - len(text_of({**view, "items": []}))
    for count, item in enumerate(items):
        left -= len(text_of(item)) + 1
        if left < 0:
            return count
    return len(items)


def longest_part(content: str, room: int) -> int:
    """Return how many characters of `content`, from the first on, take at most `room` as a JSON text."""
    least, most = 0, min(len(content), max(room, 0))
    while least < most:
        middle = (least + most + 1) // 2
        if len(text_of(content[:middle])) - 2 <= room:
            least = middle
        else:
            most = middle - 1
    return least


def shortened(view: View) -> View:
    """Return a view with its long texts and lists cut: for what does not fit although it has no content."""
    return {name: _short(value) for name, value in view.items()}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _CUT else value[:_CUT] + "…"
    if isinstance(value, dict):
        return shortened(value)
    if isinstance(value, list):
        return [_short(inner) for inner in value[:_LONGEST_LIST]]
    return value


def lean(rest: View, budget: int) -> View:
    """Return what is told beside a content, cut so that it leaves half of the room or more to it."""
    if fits(rest, budget // 2):
        return rest
    cut = shortened(rest) | {"next": rest["next"]}
    if fits(cut, budget // 2):
        return cut
    return {name: value for name, value in cut.items() if name not in ("meta", "result")}


def fitting_problem(view: View, budget: int) -> View:
    """Return a problem with as many of its `errors` as fit, and how many there are besides."""
    errors = view.get("errors")
    if fits(view, budget) or not isinstance(errors, list):
        return view
    view = {**view, "errors": [], "errors_left_out": len(errors)}
    room = budget - len(text_of(view))
    kept: list[Any] = []
    for error in errors:
        room -= len(text_of(error)) + 1
        if room < 0:
            break
        kept.append(error)
    return view | {"errors": kept, "errors_left_out": len(errors) - len(kept)}
