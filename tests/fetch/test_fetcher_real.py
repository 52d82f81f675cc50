"""The whole pipeline over real sockets and with real readers, seen from both ends."""

import random
from contextlib import asynccontextmanager

import pytest
import trio
from fetcher_sites import open_sites, page, silence
from fetcher_stage import FLEET, RESTRICTED, Desk
from hostile import SWITCHES, hostile_server
from reader_processes import children, until

from sift_batch import Gate, Options, RetryLater, Target, open_runner, open_store
from sift_batch.fetch import FetchConfig, FetchError, open_fetcher
from sift_batch.fetch._client import Client
from sift_batch.fetch._fetcher import Fetcher
from sift_batch.fetch._guard import Guard
from sift_batch.fetch._pipeline import Pipeline
from sift_batch.testing import FetchCase, check_fetch

pytestmark = pytest.mark.real


def without_readers(config: FetchConfig, gate: Gate) -> Fetcher:
    """A fetcher with a real client that leaves the pages unread."""
    guard = Guard(config)
    return Fetcher(Pipeline(config, gate, guard, Client(config, guard), Desk()))


async def test_a_page_comes_through_the_whole_pipeline():
    """A page behind redirects between hosts is fetched, read and described."""
    async with open_sites() as sites, open_fetcher(sites.config()) as fetch:
        sites.pages["a.org/"] = page("302 Found", location=sites.url("b.org/x"))
        sites.pages["b.org/x"] = page("301 Moved", location="y")
        body = b"<html><title>A page</title><body><p>It says hello to everybody.</p></body></html>"
        sites.pages["b.org/y"] = page(body=body, content_type="text/html", etag='"1"')
        result = await fetch(FLEET, Target(sites.url("a.org/"), Options(mode="text")))
        assert "hello" in result.content
        assert result.meta["url"] == sites.url("b.org/y")
        assert result.meta["redirects"] == [sites.url("a.org/"), sites.url("b.org/x")]
        assert (result.meta["title"], result.meta["etag"], result.meta["bytes_wire"]) == (
            "A page",
            '"1"',
            len(body),
        )


async def test_slots_follow_the_host_from_hop_to_hop():
    """Seen from the servers: never more than two at a host nor eight in all, nor less where there is work."""
    async with open_sites() as sites:
        fetch = without_readers(sites.config(), Gate())
        sites.seconds = 0.02
        hosts = [f"h{n}.org" for n in range(6)]
        for host in hosts:
            for n in range(6):
                sites.pages[f"{host}/{n}"] = page("302 Found", location=sites.url(f"{hosts[n]}/end"))
            sites.pages[f"{host}/end"] = page(body=b"the end")

        async def call(host: str, n: int) -> None:
            target = Target(sites.url(f"{host}/{n}"))
            assert (await fetch.interactive(FLEET, target, patience=60)).content == "the end"

        async with trio.open_nursery() as nursery:
            for host in hosts:
                for n in range(6):
                    nursery.start_soon(call, host, n)
        assert [sites.peak[host] for host in hosts] == [2] * 6
        assert sites.peak["all"] == 8
        assert len(sites.asked) == 2 * 36


async def test_never_two_slots_at_once():
    """A redirect from one host to another gets through a gate that has one slot in all."""
    async with open_sites() as sites:
        gate = Gate(total=1)
        fetch = without_readers(sites.config(robots=True, archive=sites.url("c.org/{url}")), gate)
        sites.pages["a.org/"] = page("302 Found", location=sites.url("b.org/"))
        sites.pages["c.org/" + sites.url("a.org/")] = page(body=b"a copy")
        with trio.fail_after(10):
            result = await fetch(FLEET, Target(sites.url("a.org/"), Options(recover=True)))
        assert (result.content, result.meta["original"]["http_status"]) == ("a copy", 404)
        assert sites.peak["all"] == 1
        places = ["a.org/robots.txt", "a.org/", "b.org/robots.txt", "b.org/"]
        assert sites.asked == [*places, "c.org/" + sites.url("a.org/")]


