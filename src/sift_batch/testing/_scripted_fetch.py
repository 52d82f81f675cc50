"""What does the engine do with a fetch that answers like this? A fetch whose answers are scripted.

It stands in for the network in an application's tests: it says what it was told to say, and writes
down what it was asked, when, and how many calls were under way at once. No sockets, no threads.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final
from urllib.parse import urlsplit

import trio

from .._model.errors import RetryLater, TargetError
from .._model.values import Attempt, Caller, Result, Target, attempt

Answer = Result | str | BaseException | type[BaseException] | Callable[[Caller, Target], Awaitable[Result]]
"""What a call may do: return a `Result` (or a text as its content), raise, or call another fetch."""


@dataclass(slots=True)
class Call:
    """One call of a `ScriptedFetch`. Times are Trio's; `ended` is None while it is under way.

    `attempt` says which job, index and number the engine called it for; None if no engine did.
    `error` is what it raised, `trio.Cancelled` included.
    """

    caller: Caller
    target: Target
    attempt: Attempt | None
    started: float
    ended: float | None = None
    error: BaseException | None = None


class ScriptedFetch:
    """A fetch for tests. Without a script each target is `done` with a short text as its content.

        fetch = ScriptedFetch(latency=5, busy={"https://a/": 2}, hang=["https://b/"])
        fetch.fail("https://c/", TargetError("not there", status=404))
        async with open_runner(store, fetch) as runner:
            await runner.submit(caller, [Target("https://a/"), Target("https://b/")])
            await fetch.wait_started(4)  # twice busy, then once, then the one that hangs
        assert fetch.order == ["https://a/", "https://a/", "https://a/", "https://b/"]

    Keys are URLs, or indexes of targets in their job. `latency`: seconds on Trio's clock before each
    answer, one for all or by key (busy answers come at once). `results`, `fail`, `busy`, `hang`: what
    the methods `answer`, `fail`, `busy` and `hang` set, for many keys at once; `fail` may also be just
    the keys. More methods: `release`, `wait_started`, `wait_ended`.

    Attributes: `calls` and `order`, the calls and their URLs in order of start; `in_flight`, calls
    under way now; `peak` and `peak_by_host`, the most there were at once, in all and of one host. A
    call that hangs or takes its latency is under way. One fetch can serve several runners.
    """

    def __init__(
        self,
        *,
        latency: float | Mapping[str | int, float] = 0.0,
        results: Mapping[str | int, Answer] | None = None,
        fail: Mapping[str | int, BaseException | type[BaseException]] | Collection[str | int] = (),
        busy: Mapping[str | int, float] | None = None,
        hang: Collection[str | int] = (),
    ) -> None:
        self.calls: list[Call] = []
        self.in_flight = 0
        self.peak = 0
        self.peak_by_host: dict[str, int] = {}
        self._by_host: dict[str, int] = {}
        self._latency = latency
        # By key: answers still to come (the last one stays), busy answers still to come, hanging calls.
        self._answers: dict[str | int, list[Answer]] = {}
        self._busy: dict[str | int, tuple[float, RetryLater | None]] = {}
        self._hanging: dict[str | int, trio.Event] = {}
        self._changed = trio.Event()
        for key, answer in (results or {}).items():
            self.answer(key, answer)
        for key in _keys(fail):
            self.fail(key, fail[key] if isinstance(fail, Mapping) else None)
        for key, times in (busy or {}).items():
            self.busy(key, times)
        for key in _keys(hang):
            self.hang(key)

    # ---- the script

    def answer(self, key: str | int, *answers: Answer) -> None:
        """Give these answers to the calls for `key`, one each; the last one to all that follow."""
        if not answers:
            raise ValueError("an answer is needed")
        self._answers[key] = list(answers)

    def fail(self, key: str | int, error: BaseException | type[BaseException] | None = None) -> None:
        """Let every call for `key` raise `error`, by default a `TargetError`."""
        self.answer(key, TargetError("scripted failure") if error is None else error)

    def busy(self, key: str | int, times: float = inf, error: RetryLater | None = None) -> None:
        """Let the next `times` calls for `key` raise `error`, by default a plain `RetryLater`."""
        self._busy[key] = (times, error)

    def hang(self, key: str | int) -> None:
        """Let calls for `key` wait until they are released or cancelled; then they answer."""
        self._hanging.setdefault(key, trio.Event())

    def release(self, key: str | int | None = None) -> None:
        """Let the hanging calls for `key` (or all) go on; later calls for it hang no more."""
        for name in list(self._hanging) if key is None else [key]:
            self._hanging.pop(name).set()

    # ---- what happened

    @property
    def order(self) -> list[str]:
        """The URLs of all calls, in order of start."""
        return [call.target.url for call in self.calls]

    async def wait_started(self, n: int) -> None:
        """Return once `n` calls in all have begun."""
        await self._wait_until(lambda: len(self.calls) >= n)

    async def wait_ended(self, n: int) -> None:
        """Return once `n` calls in all have ended, in whatever way."""
        await self._wait_until(lambda: len(self.calls) - self.in_flight >= n)

    async def _wait_until(self, holds: Callable[[], bool]) -> None:
        await trio.lowlevel.checkpoint()
        while not holds():
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # ---- the fetch

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Answer one call as the script says."""
        call = Call(caller, target, attempt.get(None), trio.current_time())
        host = _host(target.url)
        self.calls.append(call)
        self._count(host, 1)
        try:
            return await self._reply(call)
        except BaseException as exc:
            call.error = exc
            raise
        finally:
            call.ended = trio.current_time()
            self._count(host, -1)

    def _count(self, host: str, change: int) -> None:
        self.in_flight += change
        self._by_host[host] = now = self._by_host.get(host, 0) + change
        self.peak = max(self.peak, self.in_flight)
        self.peak_by_host[host] = max(self.peak_by_host.get(host, 0), now)
        self._notify()

    async def _reply(self, call: Call) -> Result:
        keys: list[str | int] = [call.target.url]
        if call.attempt is not None:
            keys.append(call.attempt.idx)
        for key in keys:
            left, error = self._busy.get(key, (0, None))
            if left > 0:
                self._busy[key] = (left - 1, error)
                await trio.lowlevel.checkpoint()
                raise RetryLater() if error is None else error.with_traceback(None)
        answer = self._next_answer(keys, call.target)
        await trio.sleep(self._latency_of(keys))
        for key in keys:
            if key in self._hanging:
                await self._hanging[key].wait()
        if isinstance(answer, BaseException):
            raise answer.with_traceback(None)
        if isinstance(answer, type):
            raise answer
        if isinstance(answer, str):
            return Result(answer)
        # Anything else is handed on as it is, so that a script can give what is no `Result` too.
        return await answer(call.caller, call.target) if callable(answer) else answer

    def _next_answer(self, keys: Iterable[str | int], target: Target) -> Answer:
        for key in keys:
            answers = self._answers.get(key)
            if answers:
                return answers.pop(0) if len(answers) > 1 else answers[0]
        return Result(f"content of {target.url}")

    def _latency_of(self, keys: Iterable[str | int]) -> float:
        if not isinstance(self._latency, Mapping):
            return self._latency
        return next((self._latency[key] for key in keys if key in self._latency), _NO_LATENCY)


_NO_LATENCY: Final = 0.0


def _keys(keys: Collection[str | int]) -> Collection[str | int]:
    if isinstance(keys, str):
        raise TypeError("a collection of URLs is needed; a single str is none")
    return keys


def _host(url: str) -> str:
    # Not the gate's key: what checks the gate must not count with its ruler.
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
