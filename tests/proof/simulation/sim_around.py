"""What goes on around the runner: interactive visitors, hosts that are held, clocks that jump, ends.

Next room: `sim_gate.py`, which watches the gate that all of them share.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from sim_gate import Waiter, host_of
from sim_plan import Action
from sim_world import World

from sift_batch import RetryLater


async def leave(action: Action, scope: trio.CancelScope) -> None:
    """Cancel a scope when whoever is in it has had enough; they may never have."""
    if "seconds" in action.leave:
        await trio.sleep(action.leave["seconds"])
    elif "turns" in action.leave:
        for _ in range(action.leave["turns"]):
            await trio.lowlevel.checkpoint()
    else:
        return
    scope.cancel()


class Surroundings:
    """Everybody who does not call the runner."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._watch = world.watch

    async def act(self, action: Action) -> None:
        """Do one action now."""
        await getattr(self, f"_{action.what}")(action)

    async def _slot(self, action: Action) -> None:
        gates, host = self._world.gates, host_of(action.args["url"])
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(leave, action, scope)
                await self._visit(action, gates, host)
                nursery.cancel_scope.cancel()

    async def _visit(self, action: Action, gates: Any, host: str) -> None:
        args = action.args
        self._watch.count("visits")
        try:
            await self._in_slot(gates, host, args["patience"], args["seconds"])
        except RetryLater as exc:
            self._watch.say(action.who, f"finds no room at {host}: {exc.reason}")
            if args["ready"] == "no" or exc.ready is None:
                return
            await self._until_told(action, gates, host, exc.ready)

    async def _until_told(
        self, action: Action, gates: Any, host: str, ready: Callable[[], Awaitable[object]]
    ) -> None:
        waiter = Waiter(host, trio.current_time())
        gates.interactive.append(waiter)
        try:
            await ready()
        finally:
            gates.interactive.remove(waiter)
        if action.args["ready"] == "come":
            try:
                await self._in_slot(gates, host, 0, action.args["seconds"])
            except RetryLater:
                self._watch.say(action.who, f"was told of {host}, and finds no room")
            except trio.Cancelled:
                # Told, and called away before they came: the slot is kept for them for a while.
                gates.promised_until = trio.current_time() + 1.0
                raise
        else:
            gates.promised_until = trio.current_time() + 1.0

    async def _in_slot(self, gates: Any, host: str, patience: float, seconds: float) -> None:
        now = trio.current_time()
        waiter = Waiter(host, now) if patience else None
        if waiter is not None:
            gates.interactive.append(waiter)
        entered = False
        slot = gates.gate.slot(f"https://{host}/", patience=math.inf if patience == math.inf else patience)
        try:
            async with slot:
                if waiter is not None:
                    gates.interactive.remove(waiter)
                    waiter = None
                entered = True
                gates.enter(host, batch=False, since=now)
                call = (
                    None if gates.dead else self._world.history.invoke("user", "slot", host=host, batch=False)
                )
                try:
                    await trio.sleep(seconds)
                finally:
                    gates.leave(host)
                    if call is not None and not gates.dead:
                        self._world.history.ok(call)
        finally:
            if waiter is not None:
                gates.interactive.remove(waiter)
            if not (entered or gates.dead) and trio.current_time() > now + patience + 1e-6:
                self._watch.wrong(
                    "gate.patience", f"a patience of {patience} became {trio.current_time() - now}"
                )

    async def _hold(self, action: Action) -> None:
        host = host_of(action.args["url"])
        self._watch.say("host", f"{host} is held for {action.args['seconds']} s")
        self._world.gates.hold(host, action.args["seconds"])
        self._world.gates.gate.hold(action.args["url"], action.args["seconds"])

    async def _jump(self, action: Action) -> None:
        self._watch.say("clock", f"jumps by {action.args['seconds']} s")
        self._world.clock.jump(action.args["seconds"])
        self._world.history.note("clock", wall=self._world.wall(), jump=action.args["seconds"])

    async def _end(self, action: Action) -> None:
        if "turns" in action.args or "steps" in action.args:
            self._world.armed.append(dict(action.args))
        else:
            self._world.end_life(action.args["how"], "at once", action.args["down"])
