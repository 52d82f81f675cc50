"""The dashboard under test: a service with a scripted fetch, a browser before it, and what is always true.

Each page that a test looks at is looked at in both schemes and in a narrow window too. With
`DASHBOARD_PICTURES` set to a folder, what was looked at is kept there as pictures.
"""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from api_rig import ANN, BOB, EVE, Api, Fetch, serving
from chromium_rig import Chromium, Page, name_of, page_of, property_of, role_of

from sift_batch import Config

KEYS = (ANN, BOB, EVE)
CONFIG = Config(jobs_per_caller=4, targets_per_job=1_000, retry_wait=0.05)
NAMED = (
    "button",
    "link",
    "textbox",
    "combobox",
    "checkbox",
    "progressbar",
    "image",
    "dialog",
    "list",
    "region",
)
PICTURES = os.environ.get("DASHBOARD_PICTURES")

_CONTRAST = """
(() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const colour = (text) => [...text.match(/[\\d.]+/g).map(Number), 1].slice(0, 4);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = colour(getComputedStyle(at).backgroundColor);
      if (found[3] === 1) return found;
    }
    return [255, 255, 255, 1];
  };
  const ratio = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const low = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement, style = getComputedStyle(element);
    if (!walk.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("svg, option")) continue;
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const found = ratio(colour(style.color), ground(element));
    if (found < (large ? 3 : 4.5)) low.push(`${walk.currentNode.data.trim()}: ${found.toFixed(2)}`);
  }
  for (const field of document.querySelectorAll("input, select, textarea, button")) {
    if (!field.checkVisibility() || field.disabled || field.type === "checkbox") continue;
    const found = ratio(colour(getComputedStyle(field).borderTopColor), ground(field.parentElement));
    if (found < 3) low.push(`edge of ${field.id || field.textContent}: ${found.toFixed(2)}`);
  }
  return low;
})()
"""

_FACTS = """
({
  lang: document.documentElement.lang,
  title: document.title,
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  styled: document.querySelectorAll("[style], style").length,
  headings: [...document.querySelectorAll("h1, h2, h3")]
    .filter((e) => e.checkVisibility()).map((e) => +e.localName[1]),
  twice: [...document.querySelectorAll("[id]")]
    .map((e) => e.id).filter((id, at, all) => all.indexOf(id) !== at),
  lost: ["aria-labelledby", "aria-describedby"]
    .flatMap((name) => [...document.querySelectorAll(`[${name}]`)].map((e) => e.getAttribute(name)))
    .flatMap((ids) => ids.trim().split(/ +/)).filter((id) => !document.getElementById(id)),
  small: [...document.querySelectorAll("button, select, input, summary")].filter((e) => e.checkVisibility())
    .filter((e) => e.type !== "checkbox" && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML),
})
"""


@asynccontextmanager
async def dashboard(
    chromium: Chromium, fetch: Fetch | None = None, *, key: str | None = ANN, **options: Any
) -> AsyncIterator[tuple[Api, Page]]:
    """Serve the page and open it in a browser; signed in, unless `key` is None."""
    options.setdefault("config", CONFIG)
    async with (
        serving(fetch, **options) as api,
        page_of(chromium, f"http://127.0.0.1:{api.server.port}") as page,
    ):
        await page.visit()
        if key is not None:
            await sign_in(page, key)
        yield api, page
        check_clean(page)
        assert api.errors == []


async def sign_in(page: Page, key: str) -> None:
    """Type a key as a user does: the field has the focus."""
    await page.until("document.activeElement?.id === 'key'")
    await page.type(key)
    await page.press("Enter")
    await page.until("!document.getElementById('forget').hidden")


async def look_again(page: Page) -> None:
    """Come back to the tab: the page reads the list at once, and not when its time has come."""
    await page.run("dispatchEvent(new Event('visibilitychange'))")


def check_clean(page: Page) -> None:
    """The page asked nobody else, told no address its key, and has nothing to complain about."""
    assert page.complaints == [], page.complaints
    for request in page.requests:
        assert request["url"].startswith((f"{page.origin}/", "data:image/svg", f"blob:{page.origin}/")), (
            request
        )
        assert not any(key in request["url"] for key in KEYS), request


async def look_at(page: Page, name: str) -> None:
    """Check what holds for every page: names, headings, contrast in both schemes, nothing cut off."""
    tree = await page.nodes()
    nameless = [role_of(node) for node in tree if role_of(node) in NAMED and not name_of(node).strip()]
    assert nameless == [], f"without a name: {nameless}"
    assert len([node for node in tree if role_of(node) == "main"]) == 1
    assert len([node for node in tree if role_of(node) == "banner"]) == 1
    unreachable = [
        name_of(node)
        for node in tree
        if role_of(node) in ("button", "link", "textbox", "combobox", "checkbox")
        and not property_of(node, "focusable")
        and not property_of(node, "disabled")
    ]
    assert unreachable == []
    for width, dark, scale in ((1100, False, 1.0), (1100, True, 1.0), (320, False, 1.0), (1280, False, 2.0)):
        await page.show(width=width, dark=dark, scale=scale)
        facts = await page.run(_FACTS)
        assert facts["lang"] == "en"
        assert facts["title"].endswith("sift-batch")
        assert facts["wide"] <= 0, f"{facts['wide']} px too wide in {width}"
        assert facts["styled"] == 0
        assert facts["twice"] == facts["lost"] == facts["small"] == [], facts
        levels = facts["headings"]
        assert levels.count(1) == 1
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels)), levels
        low = await page.run(_CONTRAST)
        assert low == [], low
        if PICTURES:
            kind = f"{width}{'-dark' if dark else ''}{'-zoom' if scale > 1 else ''}"
            await page.picture(Path(PICTURES) / f"{name}-{kind}.png")
    await page.show()


def js(value: object) -> str:
    """A value as a script writes it."""
    return json.dumps(value)
