"""One fetch from its target to its result: hops, tries, deadlines, facts, the edge and the end."""

import math
import subprocess
import sys
import time
import traceback
from datetime import datetime
from itertools import pairwise

import pytest
import trio
from fetcher_stage import FLEET, RESTRICTED, Stage, answer, failure

from sift_batch import Gate, Options, RetryLater, Target
from sift_batch.fetch import FetchConfig, FetchError, check_target, open_fetcher
from sift_batch.fetch._client import Answer
from sift_batch.fetch._hops import Page

URL = "http://site.org/a"


async def fails(stage: Stage, url: str = URL, caller=FLEET, **options) -> FetchError:
    """Fetch, and give the failure; every slot is free after it."""
    with pytest.raises(FetchError) as caught:
        await stage.batch(url, caller, **options)
    assert stage.gate.statistics().in_use == 0
    return caught.value


def lead(stage: Stage, *urls: str, status: int = 302) -> None:
    """Let each URL redirect to the next one."""
    for url, following in pairwise(urls):
        stage.site.give(url, answer(status, location=following))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(status, autojump_clock):
    """Each kind of redirect is followed, up to the limit, and the URLs passed are told."""
    stage = Stage()
    urls = [f"http://site.org/{n}" for n in range(6)]
    lead(stage, *urls, status=status)
    stage.site.give(urls[-1], answer())
    result = await stage.batch(urls[0])
    assert (result.meta["url"], result.meta["redirects"]) == (urls[-1], urls[:-1])


@pytest.mark.parametrize(
    ("urls", "asked"),
    [
        ([f"http://site.org/{n}" for n in range(8)], 6),
        (["http://site.org/0", "http://site.org/0"], 1),
        (["http://site.org/0", "http://site.org/1#part", "http://site.org/0"], 2),
    ],
)
async def test_redirects_that_do_not_end(urls, asked, autojump_clock):
    """A sixth redirect, and one to a URL that was passed already, end in `redirect_loop`."""
    stage = Stage()
    lead(stage, *urls)
    stage.site.answers["http://site.org/1"] = stage.site.answers.pop(
        "http://site.org/1#part", stage.site.answers["http://site.org/1"]
    )
    assert (await fails(stage, urls[0])).code == "redirect_loop"
    assert len(stage.site.asked) == asked


@pytest.mark.parametrize(
    ("status", "headers", "code"),
    [
        (302, {}, "http_error"),
        (300, {"location": "/b"}, "http_error"),
        (304, {}, "http_error"),
        (401, {}, "auth_required"),
        (403, {}, "blocked"),
        (404, {}, "page_not_found"),
        (410, {}, "page_gone"),
        (500, {}, "server_error"),
        (503, {}, "server_error"),
    ],
)
async def test_what_is_no_page_has_its_code(status, headers, code, autojump_clock):
    """An answer that is no page ends in the code of its status, whatever else it says."""
    stage = Stage()
    stage.site.give(URL, answer(status, **headers))
    assert (await fails(stage)).code == code


@pytest.mark.parametrize(
    ("url", "location", "reason"),
    [
        ("http://site.org/", "http://127.0.0.1/", "special_address"),
        ("http://site.org/", "//127.0.0.1/x", "special_address"),
        ("https://site.org/", "http://site.org/", "downgrade"),
        ("http://site.org/", "http://u:p@site.org/", "userinfo"),
        ("http://site.org/", "http://site.org:6379/", "port"),
        ("http://site.org/", "file:///etc/passwd", "scheme"),
    ],
)
async def test_every_hop_is_checked_as_a_new_target(url, location, reason, autojump_clock):
    """A redirect leads only to where a target may lead."""
    stage = Stage()
    stage.site.give(url, answer(302, location=location))
    failed = await fails(stage, url)
    assert (failed.code, failed.reason, len(stage.site.asked)) == ("refused", reason, 1)


@pytest.mark.parametrize(
    "first",
    [failure("dns", transient=True), failure("protocol", transient=True)]
    + [answer(status) for status in (408, 500, 502, 504)],
)
async def test_a_passing_failure_is_tried_again(first, autojump_clock):
    """What passes by itself is tried again after a second, in the same slot, and `tries` says so."""
    stage = Stage()
    stage.site.give(URL, first, answer())
    result = await stage.batch(URL)
    assert (result.meta["tries"], stage.site.asked) == (2, [(URL, 0), (URL, 1)])


