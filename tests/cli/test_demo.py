"""`sift-batch demo` as a real process, and the site that it serves."""

import json
import signal
import socket

import pytest
import trio

from sift_batch import Caller, Gate, Result, RetryLater, TargetError
from sift_batch.cli import demo_site
from sift_batch.cli.demo_pages import PAGES
from sift_batch.cli.demo_site import open_site
from sift_batch.fetch import FetchConfig, open_fetcher

pytestmark = pytest.mark.real


@pytest.mark.slow
def test_the_demo_shows_each_page_and_where_the_results_are(run, tmp_path, read):
    """All pages are fetched, those that are meant to fail fail, and the table and the files are named."""
    done = run("demo", "--dir", "d")
    assert done.code == 0, done.err
    out = done.out.decode()
    for promise in (
        "A rain garden in one weekend",
        "始発列車",
        "Tageskarte",
        "does not exist",
        "has a fault",
    ):
        assert promise in out
    assert "results: d/results.jsonl\nstore:   d/results.jsonl.sift\n" in out
    views = read(tmp_path / "d" / "results.jsonl")
    assert len(views) == len(PAGES)
    assert [view["code"] for view in views if view["code"]] == [
        "page_not_found",
        "unsupported_type",
        "server_error",
    ]


@pytest.mark.slow
def test_a_demo_whose_table_nobody_reads_has_come_to_its_end(start):
    """A closed pipe changes neither the exit code nor what is said on standard error."""
    running = start("demo", "--dir", "d")
    running.process.stdout.close()
    running.process.stdin.close()
    assert running.process.wait(60) == 0
    said = running.process.stderr.read()
    assert b"17 targets: " in said
    assert said.count(b"\n") == 2


@pytest.mark.slow
def test_an_interrupted_demo_is_carried_on(start, run, tmp_path, read):
    """Ctrl-C stores what is in flight and says so; the second run fetches only the rest."""
    running = start("demo", "--dir", "d", "--json")
    results = tmp_path / "d" / "results.jsonl"
    running.process.stderr.readline()
    while not (results.exists() and results.stat().st_size):
        assert running.process.poll() is None
    running.signal(signal.SIGINT)
    done = running.end()
    assert done.code == 130
    assert "will be finished and stored" in done.err
    summary = json.loads(done.out)
    assert summary["not_fetched"] > 0
    done = run("demo", "--dir", "d", "--json")
    assert done.code == 0, done.err
    again = json.loads(done.out)
    assert again["carried"] == summary["done"] > 0
    assert len(read(results)) == len(PAGES)


