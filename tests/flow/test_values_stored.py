"""Whatever text comes in is stored and read back without an exception: URLs, options, names, results."""

import json

import pytest
import trio
from flow_desk import ALICE, drained, running, targets
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from sift_batch import Caller, Options, Result, RetryLater, Target, TargetError, TargetStatus
from sift_batch.testing import ScriptedFetch

HOSTILE = [
    "",
    " ",
    "x",
    "/",
    "http://",
    "http:///p",
    "http://user:pw@h.test:99999/?token=s3cret#frag",
    "http://127.0.0.1:6666\\@1.1.1.1/",
    "http://h.test/\0",
    "http://h.test/\r\nHost: evil",
    "http://[fe80::1%25eth0]/",
    "http://exampl%65.org./",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "'); DROP TABLE batch_target; --",
    "%s %d {} %(url)s ${x}",
    "\x1b[2J\x1b]8;;http://evil/\x07",
    "\u202egnp.exe",
    "http://пример.рф/путь?й=ц",
    "http://h.test/é",
    "http://h.test/e\u0301",
    "😀" * 1_000,
    "http://h.test/" + "a" * 1_000_000,
    "\ufeffhttp://h.test/",
    "\uffff",
    "null",
    "[]",
    '{"url":"x"}',
]


async def test_hostile_urls_are_carried_byte_for_byte(autojump_clock: MockClock) -> None:
    """Absurd, empty and hostile URLs are stored, given to the fetch and read back as they are."""
    fetch = ScriptedFetch()
    async with running(fetch, targets_per_job=99, result_max_bytes=2**22) as runner:
        submission = await runner.submit(ALICE, [Target(url) for url in HOSTILE])
        job, stored = await drained(runner, submission.id)
        assert (job.status, job.targets_done) == ("done", len(HOSTILE))
        assert [t.url for t in stored] == HOSTILE == fetch.order
        assert [t.result.content for t in stored if t.result] == [f"content of {url}" for url in HOSTILE]
        assert await runner.submit(ALICE, [Target(url) for url in HOSTILE]) == (submission.id, True)


async def test_lone_surrogates_are_replaced_on_the_way_in(autojump_clock: MockClock) -> None:
    """A lone surrogate in a URL or an option is U+FFFD for the fetch and for every reader; NUL stays."""
    fetch = ScriptedFetch()
    options = Options(mode="\ud800", question="a\0b\udfff", pages="\ud83d\ude00", grep="\ud800" * 3, jq="\0")
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, [Target("http://h/\ud800\0x", options)])
        _, (target,) = await drained(runner, submission.id)
        clean = Options(
            mode="\ufffd", question="a\0b\ufffd", pages="\ufffd\ufffd", grep="\ufffd" * 3, jq="\0"
        )
        assert (target.url, target.options, target.status) == ("http://h/\ufffd\0x", clean, "done")
        assert fetch.calls[0].target == Target("http://h/\ufffd\0x", clean)
        # Whoever submits what came back gets the same job.
        assert await runner.submit(ALICE, [fetch.calls[0].target]) == (submission.id, True)


async def test_what_is_read_back_can_be_sent(autojump_clock: MockClock) -> None:
    """All text of a status can be encoded as UTF-8 JSON, whatever was submitted, returned or raised."""
    bad = "\ud800\0\udfff"
    fetch = ScriptedFetch(
        results={0: Result(bad, {bad: [bad]})},
        fail={1: TargetError(bad, hint=bad, code=bad), 2: ValueError(bad), 3: TargetError(bad)},
        busy={3: 1},
    )
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, [Target(f"{bad}{n}", Options(grep=bad)) for n in range(4)])
        job, stored = await drained(runner, submission.id)
    assert (job.status, job.targets_failed) == ("partial", 3)
    for t in stored:
        parts = [t.url, t.options.grep, t.error, t.hint, t.code]
        parts += [t.result.content, json.dumps(dict(t.result.meta), ensure_ascii=False)] if t.result else []
        json.dumps(parts, ensure_ascii=False).encode()
    assert stored[1].error == stored[1].hint == stored[1].code == "\ufffd\0\ufffd"


async def test_bytes_are_counted_as_they_are_stored(autojump_clock: MockClock) -> None:
    """`nbytes` counts the stored bytes of url, options, result, error and hint, and nothing else."""
    fetch = ScriptedFetch(
        results={0: Result("é\0", {"k": "😀"})}, fail={1: TargetError("äé", hint="h€", code="cc")}
    )
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, [Target("ü", Options(grep="ß")), Target("\ud800")])
        job = await runner.job(submission.id)
        assert job is not None
        urls = len("ü".encode()) + len('{"grep":"ß"}'.encode()) + len("\ufffd".encode()) + len("{}")
        assert job.nbytes == urls
        job, _ = await drained(runner, submission.id)
        result = len('{"content":"é\\u0000","meta":{"k":"😀"}}'.encode())
        assert job.nbytes == urls + result + len("äé".encode()) + len("h€".encode())
        assert runner.statistics().stored_bytes == job.nbytes


