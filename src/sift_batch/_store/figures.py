"""How full is a store, and of whose jobs?

Plain functions of a connection that reads. What the byte budget would remove next is asked in the order
in which `removal.evict` does it. Next: `beside.py`, which brings this to a thread.
"""

import sqlite3
from dataclasses import dataclass
from typing import Final

from .queries import effective_lease
from .schema import LIVE

_BY_CALLER: Final = f"""
    SELECT caller, count(*), total({LIVE}), total(nbytes),
        min(CASE WHEN settled = 1 THEN {effective_lease()} END),
        total(settled = 1 AND {effective_lease()} < :oldest)
    FROM batch_job GROUP BY caller ORDER BY total(nbytes) DESC, caller
"""
_IN_LINE: Final = f"""
    SELECT id, caller, nbytes, {effective_lease()} FROM batch_job
    WHERE settled = 1 ORDER BY {effective_lease()}, rowid
"""
_NEWEST: Final = f"""
    SELECT id FROM batch_job WHERE settled = 1 ORDER BY {effective_lease()} DESC, rowid DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Victim:
    """A settled job that the budget would remove. `over`: the store is over its budget until it is gone."""

    job_id: str
    caller: str
    nbytes: int
    lease: int
    over: bool


@dataclass(frozen=True, slots=True)
class CallerFigures:
    """One caller's part. `jobs` counts all that are stored, `live` and `lapsed` some of them.

    `oldest_lease`: of its settled jobs; None when it has none.
    """

    caller: str
    jobs: int
    live: int
    lapsed: int
    nbytes: int
    oldest_lease: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is stored, seen at one moment. `victims` are the next few, first to go first."""

    callers: tuple[CallerFigures, ...]
    victims: tuple[Victim, ...]
    nbytes: int
    max_bytes: int
    file_bytes: int
    free_bytes: int

    @property
    def jobs(self) -> int:
        """All stored jobs."""
        return sum(item.jobs for item in self.callers)

    @property
    def live(self) -> int:
        """Those that are queued or running."""
        return sum(item.live for item in self.callers)


def figures(connection: sqlite3.Connection, *, now: int, ttl: float, max_bytes: int, victims: int) -> Figures:
    """Count, and look who would go next: at most `victims` of them. `ttl` is the runner's.

    It begins a transaction, and leaves it open.
    """
    connection.execute("BEGIN")
    times = {"now": now, "ahead": now + ttl, "oldest": now - ttl}
    callers = tuple(
        CallerFigures(str(caller), jobs, int(live), int(lapsed), int(nbytes), lease)
        for caller, jobs, live, nbytes, lease, lapsed in connection.execute(_BY_CALLER, times)
    )
    nbytes = sum(item.nbytes for item in callers)
    page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    return Figures(
        callers=callers,
        victims=_victims(connection, times, nbytes - max_bytes, victims),
        nbytes=nbytes,
        max_bytes=max_bytes,
        file_bytes=connection.execute("PRAGMA page_count").fetchone()[0] * page_size,
        free_bytes=connection.execute("PRAGMA freelist_count").fetchone()[0] * page_size,
    )


def _victims(
    connection: sqlite3.Connection, times: dict[str, float], excess: int, limit: int
) -> tuple[Victim, ...]:
    # The newest settled job always stays, however large it is.
    newest = connection.execute(_NEWEST, times).fetchone()
    found: list[Victim] = []
    for job_id, caller, nbytes, lease in connection.execute(_IN_LINE, times):
        if len(found) == limit or (job_id,) == newest:
            break
        found.append(Victim(str(job_id), str(caller), nbytes, lease, excess > 0))
        excess -= nbytes
    return tuple(found)
