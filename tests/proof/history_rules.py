"""What must hold of every history? The table of all rules, each a question of its own.

A rule is a function that gives one line for each violation; its docstring is the promise. The questions
are in `history_kept.py` (what was acknowledged is there), `history_ends.py` (what has ended stays),
`history_fetched.py` (what is fetched, and when), `history_told.py` (what is told, and to whom) and
`history_came.py` (what comes in, and what a restart leaves). A rule never guesses: where a history
leaves two things possible, it allows both.
"""

from collections.abc import Callable, Collection, Iterator
from types import MappingProxyType
from typing import Any, Final

import history_came
import history_ends
import history_fetched
import history_kept
import history_told
from history_calls import HistoryRules, Index

Rule = Callable[[Index], Iterator[str]]


def _all_rules() -> Iterator[tuple[str, Rule]]:
    for module in (history_kept, history_ends, history_fetched, history_told, history_came):
        for name, found in vars(module).items():
            rule = getattr(found, "__module__", None) == module.__name__ and not name.startswith("_")
            if rule and callable(found):
                yield name, found


RULES: Final = MappingProxyType(dict(_all_rules()))
_DEFAULT: Final = HistoryRules()


def check_history(
    events: list[dict[str, Any]], rules: HistoryRules = _DEFAULT, *, without: Collection[str] = ()
) -> list[str]:
    """Return what is wrong with a history: each violation names its invariant, its job and its events.

    `without` leaves out rules by name: the tests show with it that each is needed.
    """
    index = Index(events, rules)
    return [line for name, rule in RULES.items() if name not in without for line in rule(index)]