async def test_the_slot_is_kept_between_tries(autojump_clock):
    """Between two tries the slot stays taken."""
    stage = Stage()
    stage.site.give(URL, answer(500), answer())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.batch, URL)
        await trio.sleep(0.5)
        assert stage.gate.statistics().in_use == 1


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_there_are_so_many_tries_and_no_more(retries, autojump_clock):
    """A failure that stays is the target's failure after `retries` further tries."""
    stage = Stage(retries=retries)
    stage.site.give(URL, failure("connect", transient=True))
    assert (await fails(stage)).code == "connect"
    assert len(stage.site.asked) == retries + 1


@pytest.mark.parametrize("lasting", [failure("tls"), failure("dns"), answer(503), answer(404), answer(501)])
async def test_a_lasting_failure_is_not_tried_again(lasting, autojump_clock):
    """What a second try would not change is not tried a second time."""
    stage = Stage()
    stage.site.give(URL, lasting)
    await fails(stage)
    assert len(stage.site.asked) == 1


@pytest.mark.parametrize("seconds", [4, 100])
async def test_one_deadline_bounds_all_hops_and_tries(seconds, autojump_clock):
    """Hops, tries and the waits between them have one total of seconds, and then it is `timeout`."""
    stage = Stage(total_timeout=10, retries=5)
    stage.site.seconds = seconds
    lead(stage, URL, "http://site.org/b")
    stage.site.give("http://site.org/b", answer(500))
    failed = await fails(stage)
    assert (failed.code, failed.retryable, trio.current_time()) == ("timeout", True, 10)


async def test_reading_does_not_count_and_holds_no_slot(autojump_clock):
    """While a page is read its slot is free, and the total deadline stands still."""
    stage = Stage(total_timeout=10)
    stage.site.give(URL, answer())
    stage.desk.seconds = 100
    seen: list[int] = []
    stage.desk.seen = lambda: seen.append(stage.gate.statistics().in_use)
    result = await stage.batch(URL)
    assert (result.content, seen, result.meta["elapsed_seconds"]) == ("the page", [0], 100)


async def test_patience_does_not_count(autojump_clock):
    """The wait for the first slot is the caller's own, and no part of the total deadline."""
    stage = Stage(total_timeout=10)
    stage.site.give(URL, answer())
    stage.site.seconds = 8
    stage.gate.hold(URL, 30)
    result = await stage.fetch.interactive(FLEET, Target(URL), patience=math.inf)
    assert (result.content, trio.current_time()) == ("the page", pytest.approx(38))


async def test_the_time_of_a_fetch_begins_with_its_first_request(autojump_clock):
    """`elapsed_seconds` and `fetched_at` know nothing of the wait for the slot."""
    stage = Stage(robots=True)
    stage.site.give(URL, answer())
    stage.site.seconds = 3
    stage.gate.hold(URL, 500)
    before = time.time()
    result = await stage.fetch.interactive(FLEET, Target(URL), patience=1_000)
    assert result.meta["elapsed_seconds"] == 6
    assert before - 1 <= datetime.fromisoformat(result.meta["fetched_at"]).timestamp() <= time.time()
    assert (await stage.batch(URL)).meta["elapsed_seconds"] == 3


async def test_meta_is_in_order_and_has_no_absent_facts(autojump_clock):
    """A result's facts come in one order; what is not known is left out."""
    stage = Stage()
    headers = {"etag": '"abc"', "last_modified": "Sun, 01 Mar 2026 10:00:00 GMT", "content_type": "text/html"}
    stage.site.give(URL, answer(body=b"caf\xc3\xa9", **headers))
    stage.desk.facts = {"canonical": "http://site.org/", "title": "A\x00\x1btitle\ud83d", "author": None}
    result = await stage.batch(URL)
    assert list(result.meta) == [
        "url",
        "http_status",
        "content_type",
        "charset",
        "bytes_wire",
        "bytes_decoded",
        "chars",
        "title",
        "redirects",
        "fetched_at",
        "elapsed_seconds",
        "etag",
        "last_modified",
        "canonical",
    ]
    assert result.meta["title"] == "A title\ufffd"
    assert (result.meta["chars"], result.meta["bytes_wire"], result.meta["redirects"]) == (4, 5, [])
    assert len(result.meta["fetched_at"]) == len("2026-01-01T00:00:00Z")
    assert stage.desk.documents[0].content_type == "text/html"


