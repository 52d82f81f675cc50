"""SAQ on a Redis server of its own: a job for each target."""

from typing import Any

from redis_server import SETTINGS
from work import Peer, Work, run

PEER = Peer(
    name="SAQ, Redis",
    packages=("saq[redis,hiredis]==0.26.4", "typing_extensions"),
    settings=SETTINGS,
    lacks="a server beside the application; no batches: a batch is not serial; results expire; "
    "no limit a host",
    server="redis",
)


def drain(work: Work) -> dict[int, str]:
    import asyncio

    from saq import Job, Queue, Worker

    async def fetch(_: Any, *, number: int) -> str:
        return work.fetch(number)

    async def main() -> dict[int, str]:
        queue = Queue.from_url(work.server)
        await queue.connect()
        processed, over = 0, asyncio.Event()

        async def count(_: Any) -> None:
            nonlocal processed
            processed += 1
            if processed == work.targets:
                over.set()

        worker = Worker(queue, [("fetch", fetch)], concurrency=work.workers, after_process=count)
        swept, sweep = asyncio.Event(), queue.sweep

        async def first_sweep(*arguments: Any) -> Any:
            found = await sweep(*arguments)
            swept.set()
            return found

        queue.sweep = first_sweep
        # Started first: its first sweep takes a job that is just being begun for a stuck one, and aborts it.
        running = asyncio.create_task(worker.start())
        await swept.wait()
        work.begin()
        keys = {}
        for batch in work.batches:
            with work.submitting():
                for number in batch:
                    job = await queue.enqueue(Job("fetch", kwargs={"number": number}, ttl=3_600))
                    assert job is not None
                    keys[number] = job.key
        await over.wait()
        work.finished()
        first = [keys[number] for number in work.batches[0]]
        await work.time_look_async(lambda: queue.jobs(first))
        jobs = await queue.jobs(list(keys.values()))
        found = {number: job.result for number, job in zip(keys, jobs, strict=True) if job is not None}
        await worker.stop()
        await running
        await queue.disconnect()
        return found

    return asyncio.run(main())


if __name__ == "__main__":
    run(drain)
