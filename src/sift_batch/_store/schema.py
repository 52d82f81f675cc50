"""What is in the file, and how is a connection to it set up?

`PRAGMA application_id` marks a file as ours and `PRAGMA user_version` holds the schema's version. A
target's `result` stands last in its row with its size beside it, so that a summary never reads it;
the table has rowids, since without them a result of 1 KB no longer fits into its row's page.
There is no index on `lease`: it would cost a third more on every stored target, and what it would
speed up runs once a minute. The two indexes on live jobs are partial; a query uses them only if it
repeats their condition word for word (`LIVE`).
"""

import sqlite3
import sys
from typing import Final

from .._model.errors import StoreError, StoreVersionError

APPLICATION_ID: Final = 0x73696674  # "sift"
SCHEMA_VERSION: Final = 1
LIVE: Final = "status IN ('queued', 'running')"

LOCK_TRY_MILLISECONDS: Final = 100
"""SQLite's own patience with a locked file: the writer looks between two tries who still waits."""

_TABLES: Final = (
    """
    CREATE TABLE batch_job(
        id TEXT NOT NULL PRIMARY KEY,
        caller TEXT NOT NULL,
        caller_class TEXT NOT NULL,
        idem_key TEXT NOT NULL,
        status TEXT NOT NULL,
        owner TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '',
        targets_total INTEGER NOT NULL,
        targets_done INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL,
        started_at INTEGER,
        finished_at INTEGER,
        lease INTEGER NOT NULL,
        nbytes INTEGER NOT NULL,
        rerun_of TEXT,
        targets_failed INTEGER NOT NULL DEFAULT 0,
        settled INTEGER NOT NULL DEFAULT 0,
        version INTEGER NOT NULL DEFAULT 1
    )
    """,
    "CREATE INDEX batch_job_key ON batch_job(idem_key)",
    "CREATE INDEX batch_job_caller ON batch_job(caller)",
    f"CREATE INDEX batch_job_live ON batch_job(status) WHERE {LIVE}",
    f"CREATE INDEX batch_job_live_caller ON batch_job(caller) WHERE {LIVE}",
    """
    CREATE TABLE batch_target(
        job_id TEXT NOT NULL,
        idx INTEGER NOT NULL,
        url TEXT NOT NULL,
        options TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending',
        error TEXT NOT NULL DEFAULT '',
        hint TEXT NOT NULL DEFAULT '',
        code TEXT NOT NULL DEFAULT '',
        http_status INTEGER,
        retryable INTEGER NOT NULL DEFAULT 0,
        chars INTEGER NOT NULL DEFAULT 0,
        nbytes INTEGER NOT NULL,
        result BLOB,
        PRIMARY KEY(job_id, idx)
    )
    """,
    """
    CREATE TABLE batch_gone(
        id TEXT NOT NULL PRIMARY KEY,
        caller TEXT NOT NULL,
        reason TEXT NOT NULL,
        at INTEGER NOT NULL
    )
    """,
    "CREATE TABLE batch_check(id INTEGER NOT NULL PRIMARY KEY, at INTEGER NOT NULL)",
)


def create(connection: sqlite3.Connection) -> None:
    """Lay out a new store in an empty database."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        connection.execute(statement)
    # A pragma takes no bound value; both are constants of this module.
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def verify(connection: sqlite3.Connection) -> None:
    """Raise unless the database is a store of this version. Reads only."""
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if mark != APPLICATION_ID:
        raise StoreError("this file is another program's database; choose another path")
    if version > SCHEMA_VERSION:
        raise StoreVersionError(
            f"this store has version {version}, this package knows versions up to {SCHEMA_VERSION}; "
            "install a newer sift-batch"
        )
    if version < 1:
        raise StoreError("this store was never finished; remove the file or restore it from a backup")
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not {"batch_job", "batch_target", "batch_gone"} <= names:
        raise StoreError("this store is damaged: tables are missing; restore it from a backup")


def configure(connection: sqlite3.Connection, *, durability: str, in_memory: bool = False) -> None:
    """Set up the one connection that writes, and read each setting back."""
    synchronous = {"full": 2, "normal": 1}[durability]
    connection.execute(f"PRAGMA busy_timeout = {LOCK_TRY_MILLISECONDS}").fetchall()
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    if sys.platform == "darwin" and durability == "full":
        # On macOS fsync alone does not reach the platter.
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
    _harden(connection)
    # Truncated at each reset, so that one big result does not leave a big log behind.
    connection.execute("PRAGMA journal_size_limit = 16777216").fetchall()
    connection.execute("PRAGMA secure_delete = OFF").fetchall()
    wanted = {"synchronous": synchronous, "secure_delete": 0}
    if not in_memory:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        wanted |= {"auto_vacuum": 2}
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            raise StoreError("this file system can't hold a write-ahead log; put the store on a local disk")
    for name, value in wanted.items():
        if connection.execute(f"PRAGMA {name}").fetchone()[0] != value:
            raise StoreError(f"SQLite refused the setting {name}; this build of it can't be used")


def configure_reader(connection: sqlite3.Connection) -> None:
    """Set up a connection that never writes."""
    connection.execute(f"PRAGMA busy_timeout = {LOCK_TRY_MILLISECONDS * 50}").fetchall()
    connection.execute("PRAGMA query_only = ON")
    _harden(connection)


def _harden(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
