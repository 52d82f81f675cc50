"""APScheduler 4 (a pre-release) on SQLite: a job for each target, results kept for a while.

Its data store needs asyncio. Reading a result removes it, so a status can't be read twice.
"""

import sqlite3

from work import AT_ONCE, Peer, Setting, Work, run

PEER = Peer(
    name="APScheduler 4.0.0a6, SQLite",
    packages=("apscheduler==4.0.0a6", "sqlalchemy[asyncio]>=2", "aiosqlite>=0.22", "sniffio"),
    settings=(
        Setting("as shipped", durable=True, how="rollback journal, a sync at each commit", workers=AT_ONCE),
        Setting(
            "WAL", durable=True, how="the file is made with a write-ahead log beforehand", workers=AT_ONCE
        ),
    ),
    lacks="no batches: a batch is not serial; a result can be read once; no limit a host, no byte budget",
    most=128,
)

_work: list[Work] = []


async def fetch(number: int) -> str:
    """A job's function must be found by its name."""
    return _work[0].fetch(number)


def drain(work: Work) -> dict[int, str]:
    import asyncio

    from apscheduler import AsyncScheduler, JobReleased
    from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
    from sqlalchemy.ext.asyncio import create_async_engine

    file = work.folder / "jobs.sqlite"
    if work.setting == "WAL":
        connection = sqlite3.connect(file)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    _work[:] = [work]

    async def main() -> dict[int, str]:
        engine = create_async_engine(f"sqlite+aiosqlite:///{file}")
        store = SQLAlchemyDataStore(engine)
        async with AsyncScheduler(store, max_concurrent_jobs=work.workers) as scheduler:
            await scheduler.configure_task("fetch", func=fetch, max_running_jobs=work.workers)
            released, over = 0, asyncio.Event()

            async def count(_: JobReleased) -> None:
                nonlocal released
                released += 1
                if released == work.targets:
                    over.set()

            scheduler.subscribe(count, {JobReleased})
            work.begin()
            ids = {}
            for batch in work.batches:
                with work.submitting():
                    for number in batch:
                        ids[number] = await scheduler.add_job(
                            "fetch", args=[number], result_expiration_time=3_600
                        )
            await scheduler.start_in_background()
            await over.wait()
            work.finished()
            results = {number: await scheduler.get_job_result(job_id) for number, job_id in ids.items()}
        await engine.dispose()
        return {number: result.return_value for number, result in results.items() if result is not None}

    return asyncio.run(main())


if __name__ == "__main__":
    run(drain)
