"""litequeue: a queue in SQLite; it keeps no results, so they go into a table of ours in the same file."""

from work import Peer, Setting, Work, run

PEER = Peer(
    name="litequeue",
    packages=("litequeue==0.9",),
    settings=(
        Setting("as shipped", durable=False, how="WAL, synchronous=NORMAL"),
        Setting("synchronous=FULL", durable=True, how="set on the queue's connection"),
    ),
    lacks="a queue: no results, no batches, no states; a message that was locked when its process died stays "
    "locked until somebody looks for it",
)


def drain(work: Work) -> dict[int, str]:
    from litequeue import LiteQueue

    queue = LiteQueue(str(work.folder / "queue.db"))
    if work.setting == "synchronous=FULL":
        queue.conn.execute("PRAGMA synchronous = FULL")
    queue.conn.execute("CREATE TABLE result(number INTEGER PRIMARY KEY, content TEXT)")
    work.begin()
    for batch in work.batches:
        with work.submitting():
            for number in batch:
                queue.put(str(number))
    while (message := queue.pop()) is not None:
        number = int(message.data)
        queue.conn.execute("INSERT INTO result VALUES (?, ?)", (number, work.fetch(number)))
        queue.done(message.message_id)
    work.finished()
    look = "SELECT number FROM result WHERE number < ?"
    work.time_look(lambda: queue.conn.execute(look, (len(work.batches[0]),)).fetchall())
    return {row[0]: row[1] for row in queue.conn.execute("SELECT number, content FROM result")}


if __name__ == "__main__":
    run(drain)
