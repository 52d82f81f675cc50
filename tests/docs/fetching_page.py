"""What does docs/fetching.md show, and what comes when each of its targets is fetched?

An example is a target, as a line for `sift-batch run`, with what follows it up to the next one: its
content as a block of text, and facts of it (or its error) as a JSON object. `With FetchConfig(…)` before
it gives it settings of its own. A block that ends in a line with `…` shows the beginning.

`python tests/docs/fetching_page.py` fetches everything and writes what came into the page.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docs_site
import pytest
import trio

from sift_batch import Caller, Options, RetryLater, Target
from sift_batch.fetch import FetchError, open_fetcher

PAGE = Path(__file__).parents[2] / "docs" / "fetching.md"
CHANGING = ("fetched_at", "elapsed_seconds")
"""Facts whose values differ from run to run: what the page shows of them is only looked at."""

_BLOCK = re.compile(r"^(?P<fence>`{3,})(?P<info>\w+)\n(?P<body>.*?)^(?P=fence)\n", re.MULTILINE | re.DOTALL)
_SETTINGS = re.compile(r"With `FetchConfig\((.*?)\)`", re.DOTALL)
_MORE = "\n…\n"
_TEXTS = ("text", "markdown", "html")


@dataclass
class Example:
    """One target with what the page shows of it; `content` and `facts` are blocks, None for none."""

    line: int
    target: dict[str, Any]
    settings: str
    content: re.Match[str] | None = None
    facts: re.Match[str] | None = None

    @property
    def shown(self) -> tuple[str | None, dict[str, Any] | None]:
        """The content and the facts that the page shows."""
        content = None if self.content is None else self.content["body"]
        return content, None if self.facts is None else json.loads(self.facts["body"])


@dataclass
class Outcome:
    """What came: the content, None where there is none, and the facts, or what is known of the failure."""

    content: str | None
    facts: dict[str, Any]


def examples(page: str) -> list[Example]:
    """Return the examples of the page, in their order."""
    found: list[Example] = []
    is_open, before = False, 0
    for block in _BLOCK.finditer(page):
        given = json.loads(block["body"]) if block["info"] == "json" else None
        if given is not None and "url" in given and set(given) <= {"url", "options"}:
            settings = _SETTINGS.search(page, before, block.start())
            line = page.count("\n", 0, block.start()) + 1
            found.append(Example(line, given, settings[1] if settings else ""))
            is_open = True
        elif is_open and given is not None and found[-1].facts is None:
            found[-1].facts = block
        elif is_open and block["info"] in _TEXTS and found[-1].content is None:
            found[-1].content = block
        else:
            is_open = False
        before = block.end()
    return found


def fetched(targets: list[tuple[str, dict[str, Any]]]) -> list[Outcome]:
    """Fetch targets, each with its settings, from the site of the page; return what came, in order."""
    found: dict[int, Outcome] = {}

    async def fetch_all() -> None:
        with pytest.MonkeyPatch.context() as patch:
            async with docs_site.open_site(patch):
                for settings in dict.fromkeys(settings for settings, _ in targets):
                    await fetch_with(settings)

    async def fetch_with(settings: str) -> None:
        config = docs_site.config(**eval(f"dict({settings})"))
        async with open_fetcher(config) as fetch:
            for place, (own, given) in enumerate(targets):
                if own == settings:
                    found[place] = await _outcome(fetch, given)

    trio.run(fetch_all)
    return [found[place] for place in range(len(targets))]


async def _outcome(fetch: Any, given: dict[str, Any]) -> Outcome:
    target = Target(given["url"], Options(**given.get("options", {})))
    try:
        result = await fetch(Caller("docs"), target)
    except FetchError as error:
        names = ("error", "hint", "code", "status", "retryable", "reason")
        values = (error.message, error.hint, error.code, error.status, error.retryable, error.reason)
        return Outcome(None, dict(zip(names, values, strict=True)))
    except RetryLater as busy:
        return Outcome(None, {"busy": str(busy), "retry_after": busy.retry_after, "reason": busy.reason})
    return Outcome(result.content, dict(result.meta))


def as_shown(content: str, shown: str) -> str:
    """Return a content as the page would show it in place of `shown`: whole, or its beginning."""
    whole = content.removesuffix("\n") + "\n"
    if not shown.endswith(_MORE):
        return whole
    beginning = shown.removesuffix(_MORE)
    # As many lines as are shown; of one long line as many characters.
    kept = "\n".join(whole.split("\n")[: beginning.count("\n") + 1])
    return (kept if "\n" in beginning else kept[: len(beginning)]) + _MORE


def facts_as_shown(facts: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Return of the facts those that the page shows, in its order."""
    return {name: value if name in CHANGING else facts.get(name) for name, value in shown.items()}


def _written(example: Example, outcome: Outcome) -> list[tuple[re.Match[str], str]]:
    new = []
    content, facts = example.shown
    if example.content and content is not None and outcome.content is not None:
        text = as_shown(outcome.content, content)
        fence = "`" * max([2, *map(len, re.findall("^`+", text, re.MULTILINE))]) + "`"
        new.append((example.content, f"{fence}{example.content['info']}\n{text}{fence}\n"))
    if example.facts and facts is not None:
        lines = json.dumps(facts_as_shown(outcome.facts, facts), ensure_ascii=False, indent=2)
        new.append((example.facts, f"```json\n{_compact(lines)}\n```\n"))
    return new


def _compact(lines: str) -> str:
    """Put lists and objects inside of an object on one line."""
    return re.sub(
        r"(?<=: )[\[{]\n.*?\n  [\]}](?=,?\n)",
        lambda inner: json.dumps(json.loads(inner[0]), ensure_ascii=False),
        lines,
        flags=re.DOTALL,
    )


def main() -> None:
    """Fetch every example and write what came into the page."""
    page = PAGE.read_text("utf-8")
    found = examples(page)
    outcomes = fetched([(example.settings, example.target) for example in found])
    new = [part for pair in zip(found, outcomes, strict=True) for part in _written(*pair)]
    for block, text in sorted(new, key=lambda part: -part[0].start()):
        page = page[: block.start()] + text + page[block.end() :]
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
