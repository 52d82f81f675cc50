"""Does docs/fetching.md show what really comes, and say what is really refused?"""

import difflib
import json
import re
from pathlib import Path
from typing import Any

import docs_site
import pytest
from fetching_page import CHANGING, PAGE, Example, Outcome, as_shown, examples, facts_as_shown, fetched

from sift_batch import Options, Target
from sift_batch.fetch import FetchError, _meta, _options, check_target, open_fetcher
from sift_batch.fetch._errors import CODES, REASONS

TEXT = PAGE.read_text("utf-8")
EXAMPLES = examples(TEXT)
# Facts that no example has: what makes them takes a fault of a site, and other tests have that.
SHOWN_ELSEWHERE = {"tries"}


def rows(*head: str) -> list[list[str]]:
    """Give the rows of the one table of the page that has this head."""
    (found,) = re.findall(
        rf"^\| {re.escape(' | '.join(head))} \|\n\|[-|]+\|\n((?:\|.*\|\n)+)", TEXT, re.MULTILINE
    )
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()]


REFUSED_OPTIONS = rows("options", "what it says")
REFUSED_URLS = rows("reason", "example", "what is wrong, and what lifts it")


@pytest.fixture(scope="module")
def outcomes() -> list[Outcome]:
    """Fetch every example of the page, once."""
    return fetched([(example.settings, example.target) for example in EXAMPLES])


def compare(example: Example, what: str, shown: str, came: str) -> None:
    """Fail with the difference, unless what came is what is shown."""
    if shown != came:
        lines = difflib.unified_diff(shown.splitlines(), came.splitlines(), "shown", "came", lineterm="")
        hint = "python tests/docs/fetching_page.py writes what comes into the page"
        pytest.fail(
            "\n".join([f"docs/fetching.md:{example.line}: the {what} is another ({hint})", *lines]),
            pytrace=False,
        )


@pytest.mark.real
@pytest.mark.parametrize("place", range(len(EXAMPLES)), ids=[f"line{item.line}" for item in EXAMPLES])
def test_an_example_is_what_comes(place: int, outcomes: list[Outcome]) -> None:
    """What the page shows of a target is, to the letter, what comes when it is fetched."""
    example, came = EXAMPLES[place], outcomes[place]
    content, facts = example.shown
    assert content is not None or facts is not None, "an example shows something"
    if content is not None:
        compare(example, "content", content, as_shown(came.content or "", content))
    if facts is not None:
        found = facts_as_shown(came.facts, facts)
        compare(example, "rest", json.dumps(facts, indent=1), json.dumps(found, indent=1))


@pytest.mark.real
def test_the_table_of_facts_is_complete(outcomes: list[Outcome]) -> None:
    """Every fact that comes is in the table, in its order, and those that always come always do."""
    table = rows("fact", "when", "what it says")
    names = [name.strip("`") for name, _, _ in table]
    always = {name.strip("`") for name, when, _ in table if when == "always"}
    assert names == list(_meta.ORDER)
    done = [came.facts for came in outcomes if came.content is not None]
    assert all(always <= facts.keys() <= set(names) for facts in done)
    assert set(names) - set().union(*done) == SHOWN_ELSEWHERE
    (whole,) = [facts for item in EXAMPLES if set(CHANGING) <= (facts := item.shown[1] or {}).keys()]
    assert list(whole) in [list(facts) for facts in done], "the example that shows all facts of a page"


def test_every_option_is_shown() -> None:
    """There is an example for each option and for each mode."""
    given: list[dict[str, Any]] = [example.target.get("options", {}) for example in EXAMPLES]
    assert {options.get("mode", "") for options in given} == set(_options.MODES) - {"markdown"}
    assert {name for options in given for name in options} == {
        "mode", "pages", "jq", "grep", "question", "context", "recover",
    }  # fmt: skip
    assert {options.get("context") for options in given} == {True, False, None}


@pytest.mark.parametrize("row", REFUSED_OPTIONS, ids=[row[0] for row in REFUSED_OPTIONS])
def test_refused_options(row: list[str]) -> None:
    """Each row's options are refused before anything is fetched, with the text of the row and a hint."""
    options = Options(**eval(f"dict({row[0].strip('`')})"))
    with pytest.raises(FetchError) as caught:
        check_target(Target("https://example.com/", options))
    assert (caught.value.code, caught.value.message) == ("bad_option", row[1])
    assert caught.value.hint


def test_every_bad_combination_has_a_row() -> None:
    """What the code excludes of options and modes is in the table, pair by pair."""
    told = " ".join(row[0] for row in REFUSED_OPTIONS)
    for option, modes in _options.WITHOUT:
        for mode in modes:
            assert re.search(rf'`{option}="[^"]*", mode="{mode}"`', told), (option, mode)
    assert {f"{name} is too long" for name, _, _ in _options.SIZES} <= {row[1] for row in REFUSED_OPTIONS}


def test_reasons() -> None:
    """The table of reasons has each of them once, in order."""
    assert [row[0].strip("`") for row in REFUSED_URLS] == sorted(REASONS)


@pytest.mark.real
def test_each_example_of_a_reason_is_refused_for_it() -> None:
    """The URL beside a reason is refused for it: at once, or when it is fetched."""
    later = []
    for reason, url, _ in REFUSED_URLS:
        if "example.org" in url:
            later.append((reason.strip("`"), url.strip("`")))
        elif url:
            with pytest.raises(FetchError) as caught:
                check_target(Target(url.strip("`")))
            assert (caught.value.code, caught.value.reason) == ("refused", reason.strip("`"))
    came = fetched([("", {"url": url}) for _, url in later])
    assert [item.facts["reason"] for item in came] == [reason for reason, _ in later]
    without = {reason for reason, url, _ in REFUSED_URLS if not url}
    assert without == {"`downgrade`", "`too_long`"}, "they need TLS, or a page of their own"


def test_codes() -> None:
    """The table of codes has each of them, with its status and whether a later try can help."""
    table = rows("code", "HTTP", "later", "what happened", "what to do")
    told = {code.strip("`"): (int(status), later == "yes") for code, status, later, _, _ in table}
    assert list(told.items()) == list(CODES.items())
    assert all(row[3] and row[4] for row in table)


@pytest.mark.real
async def test_a_check_compiles_the_program_and_calls_nobody() -> None:
    """`fetch.check` refuses a jq program that `check_target` can't judge."""
    target = Target("http://docs.example.org/stations.json", Options(jq=".stations["))
    check_target(target)
    async with open_fetcher(docs_site.config()) as fetch:
        with pytest.raises(FetchError, match="syntax error") as caught:
            await fetch.check(target)
    assert caught.value.code == "bad_option"


def test_the_files_of_the_site_are_all_used() -> None:
    """No file lies in docs/pages that no example fetches."""
    used = {Path(example.target["url"]).name for example in EXAMPLES}
    assert {path.name for path in docs_site.PAGES.iterdir()} <= used
