"""One target: its content as text and nothing else, whole or in parts, or what went wrong."""

import pytest
from api_rig import Fetch
from chromium_rig import Chromium
from dashboard_rig import dashboard, look_at

from sift_batch import Config, Result, TargetError

pytestmark = pytest.mark.real

A, B, C = (f"https://{name}.example/" for name in "abc")
HOSTILE = (
    "</pre><script>window.hit = 1</script><img src=x onerror='window.hit = 2'>"
    "<a href='javascript:window.hit = 3'>a link</a><style>body { display: none }</style>"
)


async def test_hostile_content_is_text(chromium: Chromium) -> None:
    """Markup in content, meta, error, hint or URL is shown as it is written: nothing of it takes effect."""
    url = f"{A}?q=<script>window.hit=4</script>"
    fetch = Fetch(
        results={url: Result(HOSTILE, {"title": HOSTILE, "code": "empty", "hint": HOSTILE})},
        fail={B: TargetError(HOSTILE, hint=HOSTILE, code="tls")},
    )
    async with dashboard(chromium, fetch) as (api, page):
        job_id = await api.settled(url, B)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("1 done, 1 failed", HOSTILE, url)
        await page.click(url, "link")
        await page.until("document.querySelector('pre.content')")
        await page.focus_is_on(url)
        assert await page.run("document.querySelector('pre.content').textContent") == HOSTILE
        await page.run("document.querySelector('#target-body summary').click()")
        await page.until(f"document.querySelector('#target-body dl').innerText.includes({HOSTILE!r})")
        assert await page.run("document.querySelectorAll('main img, main script, main style').length") == 0
        await look_at(page, "hostile")
        await page.click("Next target", "link")
        await page.see("failed", "tls")
        # The status of a failed target is what the API makes of its code: the site has not said it.
        assert "502" not in await page.text()
        assert await page.run("window.hit") is None
        await page.click("← Job", "link")
        await page.see("Targets")
        await page.focus_is_on(B)


async def test_a_huge_result_is_read_in_parts(chromium: Chromium) -> None:
    """A part is fetched at a time; together they are the whole text, and the button keeps the focus."""
    text = "".join(f"Paragraph {n}: {'word ' * 60}\n\n" for n in range(150))
    async with dashboard(chromium, Fetch(results={A: text}), config=Config()) as (api, page):
        job_id = await api.settled(A)
        await page.run(f"location.hash = '#/{job_id}/0'")
        await page.see("Paragraph 0:", "The first 1", f"of {len(text):,} characters")
        await look_at(page, "huge")
        await page.run("document.querySelector('#target-body .more').focus()")
        await page.press("Enter")
        await page.see("The first 3")
        await page.focus_is_on("Read on")
        await page.press("Enter")
        await page.see("The text is complete.")
        assert await page.run("document.querySelector('pre.content').textContent") == text
        assert all("max_chars=20000" in r["url"] for r in page.requests if "/targets/0" in r["url"])


async def test_a_target_that_is_not_fetched_yet(chromium: Chromium) -> None:
    """It says so, and the result appears by itself; an empty one says that it is empty."""
    fetch = Fetch(hang=[A], results={B: ""})
    async with dashboard(chromium, fetch) as (api, page):
        job_id = await api.submitted(A, B)
        await page.run(f"location.hash = '#/{job_id}/0'")
        await page.see("Not fetched yet", A)
        await look_at(page, "not-fetched")
        fetch.release()
        await page.see(f"content of {A}")
        await page.click("Next target", "link")
        await page.see("The result is empty.")
        await page.run(f"location.hash = '#/{job_id}/2'")
        await page.see("There is no such target")


async def test_the_text_is_copied_or_selected(chromium: Chromium) -> None:
    """What is shown is copied, and how much that is is told; without a clipboard it is selected instead."""
    text = "word " * 6_000
    async with dashboard(chromium, Fetch(results={A: text})) as (api, page):
        job_id = await api.settled(A, B)
        await page.run(f"location.hash = '#/{job_id}/0'")
        await page.see("word word")
        clipboard = "Object.defineProperty(navigator, 'clipboard', {configurable: true, value: %s})"
        await page.run(clipboard % "{writeText: async (text) => { window.copied = text; }}")
        await page.click("Copy text")
        await page.see("Copied: the first 20,000 of 30,000 characters.")
        assert await page.run("copied") == text[:20_000]
        await page.click("Read on")
        await page.see("The text is complete.")
        await page.click("Copy text")
        await page.see("Copied.")
        assert await page.run("copied") == text
        await page.run(clipboard % "undefined")
        await page.click("Copy text")
        await page.see("The text is selected")
        assert await page.run("getSelection().toString()") == text
        await page.run(f"location.hash = '#/{job_id}/1'")
        await page.see(f"content of {B}")
        await look_at(page, "target")


async def test_a_page_is_opened_without_a_trace(chromium: Chromium) -> None:
    """A target's page gets no referrer and no hold of this one; what is not of the web has no link."""
    odd = "javascript:window.hit=1"
    async with dashboard(chromium, Fetch(fail=[B])) as (api, page):
        job_id = await api.settled(A, B, odd)
        for idx, url in enumerate((A, B)):
            await page.run(f"location.hash = '#/{job_id}/{idx}'")
            await page.until(f"document.getElementById('target-title').textContent === {url!r}")
            (link,) = await page.nodes("link", "Open the page")
            assert await page.run("document.querySelector('#target-body a').href") == url
            assert await page.run("document.querySelector('#target-body a').rel") == "noreferrer noopener"
            assert link
        assert not await page.nodes("button", "Copy text")  # there is nothing to copy of a failure
        await look_at(page, "failed-target")
        await page.run(f"location.hash = '#/{job_id}/2'")
        await page.see(f"content of {odd}")
        assert not await page.nodes("link", "Open the page")
        assert await page.nodes("button", "Copy text")
