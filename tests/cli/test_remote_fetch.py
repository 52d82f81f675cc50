"""`sift-batch fetch`: by a service, and in this process."""

import json

import pytest
from remote_rig import Live, ran

from sift_batch import Result, RetryLater, TargetError

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("in_this_process")]

LOOPBACK = ("--allow", "127.0.0.0/8", "--ports", "any")


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """A service for all tests here."""
    live = Live(tmp_path_factory.mktemp("live") / "data")
    live.start()
    yield live
    live.stop()


@pytest.fixture
def fetch(live, capfd):
    """Fetch by the service."""
    return lambda *args: ran(capfd, "fetch", *live.flags, *args)


def test_the_content_is_printed_without_controls(live, fetch):
    """Line ends and tabs stay, whatever else a terminal could obey is written out; a line end is added."""
    live.fetch.answer("http://a.example/1", "one\r\ntwo\tthree\x1b[2J\u202e\nzwölf")
    said = fetch("http://a.example/1")
    assert (said.code, said.err) == (0, "")
    assert said.out == "one\ntwo\tthree\\u001b[2J\\u202e\nzwölf\n"


def test_json_is_content_and_meta(live, fetch):
    """With --json the answer is one object in ASCII, as the service gives it."""
    result = Result("zwölf\x1b", {"title": "Zahlen", "code": "truncated", "hint": "cut"})
    live.fetch.answer("http://a.example/2", result)
    said = fetch("--json", "http://a.example/2")
    assert said.json == {"content": "zwölf\x1b", "meta": dict(result.meta)}
    assert said.out.isascii()
    said = fetch("http://a.example/2")
    assert said.err == "truncated: cut\n"


def test_options_are_sent(live, fetch):
    """A flag is an option of the target."""
    fetch("--mode", "links", "--no-context", "--recover", "http://a.example/3")
    options = live.fetch.calls[-1].target.options
    assert (options.mode, options.context, options.recover) == ("links", False, True)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            TargetError("the site has no such page", code="page_not_found", status=404),
            1,
            "page_not_found: the site has no such page; check the URL, or use --recover",
        ),
        (TargetError("no such port", code="refused", hint="use 80"), 2, "refused: no such port; use 80"),
        (
            RetryLater(retry_after=7, reason="site"),
            1,
            "busy: the site asks for patience; try again in 7 s",
        ),
        (RetryLater(retry_after=2, reason="gate"), 1, None),
    ],
)
def test_a_page_that_can_t_be_had_is_one_line(live, fetch, error, code, text):
    """The code, what is wrong and what to do; exit 1, or 2 for what is not fetched whatever its site says."""
    live.fetch.fail("http://a.example/4", error)
    said = fetch("http://a.example/4")
    assert (said.code, said.out) == (code, "")
    assert said.err.count("\n") == 1
    if text is not None:
        assert said.err == f"sift-batch: {text}\n"
    if isinstance(error, TargetError):
        # With --json the status of the page has the name that it has without a service.
        told = json.loads(fetch("--json", "http://a.example/4").err)
        assert told["http_status"] == error.status


def test_rules_are_the_services_own(live, capfd):
    """--allow and --ports do not go with a service, and --key-file not without one."""
    for flags in (("--allow", "10.0.0.0/8"), ("--ports", "any")):
        said = ran(capfd, "fetch", *live.flags, *flags, "http://a.example/")
        assert (said.code, said.out) == (2, "")
        assert "rules of its own" in said.err
    said = ran(capfd, "fetch", "--key-file", "x", "http://a.example/")
    assert said.code == 2
    assert "--key-file goes with --server" in said.err


def test_without_a_service_the_page_is_fetched_here(site, capfd):
    """In this process: content on standard output, meta with --json."""
    said = ran(capfd, "fetch", *LOOPBACK, site.url("/a"))
    assert (said.code, said.out, said.err) == (0, "page /a\n", "")
    said = ran(capfd, "fetch", *LOOPBACK, "--json", "--grep", "page", site.url("/b"))
    assert "page /b" in said.json["content"]
    assert said.json["meta"]["content_type"] == "text/plain"


def test_failures_here_have_the_same_codes(site, capfd):
    """A missing page is exit 1; a URL or option that can't be is exit 2, and nobody is called."""
    said = ran(capfd, "fetch", *LOOPBACK, site.url("/404"))
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("sift-batch: page_not_found: ")
    assert site.asked == ["/404"]
    said = ran(capfd, "fetch", "--json", site.url("/a"))
    assert said.code == 2
    assert json.loads(said.err)["code"] == "refused"
    assert "--allow" in said.err or "--ports" in said.err
    for options in (("--mode", "sing"), ("--jq", ".["), ("--grep", "(")):
        said = ran(capfd, "fetch", *LOOPBACK, *options, site.url("/a"))
        assert said.code == 2
        assert said.err.startswith("sift-batch: bad_option: ")
    for url in ("", "nonsense", "ftp://a.example/", "http://user@a.example/", "http://127.0.0.1\x1b/"):
        said = ran(capfd, "fetch", *LOOPBACK, "--", url)
        assert said.code == 2
        assert "\x1b" not in said.err
    assert site.asked == ["/404"]


def test_a_busy_site_is_told_here_too(site, capfd):
    """A site that asks for patience gets it from whoever asks again."""
    said = ran(capfd, "fetch", *LOOPBACK, site.url("/later"))
    assert said.code == 1
    assert said.err.startswith("sift-batch: busy: the site asks for patience; try again in ")
