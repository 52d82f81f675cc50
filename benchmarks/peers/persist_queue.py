"""persist-queue: its SQLite queue with acknowledgements, and its SQLite dictionary for the results."""

import threading

from work import AT_ONCE, Peer, Setting, Work, run

PEER = Peer(
    name="persist-queue, SQLiteAckQueue and PDict",
    packages=("persist-queue==1.1.0",),
    settings=(
        Setting("as shipped, 1 thread", durable=True, how="WAL; SQLite's default is a sync at each commit"),
        Setting("as shipped, 8 threads", durable=True, how="the same", workers=AT_ONCE),
    ),
    lacks="a queue and a dictionary: no batches, no states, no errors, no cancel, no limits; "
    "with 8 threads a batch is not serial",
)


def drain(work: Work) -> dict[int, str]:
    from persistqueue import Empty, PDict, SQLiteAckQueue

    queue = SQLiteAckQueue(str(work.folder / "queue"), multithreading=True)
    results = PDict(str(work.folder / "results"), "results", multithreading=True)

    def consume() -> None:
        while True:
            try:
                number = queue.get(block=False)
            except Empty:
                return
            results[str(number)] = work.fetch(number)
            queue.ack(number)

    work.begin()
    for batch in work.batches:
        with work.submitting():
            for number in batch:
                queue.put(number)
    threads = [threading.Thread(target=consume) for _ in range(work.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work.finished()
    first = [str(number) for number in work.batches[0]]
    work.time_look(lambda: [number in results for number in first])
    return {number: results[str(number)] for number in range(work.targets)}


if __name__ == "__main__":
    run(drain)
