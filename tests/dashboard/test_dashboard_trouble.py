"""When the service fails, stops or can't be reached: the page says so, keeps what it has, and comes back."""

import socket
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from api_rig import Fetch
from chromium_rig import Chromium, page_of
from dashboard_rig import check_clean, dashboard, js, look_again, look_at, sign_in

from sift_batch import open_store
from sift_batch.service._open import open_service
from sift_batch.service._settings import load_settings
from sift_batch.testing import FaultyStore

pytestmark = pytest.mark.real

A, B, C = (f"https://{name}.example/" for name in "abc")


async def test_a_store_that_fails_is_told_and_tried_again(chromium: Chromium) -> None:
    """A 503 is a notice with a way to try at once; an action that got one says that nothing has changed."""
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner)
        async with dashboard(chromium, store=store) as (api, page):
            job_id = await api.settled(A)
            await look_again(page)
            await page.see(job_id)
            store.fail()
            await look_again(page)
            await page.see(
                "The service can't use its store at the moment. Nothing is lost", "Not connected", job_id
            )
            await look_at(page, "unavailable")
            store.recover()
            await page.click("Try now")
            await page.see("Live")
            await page.not_see("can't use its store")
            await page.run(f"location.hash = '#/{job_id}'")
            await page.see("1 done")
            store.fail()
            await page.click("Delete")
            await page.see("Delete this job?")
            await page.press("Tab")
            await page.press("Enter")
            await page.see("Nothing has changed; try again later.")
            await look_at(page, "refused-action")
            store.recover()


async def test_no_network(chromium: Chromium) -> None:
    """What is shown stays, with a warning that it may be old; signing in says that nobody answers."""
    async with dashboard(chromium) as (api, page):
        job_id = await api.settled(A)
        await look_again(page)
        await page.see(job_id)
        await page.offline(True)
        await look_again(page)
        await page.see("The service can't be reached.", job_id)
        assert "can't be reached" in await page.alert()
        await look_at(page, "unreachable")
        await page.offline(False)
        await page.click("Try now")
        await page.see("Live")


def opened(fetch: Fetch):
    """What opens a scripted fetch in place of the pipeline."""

    @asynccontextmanager
    async def open_it(config, *, gate=None):
        yield fetch

    return open_it


async def test_a_stop_and_a_start_of_the_service(chromium: Chromium, tmp_path: Path) -> None:
    """The page tells of the stop, and when the service is back, what became of the job; without a reload."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = load_settings(
        None,
        {},
        {
            "service.data": str(tmp_path / "data"),
            "service.port": port,
            "service.grace_seconds": "2s",
            "engine.shutdown_grace": "0.2s",
        },
    )
    async with page_of(chromium, f"http://127.0.0.1:{port}") as page:
        async with open_service(settings, fetcher=opened(Fetch(hang=[B]))):
            await page.visit()
            await sign_in(page, (tmp_path / "data" / "key").read_text().strip())
            await page.run("document.getElementById('new').open = true")
            await page.run(f"document.getElementById('urls').value = {js(A + chr(10) + B)}")
            await page.click("Start")
            await page.see("1 of 2 targets finished")
        await page.see("Not connected")
        assert "The service " in await page.alert()
        await look_at(page, "stopping")
        async with open_service(settings, fetcher=opened(Fetch())):
            await page.click("Try now")
            await page.see("Live", "The service was restarted meanwhile", "1 done, 1 not fetched")
            await look_at(page, "restarted")
            await page.click("Run again")
            await page.see("2 done")
            check_clean(page)
