"""The key: typed in, kept in the tab, sent in a header, and forgotten."""

import pytest
from api_rig import ANN, BOB
from chromium_rig import Chromium
from dashboard_rig import check_clean, dashboard, look_again, look_at, sign_in

from sift_batch.service._service_config import ServiceConfig

pytestmark = pytest.mark.real

A = "https://a.example/"
WRONG = "siftb_" + "w" * 20


async def test_the_page_asks_for_a_key_first(chromium: Chromium) -> None:
    """Without a key nothing of the API is asked, and the field for it has the focus and a name."""
    async with dashboard(chromium, key=None) as (_, page):
        await page.see("Sign in")
        await page.focus_is_on("Key")
        assert await page.run("document.title") == "Sign in · sift-batch"
        await look_at(page, "sign-in")
        assert not [request for request in page.requests if "/v1/" in request["url"]]


async def test_a_wrong_key_is_told_at_the_field(chromium: Chromium) -> None:
    """What is no key is not sent; a wrong one is told as an alert, kept nowhere, and can be typed again."""
    async with dashboard(chromium, key=None) as (_, page):
        await page.type("two words")
        await page.press("Enter")
        await page.see("A key has 16 letters and digits or more")
        assert not [request for request in page.requests if "/v1/" in request["url"]]
        await page.run("document.getElementById('key').value = ''")
        await page.type(WRONG)
        await page.press("Enter")
        await page.see("The service does not know this key")
        await page.focus_is_on("Key")
        assert await page.run("document.getElementById('key').getAttribute('aria-invalid')") == "true"
        assert "does not know" in await page.alert()
        assert await page.run("sessionStorage.length") == 0
        await look_at(page, "wrong-key")
        await page.run("document.getElementById('key').value = ''")
        await sign_in(page, ANN)
        await page.see("No jobs yet")


async def test_too_many_wrong_keys_say_how_long_to_wait(chromium: Chromium) -> None:
    """A 429 for wrong keys is told with its time, and not as if the service were full."""
    async with dashboard(chromium, key=None, service=ServiceConfig(auth_failures_per_minute=1)) as (_, page):
        for _ in range(2):
            await page.run("document.getElementById('key').value = ''")
            await page.type(WRONG)
            await page.press("Enter")
            await page.until("document.getElementById('key-wrong').textContent")
        await page.see("too many such were tried", "before the next one")
        await look_at(page, "auth-failures")


async def test_the_key_lives_as_long_as_the_tab(chromium: Chromium) -> None:
    """It outlives a reload, is in no address and no field, and signing out forgets it with all jobs."""
    async with dashboard(chromium) as (api, page):
        job_id = await api.settled(A)
        await page.reload()
        await page.see(job_id)
        assert ANN not in await page.run("location.href + document.documentElement.outerHTML")
        assert await page.run("localStorage.length") == 0
        await page.click("Sign out")
        await page.see("Your key shows your own jobs")
        assert await page.run("sessionStorage.length") == 0
        assert job_id not in await page.run("document.documentElement.outerHTML")
        await sign_in(page, BOB)
        await page.see("No jobs yet")
        check_clean(page)


async def test_a_key_that_is_revoked_ends_the_visit(
    chromium: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key's end the page shows nothing of the jobs any more and asks for a key."""
    async with dashboard(chromium) as (api, page):
        await api.settled(A)
        await page.click("Sign out")
        await sign_in(page, ANN)
        await page.see("Your jobs")
        monkeypatch.setattr("api_rig.CALLERS", {})
        await look_again(page)
        await page.see("The service does not know this key, or knows it no more.")
        assert A not in await page.run("document.documentElement.outerHTML")


async def test_the_header_is_one_line_in_a_narrow_window(chromium: Chromium) -> None:
    """At 320 px the way out stands beside the name, also while the page is not connected."""
    places = (
        "['.brand', '#forget', 'header nav']"
        ".map((name) => document.querySelector(name).getBoundingClientRect())"
        ".map(({top, bottom, right}) => ({top, bottom, right}))"
    )
    async with dashboard(chromium) as (_, page):
        await page.see("Live")
        await page.show(width=320)
        for offline in (False, True):
            await page.offline(offline)
            await look_again(page)
            await page.see("Not connected" if offline else "Live")
            name, out, docs = await page.run(places)
            assert out["top"] < name["bottom"] <= out["bottom"]
            assert docs["bottom"] - docs["top"] < 30
            assert out["right"] <= 320
        await page.offline(False)
        await page.click("Try now")
        await page.see("Live")
