"""What the package shows and loads."""

import ast
import subprocess
import sys
from pathlib import Path

import sift_batch

_EXTRAS = {"httpcore2", "charset_normalizer", "click", "rich", "prometheus_client", "msgspec", "starlette"}


def _fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_public_name_can_be_had_and_no_other():
    """Each name of `__all__` has one home and is the object that lives there."""
    assert set(sift_batch.__all__) == set(sift_batch._HOMES)
    for name in sift_batch.__all__:
        assert getattr(sift_batch, name) is getattr(
            sys.modules[f"sift_batch.{sift_batch._HOMES[name]}"], name
        )
    assert not hasattr(sift_batch, "no_such_name")


def test_type_checkers_see_what_the_program_gets():
    """The imports that a type checker reads name the same homes as the table that is used."""
    tree = ast.parse(Path(sift_batch.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == sift_batch._HOMES


def test_the_core_loads_no_extra():
    """Opening a store and a runner imports no HTTP client, no terminal, no metrics, no web framework."""
    code = (
        "import sys, trio, sift_batch as sb\n"
        "async def main():\n"
        "    async with sb.open_store(':memory:') as store, sb.open_runner(store, print): pass\n"
        "trio.run(main)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert not _EXTRAS & set(_fresh(code).split())


def test_the_import_does_nothing_yet():
    """`import sift_batch` alone loads neither Trio nor SQLite, and touches no logging."""
    loaded = set(_fresh("import sys, sift_batch; print(*{n.partition('.')[0] for n in sys.modules})").split())
    assert not {"trio", "anyio", "structlog", "sqlite3", "logging"} & loaded
