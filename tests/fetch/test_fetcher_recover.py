"""Recover: when a dead page's copy is looked for, how, and what is told of it."""

import pytest
import trio
from fetcher_stage import FLEET, RESTRICTED, Stage, answer, failure

from sift_batch import Options, RetryLater, Target
from sift_batch.fetch import FetchConfig, FetchError, open_fetcher
from sift_batch.fetch._archive import archived_at, lookup_url, page_url

URL = "http://site.org/a?b=c"
TEMPLATE = "http://archive.org/web/2id_/{url}"
COPY = "http://archive.org/web/2id_/" + URL


def stage_with(first, *copy, **settings) -> Stage:
    """A stage whose target gives `first` and whose archive gives `copy`."""
    stage = Stage(archive=TEMPLATE, retries=0, **settings)
    stage.site.give(URL, first)
    if copy:
        stage.site.give(COPY, *copy)
    return stage


async def code_of(stage: Stage, caller=FLEET, **options) -> str:
    """Fetch, and give the code of the failure."""
    with pytest.raises(FetchError) as caught:
        await stage.batch(URL, caller, **({"recover": True} | options))
    return caught.value.code


@pytest.mark.parametrize(
    ("first", "original"),
    [
        (answer(404), {"http_status": 404, "code": "page_not_found"}),
        (answer(410), {"http_status": 410, "code": "page_gone"}),
        (answer(451), {"http_status": 451, "code": "page_gone"}),
        (answer(500), {"http_status": 500, "code": "server_error"}),
        (answer(503), {"http_status": 503, "code": "server_error"}),
        (failure("dns"), {"code": "dns"}),
        (failure("connect"), {"code": "connect"}),
        (failure("tls"), {"code": "tls"}),
        (answer(200, b""), {"http_status": 200, "code": "empty"}),
    ],
)
async def test_a_dead_page_is_recovered(first, original, autojump_clock):
    """A page that is not to be had from its site comes from the archive, and the result says so."""
    stage = stage_with(first, answer(memento_datetime="Thu, 01 Jan 2026 10:00:00 GMT", body=b"a copy"))
    result = await stage.batch(URL, recover=True)
    meta = result.meta
    assert (result.content, meta["url"], meta["http_status"]) == ("a copy", COPY, 200)
    assert (meta["recovered"], meta["archived_at"]) == (True, "2026-01-01T10:00:00Z")
    assert meta["original"] == original
    assert "code" not in meta
    assert list(meta)[-3:] == ["recovered", "archived_at", "original"]
    assert stage.site.urls == [URL, COPY]


@pytest.mark.parametrize(
    "first",
    [
        answer(401),
        answer(403),
        answer(400),
        answer(302),
        failure("protocol"),
        failure("timeout"),
        failure("too_large"),
        answer(302, location="http://127.0.0.1/"),
    ],
)
async def test_other_failures_are_not_recovered(first, autojump_clock):
    """The archive is asked only for pages that are dead."""
    stage = stage_with(first, answer())
    await code_of(stage)
    assert stage.site.urls == [URL]


async def test_a_busy_site_is_not_recovered(autojump_clock):
    """A site that is busy has the page; the archive is not asked."""
    stage = stage_with(answer(429), answer())
    with pytest.raises(RetryLater):
        await stage.batch(URL, recover=True)
    assert stage.site.urls == [URL]


@pytest.mark.parametrize(
    "copy",
    [
        answer(404),
        answer(429),
        answer(200, b""),
        failure("connect"),
        answer(302, location="http://127.0.0.1/"),
    ],
)
@pytest.mark.parametrize("first", [answer(404), answer(200, b"")])
async def test_without_a_copy_the_first_outcome_stands(first, copy, autojump_clock):
    """Whatever goes wrong at the archive, the target ends as it would have without it."""
    stage = stage_with(first, copy)
    if first.status == 404:
        assert await code_of(stage) == "page_not_found"
    else:
        result = await stage.batch(URL, recover=True)
        assert (result.meta["code"], result.meta["url"]) == ("empty", URL)
        assert "recovered" not in result.meta
    assert stage.site.urls[:2] == [URL, COPY]
    assert stage.gate.statistics().in_use == 0


async def test_a_busy_archive_is_held(autojump_clock):
    """A busy answer of the archive keeps everybody away from it."""
    stage = stage_with(answer(404), answer(429, retry_after="60"))
    await code_of(stage)
    assert stage.gate.statistics().held == 1


