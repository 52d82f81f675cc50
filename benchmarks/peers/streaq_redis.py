"""streaq on a Redis server of its own: a task for each target."""

from redis_server import SETTINGS
from work import Peer, Work, run

PEER = Peer(
    name="streaq, Redis",
    packages=("streaq==7.2.0", "trio>=0.30", "uvloop"),
    settings=SETTINGS,
    lacks="a server beside the application; no batches: a batch is not serial; results expire; "
    "no limit a host",
    server="redis",
)


def drain(work: Work) -> dict[int, str]:
    import anyio
    from streaq import Worker

    worker = Worker(redis_url=work.server, concurrency=work.workers, handle_signals=False)

    @worker.task(ttl=3_600)
    async def fetch(number: int) -> str:
        return work.fetch(number)

    async def main() -> dict[int, str]:
        async with worker:
            work.begin()
            tasks = {}
            for batch in work.batches:
                with work.submitting():
                    made = [fetch.enqueue(number) for number in batch]
                    await worker.enqueue_many(made)
                    tasks.update(zip(batch, made, strict=True))
        # It ends when there is nothing left to do.
        worker.burst = True
        await worker.run_async()
        work.finished()

        async def look() -> None:
            for number in work.batches[0]:
                await tasks[number].status()

        found: dict[int, str] = {}

        async def read_back(number: int) -> None:
            found[number] = (await tasks[number].result()).result

        async with worker:
            await work.time_look_async(look)
            for batch in work.batches:
                # A result takes 50 ms of waiting: together, or reading back is most of the run.
                async with anyio.create_task_group() as group:
                    for number in batch:
                        group.start_soon(read_back, number)
            return found

    return anyio.run(main, backend="asyncio", backend_options={"use_uvloop": True})


if __name__ == "__main__":
    run(drain)
