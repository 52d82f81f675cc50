"""One job: how it ended, its targets, and what may be done with it."""

import json

import pytest
import trio
from api_rig import ANN, EVE, Client, Fetch
from chromium_rig import Chromium, Page
from dashboard_rig import CONFIG, dashboard, look_again, look_at

from sift_batch import Config, TargetError

pytestmark = pytest.mark.real

A, B, C = (f"https://{name}.example/" for name in "abc")
MISSING = TargetError(
    "the site has no such page", hint="check the URL", status=404, code="page_not_found", retryable=False
)


async def test_a_job_that_ended_well(chromium: Chromium) -> None:
    """Its page is reached by keyboard, has its own title, and leads back to the list."""
    async with dashboard(chromium) as (api, page):
        job_id = await api.settled(A, B)
        await look_again(page)
        await page.see(job_id)
        await page.run(f"document.querySelector('a[href=\"#/{job_id}\"]').focus()")
        await page.press("Enter")
        await page.see("2 done", "Submitted", "Kept until", A, B)
        await page.focus_is_on(f"Job {job_id}")
        assert await page.run("document.title") == f"2 of 2 · Job {job_id} · sift-batch"
        assert [node["name"]["value"] for node in await page.nodes("button")] == [
            "Sign out",
            "Save results",
            "Delete",
        ]
        await look_at(page, "done")
        await page.run("history.back()")
        await page.see("Your jobs")
        await page.focus_is_on("Jobs")


async def test_failures_are_told_with_code_and_hint(chromium: Chromium) -> None:
    """A failed job shows each error as the service says it, and offers to run what failed again."""
    async with dashboard(chromium, Fetch(fail={A: MISSING, B: TargetError("<b>no</b>", code="tls")})) as (
        api,
        page,
    ):
        job_id = await api.settled(A, B)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("0 done, 2 failed", "the site has no such page", "check the URL", "page_not_found")
        await page.see("<b>no</b>", "What failed is not retryable: a rerun won't help.", "Run again")
        await look_at(page, "failed")


async def test_a_running_job_is_live(chromium: Chromium) -> None:
    """Finished targets and the running one are marked as it goes on; the end is told once, politely."""
    urls = [f"{A}{n}" for n in range(5)]
    fetch = Fetch(hang=urls[1:3])
    async with dashboard(chromium, fetch) as (api, page):
        job_id = await api.submitted(*urls)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("1 of 5 targets finished")
        await page.until("document.getElementById('t1').innerText.includes('running')")
        fetch.release(urls[1])
        await page.see("2 of 5 targets finished", "Time left", "Pace")
        await page.until("document.getElementById('t1').innerText.includes('done')")
        await page.until("document.getElementById('t2').innerText.includes('running')")
        await look_at(page, "running")
        assert "2 of 5" not in await page.alert()
        fetch.release()
        await page.see("5 done", "The job has ended: 5 done.")
        await page.until("!document.getElementById('target-list').innerText.includes('pending')")
        streams = [request for request in page.requests if request["url"].endswith("/events")]
        assert streams[0]["headers"]["last-event-id"].isdigit()


async def test_cancel_and_run_again(chromium: Chromium) -> None:
    """A cancel says what is in flight, each target if it was not fetched; a rerun carries the rest over."""
    fetch = Fetch(hang=[B])
    async with dashboard(chromium, fetch) as (api, page):
        job_id = await api.submitted(A, B, C)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("1 of 3 targets finished")
        await page.click("Cancel")
        await page.see("cancelled", "One fetch is still in flight.")
        await page.focus_is_on(f"Job {job_id}")
        await look_at(page, "cancelling")
        fetch.release()
        await page.see("2 done, 1 not fetched", "not_fetched")
        await look_at(page, "cancelled")
        await page.click("Run again")
        await page.see("Rerun of", "3 done", job_id)
        assert job_id not in await page.run("location.hash")
        assert fetch.order == [A, B, C]
        await look_at(page, "rerun")


async def test_deleting_asks_first(chromium: Chromium) -> None:
    """The dialog has the focus on what does no harm; Escape keeps the job, Delete removes it for good."""
    async with dashboard(chromium) as (api, page):
        job_id = await api.settled(A)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.click("Delete")
        await page.see("Delete this job?")
        await page.focus_is_on("Keep it")
        (dialog,) = await page.nodes("dialog")
        assert dialog["name"]["value"] == "Delete this job?"
        await look_at_dialog(page)
        await page.press("Escape")
        await page.not_see("Delete this job?")
        await page.focus_is_on("Delete")
        await page.press("Enter")
        await page.see("Delete this job?")
        await page.press("Tab")
        await page.press("Enter")
        await page.see("The job was deleted.", "No jobs yet")
        assert (await api.ann.get(f"/v1/batch/{job_id}")).status == 410


