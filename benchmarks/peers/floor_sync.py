"""The floor: a synchronous loop over `sqlite3`, one commit for each target."""

import json
import sqlite3
import sys
from pathlib import Path

from work import BATCH, Peer, Setting, Work, run

PEER = Peer(
    name="floor: synchronous loop",
    packages=(),
    settings=(
        Setting("synchronous=FULL", durable=True, how="WAL, a sync at each commit"),
        Setting("synchronous=NORMAL", durable=False, how="WAL, no sync at a commit"),
    ),
    lacks="everything but the work: no cancel, no restart, no caps, no gate, one target at a time",
    own_environment=False,
)


def drain(work: Work) -> dict[int, str]:
    import floors

    durability = work.setting.rpartition("=")[2]
    connection = floors.open_database(work.folder / "jobs", durability)
    work.begin()
    for job, batch in enumerate(work.batches):
        with work.submitting():
            floors.insert_job(connection, job, [work.url(number) for number in batch])
    for job in range(len(work.batches)):
        for idx, url in floors.pending(connection, job):
            content = work.fetch(work.number(url))
            floors.store_result(connection, job, idx, floors.encode(url, content))
    work.finished()
    work.time_look(lambda: look(connection))
    return read_back(connection)


def look(connection: sqlite3.Connection) -> object:
    """Read the state of the first job and of its targets."""
    job = connection.execute("SELECT status, total, stored FROM job WHERE id = 0").fetchone()
    return job, connection.execute("SELECT idx, url, status FROM target WHERE job = 0").fetchall()


def read_back(connection: sqlite3.Connection) -> dict[int, str]:
    rows = connection.execute("SELECT job, idx, result FROM target WHERE status = 'done'").fetchall()
    return {job * BATCH + idx: json.loads(result)["content"] for job, idx, result in rows}


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    run(drain)
