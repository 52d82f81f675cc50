"""robots.txt, where it is obeyed."""

import contextlib
import time

import pytest
import trio
from fetcher_stage import FLEET, Stage, answer, failure

from sift_batch import Caller, Config, RetryLater, Target, open_runner, open_store
from sift_batch.fetch import FetchError
from sift_batch.fetch._errors import refused as refusal
from sift_batch.fetch._robots import _for_agent

URL = "http://site.org/a"
ROBOTS = "http://site.org/robots.txt"


def stage_with(robots, /, **settings) -> Stage:
    """A stage whose site has this robots.txt."""
    stage = Stage(**({"robots": True, "retries": 0} | settings))
    stage.site.give(URL, answer())
    stage.site.give(ROBOTS, answer(body=robots) if isinstance(robots, bytes) else robots)
    return stage


async def refused(stage: Stage, url: str = URL) -> FetchError:
    """Fetch, and give the failure."""
    with pytest.raises(FetchError) as caught:
        await stage.batch(url)
    return caught.value


@pytest.mark.parametrize(
    "robots",
    [
        b"",
        b"User-agent: *\nDisallow: /b\n",
        b"User-agent: other\nDisallow: /\n",
        b"User-agent: other\nUser-agent: more\nDisallow: /\n\nUser-agent: *\nAllow: /\n",
        b"User-agent: *\nDisallow: /\n\nUser-agent: sift-batch\nAllow: /\n",
        b"User-agent: sift-batch\nDisallow: /" + b"a" * 5_000 + b"\nUser-agent: *\nDisallow: /\n",
        b"User-agent: sift-batch\nAllow: /a\nUser-agent: other\nDisallow: /\n",
        b"Disallow: /\nUser-agent:\nDisallow: /\n",
        b"<html>no rules at all</html>",
        b"\xff\xfe\x00 nonsense",
        answer(404),
        answer(403),
        answer(401),
    ],
)
async def test_what_is_allowed_is_fetched(robots, autojump_clock):
    """A page that robots.txt allows, or does not speak of, is fetched; so is one without a robots.txt."""
    stage = stage_with(robots)
    assert (await stage.batch(URL)).content == "the page"
    assert stage.site.urls == [ROBOTS, URL]


@pytest.mark.parametrize(
    "robots",
    [
        b"User-agent: *\nDisallow: /\n",
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n",
        b"User-Agent: SIFT-BATCH # us\nDisallow: /*a$\n",
        b"User-agent: other\nuser-agent: sift-batch\nDisallow: /\n",
        b"user-agent *\ndisallow /\n",
        b"User-agent: sift-batch\nUser-agent: other\nDisallow: /\n",
        b"User-agent: sift-batch\nSitemap: http://site.org/s\n# no rule\nUser-agent: other\nDisallow: /\n",
        b"User-agent: other\nAllow: /\n\nUser-agent: *\n\nDisallow: /a\nUser-agent: more\nAllow: /\n",
    ],
)
async def test_what_is_not_allowed_is_not_fetched(robots, autojump_clock):
    """A page that robots.txt forbids is never asked for: `robots`."""
    stage = stage_with(robots)
    failed = await refused(stage)
    assert (failed.code, failed.status, stage.site.urls) == ("robots", 403, [ROBOTS])


@pytest.mark.parametrize(
    "robots", [answer(500), answer(503), failure("timeout"), failure("protocol"), failure("too_large")]
)
async def test_a_robots_txt_that_cannot_be_had_forbids_everything(robots, autojump_clock):
    """If robots.txt can't be had because of the server, nothing is fetched, and the text says so."""
    stage = stage_with(robots)
    failed = await refused(stage)
    assert failed.code == "robots"
    assert "could not be had" in failed.message or "too large" in failed.message


