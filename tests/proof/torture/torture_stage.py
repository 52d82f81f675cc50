"""The runner that is tortured, those who use it, and who strikes it.

The stage of one round's first life: the play goes on in the runner's block, behind a store and a fetch
that fail as the plan says, while the strikes count steps. Next: `torture_round.py`, which judges.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import trio
from torture_book import Book
from torture_check import check_rows
from torture_fetch import TornFetch
from torture_plan import Plan
from torture_play import play, settings
from torture_readers import Readers
from torture_store import TornStore
from torture_strike import Scopes, Strike, interrupt

from sift_batch import Gate, Runner, Store, StoreError, open_runner

QUIET: Final = logging.getLogger("torture")
"""Where the runner's log goes: nowhere."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


Rows = Callable[[], AbstractContextManager[Any]]
"""Opens a connection that looks at the rows at this moment; None if there is no store yet."""


class Stage:
    """The runner of the first life, and those who use it."""

    def __init__(
        self, plan: Plan, book: Book, scopes: Scopes, gate: Gate, fetch: TornFetch, rows: Rows
    ) -> None:
        self.runner: Runner | None = None
        self.desk: Readers | None = None
        self.torn: TornStore | None = None
        # Set by a strike: a job that somebody cancels at once.
        self.wanted = trio.Event()
        self.victim = ""
        self._plan, self._book, self._scopes, self._gate = plan, book, scopes, gate
        self._fetch, self._rows = fetch, rows

    async def live(self, store: Store) -> None:
        """Open the runner, and play."""
        plan, book = self._plan, self._book
        self.torn = TornStore(store, dict(plan.store), book)
        torn: Any = self.torn
        async with open_runner(
            torn,
            self._fetch.behind(self._gate),
            settings(plan.grace),
            hooks=book.told,
            now=book.clock,
            log=QUIET,
        ) as self.runner:
            book.history.note("opened", life=1, restarted=[])
            self.desk = Readers(self.runner, book, self._scopes, self._gate, lossy=plan.lossy)
            try:
                with self._scopes.open("body"):
                    await self._play(self.desk)
            finally:
                book.closing = book.tick()
                book.history.note("closing", life=1)
        book.history.note("closed", life=1)

    async def _play(self, desk: Readers) -> None:
        if not any(what.startswith("job ") for what, _ in self._plan.strikes):
            await play(desk, self._fetch, self._look)
            return
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._cancel_victim, desk)
            await play(desk, self._fetch, self._look)
            nursery.cancel_scope.cancel()

    async def _cancel_victim(self, desk: Readers) -> None:
        await self.wanted.wait()
        job_id, book = desk.ids[self.victim], self._book
        # No caller of the play: the answer goes into the book at once.
        with contextlib.suppress(StoreError, trio.ClosedResourceError):
            assert self.runner is not None
            number = book.history.invoke("striker", "cancel", job=job_id, caller=None)
            try:
                done = await self.runner.cancel(job_id)
            except BaseException:
                book.history.unknown(number)
                raise
            book.history.ok(number, result=done)
            if done:
                book.cancelled[job_id] = book.tick()

    def _look(self, settled: bool) -> None:
        with self._rows() as connection:
            if connection is not None:
                check_rows(self._book, connection, settled=settled)


@contextmanager
def striking(plan: Plan, scopes: Scopes, stage: Stage, strikes: list[Strike]) -> Iterator[None]:
    """Let the plan's strikes count the steps inside the block; they are put into `strikes`."""
    for what, number in plan.strikes:
        strikes.append(_strike(what, number, scopes, stage))
        trio.lowlevel.add_instrument(strikes[-1])
    try:
        yield
    finally:
        for strike in strikes:
            trio.lowlevel.remove_instrument(strike)


def _strike(what: str, number: int, scopes: Scopes, stage: Stage) -> Strike:
    if what == "signal":
        return Strike(number, lambda: scopes.any("runner"), interrupt)
    if what.startswith("job "):
        name = what.removeprefix("job ")

        def want() -> None:
            stage.victim = name
            stage.wanted.set()

        return Strike(number, lambda: stage.desk is not None and name in stage.desk.ids, want)
    return Strike(number, lambda: scopes.any(what), lambda: scopes.cancel(what))
