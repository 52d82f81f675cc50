"""Huey on its SQLite storage: a task for each target, the consumer's workers in this process.

Batches are ours: Huey knows tasks and their results. With one worker the tasks run in the order of their
submit, so a batch is serial; with eight they overlap, also within a batch.
"""

import threading
from typing import Any

from work import AT_ONCE, Peer, Setting, Work, run

PEER = Peer(
    name="Huey, SqliteHuey",
    packages=("huey==3.5.4",),
    settings=(
        Setting("as shipped, 1 worker", durable=True, how="WAL; SQLite's default is a sync at each commit"),
        Setting("as shipped, 8 workers", durable=True, how="the same", workers=AT_ONCE),
    ),
    lacks="a target in flight is lost with its process; no batch, no cancel of one that runs, "
    "no limit a host; with 8 workers a batch is not serial",
)


def drain(work: Work) -> dict[int, str]:
    from huey import SqliteHuey

    huey = SqliteHuey(filename=str(work.folder / "huey.db"))

    @huey.task()
    def fetch(number: int) -> str:
        return work.fetch(number)

    def consume() -> None:
        while (task := huey.dequeue()) is not None:
            huey.execute(task)

    work.begin()
    handles: dict[int, Any] = {}
    for batch in work.batches:
        with work.submitting():
            for number in batch:
                handles[number] = fetch(number)
    threads = [threading.Thread(target=consume) for _ in range(work.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work.finished()
    first = [handles[number].id for number in work.batches[0]]
    work.time_look(lambda: [huey.storage.has_data_for_key(key) for key in first])
    return {number: handle.get(preserve=True) for number, handle in handles.items()}


if __name__ == "__main__":
    run(drain)