@pytest.mark.parametrize("code", ["dns", "connect", "tls"])
async def test_a_site_that_is_not_there_is_told_as_that(code, autojump_clock):
    """A site that can't be reached at all is that failure, and no matter of robots.txt."""
    assert (await refused(stage_with(failure(code)))).code == code


async def test_a_server_that_may_not_be_called_is_refused(autojump_clock):
    """A site whose addresses may not be called is `refused`; a robots.txt that leads astray is `robots`."""
    stage = stage_with(refusal("special_address", "not of the public Internet"))
    failed = await refused(stage)
    assert (failed.code, failed.reason) == ("refused", "special_address")
    for robots in (answer(302, location="http://127.0.0.1/"), refusal("encoding", "packed")):
        assert (await refused(stage_with(robots))).code == "robots"


@pytest.mark.parametrize("lost", [failure("dns"), failure("connect"), failure("tls"), failure("internal")])
async def test_where_robots_txt_redirects_to_is_no_matter_of_the_page(lost, autojump_clock):
    """A robots.txt that leads to a dead server can't be had: `robots`, and no copy is looked for."""
    stage = stage_with(answer(301, location="http://dead.org/r"), archive="http://archive.org/{url}")
    stage.site.give("http://dead.org/r", lost)
    stage.site.give("http://archive.org/" + URL, answer())
    for _ in range(2):
        with pytest.raises(FetchError) as caught:
            await stage.batch(URL, recover=True)
        assert caught.value.code == "robots"
    assert stage.site.urls == [ROBOTS, "http://dead.org/r"]


async def test_a_robots_txt_that_leads_to_a_forbidden_server_is_robots(autojump_clock):
    """A redirect of robots.txt to a name of a private network is no refusal of the page."""
    stage = stage_with(answer(301, location="http://inside.org/r"))
    stage.site.give("http://inside.org/r", refusal("special_address", "not of the public Internet"))
    assert (await refused(stage)).code == "robots"


async def test_a_robots_txt_that_hangs_is_a_timeout(autojump_clock):
    """The total deadline bounds the wait for robots.txt too, and ends as `timeout`."""
    stage = stage_with(trio.sleep_forever, total_timeout=20)
    assert ((await refused(stage)).code, trio.current_time()) == ("timeout", 20)


async def test_a_busy_robots_txt_is_a_busy_host(autojump_clock):
    """A busy answer for robots.txt holds the host and is no permission."""
    stage = stage_with(answer(429, retry_after="20"))
    with pytest.raises(RetryLater) as caught:
        await stage.batch(URL)
    assert (caught.value.reason, caught.value.retry_after) == ("retry_after", 20)
    assert stage.gate.statistics().held == 1


async def test_redirects_of_robots_txt(autojump_clock):
    """Up to five redirects of robots.txt are followed; beyond them there is none."""
    stage = stage_with(answer(301, location="http://other.org/r"))
    stage.site.give("http://other.org/r", answer(body=b"User-agent: *\nDisallow: /\n"))
    assert (await refused(stage)).code == "robots"
    stage = stage_with(answer(301, location="/r0"))
    for n in range(9):
        stage.site.give(f"http://site.org/r{n}", answer(301, location=f"/r{n + 1}"))
    assert (await stage.batch(URL)).content == "the page"
    assert len(stage.site.urls) == 1 + 5 + 1


async def test_rules_are_kept_for_their_caller_alone_and_not_for_ever(autojump_clock):
    """robots.txt is asked for once for each caller and site, and again after a while."""
    stage = stage_with(b"User-agent: *\nAllow: /\n")
    for caller in (FLEET, Caller("another")):
        for _ in range(2):
            await stage.batch(URL, caller)
    assert stage.site.urls == [ROBOTS, URL, URL] * 2
    await trio.sleep(2 * 86_400)
    await stage.batch(URL)
    assert stage.site.urls[-2:] == [ROBOTS, URL]


