"""This engine: a job for each batch, through the public surface."""

from typing import Any

from work import AT_ONCE, Peer, Setting, Work, run

PEER = Peer(
    name="sift-batch",
    packages=(),
    settings=(
        Setting("as shipped, 8 jobs at once", durable=True, how='durability="full"', workers=AT_ONCE),
        Setting("as shipped, 1 job at a time", durable=True, how='durability="full"', workers=1),
        Setting("normal", durable=False, how='durability="normal"', workers=AT_ONCE),
    ),
    lacks="one process owns a store; a job is not resumed after a restart, what was stored stays readable",
    own_environment=False,
)


def drain(work: Work) -> dict[int, str]:
    import trio

    import sift_batch

    async def fetch(_: Any, target: sift_batch.Target) -> sift_batch.Result:
        await trio.lowlevel.checkpoint()
        return sift_batch.Result(work.fetch(work.number(target.url)))

    async def main() -> dict[int, str]:
        config = sift_batch.Config(
            jobs_total=10**6,
            jobs_per_caller=10**6,
            workers=work.workers,
            workers_limit=work.workers,
            max_bytes=2**40,
        )
        durability: Any = "normal" if work.setting == "normal" else "full"
        caller = sift_batch.Caller("bench")
        async with (
            sift_batch.open_store(work.folder / "jobs", durability=durability) as store,
            sift_batch.open_runner(store, fetch, config) as runner,
        ):
            work.begin()
            ids = []
            for batch in work.batches:
                with work.submitting():
                    targets = [sift_batch.Target(work.url(number)) for number in batch]
                    ids.append((await runner.submit(caller, targets)).id)
            await runner.drain()
            work.finished()
            await work.time_look_async(lambda: runner.status(ids[0], results=False))
            found = {}
            for job_id in ids:
                status = await runner.status(job_id)
                assert status is not None
                for target in status.targets:
                    assert target.result is not None
                    found[work.number(target.url)] = target.result.content
            return found

    return trio.run(main)


if __name__ == "__main__":
    run(drain)
