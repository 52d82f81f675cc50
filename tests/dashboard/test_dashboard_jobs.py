"""The list of jobs: empty, live, waiting, in pages; the figures above it; the form that starts one."""

import json
from typing import Any

import pytest
import trio
from api_rig import EVE, Fetch, until
from chromium_rig import Chromium, Page
from dashboard_rig import dashboard, look_again, look_at

from sift_batch import Config, Options, RetryLater, Target, TargetError, open_store
from sift_batch.testing import FaultyStore

pytestmark = pytest.mark.real

A, B, C = (f"https://{name}.example/" for name in "abc")
RECOVER = "Recover: look for a dead page in a public archive"
ANEW = "Fetch again, even if I have the same list already"


async def test_no_jobs_yet(chromium: Chromium) -> None:
    """An empty list says so and what to do; the figures are there, and the page says that it is live."""
    async with dashboard(chromium) as (_, page):
        await page.see("No jobs yet", "0 of 4", "0 bytes", "0 of 8", "Live")
        await page.focus_is_on("Jobs")
        await look_at(page, "empty")


async def test_a_job_runs_before_your_eyes(chromium: Chromium) -> None:
    """Progress, failures and the end appear by themselves, and a list that is read again keeps the focus."""
    fetch = Fetch(hang=[B, C], fail=[A])
    async with dashboard(chromium, fetch) as (api, page):
        job_id = await api.submitted(A, B, C)
        await look_again(page)
        await page.see(job_id, "1 of 3 targets", "1 failed", "running", "2 targets to go", "1 of 8")
        (bar,) = await page.nodes("progressbar", f"Progress of job {job_id}")
        assert bar["value"]["value"] == 1
        told = await page.run("document.querySelector('.bar').getAttribute('aria-valuetext')")
        assert told == "1 of 3 finished, 1 failed"
        await page.run(f"document.querySelector('a[href=\"#/{job_id}\"]').focus()")
        await look_at(page, "list-running")
        fetch.release()
        await page.see("3 of 3 targets", "partial", "nothing is being fetched")
        await page.focus_is_on(f"{A} and 2 more {job_id}")
        (graph,) = await page.nodes("image")
        assert "now 0, at most 1" in graph["name"]["value"]
        await page.until("document.getElementById('stored').textContent.trim() !== '0 bytes'")
        await look_at(page, "list-done")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("gate", "Waiting for a free slot"),
        ("host", "Waiting for the site: it gets no more"),
        ("retry_after", "Waiting as long as the site asked for"),
    ],
)
async def test_a_job_that_waits_says_why(chromium: Chromium, reason: str, words: str) -> None:
    """The reason stands in plain words in the list and in the job; what waits uses no slot."""
    fetch = Fetch()
    fetch.busy(B, error=RetryLater(retry_after=300, reason=reason))
    async with dashboard(chromium, fetch) as (api, page):
        job_id = await api.submitted(A, B)
        await look_again(page)
        await page.see(words, "0 of 8")
        await page.click(f"{A} and 1 more {job_id}", "link")
        await page.see(words, "since", "1 of 2 targets finished")
        if reason == "host":
            await look_at(page, "waiting")


async def test_a_job_waits_for_its_turn_and_for_the_store(chromium: Chromium) -> None:
    """A queued job says that others go first; one whose results can't be stored says that."""
    fetch, config = Fetch(hang=[A]), Config(workers=1, workers_limit=1, jobs_per_caller=4)
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner)
        async with dashboard(chromium, fetch, config=config, store=store) as (api, page):
            await api.submitted(A)
            await look_again(page)
            await page.see("running")
            await api.submitted(B)
            await look_again(page)
            await page.see("queued", "Waiting for its turn")
            store.fail(operations={"record"})
            fetch.release()
            await page.see("Waiting for the store")
            store.recover()
            await page.see("nothing is being fetched")


async def test_older_jobs_come_page_by_page(chromium: Chromium) -> None:
    """Fifty jobs are shown, the rest on request; the filter asks the service; nobody else's job is there."""
    async with dashboard(chromium, Fetch(fail=[A])) as (api, page):
        foreign = await api.settled(B, client=api.bob)
        for n in range(60):
            await api.settled(f"{B}{n}")
        failed = await api.settled(A)
        await look_again(page)
        await page.see(failed)
        assert await page.run("document.querySelectorAll('#job-list > li').length") == 50
        await page.click("Show older jobs")
        await page.until("document.querySelectorAll('#job-list > li').length === 61")
        assert "61 jobs shown." in await page.alert()
        await look_again(page)
        await trio.sleep(0.3)
        assert await page.run("document.querySelectorAll('#job-list > li').length") == 61
        await page.run(
            "const filter = document.getElementById('jobs-filter'); filter.value = 'failed';"
            " filter.dispatchEvent(new Event('change'))"
        )
        await page.until("document.querySelectorAll('#job-list > li').length === 1")
        await page.see(failed)
        assert foreign not in await page.text()


