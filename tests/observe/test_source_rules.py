"""What no source file of the package may do, since it can give a target away past every other rule."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sift_batch

PACKAGE = Path(sift_batch.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Where a rule does not hold, and why. A line here is a promise that somebody looked.
ALLOWED = {
    (
        "testing/_store_calls.py",
        "text of a caught error",
    ): "a suite's report on a store, with targets of its own",
}
# Rooms that talk to a person at a terminal, on purpose.
TERMINAL = ("cli/",)


def found(source: str) -> Iterator[tuple[int, str]]:
    """Give the line and kind of everything forbidden in a source text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ((node.lineno, kind) for kind in kinds_of_call(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [item.name for item in node.names]
            )
            yield from (
                (node.lineno, "traceback module") for name in names if name.split(".")[0] == "traceback"
            )
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield from ((line, "text of a caught error") for line in texts_of(node, node.name))


def kinds_of_call(node: ast.Call) -> Iterator[str]:
    """Give what is forbidden about one call."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    keywords = {item.arg: item.value for item in node.keywords}
    if name == "getLogger" and not all(constant(item) for item in node.args):
        yield "logger with a name made at run time"
    if (
        name == "exception"
        and isinstance(node.func, ast.Attribute)
        and node.args
        and root(node.func) != "sys"
    ):
        yield "logged exception"
    if "exc_info" in keywords or "stack_info" in keywords:
        yield "logged exception"
    if name in ("set_trace_callback", "add_note", "print", "print_exc", "print_exception", "format_exc"):
        yield name
    if name == "warn" and node.args and not constant(node.args[0]):
        yield "warning with a text made at run time"
    if name in ("start_soon", "start") and "name" in keywords and not constant(keywords["name"]):
        yield "task name made at run time"
    if name == "Thread" and "name" in keywords and not constant(keywords["name"]):
        yield "thread name made at run time"


def constant(node: ast.expr) -> bool:
    """Say whether a value is written down: a literal, or the name of a constant."""
    if isinstance(node, ast.Constant):
        return True
    return isinstance(node, ast.Name) and node.id.strip("_").isupper()


def root(node: ast.expr) -> str:
    """Return the first name of a dotted one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def texts_of(handler: ast.ExceptHandler, name: str) -> Iterator[int]:
    """Give the lines on which a handler makes a text of the error it caught."""
    for node in ast.walk(handler):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "repr", "format", "ascii"):
            shown: list[ast.expr] = [item for item in node.args if isinstance(item, ast.Name)]
        elif isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
            shown = [node.value]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            shown = [node.right]
        else:
            continue
        if any(mentions(item, name) for item in shown):
            yield node.lineno


def mentions(node: ast.AST, name: str) -> bool:
    """Say whether a variable is used anywhere in an expression."""
    return any(getattr(item, "id", "") == name for item in ast.walk(node))


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(PACKAGE)) for path in FILES])
def test_no_forbidden_construct(path: Path) -> None:
    """No source file logs an exception, makes a text of a caught error, or names a logger at run time."""
    place = path.relative_to(PACKAGE).as_posix()
    faults = [(line, kind) for line, kind in found(path.read_text()) if (place, kind) not in ALLOWED]
    assert [fault for fault in faults if not (fault[1] == "print" and place.startswith(TERMINAL))] == []


def test_every_exemption_is_used() -> None:
    """An exemption that nothing needs any more is taken out."""
    used = {
        (path.relative_to(PACKAGE).as_posix(), kind) for path in FILES for _, kind in found(path.read_text())
    }
    assert {entry for entry in ALLOWED if entry not in used} == set()


@pytest.mark.parametrize(
    "source",
    [
        "logging.getLogger(name)",
        "log.exception('x')",
        "log.error('x', exc_info=True)",
        "log.info('x', stack_info=True)",
        "connection.set_trace_callback(f)",
        "import traceback",
        "from traceback import format_exc",
        "error.add_note('x')",
        "print('x')",
        "warnings.warn(f'{url}')",
        "nursery.start_soon(f, name=url)",
        "threading.Thread(target=f, name=url)",
        "try: x\nexcept E as error: y = str(error)",
        "try: x\nexcept E as error: y = f'{error}'",
        "try: x\nexcept E as error: y = '%s' % error",
        "try: x\nexcept E as error: y = '%s' % (1, error)",
        "try: x\nexcept E as error:\n  if y: z = repr(error)",
    ],
)
def test_each_rule_finds_its_fault(source: str) -> None:
    """Each forbidden construct is found."""
    assert list(found(source))


@pytest.mark.parametrize(
    "source",
    [
        "logging.getLogger('sift_batch')",
        "nursery.start_soon(f, name='drain')",
        "warnings.warn('x', DeprecationWarning)",
        "sys.exception()",
        "try: x\nexcept E as error: y = describe(error)",
    ],
)
def test_harmless_code_passes(source: str) -> None:
    """Code that keeps the rules is not complained of."""
    assert not list(found(source))
