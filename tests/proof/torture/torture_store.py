"""What may a store do to the engine? A store in which the Nth call goes wrong in a way that is chosen.

It stands round a real store and hands every operation of the protocol on, so a new operation is
tortured without a word here. It also writes into the book what the real store has done: what it says
is the truth, whatever the engine was told.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from torture_book import Book

from sift_batch import StoreError
from sift_batch._model.store import Created, Outcome, Reads, Recorded, Removed, Restarted, Store

OPERATIONS: Final = tuple(
    name
    for name in {**vars(Reads), **vars(Store)}
    if not name.startswith("_") and callable(getattr(Store, name))
)
SLOW_SECONDS: Final = 45.0


class Panic(BaseException):
    """What a compiled extension raises: no `Exception`."""


async def stray_cancelled() -> BaseException:
    """Return a `Cancelled` whose scope is gone: nobody would take it."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as exc:  # noqa: ASYNC103 - kept on purpose
            return exc  # noqa: ASYNC104
    raise AssertionError("a cancelled scope did not cancel")


class Sabotage:
    """Raises, or waits, in the chosen way; `after` says whether the step has been done by then."""

    async def before(self, kind: str, operation: str) -> None:
        """Do what happens instead of the step, or before it."""
        match kind:
            case "refused":
                await trio.lowlevel.checkpoint()
                raise StoreError(f"{operation} was refused")
            case "refused at once":
                raise StoreError(f"{operation} was refused without a checkpoint")
            case "slow":
                await trio.sleep(SLOW_SECONDS)
            case "foreign":
                raise ConnectionResetError("foreign")
            case "odd":
                raise LookupError("a store must not raise this")
            case "panic":
                raise Panic("compiled")
            case "group":
                raise BaseExceptionGroup("nursery", [StoreError("one"), Panic("two")])
            case "stray":
                raise await stray_cancelled()
            case "interrupt":
                raise KeyboardInterrupt
            case "interrupt group":
                raise BaseExceptionGroup("nursery", [ValueError("one"), KeyboardInterrupt()])
            case "exit":
                raise SystemExit(3)

    async def after(self, kind: str, operation: str) -> None:
        """Do what happens to the answer of a step that is done."""
        match kind:
            case "late":
                # It is done: a cancellation must not hide that.
                with trio.CancelScope(shield=True):
                    await trio.sleep(SLOW_SECONDS)
            case "lost":
                raise StoreError(f"the answer of {operation} was lost")
            case "lost foreign":
                raise ConnectionResetError("foreign")


KINDS: Final = (
    "refused", "refused at once", "slow", "late", "foreign", "odd", "panic", "group", "stray",
    "interrupt", "interrupt group", "exit", "lost", "lost foreign",
)  # fmt: skip


class TornStore:
    """A `Store` whose calls go wrong at the numbers of `faults`; calls count from 1 over all operations."""

    def __init__(self, store: Store, faults: Mapping[int, str], book: Book) -> None:
        self._store = store
        self._faults = dict(faults)
        self._book = book
        self._sabotage = Sabotage()
        # Names of all operations asked for, in order, and of those that were struck.
        self.calls: list[str] = []
        self.struck: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name not in OPERATIONS:
            raise AttributeError(name)

        async def operation(*args: Any, **options: Any) -> Any:
            return await self._call(name, args, options)

        return operation

    async def _call(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        self.calls.append(name)
        kind = self._faults.pop(len(self.calls), "")
        if kind:
            self.struck.append(name)
            await self._sabotage.before(kind, name)
        answer = await getattr(self._store, name)(*args, **options)
        try:
            self._note(name, args, answer)
        except Exception as exc:  # the engine would take it for the store's
            self._book.find("harness", repr(exc))
        if kind:
            await self._sabotage.after(kind, name)
        return answer

    def _note(self, name: str, args: tuple[Any, ...], answer: Any) -> None:
        """Write down what the real store did."""
        book = self._book
        if isinstance(answer, Created):
            book.made(answer.job.id, answer.job.targets_total)
        elif isinstance(answer, Recorded):
            _, job_id, idx, outcome = args
            assert isinstance(outcome, Outcome)
            book.recorded(job_id, idx, outcome)
        elif isinstance(answer, Removed):
            book.gone(answer.job_id, name)
        elif isinstance(answer, Restarted):
            for job in answer.failed:
                book.restarted.add(job.id)