@pytest.mark.slow
def test_a_demo_whose_port_is_taken_begins_again(start, run, tmp_path, read):
    """Where an interrupted demo's port is another's by now, its results are no reason to refuse a new one."""
    running = start("demo", "--dir", "d", "--json")
    results = tmp_path / "d" / "results.jsonl"
    running.process.stderr.readline()
    while not (results.exists() and results.stat().st_size):
        assert running.process.poll() is None
    running.signal(signal.SIGINT)
    assert json.loads(running.end().out)["done"] > 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (tmp_path / "d" / "port").write_text(f"{taken.getsockname()[1]}\n")
        done = run("demo", "--dir", "d", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["carried"] == 0
    assert len(read(results)) == len(PAGES)


@pytest.mark.slow
def test_a_second_demo_in_the_same_folder_disturbs_nothing(start, run, tmp_path):
    """While a demo runs, another one in its folder is refused in one line and leaves its files alone."""
    running = start("demo", "--dir", "d", "--json")
    running.process.stderr.readline()
    port = (tmp_path / "d" / "port").read_text()
    done = run("demo", "--dir", "d")
    assert (done.code, done.out, done.err.count("\n")) == (3, b"", 1)
    assert "d/results.jsonl.sift: another sift-batch run is using it" in done.err
    assert (tmp_path / "d" / "port").read_text() == port
    assert running.end().code == 0
    done = run("demo", "--dir", "d", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["carried"] == 0


def test_a_demo_takes_no_results_that_are_not_its_own(run, tmp_path):
    """A folder with somebody's results.jsonl in it is refused, and the file is as it was."""
    (tmp_path / "results.jsonl").write_text("mine\n")
    (tmp_path / "results.jsonl.sift").write_text("mine too\n")
    done = run("demo", "--dir", ".")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert (tmp_path / "results.jsonl").read_text() == "mine\n"


@pytest.mark.slow
def test_the_demo_gets_along_with_ascii(run):
    """In a locale without other scripts the table comes out with escapes, and the demo ends well."""
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "NO_COLOR": "1"}
    done = run("demo", env=plain)
    assert done.code == 0, done.err
    assert done.out.isascii()
    assert b"\\u59cb" in done.out


async def test_the_site_serves_its_kinds_of_pages(nursery, monkeypatch):
    """The pages of the site come as the kinds they stand for: busy once, missing, packed, moved."""

    async def no_time(_seconds: float) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(demo_site.trio, "sleep", no_time)
    site, listeners = await open_site(0)
    nursery.start_soon(trio.serve_listeners, site.answer, listeners)
    targets = {page.path: target for page, target in zip(PAGES, site.targets, strict=True)}

    async def get(path: str) -> Result:
        # A gate for each page: the busy host would be held otherwise.
        config = FetchConfig(allow=["127.0.0.0/8"], ports=None)
        async with open_fetcher(config, gate=Gate()) as fetch:
            return await fetch(Caller("demo"), targets[path])

    with pytest.raises(RetryLater) as busy:
        await get("/busy/report")
    assert busy.value.retry_after == 3
    with pytest.raises(TargetError, match="does not exist"):
        await get("/nothing-here")
    assert "Day 800: 22 km" not in (await get("/log")).content
    assert (await get("/menu")).content.splitlines()[-1] == "Rote Grütze „wie früher“: 4,20 €"
    assert "nine minutes" in (await get("/handbook.pdf")).content
    assert (await get("/data/stations.json")).content == '{"name":"Ridge 3","height_m":420,"online":false}'
    assert (await get("/news.xml")).content.startswith("# Harbour news\n\n## [Crane repaired](http://")
    assert (await get("/to-another-host")).meta["title"] == "High water at the old pier"
    assert (await get("/slow/forecast")).meta["bytes_wire"] > 0
    nursery.cancel_scope.cancel()


async def test_one_loopback_address_is_enough(nursery, monkeypatch):
    """Where only 127.0.0.1 can be bound, all pages are on that host, and a taken port is no obstacle."""
    real = demo_site._bind

    async def only_the_first(address: str, port: int) -> trio.SocketListener:
        if address != "127.0.0.1":
            raise OSError("can't assign requested address")
        return await real(address, port)

    monkeypatch.setattr(demo_site, "_bind", only_the_first)
    first, listeners = await open_site(0)
    second, more = await open_site(first.port)
    assert first.port != second.port
    assert (first.hosts, len(listeners)) == (1, 1)
    assert all(target.url.startswith(f"http://127.0.0.1:{first.port}/") for target in first.targets)
    for listener in listeners + more:
        await listener.aclose()


async def test_the_site_survives_nonsense(nursery):
    """A client that talks nonsense or leaves early does not stop the site."""
    site, listeners = await open_site(0)
    nursery.start_soon(trio.serve_listeners, site.answer, listeners)
    for nonsense in (b"", b"\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"\xff" * 100_000):
        stream = await trio.open_tcp_stream("127.0.0.1", site.port)
        async with stream:
            await stream.send_all(nonsense)
    async with await trio.open_tcp_stream("127.0.0.1", site.port) as stream:
        await stream.send_all(b"GET /nowhere HTTP/1.1\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 404 ")
    nursery.cancel_scope.cancel()