async def test_robots_and_recover_with_real_readers():
    """robots.txt is obeyed and a copy recovered over real connections."""
    async with open_sites() as sites:
        config = sites.config(robots=True, archive=sites.url("archive.org/web/{url}"))
        sites.pages["a.org/robots.txt"] = page(body=b"User-agent: *\nDisallow: /private\n")
        stamped = f"archive.org/web/20250203040506id_/{sites.url('a.org/dead')}"
        sites.pages[f"archive.org/web/{sites.url('a.org/dead')}"] = page(
            "302 Found", location="/" + stamped.partition("/")[2]
        )
        sites.pages[stamped] = page(body=b"<p><a href='/x'>x</a></p>", content_type="text/html")
        async with open_fetcher(config) as fetch:
            with pytest.raises(FetchError) as caught:
                await fetch(FLEET, Target(sites.url("a.org/private"), Options(recover=True)))
            assert caught.value.code == "robots"
            target = Target(sites.url("a.org/dead"), Options(mode="links", recover=True))
            result = await fetch(FLEET, target)
        assert result.meta["archived_at"] == "2025-02-03T04:05:06Z"
        assert sites.url("a.org/x") in result.content
        assert sites.asked.count("a.org/robots.txt") == 1


# What is no text has nothing to read in the usual mode; a blank in a Location is followed.
NO_TEXT = dict.fromkeys(["type_none_with_nul", "type_html_with_nul", "type_html_is_pdf"], "unsupported_type")
OUTCOMES = NO_TEXT | {"to_space": ""}


def code_of_fetch(name: str) -> str:
    """Give what a whole fetch of this switch ends in."""
    switch = SWITCHES[name]
    return OUTCOMES.get(name, switch.code if switch.fetch is None else switch.fetch)


@pytest.mark.slow
@pytest.mark.parametrize(("slow", "seconds", "at_once"), [(False, 30, 8), (True, 1.5, 40)])
async def test_every_way_to_misbehave_ends_in_its_code_and_spoils_nothing(slow, seconds, at_once):
    """Whatever a site does ends in its own code within the deadline, and its neighbours succeed."""
    gate = Gate(total=at_once, per_host=at_once)
    switches = {
        name: switch for name, switch in SWITCHES.items() if switch.kind != "busy" and switch.slow == slow
    }
    found: dict[str, str] = {}
    async with hostile_server() as server:
        ports = frozenset({server.port})
        # The pace is for the slow ones only: on a full machine a quick one may seem slow.
        limits = {"total_timeout": seconds, "min_bytes_per_second": 256 if slow else 0, "retries": 0}
        limits |= {"max_wire_bytes": 2**20, "max_decoded_bytes": 2**20}
        config = FetchConfig(allow=["127.0.0.0/8"], ports=ports, **limits)
        async with open_fetcher(config, gate=gate) as fetch:

            async def call(name: str) -> None:
                try:
                    await fetch.interactive(FLEET, Target(server.url(name)), patience=60)
                    found[name] = ""
                except FetchError as failed:
                    found[name] = failed.code

            async with trio.open_nursery() as nursery:
                for name in switches:
                    nursery.start_soon(call, name)
            assert found == {name: code_of_fetch(name) for name in switches}
            await call("page")
            assert found["page"] == ""
            await server.no_connection()
    assert gate.statistics().in_use == 0


BUSY = sorted(name for name, switch in SWITCHES.items() if switch.kind == "busy")


async def test_every_way_to_be_busy_holds_the_host():
    """Whatever a busy site says about the time, its host is held for 1 second to 10 minutes."""
    async with hostile_server() as server:
        for name in BUSY:
            gate = Gate()
            fetch = without_readers(FetchConfig(allow=["127.0.0.0/8"], ports=None), gate)
            with pytest.raises(RetryLater) as caught:
                await fetch(FLEET, Target(server.url(name)))
            assert 1 <= caught.value.retry_after <= 600
            assert (gate.statistics().held, gate.statistics().in_use) == (1, 0)