async def test_each_origin_has_its_own_rules(autojump_clock):
    """A redirect to another site is asked of that site's robots.txt."""
    stage = stage_with(b"")
    stage.site.give(URL, answer(302, location="http://other.org/b"))
    stage.site.give("http://other.org/robots.txt", answer(body=b"User-agent: *\nDisallow: /\n"))
    assert (await refused(stage)).code == "robots"
    assert stage.site.urls == [ROBOTS, URL, "http://other.org/robots.txt"]


async def test_crawl_delay_is_a_hold_that_counts_as_the_gates(autojump_clock):
    """After each page the host is left alone for its Crawl-delay, which costs nobody's patience."""
    stage = stage_with(b"User-agent: *\nCrawl-delay: 7\n")
    await stage.batch(URL)
    for call in (stage.batch(URL), stage.fetch.interactive(FLEET, Target(URL))):
        with pytest.raises(RetryLater) as caught:
            await call
        assert (caught.value.reason, caught.value.retry_after) == ("gate", pytest.approx(7))
    await trio.sleep(7.001)
    await stage.batch(URL)


async def test_a_crawl_delay_never_costs_a_target(autojump_clock):
    """A job drains through any Crawl-delay: waiting for it is no patience with a busy host."""
    stage = stage_with(b"User-agent: *\nCrawl-delay: 500\n", retry_after_limit=10_000)
    urls = [f"http://site.org/{n}" for n in range(5)]
    for url in urls:
        stage.site.give(url, answer())
    async with (
        open_store(":memory:") as store,
        open_runner(store, stage.fetch, Config(retry_for=20)) as runner,
    ):
        job = await runner.submit(FLEET, [Target(url) for url in urls])
        await runner.wait(job.id)
        found = await runner.status(job.id)
    assert found.job.status == "done"
    assert [when for url, when in stage.site.asked if url != ROBOTS] == [
        pytest.approx(500 * n) for n in range(5)
    ]


async def test_a_crawl_delay_is_no_busy_spell_for_a_job_that_lost_a_target(autojump_clock):
    """In a job that lost a target to a host, the others are asked for when the host's pause is over."""
    stage = stage_with(b"User-agent: *\nCrawl-delay: 90\n")
    urls = [f"http://site.org/{n}" for n in range(4)]
    stage.site.give(urls[0], answer(429, retry_after="5"))
    for url in urls[1:]:
        stage.site.give(url, answer())
    async with (
        open_store(":memory:") as store,
        open_runner(store, stage.fetch, Config(retry_for=10)) as runner,
    ):
        job = await runner.submit(FLEET, [Target(url) for url in urls])
        await runner.wait(job.id)
        found = await runner.status(job.id)
    assert [target.code for target in found.targets] == ["busy", "", "", ""]


async def test_a_busy_spell_in_a_crawl_delay_counts_for_its_own_length(autojump_clock):
    """A busy answer is told with the site's own seconds, and the rest of the pause is waited out after."""
    stage = stage_with(b"User-agent: *\nCrawl-delay: 60\n")
    stage.site.give(URL, answer(429, retry_after="20"))
    told = []
    for _ in range(3):
        with pytest.raises(RetryLater) as caught:
            await stage.batch(URL)
        told.append((caught.value.reason, round(caught.value.retry_after)))
        await trio.sleep(10)
    assert told == [("retry_after", 20), ("host", 10), ("gate", 40)]


async def test_a_visit_that_comes_back_to_a_host_does_not_go_round_for_ever(autojump_clock):
    """A page that leads over another site back to one whose pause outlasts the deadline is a `timeout`."""
    stage = stage_with(b"User-agent: *\nCrawl-delay: 90\n", total_timeout=60)
    stage.site.give(URL, answer(302, location="http://other.org/"))
    stage.site.give("http://other.org/", answer(302, location="http://site.org/b"))
    stage.site.give("http://site.org/b", answer())
    failed = await refused(stage)
    assert (failed.code, trio.current_time()) == ("timeout", 60)
    stage = stage_with(b"User-agent: *\nCrawl-delay: 30\n", total_timeout=60)
    stage.site.answers |= {URL: [answer(302, location="http://other.org/")]}
    stage.site.give("http://other.org/", answer(302, location="http://site.org/b"))
    stage.site.give("http://site.org/b", answer())
    assert (await stage.batch(URL)).content == "the page"


