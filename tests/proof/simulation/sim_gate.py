"""Is the gate polite and fair? Who is in a slot, who waits, and who should not have been first.

It counts for itself, by the host in the URL, and asks the gate only for its own count. A batch fetch that
came in while somebody interactive waited for a slot that was free is looked at again when everything has
come to rest in that instant: the other may have been told already and not have run yet. Next room:
`sim_hosts.py`, which is what goes through the gate.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import trio
from sim_watch import Watch

_MOMENT: Final = 1e-6
PROMISE: Final = 1.0


def host_of(url: str) -> str:
    """Return the host of a URL of a plan."""
    return url.split("/")[2]


@dataclass(slots=True, eq=False)
class Waiter:
    """Somebody interactive who waits; `rested` once everything stood still while they did."""

    host: str
    since: float
    rested: bool = False


class GateWatch:
    """What goes on at one gate, seen from outside."""

    def __init__(self, gate: Any, watch: Watch, *, total: int, per_host: int, batch_wait: float) -> None:
        self.gate = gate
        self.watch = watch
        self.total, self.per_host, self.batch_wait = total, per_host, batch_wait
        # Its process was killed: who is left in it counts no more.
        self.dead = False
        self.inside: dict[str, int] = {}
        self.interactive: list[Waiter] = []
        # Batch targets that the gate has sent away, by job and index: their host, and when at first.
        self.batch: dict[tuple[str, int], tuple[str, float]] = {}
        self.held_until: dict[str, float] = {}
        # Until when a slot may be kept for somebody who was told of it and stays away.
        self.promised_until = -math.inf
        self._doubts: list[tuple[Waiter, str, float]] = []

    @property
    def in_use(self) -> int:
        """How many are in a slot."""
        return sum(self.inside.values())

    def held(self, host: str) -> bool:
        """Whether a host is held."""
        return self.held_until.get(host, -math.inf) - _MOMENT > trio.current_time()

    def hold(self, host: str, seconds: float) -> None:
        """Note a hold."""
        self.held_until[host] = max(self.held_until.get(host, -math.inf), trio.current_time() + seconds)

    def enter(self, host: str, *, batch: bool, since: float) -> None:
        """Note that somebody is in a slot, who was first refused at `since`."""
        if self.dead:
            return
        if batch:
            self._doubt(host, since)
        self._doubts = [doubt for doubt in self._doubts if doubt[0].host != host or doubt[1] == host]
        self.inside[host] = self.inside.get(host, 0) + 1
        if self.in_use > self.total:
            self.watch.wrong("gate.total", f"{self.in_use} are in a slot, and there are {self.total}")
        if self.inside[host] > self.per_host:
            self.watch.wrong("gate.host", f"{self.inside[host]} are in a slot of {host}, not {self.per_host}")
        if self.held(host):
            self.watch.wrong("gate.held", f"a slot of {host} was given although it is held")

    def leave(self, host: str) -> None:
        """Note that somebody has left a slot. The slot itself is given back in the same step."""
        if not self.dead:
            self.inside[host] -= 1

    def _room(self, host: str) -> bool:
        return self.inside.get(host, 0) < self.per_host and not self.held(host)

    def _doubt(self, host: str, since: float) -> None:
        for waiter in self.interactive:
            earlier = since + self.batch_wait <= waiter.since + _MOMENT
            if waiter.rested and not earlier and self._room(waiter.host):
                self._doubts.append((waiter, host, since))

    def _old_batch(self, waiter: Waiter) -> bool:
        """Whether a batch target may stand before somebody interactive at the same host."""
        return any(
            host == waiter.host and since + self.batch_wait <= waiter.since + _MOMENT
            for host, since in self.batch.values()
        )

    def rest(self, loose: set[str] | None) -> None:
        """Look at everything while nothing moves. Jobs in `loose` may not come; None: no job may."""
        now = trio.current_time()
        borrowed = self.gate._plan.limiter.borrowed_tokens
        if borrowed != self.in_use:
            self.watch.wrong("gate.count", f"{self.in_use} are in a slot, and the gate counts {borrowed}")
        promised = now <= self.promised_until + _MOMENT
        for waiter, host, since in self._doubts:
            if waiter in self.interactive and not promised and not self._old_batch(waiter):
                self.watch.wrong(
                    "gate.first",
                    f"a batch fetch of {host}, waiting since {since}, went before somebody interactive who "
                    f"waits for {waiter.host} since {waiter.since}",
                )
        self._doubts = []
        if not promised and self.in_use < self.total:
            self._nobody_forgotten(loose)
        for waiter in self.interactive:
            waiter.rested = True

    def _nobody_forgotten(self, loose: set[str] | None) -> None:
        for waiter in self.interactive:
            if self._room(waiter.host):
                self.watch.wrong("gate.idle", f"somebody waits for {waiter.host}, and a slot is free")
        for (job, idx), (host, _) in self.batch.items():
            if loose is not None and job not in loose and self._room(host):
                text = f"target {idx} of {self.watch.label(job)} waits for {host}, and a slot is free"
                self.watch.wrong("gate.idle", text)

    def end(self) -> None:
        """Look at everything once all is over."""
        statistics = self.gate.statistics()
        if statistics.in_use or statistics.waiting or self.gate._plan._promises:
            self.watch.wrong("gate.left", f"the gate is not empty at the end: {statistics}")
        if not statistics.held and any(not host.watched for host in self.gate._plan.hosts.values()):
            self.watch.wrong("gate.left", "the gate remembers a host without a reason")
