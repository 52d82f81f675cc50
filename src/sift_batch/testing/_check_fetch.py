"""May this fetch be given to a runner? The published suite for an application's own fetch.

A runner copes with any fetch; what is checked here is what a fetch must do for the promises of a batch
to be worth something: one that ignores cancellation holds a worker, one that sleeps instead of raising
`RetryLater` holds a slot, one that keeps state between calls mixes up pages.
What the engine makes of the answers is not checked here.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import trio
from trio.lowlevel import Task
from trio.testing import wait_all_tasks_blocked

from .._model.errors import RetryLater, TargetError
from .._model.values import Attempt, Caller, FetchFunc, Result, Target, attempt
from ._rules import Rule, Rules, hold, present, same

_AT_ONCE: Final = 1.0
_CALLER: Final = Caller("check-fetch")
_TARGETS: Final = (Target("https://a.example/1"), Target("https://a.example/2"), Target("https://b.example/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCase:
    """A fetch to check, and what there is to fetch with it.

    `targets` succeed, with the same content each time. `failing` targets fail for good; `busy` ones
    are refused for now (a host that answers 429, a gate without room). `slow` takes longer than it
    takes all tasks to block: it is cancelled on its way (the first target serves if there is none).
    `idle` says whether everything that a call borrows was given back: connections, slots, files.
    """

    fetch: FetchFunc
    targets: Sequence[Target] = _TARGETS
    failing: Sequence[Target] = ()
    busy: Sequence[Target] = ()
    slow: Target | None = None
    caller: Caller = _CALLER
    idle: Callable[[], bool] | None = None


rule: Final = Rules[FetchCase]()


async def check_fetch(
    factory: Callable[[], AbstractAsyncContextManager[FetchCase | FetchFunc] | FetchCase | FetchFunc],
) -> None:
    """Return if the fetch that `factory` gives keeps every rule of a fetch.

        async def test_my_fetch() -> None:
            @asynccontextmanager
            async def case() -> AsyncIterator[FetchCase]:
                async with my_site() as url, my_fetch() as fetch:
                    yield FetchCase(fetch=fetch, targets=[Target(url)], busy=[Target(url + "/429")])

            await check_fetch(case)

    `factory()` gives a `FetchCase`, or a fetch alone, or an async context manager of either; it is
    called once for each rule. A fetch alone is asked for targets at example hosts. Runs inside a Trio
    run, on any clock. A fetch that shields itself for ever can't be ended by anyone, this suite
    included. Raises `AssertionError` at the first rule that is broken; `FETCH_RULES` has all of them.
    """
    # As the engine does: the fetch may look up which call it is.
    token = attempt.set(Attempt("0" * 32, 0, 1))
    try:
        for item in FETCH_RULES:
            async with _opened(factory) as case:
                await item.run(case)
    finally:
        attempt.reset(token)


@asynccontextmanager
async def _opened(factory: Callable[[], Any]) -> Any:
    made = factory()
    if not hasattr(made, "__aenter__"):
        yield _case(made)
        return
    async with made as given:
        yield _case(given)


def _case(given: FetchCase | FetchFunc) -> FetchCase:
    return given if isinstance(given, FetchCase) else FetchCase(fetch=given)


async def _fetch(case: FetchCase, target: Target) -> Result:
    result: object = await case.fetch(case.caller, target)
    hold(isinstance(result, Result), f"a fetch returns {type(result).__name__} instead of a Result")
    assert isinstance(result, Result)
    return result


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for inner in exc.exceptions:
            yield from _leaves(inner)
    else:
        yield exc


async def _error(case: FetchCase, target: Target) -> list[BaseException]:
    """Return what a call raises, an exception group taken apart; [] if it returns."""
    try:
        await case.fetch(case.caller, target)
    except Exception as exc:
        return list(_leaves(exc))
    return []


@rule("A call for a target that can be fetched returns a Result that JSON can hold.")
async def _storable(case: FetchCase) -> None:
    for target in case.targets:
        result = await _fetch(case, target)
        hold(isinstance(result.content, str), f"content is {type(result.content).__name__}, not str")
        try:
            json.dumps(dict(result.meta), allow_nan=False)
        except (TypeError, ValueError, RecursionError) as exc:
            raise AssertionError(f"JSON can't hold the meta of a result: {type(exc).__name__}") from None


@rule("A call for a target that can't be fetched raises TargetError.")
async def _fails_clearly(case: FetchCase) -> None:
    for target in case.failing:
        leaves = await _error(case, target)
        hold(leaves, "a call for a target that can't be fetched returns")
        for leaf in leaves:
            hold(isinstance(leaf, TargetError), f"it raises {type(leaf).__name__}")
            hold(str(leaf), "it raises a TargetError without a message")


@rule("A call that is busy raises RetryLater at once rather than sleeping.")
async def _retries_later(case: FetchCase) -> None:
    for target in case.busy:
        started = trio.current_time()
        leaves = await _error(case, target)
        taken = trio.current_time() - started
        hold(leaves, "a call for a busy target returns")
        kinds = sorted({type(leaf).__name__ for leaf in leaves})
        hold(all(isinstance(leaf, RetryLater) for leaf in leaves), f"it raises {', '.join(kinds)}")
        hold(taken <= _AT_ONCE, f"it took {taken:g} s to say that it is busy")


@rule("A call in a cancelled scope raises Cancelled.")
async def _checkpoint(case: FetchCase) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await case.fetch(case.caller, case.targets[0])
    hold(scope.cancelled_caught, "a call in a cancelled scope returns")


@rule("A call that is cancelled on its way ends within a second.")
async def _cancellable(case: FetchCase) -> None:
    taken = await _cancelled_after(case)
    hold(taken <= _AT_ONCE, f"it took {taken:g} s to end")


async def _cancelled_after(case: FetchCase) -> float:
    """Cancel one call on its way; return how long it took to end, in seconds."""
    scope = trio.CancelScope()
    ended: list[float] = []

    async def call() -> None:
        with scope:
            await _error(case, case.slow or case.targets[0])
        ended.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        cancelled = trio.current_time()
        scope.cancel()
    return ended[0] - cancelled


@rule("No task is left behind by a call that returned, failed or was cancelled.")
async def _no_tasks(case: FetchCase) -> None:
    # A first call may start what the application keeps for good, such as a pool's own tasks.
    await _every_end(case)
    await wait_all_tasks_blocked()
    before = set(_living())
    await _every_end(case)
    await wait_all_tasks_blocked()
    left = sorted(task.name for task in _living() if task not in before)
    same(left, [], "tasks left behind")


@rule("Everything that a call borrows is given back when it returns, fails or is cancelled.")
async def _gives_back(case: FetchCase) -> None:
    if case.idle is None:
        return
    hold(case.idle(), "something is borrowed before the first call")
    for target in (*case.targets, *case.failing, *case.busy):
        await _error(case, target)
        hold(case.idle(), "something is still borrowed after a call")
    await _cancelled_after(case)
    hold(case.idle(), "something is still borrowed after a call that was cancelled")


@rule("Calls at the same time, and one after the other, each get their own target's content.")
async def _no_state(case: FetchCase) -> None:
    alone = [(await _fetch(case, target)).content for target in case.targets]

    async def call(n: int) -> None:
        try:
            result = await _fetch(case, case.targets[n])
        except Exception as exc:
            # Behind a gate not all get a slot at once, and say so.
            if not all(isinstance(leaf, RetryLater) for leaf in _leaves(exc)):
                raise
        else:
            hold(result.content == alone[n], f"target {n} got another content than alone")

    async with trio.open_nursery() as nursery:
        for n in [*range(len(alone))] * 3:
            nursery.start_soon(call, n)


@rule("A call that failed, was busy or was cancelled does not spoil the next one.")
async def _recovers(case: FetchCase) -> None:
    target = case.targets[0]
    content = (await _fetch(case, target)).content
    await _every_end(case)
    hold((await _fetch(case, target)).content == content, "the next call gets another content")


async def _every_end(case: FetchCase) -> None:
    for target in (*case.targets, *case.failing, *case.busy):
        await _error(case, target)
    await _cancelled_after(case)


def _living() -> Iterator[Task]:
    waiting = [present(trio.lowlevel.current_root_task(), "there is no run")]
    while waiting:
        task = waiting.pop()
        yield task
        for nursery in task.child_nurseries:
            waiting.extend(nursery.child_tasks)


FETCH_RULES: Final[tuple[Rule[FetchCase], ...]] = rule.all()
"""What `check_fetch` checks, in this order; the `text` of each is the promise in one sentence."""
