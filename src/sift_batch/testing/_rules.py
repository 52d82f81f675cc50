"""How is a promise written down, so that it can be checked and shown? One rule, one function.

A suite is a tuple of rules. The text of a rule is what the documentation lists, and what the
`AssertionError` names when the rule is broken. Next: `_ledger.py`, then the rules themselves.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Rule(NamedTuple, Generic[S]):
    """One promise: a sentence that could be false, and the check that says whether it is."""

    text: str
    check: Callable[[S], Awaitable[None]]

    async def run(self, subject: S) -> None:
        """Return if `subject` keeps the rule; else raise `AssertionError` naming it."""
        try:
            await self.check(subject)
        except Exception as exc:
            raise AssertionError(f"broken rule: {self.text}\n{_reason(exc)}") from exc


class Rules(Generic[S]):
    """A list of rules that grows as a module is read from top to bottom."""

    def __init__(self) -> None:
        self._rules: list[Rule[S]] = []

    def __call__(self, text: str) -> Callable[[Callable[[S], Awaitable[None]]], Rule[S]]:
        """Add the decorated check, with its rule's text."""

        def add(check: Callable[[S], Awaitable[None]]) -> Rule[S]:
            rule = Rule(text, check)
            self._rules.append(rule)
            return rule

        return add

    def all(self) -> tuple[Rule[S], ...]:
        """Return the rules in the order in which they were written."""
        return tuple(self._rules)


def _reason(exc: BaseException) -> str:
    if isinstance(exc, BaseExceptionGroup):
        return "; ".join(_reason(inner) for inner in exc.exceptions)
    return str(exc) if isinstance(exc, AssertionError) else f"{type(exc).__name__}: {exc}"


def hold(condition: object, what: str) -> None:
    """Raise `AssertionError` unless `condition` is true. Not `assert`, which `python -O` drops."""
    if not condition:
        raise AssertionError(what)


def present(value: T | None, what: str) -> T:
    """Return `value`; raise `AssertionError` if it is None."""
    if value is None:
        raise AssertionError(what)
    return value


def same(got: object, wanted: object, what: str) -> None:
    """Raise `AssertionError` unless `got` equals `wanted`."""
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")