async def test_a_thousand_cancelled_fetches_leave_nothing_behind():
    """After 1,000 fetches that are cancelled at random moments every slot is free and no socket open."""
    chance = random.Random(7)
    gate = Gate(total=20, per_host=20)
    async with open_sites() as sites:
        fetch = without_readers(sites.config(), gate)
        sites.seconds = 0.002
        sites.pages["a.org/"] = page("302 Found", location=sites.url("b.org/"))
        sites.pages["b.org/"] = page(body=b"x" * 100_000)
        limiter = trio.CapacityLimiter(40)
        ended = 0

        async def call() -> None:
            nonlocal ended
            async with limiter:
                with trio.move_on_after(chance.uniform(0, 0.06)):
                    await fetch.interactive(FLEET, Target(sites.url("a.org/")), patience=10)
                    ended += 1

        async with trio.open_nursery() as nursery:
            for _ in range(1_000):
                nursery.start_soon(call)
        assert ended < 1_000
        now = gate.statistics()
        assert (now.in_use, now.waiting) == (0, 0)
        await until(lambda: not sites.open_now)
        assert (await fetch(FLEET, Target(sites.url("a.org/")))).content == "x" * 100_000


async def test_closing_with_calls_under_way():
    """When the block is left, calls under way and later ones are closed, and the workers are gone."""
    before = children()
    ends: list[str] = []
    gate = Gate()
    async with open_sites() as sites, trio.open_nursery() as nursery:
        sites.pages["slow.org/"] = silence
        sites.pages["quick.org/"] = page(body=b"a page")

        async def call(fetch) -> None:
            try:
                await fetch(FLEET, Target(sites.url("slow.org/")))
            except trio.ClosedResourceError:
                ends.append("closed")

        async with open_fetcher(sites.config(), gate=gate) as fetch:
            await fetch(FLEET, Target(sites.url("quick.org/")))
            assert children() - before
            nursery.start_soon(call, fetch)
            await until(lambda: sites.now["slow.org"] == 1)
        assert children() <= before
        with pytest.raises(trio.ClosedResourceError):
            await fetch(FLEET, Target(sites.url("quick.org/")))
        await until(lambda: ends == ["closed"])
        assert gate.statistics().in_use == 0
        nursery.cancel_scope.cancel()


async def test_it_keeps_the_rules_of_a_fetch():
    """The pipeline passes the published suite for fetches."""

    @asynccontextmanager
    async def case():
        gate = Gate()
        async with open_sites() as sites, open_fetcher(sites.config(), gate=gate) as fetch:
            sites.pages["a.org/"] = page(body=b"one")
            sites.pages["b.org/"] = page(body=b"two")
            sites.pages["busy.org/"] = page("429 Busy")
            sites.pages["slow.org/"] = silence
            yield FetchCase(
                fetch=fetch,
                targets=[Target(sites.url("a.org/")), Target(sites.url("b.org/"))],
                failing=[Target(sites.url("gone.org/")), Target("http://10.0.0.1/"), Target("ftp://a.org/")],
                busy=[Target(sites.url("busy.org/"))],
                slow=Target(sites.url("slow.org/")),
                caller=FLEET,
                idle=lambda: gate.statistics().in_use == 0 and not fetch._calls,
            )

    await check_fetch(case)


async def test_a_job_through_the_engine():
    """A job of pages, dead ones and refused ones ends with each target's own outcome."""
    async with open_sites() as sites, open_store(":memory:") as store:
        sites.pages["a.org/"] = page(body=b"one")
        async with open_fetcher(sites.config()) as fetch, open_runner(store, fetch) as runner:
            urls = [sites.url("a.org/"), sites.url("a.org/gone"), "http://10.0.0.1/", sites.url("b.org/")]
            job = await runner.submit(FLEET, [Target(url) for url in urls])
            await runner.wait(job.id)
            targets = (await runner.status(job.id)).targets
        assert [target.code for target in targets] == ["", "page_not_found", "refused", "page_not_found"]
        assert targets[0].result.content == "one"
        assert targets[2].http_status == 403


async def test_restricted_callers_have_workers_of_their_own():
    """No worker reads pages of both classes."""
    async with open_sites() as sites:
        sites.pages["one.org/"] = page(body=b"hello")
        async with open_fetcher(sites.config()) as fetch:
            before = children()
            await fetch(FLEET, Target(sites.url("one.org/")))
            for_fleet = children()
            await fetch(RESTRICTED, Target(sites.url("one.org/")))
            assert before < for_fleet < children()