async def test_an_archive_that_hangs_costs_no_more_than_the_deadline(autojump_clock):
    """The look-up stands under the target's own deadline, and the first failure stands at its end."""

    async def hang():
        await trio.sleep_forever()

    stage = stage_with(answer(404), hang, total_timeout=30)
    assert await code_of(stage) == "page_not_found"
    assert trio.current_time() == 30


async def test_the_time_of_reading_is_not_taken_from_the_look_up(autojump_clock):
    """However long it took to find that a page is empty, there is as much time for its copy as before."""
    stage = stage_with(answer(200, b""), answer(body=b"a copy"), total_timeout=10)
    stage.desk.seconds = 100
    assert (await stage.batch(URL, recover=True)).content == "a copy"


async def test_the_archive_has_its_own_slot_and_waits_for_it(autojump_clock):
    """The look-up waits for a slot of the archive's host, and holds none of the site's meanwhile."""
    stage = stage_with(answer(404), answer())
    async with trio.open_nursery() as nursery:
        async with stage.busy(COPY):
            nursery.start_soon(lambda: stage.batch(URL, recover=True))
            await trio.sleep(5)
            assert stage.gate.statistics().in_use == 2
    assert stage.site.asked == [(URL, 0), (COPY, 5)]


@pytest.mark.parametrize(
    ("caller", "settings", "options"),
    [
        (FLEET, {}, {"recover": False}),
        (RESTRICTED, {}, {}),
        (RESTRICTED, {"recover_restricted": False}, {}),
    ],
)
async def test_who_does_not_want_it_or_may_not_is_not_told_of(caller, settings, options, autojump_clock):
    """The archive hears of no URL whose owner did not ask for it, or is restricted."""
    stage = stage_with(answer(404), answer(), **settings)
    assert await code_of(stage, caller, **options) == "page_not_found"
    assert stage.site.urls == [URL]


async def test_restricted_callers_where_the_operator_wants_it(autojump_clock):
    """With `recover_restricted` a restricted caller's page is recovered too."""
    stage = stage_with(answer(404), answer(body=b"a copy"), recover_restricted=True)
    assert (await stage.batch(URL, RESTRICTED, recover=True)).content == "a copy"


async def test_without_an_archive_nothing_is_recovered(autojump_clock):
    """With no archive there is nothing to ask."""
    stage = Stage(archive=None)
    assert await code_of(stage) == "page_not_found"


async def test_the_archives_redirects_are_followed(autojump_clock):
    """The archive's own redirects are hops, and the copy's place tells from when it is."""
    stage = stage_with(answer(404))
    final = f"http://archive.org/web/20250203040506id_/{URL}"
    stage.site.give(COPY, answer(302, location=final))
    stage.site.give(final, answer(body=b"a copy"))
    meta = (await stage.fetch.interactive(FLEET, Target(URL, Options(recover=True)))).meta
    assert (meta["url"], meta["archived_at"], meta["redirects"]) == (final, "2025-02-03T04:05:06Z", [COPY])
    assert stage.desk.documents[0].url == URL


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("http://a.org/web/{url}", "http://a.org/web/" + URL),
        ("http://a.org/?u={url}&x=1", "http://a.org/?u=http%3A%2F%2Fsite.org%2Fa%3Fb%3Dc&x=1"),
        ("http://a.org/web/", "http://a.org/web/" + URL),
        ("http://a.org/?u=", "http://a.org/?u=http%3A%2F%2Fsite.org%2Fa%3Fb%3Dc"),
    ],
)
def test_the_look_up(template, expected):
    """The URL stands in a path as it is and in a query percent-encoded; without a place it comes last."""
    assert lookup_url(template, URL) == expected


@pytest.mark.parametrize(
    ("header", "url", "moment"),
    [
        (b"Thu, 01 Jan 2026 10:00:00 GMT", "http://a.org/x", "2026-01-01T10:00:00Z"),
        (b"Thu, 01 Jan 2026 10:00:00", "http://a.org/x", "2026-01-01T10:00:00Z"),
        (b"Thu, 01 Jan 2026 10:00:00 +0200", "http://a.org/x", "2026-01-01T08:00:00Z"),
        (b"never", "http://a.org/web/20250203040506/http://b.org/", "2025-02-03T04:05:06Z"),
        (b"\xff" * 9_000, "http://a.org/web/20259999040506id_/http://b.org/", None),
        (b"", "http://a.org/web/2025id_/http://b.org/", None),
    ],
)
def test_when_a_copy_was_made(header, url, moment):
    """The time of a copy is the archive's header, else the digits of its place, else unknown."""
    assert archived_at({"memento-datetime": header} if header else {}, url) == moment