@pytest.mark.parametrize(("delay", "held"), [("99999", 100), ("1e400", 0), ("-1", 0), ("nan", 0), ("0", 0)])
async def test_crawl_delay_is_clamped(delay, held, autojump_clock):
    """A Crawl-delay counts as at most the limit of a Retry-After, and nonsense as none."""
    stage = stage_with(f"User-agent: *\nCrawl-delay: {delay}\n".encode(), retry_after_limit=100)
    await stage.batch(URL)
    began = trio.current_time()
    await stage.fetch.interactive(FLEET, Target(URL), patience=1_000)
    assert trio.current_time() - began == pytest.approx(held)


async def test_a_redirect_within_a_site_does_not_wait_out_its_crawl_delay(autojump_clock):
    """A redirect within one host is one visit: it ends although the Crawl-delay outlasts the deadline."""
    stage = stage_with(b"User-agent: *\nCrawl-delay: 90\n", total_timeout=60)
    stage.site.give(URL, answer(302, location="/b"))
    stage.site.give("http://site.org/b", answer())
    assert (await stage.batch(URL)).content == "the page"
    assert stage.gate.statistics().held == 1


async def test_robots_txt_has_a_slot_of_its_own(autojump_clock):
    """robots.txt is fetched in a slot that is free again before the page's, never in a second one."""
    stage = stage_with(b"")
    stage.site.seconds = 1
    async with stage.busy(URL, slots=1):
        assert (await stage.batch(URL)).content == "the page"
    assert stage.site.peak["site.org"] == 1


async def test_without_the_setting_nobody_asks(autojump_clock):
    """Without `robots` there is no request for a robots.txt."""
    stage = stage_with(b"User-agent: *\nDisallow: /\n", robots=False)
    await stage.batch(URL)
    assert stage.site.urls == [URL]


def test_only_what_is_meant_for_us_is_parsed():
    """Of the groups for other robots nothing reaches the parser, of ours everything."""
    others = "".join(f"user-agent: a{n}\n" for n in range(3_000)) + "disallow: /\n" * 3_000
    ours = ["User-agent: *", "Allow: /b", "Crawl-delay: 3"]
    text = others + "\n".join([*ours, "Sitemap: http://site.org/s", others])
    assert list(_for_agent(text, "sift-batch/1 (+contact)")) == ours


async def test_too_many_rules_forbid_everything(autojump_clock):
    """A robots.txt with more rules than anybody needs is too large, and the text says so."""
    stage = stage_with(b"user-agent:*\n" + b"".join(b"allow:/%x\n" % n for n in range(6_000)))
    assert "too large" in (await refused(stage)).message


@pytest.mark.parametrize(
    "robots",
    [
        b"".join(b"user-agent:a%d\n" % n for n in range(15_000)) + b"allow:/%d\n" * 20_000,
        b"user-agent:*\n" + b"".join(b"allow:/%x\n" % n for n in range(40_000)),
        b"user-agent:*\n" + b"disallow:/" + b"*a" * 250_000,
    ],
)
async def test_a_hostile_robots_txt_is_no_burden(robots):
    """A robots.txt made to be slow costs a moment and not minutes."""
    stage = stage_with(robots[: 500 * 1024])
    began = time.monotonic()
    with contextlib.suppress(FetchError):
        await stage.batch("http://site.org/" + "a" * 4_000)
    assert time.monotonic() - began < 5
    assert stage.fetch._pipeline._rules._bytes <= 1024 * 1024
