"""Which small changes can be made to a module by rule, without knowing what it is for?

Comparisons, truth, numbers, sums, left-out statements, lost return values and the same in texts of SQL. Each
change is made in the text at the place that the syntax tree names, so that everything else stays as it is.
What becomes of them is not known here. Next: `mutant_sweep`.
"""

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARED: Final[dict[type[ast.cmpop], tuple[str, ...]]] = {
    ast.Lt: ("<=", ">="),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<="),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}
_SUMS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.Pow: "*",
}
_SWAPPED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SQL: Final = re.compile(r"\b(SELECT|UPDATE|INSERT|DELETE|WHERE|ORDER BY|PRAGMA|AND|CASE)\b")
_IN_SQL: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    (
        r"<=|>=|<>|<|>|(?<![<>!])=(?= )",
        {"<=": "<", ">=": ">", "<": "<=", ">": ">=", "<>": "=", "=": "<>"},
    ),
    (r" DESC\b", {" DESC": ""}),
    (r"(?<= ORDER BY )(?:idx|rowid)\b(?! DESC)", {"idx": "idx DESC", "rowid": "rowid DESC"}),
    (r"\b(?:max|min|coalesce)\(", {"max(": "min(", "min(": "max(", "coalesce(": "nullif("}),
    (r" \+ (?:1|\?)", {" + 1": " + 2", " + ?": " - ?"}),
    (r"\bsettled = [01]", {"settled = 1": "settled = 0", "settled = 0": "settled = 1"}),
    (r" AND ", {" AND ": " OR "}),
    (r" OR (?!REPLACE)", {" OR ": " AND "}),
    (
        r"'(?:pending|running|done|queued)'",
        {"'pending'": "'done'", "'running'": "'pending'", "'done'": "'failed'", "'queued'": "'running'"},
    ),
    (r"\bDISTINCT ", {"DISTINCT ": ""}),
    (r"\bLIMIT 1\b", {"LIMIT 1": "LIMIT 2"}),
    (r"= (?:ON|OFF|WAL|FULL)\b", {"= ON": "= OFF", "= OFF": "= ON", "= WAL": "= DELETE", "= FULL": "= OFF"}),
)


@dataclass(frozen=True)
class Change:
    """One change: where, what of what, and the whole module with it.

    `lines` are those of the statement that it is in: a text of several lines is loaded in its first.
    """

    line: int
    lines: range
    what: str
    source: str


def changes(source: str) -> list[Change]:
    """Return every change of a module that still compiles, in the order of its lines."""
    made = []
    statements = _statements(source)
    for start, end, text in sorted(set(_edits(source))):
        changed = source[:start] + text + source[end:]
        try:
            compile(changed, "mutant", "exec")
        except SyntaxError:
            continue
        line = source.count("\n", 0, start) + 1
        old = " ".join(source[start:end].split())
        lines = min((lines for lines in statements if line in lines), key=len, default=range(line, line + 1))
        made.append(Change(line, lines, f"{old[:60] or 'nothing'} → {text[:60] or 'nothing'}", changed))
    return made


def _statements(source: str) -> list[range]:
    """Return the lines of each statement, of one with a body those of its head."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            end = node.end_lineno or node.lineno
            lines.append(range(node.lineno, end + 1 if not body else max(body[0].lineno, node.lineno + 1)))
    return lines


def _edits(source: str) -> Iterator[tuple[int, int, str]]:
    """Yield what to replace by what: start, end (in characters), text."""
    place = _Places(source)
    tree = ast.parse(source)
    docstrings, hints, texts = _passed_over(tree)
    for node in ast.walk(tree):
        if node in hints or node in docstrings or node in texts:
            continue
        yield from _edits_of(node, place, docstrings)
    skipped = {(node.lineno, node.col_offset) for node in docstrings if isinstance(node, ast.Expr)}
    yield from _sql_edits(source, place, skipped)


def _passed_over(tree: ast.AST) -> tuple[set[ast.AST], set[ast.AST], set[ast.AST]]:
    """Return docstrings, annotations, and what stands in f-strings (their places are not reliable)."""
    docstrings: set[ast.AST] = set()
    hints: set[ast.AST] = set()
    texts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings |= {node, node.value}
        for name in ("annotation", "returns"):
            hint = getattr(node, name, None)
            if isinstance(hint, ast.AST):
                hints |= set(ast.walk(hint))
        if isinstance(node, ast.JoinedStr):
            texts |= set(ast.walk(node))
        if isinstance(node, ast.Expr) and ast.unparse(node).startswith("crash_point("):
            texts |= set(ast.walk(node))  # a place for the crash tests, and nothing in between
        if isinstance(node, ast.Raise):
            texts |= set(ast.walk(node)) - {node}  # what an error says is tested where it matters
    return docstrings, hints, texts


def _edits_of(node: ast.AST, place: "_Places", docstrings: set[ast.AST]) -> Iterator[tuple[int, int, str]]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            start, end = place.after(left), place.before(right)
            for other in _COMPARED[type(op)]:
                yield start, end, f" {other} "
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            for left, right in itertools.pairwise(values):
                start, end = place.after(left), place.before(right)
                if "(" not in place.source[start:end] and ")" not in place.source[start:end]:
                    yield start, end, word
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield place.before(node), place.before(operand), ""
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SUMS:
            between = place.source[place.after(left) : place.before(right)]
            if "(" not in between and ")" not in between:
                yield place.after(left), place.before(right), f" {_SUMS[type(op)]} "
        case ast.Constant(value=bool() as value):
            yield place.before(node), place.after(node), str(not value)
        case ast.Constant(value=int() | float() as value):
            yield place.before(node), place.after(node), repr(value + 1)
        case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED:
            yield place.before(node.func), place.after(node.func), _SWAPPED[name]
        case ast.If(test=test) | ast.IfExp(test=test) if isinstance(
            test, ast.Name | ast.Attribute | ast.Call
        ):
            text = place.source[place.before(test) : place.after(test)]
            yield place.before(test), place.after(test), f"not {text}"
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield place.before(node), place.after(node), "return None"
        case ast.Assign(targets=[ast.Name()]):
            pass  # without it the name is missing: any test would see that
        case (
            ast.Expr()
            | ast.Assign()
            | ast.AugAssign()
            | ast.Raise()
            | ast.Delete()
            | ast.Break()
            | ast.Continue()
        ):
            # In place of a `break` a `pass` may go on for ever: then the verdict is "timed out".
            yield place.before(node), place.after(node), "pass"
        case ast.Return():
            yield place.before(node), place.after(node), "pass"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _sql_edits(
    source: str, place: "_Places", skipped: set[tuple[int, int]]
) -> Iterator[tuple[int, int, str]]:
    names = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in names or token.start in skipped or not _SQL.search(token.string):
            continue
        base = place.at(*token.start)
        for pattern, others in _IN_SQL:
            for found in re.finditer(pattern, token.string):
                yield base + found.start(), base + found.end(), others[found[0]]


class _Places:
    """Turns lines and columns into places in the text."""

    def __init__(self, source: str) -> None:
        self.source = source
        lines = source.splitlines(keepends=True)
        self._lines = lines
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """Return the place of a line (from 1) and a column in characters."""
        return self._starts[line - 1] + column

    def before(self, node: ast.AST) -> int:
        """Return where a node begins."""
        return self._place(getattr(node, "lineno", 1), getattr(node, "col_offset", 0))

    def after(self, node: ast.AST) -> int:
        """Return where a node has ended."""
        return self._place(getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0))

    def _place(self, line: int, column: int) -> int:
        # The syntax tree counts the bytes of UTF-8.
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())