async def look_at_dialog(page: Page) -> None:
    """Look at an open dialog, whose page behind it is out of reach."""
    assert await page.run("getComputedStyle(document.getElementById('sure')).display") == "block"
    assert not await page.nodes("button", "Sign out")


@pytest.mark.parametrize(
    ("reason", "words", "config"),
    [
        ("deleted", "It was deleted.", CONFIG),
        ("budget", "It made room for newer jobs.", Config(max_bytes=1_000, sweep_every=0.05)),
        ("ttl", "Nobody had read it for as long as jobs are kept.", Config(ttl=0.1, sweep_every=0.05)),
    ],
)
async def test_a_job_that_is_gone_says_why(
    chromium: Chromium, reason: str, words: str, config: Config
) -> None:
    """A 410 is told with its reason, to whom the job belonged, and leads back to the list."""
    async with dashboard(chromium, Fetch(results={A: "x" * 2_000}), config=config) as (api, page):
        job_id = await api.settled(A)
        if reason == "deleted":
            await api.ann.send("DELETE", f"/v1/batch/{job_id}")
        else:
            await api.settled(B)
        with trio.fail_after(5):
            while await api.runner.job(job_id) is not None:  # noqa: ASYNC110 - nobody is told of it
                await trio.sleep(0.05)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("This job is gone", words)
        await page.focus_is_on("This job is gone")
        await look_at(page, f"gone-{reason}")
        await page.click("← All jobs", "link")
        await page.see("Your jobs")


async def test_a_job_of_somebody_else_is_not_there(chromium: Chromium) -> None:
    """Another caller's job, one that never was, and a restricted caller's deleted one look the same."""
    async with dashboard(chromium, key=EVE) as (api, page):
        foreign = await api.settled(A)
        own = await api.settled(B, client=api.eve)
        await Client(api.server.port, EVE).send("DELETE", f"/v1/batch/{own}")
        seen = set()
        for job_id in (foreign, own, "0" * 32, "b_x"):
            await page.run(f"location.hash = '#/{job_id}'")
            await page.until("document.activeElement?.id === 'missing-title'")
            seen.add(await page.run("document.getElementById('missing').innerText"))
            await page.run("location.hash = '#/'")
            await page.see("Your jobs")
        assert len(seen) == 1
        assert "There is no such job" in seen.pop()


async def test_a_thousand_targets_without_lag(chromium: Chromium) -> None:
    """They come page by page and can be filtered; with all of them shown, a page is drawn in no time."""
    urls = [f"{A}{n}" for n in range(1_000)]
    async with dashboard(chromium, Fetch(fail=[urls[5], urls[950]])) as (api, page):
        job_id = await api.settled(*urls)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("998 done, 2 failed")
        for shown in range(200, 1_001, 100):
            await page.click("Show more targets")
            await page.until(f"document.querySelectorAll('#target-list > li').length === {shown}")
        assert "1,000 targets shown." in await page.alert()
        assert await page.run("document.getElementById('more-targets').hidden")
        assert await page.run(
            "[...document.querySelectorAll('#target-list > li')].every((row, at) => row.idx === at)"
        )
        frame = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        took = await page.run(
            f"(async () => {{ const begin = performance.now(); scrollTo(0, 20000); await {frame};"
            " return performance.now() - begin; })()"
        )
        assert took < 500, took
        await page.run(
            "const filter = document.getElementById('targets-filter'); filter.value = 'failed';"
            " filter.dispatchEvent(new Event('change'))"
        )
        await page.until("document.querySelectorAll('#target-list > li').length === 2")
        await page.see("scripted failure", urls[950])
        await look_at(page, "thousand")


async def test_results_are_saved_as_lines(chromium: Chromium) -> None:
    """All results of a job can be kept as a file of JSON lines; the key is in no address for it."""
    async with dashboard(chromium) as (api, page):
        job_id = await api.settled(A)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.run(
            "window.saved = []; const make = URL.createObjectURL;"
            " URL.createObjectURL = (blob) => {"
            " blob.text().then((text) => saved.push(text)); return make(blob); };"
            " HTMLAnchorElement.prototype.click = function () { saved.push(this.download, this.href); }"
        )
        await page.click("Save results")
        await page.until("saved.length === 3")
        name, href, text = await page.run("saved")
        assert name == f"{job_id}.jsonl"
        assert ANN not in href
        assert json.loads(text)["url"] == A