async def test_a_fact_of_the_reading_never_replaces_one_of_the_way(autojump_clock):
    """What a page says of itself can't change where it came from."""
    stage = Stage()
    stage.site.give(URL, answer(etag='"a\x01"'))
    stage.desk.facts = {"url": "http://evil.org/", "http_status": 500, "unknown": 1, "etag": "x", "chars": 99}
    result = await stage.batch(URL)
    meta = result.meta
    assert (meta["url"], meta["http_status"], meta["chars"]) == (URL, 200, len(result.content))
    assert not {"unknown", "etag"} & set(meta)


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://site.org:22/", "http://intranet/"])
async def test_a_restricted_caller_hears_only_the_reason(url, autojump_clock):
    """How a refusal could be lifted is told to the fleet; a restricted caller gets the reason alone."""
    stage = Stage()
    fleet, restricted = await fails(stage, url), await fails(stage, url, RESTRICTED)
    assert fleet.reason == restricted.reason == restricted.hint
    assert any(name in fleet.hint for name in ("`allow`", "`ports`"))
    assert fleet.message == restricted.message


async def test_a_bad_option_is_refused_before_anything_is_called(autojump_clock):
    """Options that exclude each other fail without a request."""
    stage = Stage()
    assert (await fails(stage, jq=".", pages="1")).code == "bad_option"
    assert stage.site.asked == []


async def test_the_edge_tells_a_programs_own_mistakes(autojump_clock):
    """What is no caller, target, config, gate or patience is an error of the program that passes it."""
    stage = Stage()
    with pytest.raises(TypeError):
        await stage.fetch("fleet", Target(URL))
    with pytest.raises(TypeError):
        await stage.fetch(FLEET, URL)
    with pytest.raises(TypeError):
        await stage.fetch.check(URL)
    for patience in (-1, math.nan):
        with pytest.raises(ValueError, match="patience"):
            await stage.fetch.interactive(FLEET, Target(URL), patience=patience)
    with pytest.raises(TypeError):
        stage.gate.batch(stage.fetch)
    with pytest.raises(TypeError):
        check_target(URL)
    with pytest.raises(TypeError):
        check_target(Target(URL), {})
    for bad in ({"config": {}}, {"gate": object()}):
        with pytest.raises(TypeError):
            async with open_fetcher(**bad):
                pass


def test_check_target_needs_no_run_and_none_of_the_readers_libraries():
    """`check_target` works outside a run, and loads neither the HTTP client nor what reads pages."""
    script = """
import sys
import traceback
from sift_batch import Options, Target
from sift_batch.fetch import FetchError, check_target
check_target(Target("https://site.org/", Options(question="why")))
try:
    check_target(Target("https://127.0.0.1/"))
except FetchError as error:
    print(error.code, error.reason)
heavy = "httpcore2 h11 trafilatura lxml pypdf jq re2 ada_url protego html_to_markdown charset_normalizer"
print([name for name in heavy.split() if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "refused special_address\n[]\n"


async def test_check(autojump_clock):
    """A check refuses what would be refused anyway, compiles a jq program, and calls nothing."""
    stage = Stage()
    await stage.fetch.check(Target(URL, Options(jq=".a")))
    assert stage.desk.programs == [".a"]
    for check in (stage.fetch.check(Target("http://127.0.0.1/")), stage.fetch.check(Target("ftp://a.org/"))):
        with pytest.raises(FetchError) as caught:
            await check
        assert caught.value.code == "refused"
    check_target(Target("http://127.0.0.1:8080/"), FetchConfig(allow=["127.0.0.0/8"], ports=None))
    with pytest.raises(FetchError):
        check_target(Target("http://127.0.0.1:8080/"))
    assert stage.site.asked == []


@pytest.mark.parametrize("error", [ValueError("http://site.org/"), ExceptionGroup("", [OSError(URL)])])
async def test_what_nobody_expected_is_internal_and_says_nothing(error, autojump_clock):
    """An error that is none of ours fails the target without its text."""
    stage = Stage()
    stage.site.give(URL, error)
    failed = await fails(stage)
    assert failed.code == "internal"
    assert "site.org" not in f"{failed} {failed.hint}"
    assert failed.__suppress_context__


@pytest.mark.parametrize("caller", [FLEET, RESTRICTED])
async def test_who_keeps_a_failure_keeps_no_page(caller, autojump_clock):
    """Nothing that hangs on a failure holds the page that could not be read."""
    stage = Stage()
    stage.site.give(URL, answer(body=b"a page"))
    stage.desk.error = FetchError("refused", "it is no such thing", reason="content_mismatch")
    error: BaseException | None = await fails(stage, caller=caller)
    names: set[str] = set()
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            names |= {name for name, value in frame.f_locals.items() if isinstance(value, Page | Answer)}
        error = error.__context__
    assert names == set()


async def test_groups_never_come_out(autojump_clock):
    """What a nursery below wraps comes out bare: a failure of ours, or the program's own end."""
    stage = Stage()
    stage.site.give(URL, ExceptionGroup("", [ValueError(), failure("dns")]))
    assert (await fails(stage)).code == "dns"
    stage.site.give(URL, BaseExceptionGroup("", [KeyboardInterrupt(), failure("dns")]))
    with pytest.raises(KeyboardInterrupt):
        await stage.batch(URL)