async def test_a_restricted_caller_sees_its_own_jobs_and_no_other(chromium: Chromium) -> None:
    """Its page is the same; a job of somebody else's is not there at all."""
    async with dashboard(chromium, Fetch(fail=[B]), key=EVE) as (api, page):
        own, foreign = await api.settled(A, B, client=api.eve), await api.settled(A)
        await look_again(page)
        await page.see(own, "partial", "1 failed")
        assert foreign not in await page.text()
        await page.click(f"{A} and 1 more {own}", "link")
        await page.see("1 done, 1 failed", "scripted failure")
        await look_at(page, "restricted")
        await page.run(f"location.hash = '#/{foreign}'")
        await page.see("There is no such job")


async def start(page: Page, urls: str) -> None:
    """Fill in the form and send it, with the keyboard alone."""
    await page.run("document.querySelector('#new summary').focus()")
    if not await page.run("document.getElementById('new').open"):
        await page.press("Enter")
    await page.press("Tab")
    await page.focus_is_on("URLs, one on each line")
    await page.run("document.getElementById('urls').value = ''")
    await page.type(urls)
    for field in ("Mode", "Question", RECOVER, ANEW, "Start"):
        await page.press("Tab")
        await page.focus_is_on(field)
    await page.press("Enter")


async def test_a_few_urls_are_started_from_the_page(chromium: Chromium) -> None:
    """One URL a line, by keyboard; the page goes to the new job, and an equal list finds it again."""
    async with dashboard(chromium, Fetch(hang=[B])) as (api, page):
        await page.see("No jobs yet")
        await start(page, f"\n  {A}\n\n{B}\n")
        await page.see("Started.", "1 of 2 targets finished", A, B)
        api.fetch.release()
        await page.see("2 done")
        assert sorted(api.fetch.order) == [A, B]
        first = await page.run("location.hash")
        await page.click("← All jobs", "link")
        await page.see("Your jobs")
        await start(page, f"{A}\n{B}")
        await page.see("You have the same list already")
        assert await page.run("location.hash") == first
        assert len(api.fetch.calls) == 2


async def test_lines_and_the_form_have_options(chromium: Chromium) -> None:
    """A line is a URL, a JSON object or passed over; the form has options for lines without their own."""
    async with dashboard(chromium, Fetch(hang=[A])) as (api, page):
        await page.see("No jobs yet")
        await page.run("document.getElementById('new').open = true")
        await page.run("document.getElementById('mode').value = 'text'")
        await page.run("document.getElementById('question').value = ' why? '")
        await page.run("document.getElementById('recover').click()")
        own = {"url": B, "options": {"mode": "full", "recover": False}, "id": 7}
        await look_at(page, "form")
        await start(page, f"# mine\n{A}\n\n  {json.dumps(own)}\r\n")
        await page.see("Started.", 'Other keys of a line than "url" and "options" were not sent.')
        api.fetch.release()
        await page.see("2 done")
        assert [call.target for call in api.fetch.calls] == [
            Target(A, Options(mode="text", question="why?", recover=True)),
            Target(B, Options(mode="full", question="why?")),
        ]
        await page.click("← All jobs", "link")
        await page.see("Your jobs")
        await start(page, A)
        await page.see("1 done")
        assert api.fetch.calls[-1].target == Target(A)


