"""Two runs that differ in their targets alone can't be told apart by what they log."""

import io
import json
import logging
import re
from collections.abc import Callable
from typing import Any

import structlog
import trio
from flow_desk import ALICE, CAROL, START
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from sift_batch import (
    Caller,
    Config,
    Hooks,
    Options,
    Result,
    RetryLater,
    Target,
    TargetError,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, WallClock

_ID = re.compile(r"[0-9a-f]{32}")
_TIME = re.compile(r"\b(seconds|wait|grace)=[0-9.e+-]+|\"(seconds|wait|grace)\": [0-9.e+-]+")

_text = st.text(st.characters(exclude_categories=()), max_size=24)
_urls = st.one_of(
    _text,
    st.builds(
        lambda scheme, user, host, path, query: f"{scheme}://{user}@{host}/{path}?{query}#{user}",
        st.sampled_from(["http", "https", "file", ""]),
        st.text("abc%:", max_size=5),
        st.sampled_from(
            ["h.test", "localhost", "пример.рф", "[::1]", "%s", "%(job_id)s", "{job_id}", "127.1"]
        ),
        _text,
        _text,
    ),
    st.sampled_from(["%s%s%s", "{0.__class__}", "\x1b[2J", "a\nb", "done", "job.ended", "0" * 32]),
)
_series = st.lists(st.tuples(_urls, _text, _text, _text), min_size=5, max_size=5)


class Odd(Hooks):
    """Hooks that raise what they are given, with the target's own text in it."""

    def target(self, error: Exception | None, seconds: float, result_bytes: int) -> None:
        """Raise the error of the target."""
        if error is not None:
            raise error


async def _run(series: list[tuple[str, str, str, str]], caller: Caller, log: Any) -> None:
    """Drain a job that goes through every path that logs; what happens is the same for any targets."""
    by_index = dict(enumerate(series))
    tries = dict.fromkeys(by_index, 0)
    clock = WallClock(START)

    async def fetch(caller: Caller, target: Target) -> Result:
        n = order[0]
        _, error, hint, content = by_index[n % 5]
        tries[n % 5] += 1
        await trio.sleep(1)
        if n % 5 == 1 and tries[1] == 1:
            raise RetryLater(error, retry_after=5)
        order[0] += 1
        if n % 5 == 2:
            raise TargetError(error, hint=hint, code=f"code {content}")
        if n % 5 == 3:
            raise ExceptionGroup(error, [ValueError(target.url), KeyError(hint)])
        if n % 5 == 4:
            await trio.sleep(1_000)
        return Result(content, {error: hint, "url": target.url})

    order = [0]
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 2, times=2, operations={"record"})
        config = Config(target_timeout=20, ttl=1_000, sweep_every=10, workers=5, shutdown_grace=0)
        async with open_runner(store, fetch, config, hooks=Odd(), now=clock, log=log) as runner:
            wanted = [Target(url, Options(grep=error, jq=hint)) for url, error, hint, _ in series]
            submission = await runner.submit(caller, wanted)
            await runner.submit(caller, wanted)
            await runner.wait(submission.id)
            again = await runner.rerun(caller, submission.id)
            await trio.sleep(1.5)  # no two things happen in one moment: their order would be chance
            await runner.cancel(again.id)
            await runner.wait(again.id)
            await runner.delete(again.id)
            clock.jump(5_000)
            await trio.sleep(10.7)
            await runner.submit(caller, wanted)
        async with open_runner(inner, fetch, config, now=clock, log=log):
            pass


def _lines(
    series: list[tuple[str, str, str, str]], caller: Caller, make: Callable[[io.StringIO], Any]
) -> str:
    """Return all that a run logs, without ids and times."""
    stream = io.StringIO()
    trio.run(_run, series, caller, make(stream), clock=MockClock(autojump_threshold=0))
    return _TIME.sub("time", _ID.sub("id", stream.getvalue()))


def _standard(stream: io.StringIO) -> Any:
    logger = logging.Logger("application", logging.DEBUG)  # noqa: LOG001
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s %(args)s"))
    logger.addHandler(handler)
    return logger


def _structured(stream: io.StringIO) -> Any:
    return structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.JSONRenderer(serializer=json.dumps),
        ],
    )


_PLAIN = [(f"http://plain.test/{n}", "error", "hint", "content") for n in range(5)]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_series, st.sampled_from([ALICE, CAROL]), st.sampled_from([_standard, _structured]))
def test_runs_that_differ_in_their_targets_log_the_same(
    series: list[tuple[str, str, str, str]], caller: Caller, make: Callable[[io.StringIO], Any]
) -> None:
    """Whatever URLs, options, errors and results a run has, its log lines are the same byte for byte."""
    plain, other = _lines(_PLAIN, caller, make), _lines(series, caller, make)
    assert plain.count("\n") > 15 or caller is CAROL
    assert other == plain