async def test_characters_are_code_points(autojump_clock: MockClock) -> None:
    """`chars` counts the code points of the content, with and without the result beside it."""
    fetch = ScriptedFetch(results={0: Result("e\u0301😀\0")})
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, targets(2))
        await runner.wait(submission.id)
        for results in (True, False):
            status = await runner.status(submission.id, results=results)
            assert status is not None
            assert status.targets[0].chars == 4
            assert (status.targets[0].result is None) != results


async def test_twins_keep_their_own_results(autojump_clock: MockClock) -> None:
    """One URL listed several times has a result for each time."""
    fetch = ScriptedFetch()
    fetch.answer("http://a.test/", "one", "two", TargetError("three"))
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, [Target("http://a.test/")] * 3)
        job, stored = await drained(runner, submission.id)
    assert [t.result.content if t.result else t.error for t in stored] == ["one", "two", "three"]
    assert (job.targets_done, job.targets_failed) == (3, 1)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=())),
            st.text(st.characters(exclude_categories=()), max_size=8),
            st.sampled_from([None, True, False]),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(st.characters(exclude_categories=()), max_size=5),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(
                        st.text(st.characters(exclude_categories=()), max_size=5), inner, max_size=3
                    )
                ),
                max_leaves=8,
            ),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_text_goes_round(series: list[tuple[str, str, bool | None, object]]) -> None:
    """Any URL, option, content and meta comes back as it went in, but for U+FFFD in place of surrogates."""

    def clean(value: object) -> object:
        if isinstance(value, str):
            return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
        if isinstance(value, dict):
            return {clean(key): clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, list) else value

    async def main() -> tuple[TargetStatus, ...]:
        async def fetch(caller: Caller, target: Target) -> Result:
            await trio.lowlevel.checkpoint()
            url, text, _, meta = series[next(order)]
            return Result(url + text, {"meta": meta})

        order = iter(range(len(series)))
        async with running(fetch) as runner:
            wanted = [Target(url, Options(grep=text, context=context)) for url, text, context, _ in series]
            return (await drained(runner, (await runner.submit(ALICE, wanted)).id))[1]

    stored = trio.run(main, clock=MockClock(autojump_threshold=0))
    for target, (url, text, context, meta) in zip(stored, series, strict=True):
        assert (target.url, target.options) == (clean(url), Options(grep=str(clean(text)), context=context))
        assert target.result is not None
        assert target.result.content == clean(url + text)
        # What two different keys become the same is one key.
        assert target.result.meta == json.loads(json.dumps({"meta": clean(meta)}))


SECRETS = ("s3cret", "h0st.test", "0pt-ion", "c0ntent", "m3ta", "err0r", "h1nt")


def _values() -> list[object]:
    options = Options(mode="0pt-ion", question="0pt-ion", grep="0pt-ion")
    target = Target("http://s3cret@h0st.test/", options)
    result = Result("c0ntent", {"m3ta": "m3ta"})
    status = TargetStatus(
        0,
        target.url,
        options,
        "done",
        result,
        "err0r",
        "h1nt",
        "",
        None,
        False,
        3,  # type: ignore[arg-type]
    )
    return [options, target, result, status, Caller("s3cret", "s3cret", "s3cret")]


@pytest.mark.parametrize("value", _values(), ids=lambda value: type(value).__name__)
def test_the_repr_of_a_value_shows_nothing(value: object) -> None:
    """`repr`, `str` and format of a target, its options, result, status and caller show nothing of them."""
    for text in (repr(value), str(value), f"{value}", f"{[value]!r}", "{0} {0!r}".format(value)):  # noqa: UP032
        assert not any(secret in text for secret in SECRETS)


async def test_no_object_of_a_running_engine_shows_a_target(autojump_clock: MockClock) -> None:
    """The `repr` of the runner, of streams, jobs, statuses and every object of theirs shows no target."""
    url = "http://s3cret@h0st.test/"
    error = RetryLater(retry_after=5)
    fetch = ScriptedFetch(results={0: Result("c0ntent", {"m3ta": "m3ta"})})
    fetch.fail(1, TargetError("err0r", hint="h1nt"))
    fetch.busy(2, 1, error)
    texts = []
    async with running(fetch) as runner:
        submission = await runner.submit(Caller("caller"), [Target(url, Options(grep="0pt-ion"))] * 3)
        async with runner.watch(submission.id) as statuses, runner.results(submission.id) as results:
            await trio.sleep(1)
            texts += [repr(statuses), repr(results), repr(runner), repr(runner.statistics())]
            texts += [repr(runner.progress(submission.id)), repr(await runner.status(submission.id))]
            texts += [repr(value) for value in vars(runner).values()]
            texts += [repr(live) for live in runner._roster.jobs()]
            texts += [repr(task.name) for task in _tasks()]
            texts += [repr(item) async for item in results]
        texts += [repr(await runner.jobs()), repr(await runner.job(submission.id)), repr(submission)]
    assert texts
    for text in texts:
        assert not any(secret in text for secret in SECRETS), text


def _tasks() -> list[trio.lowlevel.Task]:
    found: list[trio.lowlevel.Task] = []
    waiting = [trio.lowlevel.current_root_task()]
    while waiting:
        task = waiting.pop()
        if task is not None:
            found.append(task)
            for nursery in task.child_nurseries:
                waiting.extend(nursery.child_tasks)
    return found
