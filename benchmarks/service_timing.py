"""Can a caller tell by the time that an id is somebody else's? Unknown, another's, malformed: in turn.

For each request that names a job, ids of four kinds are asked for in turn, in random order: ids that never
were, another caller's settled and live jobs, and texts that are no ids. The times of each two kinds are
compared by Mann and Whitney's test: below 0.01 they could be told apart. Of the runs of this benchmark one in
a hundred is so by chance, for each line.
"""

import itertools
import math
import random
import secrets
import statistics
import sys
from collections.abc import Iterator, Sequence

import measure
import service_client as client
from measure import Number
from service_servers import Server, running

POOL = 40
REQUESTS = 100 if "--quick" in sys.argv else 2_000
PATHS = {"a look at a job": "", "its results": "/results"}


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Return how likely two samples of one distribution differ so much: two-sided, for large samples."""
    everything = sorted(itertools.chain(first, second))
    ranks: dict[float, float] = {}
    ties, rank = 0.0, 0
    for value, group in itertools.groupby(everything):
        count = len(list(group))
        ranks[value] = rank + (count + 1) / 2
        ties += count**3 - count
        rank += count
    m, n, total = len(first), len(second), len(everything)
    u = sum(ranks[value] for value in first) - m * (m + 1) / 2
    deviation = math.sqrt(m * n / 12 * (total + 1 - ties / (total * (total - 1))))
    if deviation == 0.0:
        return 1.0
    return math.erfc(max(abs(u - m * n / 2) - 0.5, 0.0) / deviation / math.sqrt(2))


def ids(server: Server) -> dict[str, list[str]]:
    """Return ids of each kind, all of the same length; the jobs are the other caller's."""
    port, other = server.port, server.keys["bob"]
    done = [client.settled(port, other, [f"http://host.example/quick/{n}"]) for n in range(POOL)]
    live = [client.submitted(port, other, [f"http://host.example/wait/{n}"]) for n in range(POOL)]
    length = len(done[0])
    return {
        "unknown": [secrets.token_hex(length)[:length] for _ in range(POOL)],
        "another's, settled": done,
        "another's, live": live,
        "malformed": [("~" + secrets.token_hex(length).upper())[:length] for _ in range(POOL)],
    }


def times(server: Server, kinds: dict[str, list[str]], rest: str) -> dict[str, list[float]]:
    """Return how long each request took, by the kind of its id."""
    key = server.keys["ann"]
    raw = {
        kind: [client.request("GET", f"/v1/batch/{one}{rest}", key) for one in pool]
        for kind, pool in kinds.items()
    }
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    order = list(kinds)
    bodies = set()
    with client.Connection(server.port) as connection:
        for number in range(REQUESTS + POOL):
            random.shuffle(order)
            for kind in order:
                asked = client.timed(connection, raw[kind][number % POOL])
                bodies.add((asked.reply.status, asked.reply.head, asked.reply.body))
                if number >= POOL:  # the first of each are to warm up
                    found[kind].append(asked.seconds)
    if len(bodies) != 1:
        raise RuntimeError(f"there are {len(bodies)} different answers, not one")
    return found


def numbers() -> Iterator[Number]:
    with measure.folder() as folder, running("service", folder=str(folder)) as server:
        kinds = ids(server)
        for name, rest in PATHS.items():
            found = times(server, kinds, rest)
            for first, second in itertools.combinations(kinds, 2):
                likely = p_value(found[first], found[second])
                text = f"{name}: {first} or {second}?"
                yield Number(name=text, values=[likely], unit="p", at_least=0.01)
            medians = [1e6 * statistics.median(one) for one in found.values()]
            yield Number(name=f"{name}: the medians of the four", values=medians, unit="microseconds")


if __name__ == "__main__":
    measure.run(numbers, {})
