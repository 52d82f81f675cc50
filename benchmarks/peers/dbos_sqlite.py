"""DBOS on SQLite: a workflow for each batch on a queue, a step for each target."""

import sqlite3

from work import AT_ONCE, Peer, Setting, Work, run

PEER = Peer(
    name="DBOS, SQLite",
    packages=("dbos==3.4.0",),
    settings=(
        Setting("as shipped", durable=True, how="rollback journal, a sync at each commit", workers=AT_ONCE),
        Setting(
            "WAL", durable=True, how="the file is made with a write-ahead log beforehand", workers=AT_ONCE
        ),
    ),
    lacks="resumes workflows after a crash, which this engine does not; no limit a host, no byte budget",
    most=320,
)


def drain(work: Work) -> dict[int, str]:
    from dbos import DBOS, WorkflowHandle

    file = work.folder / "dbos.sqlite"
    if work.setting == "WAL":
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{file}",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )

    @DBOS.step()
    def fetch(number: int) -> str:
        return work.fetch(number)

    @DBOS.workflow()
    def batch_of(numbers: list[int]) -> list[int]:
        for number in numbers:
            fetch(number)
        return numbers

    DBOS.launch()
    DBOS.register_queue("batches", global_concurrency=work.workers, polling_interval_sec=0.05)
    work.begin()
    handles: list[WorkflowHandle[list[int]]] = []
    for batch in work.batches:
        with work.submitting():
            handles.append(DBOS.enqueue_workflow("batches", batch_of, batch))
    for handle in handles:
        handle.get_result(polling_interval_sec=0.05)
    work.finished()
    first = handles[0].workflow_id
    work.time_look(lambda: DBOS.list_workflow_steps(first, load_output=False))
    found = {}
    for batch, handle in zip(work.batches, handles, strict=True):
        steps = DBOS.list_workflow_steps(handle.workflow_id)
        found |= {number: step["output"] for number, step in zip(batch, steps, strict=True)}
    DBOS.destroy()
    return found


if __name__ == "__main__":
    run(drain)