async def test_a_call_in_a_cancelled_scope_does_nothing(autojump_clock):
    """A call in a cancelled scope raises `Cancelled`, even if its target would be refused."""
    stage = Stage()
    with trio.CancelScope() as scope:
        scope.cancel()
        await stage.batch("ftp://site.org/")
    assert scope.cancelled_caught


async def test_closing_ends_calls_under_way_and_later_ones(autojump_clock):
    """Once the fetcher is closed, calls under way and later ones raise `ClosedResourceError`."""
    stage = Stage()
    stage.site.seconds = 100
    closed: list[str] = []

    async def call(url: str) -> None:
        with pytest.raises(trio.ClosedResourceError):
            await stage.batch(url)
        closed.append(url)
        assert trio.current_time() == 0

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, URL)
        await trio.testing.wait_all_tasks_blocked()
        stage.fetch.close()
    await call("http://other.org/")
    with pytest.raises(trio.ClosedResourceError):
        await stage.fetch.check(Target(URL))
    assert (len(closed), stage.gate.statistics().in_use) == (2, 0)


async def test_after_cancellations_at_any_moment_every_slot_is_free(autojump_clock):
    """After a thousand calls that are cancelled at some moment of their way, every slot is free."""
    stage = Stage(total_timeout=50, archive="http://archive.org/{url}", retries=2)
    stage.site.seconds = stage.desk.seconds = 1
    lead(stage, URL, "http://other.org/", "http://third.org/")
    stage.site.give("http://third.org/", answer(500), answer(), answer(404))
    stage.site.give("http://archive.org/" + URL, answer())

    async def call(seconds: float) -> None:
        with trio.move_on_after(seconds):
            try:
                await stage.fetch.interactive(FLEET, Target(URL, Options(recover=True)), patience=seconds)
            except (RetryLater, FetchError):
                return

    async with trio.open_nursery() as nursery:
        for n in range(1_000):
            nursery.start_soon(call, n % 97 / 9)
    now = stage.gate.statistics()
    assert (now.in_use, now.waiting, stage.fetch._calls) == (0, 0, set())
    assert stage.site.peak["all"] <= 8
    assert stage.site.peak["site.org"] == 2


async def test_a_gate_is_shared_and_its_limits_hold(autojump_clock):
    """Fetches of one gate never have more than two requests at a host, nor more than eight in all."""
    stage = Stage()
    stage.site.seconds = 1
    hosts = [f"http://h{n}.org" for n in range(6)]
    for host in hosts:
        for n in range(4):
            stage.site.give(f"{host}/{n}", answer(302, location=f"{hosts[n]}/end"))
        stage.site.give(f"{host}/end", answer())

    async def call(url: str) -> None:
        await stage.fetch.interactive(FLEET, Target(url), patience=1_000)

    async with trio.open_nursery() as nursery:
        for host in hosts:
            for n in range(4):
                nursery.start_soon(call, f"{host}/{n}")
    assert stage.site.peak["all"] == 8
    assert {stage.site.peak[f"h{n}.org"] for n in range(6)} == {2}
    assert isinstance(stage.gate, Gate)


async def test_a_second_try_gives_way_to_a_hold(autojump_clock):
    """A host that told another fetch meanwhile to stay away is not asked a second time."""
    stage = Stage(retries=1)
    stage.site.give(URL, answer(500), answer())
    stage.site.give("http://site.org/busy", answer(429, retry_after="30"))
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def other() -> None:
            await trio.sleep(0.5)
            with pytest.raises(RetryLater):
                await stage.batch("http://site.org/busy")

        with pytest.raises(RetryLater) as caught:
            await stage.batch(URL)
    assert caught.value.retry_after == pytest.approx(29.5)
    assert [url for url in stage.site.urls if url == URL] == [URL]
