"""Who gets a slot next? `Plan.decide` answers for all who wait, in plain code without an `await`.

Claims stand in two lines for each host, interactive and batch. The *front* of a class has the first
claim of each host that has room, so a decision never meets those who wait for a busy host: they hold
no token and stand in nobody's way.

One order covers the rule of `batch_wait`. An interactive claim stands at the time it came, a batch
claim at the time of its first refusal plus `batch_wait`. That is later than everybody who came before
then, so interactive claims overtake it until its time has come, and none does from then on.

A batch target that waits outside a slot is *told* when one is free for it. The slot is then *promised*
to it for a second: no other batch claim takes it, but an interactive one that stands before it may.

This room knows no task and no clock: the time is passed in. The next room, `sleepers`, wakes them.
"""

import itertools
import math
from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Final

import trio
from trio.lowlevel import enable_ki_protection

from .claims import EVERYBODY, Claim, Host, Line, Order, Stage

PROMISE: Final = 1.0
"""Seconds for which a slot is kept for the target that was told of it."""
_REMEMBERED: Final = 1_000
"""How many targets of one host keep their place through a hold; it bounds the memory of a long one."""


class Plan:
    """All claims of one gate. Each method is one step that nothing can cut in half.

    Between two steps no claim waits that could have a slot, as of the time of the last `decide`.
    """

    def __init__(self, *, total: int, per_host: int, batch_wait: float) -> None:
        self.limiter = trio.CapacityLimiter(total)
        self.hosts: dict[str, Host] = {}
        # Limiters of hosts that were forgotten: making one is the dearest part of a slot.
        self._spare: list[trio.CapacityLimiter] = []
        # Interactive and batch: how many claims stand in line, and of each host with room the first.
        self.waiting = [0, 0]
        self._fronts = (Line(), Line())
        # Told targets, the one whose promise ends first in front.
        self._promises: dict[Hashable, Claim] = {}
        # When to look again at each watched host.
        self._calendar: list[tuple[float, int, Host]] = []
        self._numbers = itertools.count()
        self._per_host = per_host
        self._batch_wait = batch_wait

    @property
    def awaited(self) -> bool:
        """Whether anybody waits: only then can a decision give something to somebody."""
        return bool(self.waiting[0] or self.waiting[1])

    @enable_ki_protection
    def take_at_once(self, key: str, now: float, *, batch: bool) -> Claim | None:
        """Return a claim in its slot, by the short way that most can take.

        Whoever waits could not have this slot, or they would have it: only promises, places that a
        hold kept, and a time that has come need the long way.
        """
        if self._promises or (self._calendar and self._calendar[0][0] <= now):
            return None
        host = self._host(key)
        if not host.free or host.refused or not self.limiter.available_tokens:
            self._forget_if_idle(host)
            return None
        claim = Claim(host, None, EVERYBODY, batch=batch)
        self._take(claim)
        return claim

    @enable_ki_protection
    def arrive(self, key: str, name: Hashable, now: float, *, batch: bool) -> Claim:
        """Return a claim that stands in line, or is in its slot already if that was promised to it.

        A batch target keeps the place that it had when it was told, or sent away by a hold.
        """
        self._pass_time(now)
        host = self._host(key)
        promise = self._promises.get((key, name, batch))
        if promise is None:
            order = (host.refused.get(name) if batch else None) or self._new_order(now, batch=batch)
            claim = Claim(host, name, order, batch=batch)
        else:
            claim = Claim(host, name, promise.order, batch=batch)
            self._end_promise(promise)
            # Several targets can have been told, and an interactive one taken a slot since: the
            # oldest of them have what is left.
            if host.free > host.promised_before(claim.order) and self._has_room(claim.order):
                self._take(claim)
                self._look_at(host)
                return claim
        self._join(claim)
        return claim

    @enable_ki_protection
    def arrive_to_be_told(self, key: str, name: Hashable, order: Order, *, batch: bool) -> Claim:
        """Return a claim that stands in line, at the place of an earlier refusal, to be told."""
        claim = Claim(self._host(key), name, order, batch=batch, tell=True)
        self._join(claim)
        return claim

    @enable_ki_protection
    def leave(self, claim: Claim) -> None:
        """Take back whatever `claim` has: its place in line, its slot or its promise."""
        if claim.stage is Stage.GONE:
            return  # its host may be gone as well, and another entry stand for it
        host, awaited = claim.host, self.awaited
        if claim.stage is Stage.WAITING:
            self._leave_line(claim)
        elif claim.stage is Stage.IN_SLOT:
            self.limiter.release_on_behalf_of(claim)
            host.limiter.release_on_behalf_of(claim)
        elif claim.stage is Stage.PROMISED:
            self._end_promise(claim)
        claim.stage = Stage.GONE
        if awaited:
            self._look_at(host)
        else:
            self._forget_if_idle(host)

    @enable_ki_protection
    def recall_if_held(self, claim: Claim) -> None:
        """Put a claim back in line whose host was held between its grant and now."""
        if claim.stage is Stage.IN_SLOT and claim.host.held:
            self.limiter.release_on_behalf_of(claim)
            claim.host.limiter.release_on_behalf_of(claim)
            self._join(claim)

    @enable_ki_protection
    def hold(self, key: str, until: float, now: float) -> None:
        """Give no slot of this host before `until`, or the end of a longer hold."""
        self._pass_time(now)
        host = self._host(key)
        host.held_until = max(host.held_until, until)
        if not host.held:
            host.held = True
            self._watch(host, host.held_until)
        self._look_at(host)

    @enable_ki_protection
    def remember(self, claim: Claim) -> None:
        """Let a batch target that a hold sends away keep its place until shortly after the hold."""
        refused = claim.host.refused
        if claim.batch and len(refused) < _REMEMBERED:
            refused[claim.name] = claim.order

    @enable_ki_protection
    def decide(self, now: float) -> list[Claim]:
        """Give out every slot and every promise that can be given now; return who got one."""
        self._pass_time(now)
        granted: list[Claim] = []
        while (claim := self._next()) is not None:
            self._leave_line(claim)
            if claim.tell:
                self._promise(claim, now)
            else:
                self._take(claim)
            self._look_at(claim.host)
            granted.append(claim)
        return granted

    def next_change(self) -> float:
        """Return when time alone could let somebody in; infinity if only an event can."""
        hold = self._calendar[0][0] if self._calendar else math.inf
        promise = next(iter(self._promises.values())).until if self._promises else math.inf
        return min(hold, promise)

    def held(self, now: float) -> int:
        """Return how many hosts are held. Safe in any thread."""
        return len({host for _, _, host in tuple(self._calendar) if host.held_until > now})

    # What follows is part of a step; it may leave a host without reason to stay.

    def _host(self, key: str) -> Host:
        host = self.hosts.get(key)
        if host is None:
            limiter = self._spare.pop() if self._spare else trio.CapacityLimiter(self._per_host)
            host = self.hosts[key] = Host(key, limiter)
        return host

    def _forget_if_idle(self, host: Host) -> None:
        if host.idle:
            del self.hosts[host.key]
            if len(self._spare) < self.limiter.total_tokens:
                self._spare.append(host.limiter)

    def _new_order(self, now: float, *, batch: bool) -> Order:
        return (now + self._batch_wait if batch else now, now, next(self._numbers))

    def _next(self) -> Claim | None:
        """Return the claim that is to be granted next, if any can be."""
        interactive, batch = (front[0] if front else None for front in self._fronts)
        if interactive is not None and not self._has_room(interactive.order):
            interactive = None
        if batch is not None and not self._has_room(EVERYBODY):
            batch = None
        if interactive is None or (batch is not None and batch.order < interactive.order):
            return batch
        return interactive

    def _has_room(self, order: Order) -> bool:
        """Return whether a slot is free in all for a claim that yields to promises before `order`.

        A promise of a host that has no room (an interactive claim took it) keeps nothing from others.
        """
        free = int(self.limiter.available_tokens)
        if not free or free > len(self._promises):
            return free > 0
        hosts = {promise.host for promise in self._promises.values()}
        return free > sum(min(host.promised_before(order), host.free) for host in hosts)

    def _join(self, claim: Claim) -> None:
        claim.stage = Stage.WAITING
        claim.host.lines[claim.batch].join(claim)
        self.waiting[claim.batch] += 1
        self._look_at(claim.host)

    def _leave_line(self, claim: Claim) -> None:
        claim.host.lines[claim.batch].leave(claim)
        self.waiting[claim.batch] -= 1

    def _take(self, claim: Claim) -> None:
        host = claim.host
        self.limiter.acquire_on_behalf_of_nowait(claim)
        host.limiter.acquire_on_behalf_of_nowait(claim)
        host.refused.pop(claim.name, None)
        claim.stage = Stage.IN_SLOT

    def _promise(self, claim: Claim, now: float) -> None:
        key = (claim.host.key, claim.name, claim.batch)
        if (earlier := self._promises.get(key)) is not None:
            self._end_promise(earlier)
        claim.until = now + PROMISE
        claim.stage = Stage.PROMISED
        claim.host.promises.append(claim)
        self._promises[key] = claim

    def _end_promise(self, claim: Claim) -> None:
        del self._promises[claim.host.key, claim.name, claim.batch]
        claim.host.promises.remove(claim)
        claim.stage = Stage.GONE

    def _watch(self, host: Host, until: float) -> None:
        host.watched += 1
        heappush(self._calendar, (until, next(self._numbers), host))

    def _pass_time(self, now: float) -> None:
        """End the promises and the holds whose time is over."""
        while self._promises:
            promise = next(iter(self._promises.values()))
            if promise.until > now:
                break
            self._end_promise(promise)
            self._look_at(promise.host)
        while self._calendar and self._calendar[0][0] <= now:
            host = heappop(self._calendar)[2]
            host.watched -= 1
            host.held = host.held_until > now
            if not host.watched:
                self._watch_on(host, now)
            self._look_at(host)

    def _watch_on(self, host: Host, now: float) -> None:
        if host.held:  # the hold has become longer since
            self._watch(host, host.held_until)
        elif host.refused and host.held_until + PROMISE > now:
            self._watch(host, host.held_until + PROMISE)
        else:
            host.refused.clear()

    def _look_at(self, host: Host) -> None:
        """Put on the fronts who stands first at this host now, and forget the host if it is idle."""
        for front, line, batch in zip(self._fronts, host.lines, (0, 1), strict=True):
            first = line[0] if line and host.has_room(line[0]) else None
            shown = host.first[batch]
            if shown is not first:
                if shown is not None:
                    front.leave(shown)
                if first is not None:
                    front.join(first)
                host.first[batch] = first
        self._forget_if_idle(host)
