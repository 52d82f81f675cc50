"""What does the page hold on to in a long session, and what does it take from the tabs beside it?"""

import pytest
from api_rig import Fetch
from chromium_rig import Chromium
from dashboard_rig import dashboard, js, look_again

from sift_batch import Config, TargetError

pytestmark = pytest.mark.real

A = "https://a.example/"

_COUNT_LISTENERS = """
(() => {
  window.listeners = 0;
  const { addEventListener: add, removeEventListener: remove } = EventTarget.prototype;
  AbortSignal.prototype.addEventListener = function (...what) { listeners++; add.apply(this, what); };
  AbortSignal.prototype.removeEventListener = function (...what) { listeners--; remove.apply(this, what); };
})()
"""
_PAUSE = """
import("/?dashboard-service.js").then(async ({ pause }) => {
  for (let n = 0; n < 20; n++) await pause(0.001);
})
"""
_NOTE_STREAMS = """
(() => {
  const plain = fetch, opened = [];
  window.fetch = (url, options) => {
    if (url.endsWith("/events")) opened.push([url.split("/").at(-2), options.signal]);
    return plain(url, options);
  };
  window.followed = () => opened.filter(([, signal]) => !signal.aborted).map(([id]) => id);
})()
"""
_EVENTS = """
import("/?dashboard-service.js").then(async ({ events }) => {
  const found = [];
  for await (const event of events(new Blob([TEXT]).stream())) found.push(event);
  return found;
})
"""


async def test_a_pause_leaves_nothing_behind(chromium: Chromium) -> None:
    """After a pause no listener of it is left at what ends a session, however many there were."""
    async with dashboard(chromium) as (_, page):
        await page.run(_COUNT_LISTENERS)
        await page.run(_PAUSE)
        assert await page.run("listeners") == 0


async def test_only_a_line_feed_ends_a_line_of_an_event(chromium: Chromium) -> None:
    """Other separators in a text are characters of it: nothing is cut there, and no field begins there."""
    data = '{"error":"one\u2028id: 9\u2029data: {}\x85two"}'
    text = f": comment\n\nid: 4\r\nevent: target\ndata: {data}\n\n"
    async with dashboard(chromium) as (_, page):
        found = await page.run(_EVENTS.replace("TEXT", js(text)))
        assert found == [{"event": "target", "id": "4", "data": data}]


async def test_a_tab_that_nobody_sees_leaves_the_connections_to_others(chromium: Chromium) -> None:
    """Hidden, it follows the job that it shows and no other; when it is seen again, it is up to date."""
    urls = [f"{A}{n}" for n in range(3)]
    config = Config(workers=4, workers_limit=4, jobs_per_caller=4, targets_per_job=4)
    async with dashboard(chromium, Fetch(hang=urls), config=config) as (api, page):
        await page.run(_NOTE_STREAMS)
        jobs = [await api.submitted(url) for url in urls]
        await look_again(page)
        await page.see("3 of 4", *urls)
        await page.until("followed().length === 2")
        await page.run(f"location.hash = '#/{jobs[0]}'")
        await page.see("0 of 1 target finished")
        await page.until(f"followed().length === 2 && followed().includes({js(jobs[0])})")
        await page.run("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })")
        await look_again(page)
        assert await page.run("followed()") == [jobs[0]]
        api.fetch.release()
        await page.see("The job has ended")
        await page.run("delete document.hidden")
        await look_again(page)
        await page.run("location.hash = '#/'")
        await page.see("nothing is being fetched")


async def test_the_end_of_a_job_leaves_the_focus_where_it_is(chromium: Chromium) -> None:
    """Whoever stands on a target when the job ends still stands there, with the target as it is now."""
    urls = [f"{A}{n}" for n in range(3)]
    async with dashboard(chromium, Fetch(hang=urls[1:])) as (api, page):
        job_id = await api.submitted(*urls)
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("1 of 3 targets finished")
        await page.run("document.querySelector('#t2 a').focus()")
        api.fetch.release()
        await page.see("The job has ended: 3 done.")
        await page.until("document.getElementById('t2').innerText.includes('done')")
        await look_again(page)
        await page.focus_is_on(urls[2])


async def test_a_rerun_is_offered_for_what_may_come_right(chromium: Chromium) -> None:
    """With one failure that is worth another try, the page says what a rerun fetches."""
    bad = TargetError("no such page", code="page_not_found", retryable=False)
    slow = TargetError("too slow", code="timeout", retryable=True)
    async with dashboard(chromium, Fetch(fail={A: bad, A + "slow": slow})) as (api, page):
        job_id = await api.settled(A, A + "slow")
        await page.run(f"location.hash = '#/{job_id}'")
        await page.see("too slow", "2 failed; a rerun fetches them.")
        await page.not_see("won't help")