async def test_a_line_that_is_no_target_is_told_before_it_is_sent(chromium: Chromium) -> None:
    """Each bad line is named by its number, equal ones together, and what the service refuses as well."""
    async with dashboard(chromium) as (api, page):
        await page.see("No jobs yet")
        lines = [
            "# fine",
            A,
            "{",
            '"x"',
            "[]",
            '{"options": {}}',
            '{"url": "x", "options": []}',
            '{"url": "x", "jq": "."}',
        ]
        await start(page, "\n".join(lines))
        await page.see(
            "Line 3: the line is no valid JSON",
            "Lines 4, 5: a line is a URL or a JSON object",
            'Line 6: the JSON object has no "url" that is a string',
            'Line 7: "options" is no JSON object',
            'Line 8: put "jq" into "options"',
        )
        assert "Line 2" not in await page.alert()
        assert not [request for request in page.requests if request["method"] == "POST"]
        await look_at(page, "bad-json")
        options = {"grep": 1, "colour": "red"}
        await start(page, f"{A}\n#\n{json.dumps({'url': B, 'options': options})}\n{'x' * 9_000}")
        await page.see(
            "Line 3: grep: must be a text", "Line 3: colour: the fields are", "Line 4: url: must have"
        )
        await page.run("document.getElementById('question').removeAttribute('maxlength')")
        await page.run("document.getElementById('question').value = 'x'.repeat(9000)")
        await page.run("document.getElementById('urls').value = 'https://a.example/'")
        await page.click("Start")
        await page.see("question: must have at most 8,192 characters")
        await page.focus_is_on("Question")
        assert api.fetch.calls == []


async def test_jobs_are_told_apart_by_what_they_fetch(chromium: Chromium) -> None:
    """A row has the first URL and how many more there are; each is asked for once, when it is in view."""
    long = f"{C}{'x' * 300}"
    async with dashboard(chromium) as (api, page):
        ids = [await api.settled(f"{B}{n}") for n in range(30)]
        one, cut = await api.settled(A, B, C), await api.settled(long)
        await look_again(page)
        await page.see(f"{A} and 2 more", f"{long[:120]}…")
        (link,) = await page.nodes("link", f"{A} and 2 more {one}")
        assert link
        assert await page.nodes("link", f"{long[:120]}… {cut}")

        def asked() -> list[str]:
            return [r["url"].split("/")[-2] for r in page.requests if r["url"].endswith("/targets?limit=1")]

        await page.see(f"{B}29")
        assert ids[0] not in asked()
        await page.run("scrollTo(0, document.body.scrollHeight)")
        await page.until(f"document.getElementById('job-list').innerText.includes('{B}0\\n')")
        await look_again(page)
        await page.run("location.hash = '#/x'")
        await page.see("There is no such job")
        await page.click("← All jobs", "link")
        await page.see(f"{A} and 2 more")
        assert len(asked()) == len(set(asked()))
        await look_at(page, "names")


async def test_what_is_wrong_with_a_list_is_told_by_line(chromium: Chromium) -> None:
    """An empty form, a refused URL and a full house are told beside the form, which keeps what was typed."""
    fetch = Fetch(hang=[B])
    fetch.refuse[C] = TargetError("this address may not be called", code="refused", hint="use another")
    async with dashboard(chromium, fetch, config=Config(jobs_per_caller=1, targets_per_job=3)) as (api, page):
        await page.see("No jobs yet")
        await start(page, " \n ")
        await page.see("Put at least one URL here.")
        await start(page, f"{A}\n\n{C}")
        await page.see("Line 3: this address may not be called")
        await page.focus_is_on("URLs, one on each line")
        await look_at(page, "bad-lines")
        await start(page, "\n".join(f"{A}{n}" for n in range(4)))
        await page.see("a job may have at most 3 targets, these are 4")
        live = await api.submitted(B)
        await start(page, A)
        await page.see("You have as many live jobs as you may have")
        assert await page.run("document.getElementById('urls').value") == A
        await look_at(page, "full-house")
        await page.click("Open the live job", "link")
        await page.see("0 of 1 target finished", B)
        assert live in await page.run("location.hash")
        fetch.release()


async def test_two_of_many_live_jobs_are_followed(chromium: Chromium) -> None:
    """No more streams are open than leave a browser room for other requests; all jobs come to their end."""
    urls = [f"https://h{n}.example/" for n in range(6)]
    config = Config(workers=6, workers_limit=6, jobs_per_caller=6, targets_per_job=4)
    async with dashboard(chromium, Fetch(hang=urls), config=config) as (api, page):
        for url in urls:
            await api.submitted(url)
        await look_again(page)
        await page.see("6 of 6", "6 of 8", *urls[2:])

        def streams() -> list[dict[str, Any]]:
            return [request for request in page.requests if request["url"].endswith("/events")]

        await until(lambda: len(streams()) == 2)
        assert all("authorization" in request["headers"] for request in streams())
        api.fetch.release()
        await page.see("nothing is being fetched")
        await page.until("!document.getElementById('job-list').innerText.includes('running')")
