"""A database for the tests of the ways to a database."""

from pathlib import Path

import pytest
from traced import connect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a database with one empty table."""
    path = tmp_path / "rows.db"
    connection = connect(path)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE row(name TEXT PRIMARY KEY)")
    connection.close()
    return path
