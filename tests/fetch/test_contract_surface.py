"""What a program meets that uses the package: names, settings, refusals, and an extra that is missing."""

import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from fetcher_sites import open_sites, page
from fetcher_stage import FLEET
from guard_cases import ANSWERS, URLS

from sift_batch import Gate, Options, Target
from sift_batch.fetch import FetchConfig, FetchError, check_target, open_fetcher

SETTINGS = """
    allow deny allow_names ports resolve nat64 ca_file tls_context total_timeout connect_timeout redirects
    retries retry_after_limit max_wire_bytes max_decoded_bytes min_bytes_per_second result_max_bytes
    extract_timeout extract_memory extract_workers user_agent robots archive recover_restricted
    """
NUMBERS = """
    total_timeout connect_timeout redirects retries retry_after_limit max_wire_bytes max_decoded_bytes
    min_bytes_per_second result_max_bytes extract_timeout extract_memory extract_workers
    """
NONSENSE = [
    *[
        (name, value)
        for name in NUMBERS.split()
        for value in (None, "5", True, -1, float("nan"), float("inf"))
    ],
    *[
        (name, value)
        for name in ("allow", "deny")
        for value in (None, "10.0.0.0/8", ["x"], [1], ["10.0.0.1/8"])
    ],
    *[("nat64", value) for value in (["10.0.0.0/8"], ["64:ff9b::/64"], "64:ff9b::/96")],
    *[
        ("allow_names", value)
        for value in ("corp", [1], [""], ["."], ["a b"], ["*.corp"], ["b\u00fccher.de"])
    ],
    *[("ports", value) for value in (80, {0}, {65_536}, {"80"}, {80.5}, {True})],
    *[(name, value) for name in ("robots", "recover_restricted") for value in (None, 1, "yes")],
    *[("user_agent", value) for value in (None, 5, b"x", "a\r\nX: y", "\u00fc")],
    *[("archive", value) for value in (5, "", "ftp://site.org/{url}", b"http://site.org/")],
    *[("ca_file", value) for value in (5, b"x", ["x"])],
    *[("tls_context", value) for value in (True, "x")],
    *[("resolve", value) for value in (5, "x")],
]


def test_the_settings_are_these_and_go_by_name():
    """Settings have their names, in this order, and can't be given by position."""
    parameters = inspect.signature(FetchConfig).parameters.values()
    assert [parameter.name for parameter in parameters] == SETTINGS.split()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    assert inspect.signature(open_fetcher).parameters["gate"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(("name", "value"), NONSENSE, ids=str)
def test_a_setting_that_makes_no_sense_is_named(name, value):
    """A bad setting is refused when it is made, by name."""
    with pytest.raises((TypeError, ValueError), match=name):
        FetchConfig(**{name: value})


MODES = ("", "markdown", "text", "full", "html", "raw", "links", "meta")


def makes_sense(mode: str, pages: str, jq: str, grep: str, question: str, context: bool | None) -> bool:
    """Tell whether these options go together."""
    return not (
        (jq and (pages or mode not in ("", "markdown")))
        or (pages and mode in ("html", "links", "meta", "raw"))
        or (grep and mode in ("raw", "meta"))
        or (question and (mode in ("html", "raw", "meta") or question == "?!"))
        or (context and not (grep or question))
    )


def refusal_of(options: Options) -> FetchError | None:
    """Give the error of options that are refused."""
    try:
        check_target(Target("https://site.org/", options))
    except FetchError as error:
        return error
    return None


def test_options_go_together_or_are_refused():
    """Of all combinations of options, those that are documented are refused, and no others."""
    parts = (MODES, ("", "1-2"), ("", ".a"), ("", "a"), ("", "why", "?!"), (None, True, False))
    for mode, pages, jq, grep, question, context in itertools.product(*parts):
        options = Options(mode=mode, pages=pages, jq=jq, grep=grep, question=question, context=context)
        refusal = refusal_of(options)
        assert (refusal is None) is makes_sense(mode, pages, jq, grep, question, context), options
        if refusal is not None:
            assert (refusal.code, refusal.status, refusal.retryable) == ("bad_option", 422, False)
            assert refusal.hint


@pytest.mark.real
async def test_no_url_gets_past_the_fetch_that_a_check_refuses():
    """A fetch refuses each bad URL for the same reason as the check, before anything is looked up."""
    looked_up: list[str] = []

    async def resolve(host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        looked_up.append(host)
        return ["10.0.0.1"]

    async with open_fetcher(FetchConfig(resolve=resolve)) as fetch:
        for url, reason, _why in URLS:
            if not reason:
                check_target(Target(url))
                await fetch.check(Target(url))
                continue
            with pytest.raises(FetchError) as checked:
                check_target(Target(url))
            with pytest.raises(FetchError) as fetched:
                await fetch(FLEET, Target(url))
            for error in (checked.value, fetched.value):
                assert (error.code, error.reason, error.status) == ("refused", reason, 403), url
        assert looked_up == []


@pytest.mark.real
@pytest.mark.parametrize(("answers", "reason", "why"), [row for row in ANSWERS if row[1]], ids=str)
async def test_no_bad_answer_of_a_resolver_gets_past_the_fetch(answers, reason, why):
    """A fetch refuses a name for each bad answer, and says which kind it was."""

    async def resolve(host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return answers

    async with open_fetcher(FetchConfig(resolve=resolve)) as fetch:
        with pytest.raises(FetchError) as caught:
            await fetch(FLEET, Target("http://site.org/"))
        assert (caught.value.code, caught.value.reason) == ("refused", reason), why


@pytest.mark.real
async def test_a_later_hop_that_leads_inward_is_refused():
    """A redirect to a name whose addresses are private is refused, and nobody is called there."""

    async def resolve(host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return ["127.0.0.1"] if host == "public.org" else ["10.0.0.1"]

    async with open_sites() as sites, open_fetcher(sites.config(resolve=resolve)) as fetch:
        sites.pages["public.org/"] = page("302 Found", location=sites.url("inward.org/"))
        with pytest.raises(FetchError) as caught:
            await fetch(FLEET, Target(sites.url("public.org/")))
        assert (caught.value.code, caught.value.reason) == ("refused", "special_address")
        assert sites.asked == ["public.org/"]


async def test_neither_way_in_can_be_wrapped_in_a_gate():
    """What stands behind a gate by itself is refused by `Gate.batch`, in both classes."""
    async with open_fetcher() as fetch:
        for way_in in (fetch, fetch.interactive):
            with pytest.raises(TypeError):
                Gate().batch(way_in)


WITHOUT_EXTRA = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in "httpcore2 h11 re2 ada_url jq lxml trafilatura protego".split():
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import trio
from sift_batch import Options, Target
from sift_batch.fetch import FetchConfig, check_target, open_fetcher
FetchConfig()
check_target(Target("http://site.org/", Options(question="why", pages="1")))
async def main():
    async with open_fetcher():
        pass
for call in (
    lambda: trio.run(main),
    lambda: check_target(Target("http://site.org/", Options(grep="a"))),
    lambda: check_target(Target("http://b\\u00fccher.de/")),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""


def test_without_the_extra_the_error_names_it():
    """Settings and plain checks work without the extra; what needs it says how to install it."""
    script = [sys.executable, "-c", WITHOUT_EXTRA]
    done = subprocess.run(script, capture_output=True, text=True, check=False, cwd=Path("/"), timeout=60)
    said = done.stdout.splitlines()
    assert said == ["fetching needs the extra `fetch`: pip install 'sift-batch[fetch]'"] * 3, done.stderr