def test_links_of_a_copy_are_the_pages_own():
    """A copy's links are resolved against the page that was copied."""
    assert page_url("http://a.org/web/20250203040506id_/http://b.org/c", URL) == "http://b.org/c"
    assert page_url("http://a.org/copies/7", URL) == URL


async def test_a_page_without_links_is_not_dead(autojump_clock):
    """A live page that has no link, or a copy that has none, is what was asked for."""
    stage = stage_with(answer(200, b""), answer(body=b"a copy"))
    result = await stage.batch(URL, recover=True, mode="links")
    assert (result.content, stage.site.urls) == ("", [URL])
    stage = stage_with(answer(404), answer(200, b""))
    result = await stage.batch(URL, recover=True, mode="links")
    assert (result.content, result.meta["recovered"]) == ("", True)


@pytest.mark.parametrize(
    ("caller", "recover", "settings", "hint"),
    [
        (FLEET, False, {}, "check the address, or let the option recover look for a copy in an archive"),
        (FLEET, True, {}, "no copy of it was found in the archive"),
        (FLEET, True, {"archive": None}, "check the address"),
        (RESTRICTED, True, {}, "check the address"),
        (RESTRICTED, False, {"recover_restricted": True}, "check the address, or let the option recover"),
    ],
)
async def test_the_hint_of_a_dead_page_offers_only_what_is_there(
    autojump_clock, caller, recover, settings, hint
):
    """Whoever may look into an archive is told of it, and nobody else."""
    stage = Stage(**({"archive": TEMPLATE, "retries": 0} | settings))
    stage.site.give(URL, answer(404))
    stage.site.give(COPY, answer(404))
    with pytest.raises(FetchError) as caught:
        await stage.batch(URL, caller, recover=recover)
    assert caught.value.hint.startswith(hint)
    assert caught.value.hint == hint or caller is RESTRICTED


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://site.org/other",
        "http://evil.org/web/20250203040506id_/" + URL,
        "http://notarchive.org/x",
        "http://archive.org.evil.org/x",
    ],
)
async def test_what_is_not_at_the_archive_is_no_copy(elsewhere, autojump_clock):
    """A look-up that leads to another site than the archive's is no copy, and that site is not asked."""
    stage = stage_with(answer(404), answer(302, location=elsewhere))
    stage.site.give(elsewhere, answer(body=b"something else"))
    assert await code_of(stage) == "page_not_found"
    assert stage.site.urls == [URL, COPY]


async def test_a_copy_may_be_on_a_host_below_the_archives(autojump_clock):
    """The archive's own hosts may give the copy."""
    stage = stage_with(answer(404), answer(302, location="http://wwwb.archive.org/copy"))
    stage.site.give("http://wwwb.archive.org/copy", answer(body=b"a copy"))
    assert (await stage.batch(URL, recover=True)).content == "a copy"


@pytest.mark.parametrize(
    "archive",
    [
        "http://",
        "http://{url}",
        "http://{url}/",
        "https://archive.{url}/",
        "http://archive.org{url}",
        "http://archive.org",
    ],
)
async def test_an_archive_without_a_host_is_told_at_once(archive):
    """A template that names no host of its own fails when it is opened."""
    with pytest.raises(ValueError, match=r"archive.*"):
        async with open_fetcher(FetchConfig(archive=archive)):
            pass


@pytest.mark.parametrize("archive", ["http://archive.org/{url}", "http://archive.org?u={url}", None])
async def test_an_archive_that_can_be_called_opens(archive):
    """A template with a public host, a path and an allowed port is taken; so is none at all."""
    async with open_fetcher(FetchConfig(archive=archive)):
        pass


@pytest.mark.parametrize(
    "archive",
    [
        "http://archive.org:8080/{url}",
        "http://127.0.0.1/{url}",
        "http://archive/{url}",
        "http://a..b/{url}",
        "http://user@archive.org/{url}",
    ],
)
async def test_an_archive_that_may_not_be_called_is_named_in_the_hint(autojump_clock, archive):
    """The guard holds for the archive too: the page's own failure stands, and its hint names the setting."""
    stage = Stage(archive=archive, retries=0)
    stage.site.give(URL, answer(404))
    with pytest.raises(FetchError) as caught:
        await stage.batch(URL, recover=True)
    assert caught.value.code == "page_not_found"
    assert "`archive`" in caught.value.hint
    assert stage.site.urls == [URL]
