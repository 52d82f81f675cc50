"""Two runs that differ only in their targets write the same log, byte for byte."""

import io
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import speak
import structlog
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sift_batch._observe import lines, seal
from sift_batch._observe.events import EVENTS
from sift_batch._observe.exceptions import describe
from sift_batch._observe.harmless import REDACTED, scrub_text
from sift_batch._observe.log import open_event_log
from sift_batch._observe.redact import redact_urls

PLAIN = "https://plain.kestrel.example/path?query=1"

label = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
anything = st.text(min_size=1, max_size=20)
host = st.one_of(
    st.lists(label, min_size=2, max_size=5).map(".".join),
    st.lists(
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=10), min_size=2, max_size=4
    ).map(".".join),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
    label,
)
urls = st.builds(
    lambda scheme, user, name, port, path, query: f"{scheme}://{user}{name}{port}/{path}?{query}",
    st.sampled_from(["http", "https", "HTTPS", "ftp", "hxxps"]),
    st.one_of(st.just(""), st.builds("{}:{}@".format, label, label)),
    host,
    st.one_of(st.just(""), st.integers(1, 65_535).map(":{}".format)),
    st.one_of(st.lists(label).map("/".join), anything),
    st.one_of(st.builds("sig={}".format, label), anything),
)


def normal(text: str) -> str:
    """Return the lines without their times."""
    return "\n".join(line[36:] if line.startswith('{"timestamp"') else line for line in text.splitlines())


def engine_log(url: str) -> str:
    """Push a URL through every field of every event, by name, by value and as an extra one."""
    out: list[Any] = []

    class Logger:
        debug = info = warning = lambda self, event, **fields: out.append((event, sorted(fields.items())))

    for caller_class in ("fleet", "restricted", url):
        log = open_event_log(Logger()).bind(caller_class=caller_class, url=url)
        for event, spec in EVENTS.items():
            log.event(event, **dict.fromkeys(spec.fields, url))  # type: ignore[arg-type]
            log.event(event, **dict.fromkeys(spec.fields, speak.LyingText(url)))  # type: ignore[arg-type]
            log.event(event, **{url: url})
        log.event(url)
    return repr(out)


def application_log(url: str) -> str:
    """Push a URL through every place that an application's own event has."""
    whole = [
        {"event": "fetched", "url": url},
        {"event": f"fetched {url}"},
        {"event": f"{url} timed out"},
        {"event": url},
        {"event": "fetched", url: 1, "nested": {url: [url, {url: (url,)}]}},
        {
            "event": "fetched",
            "value": url,
            "raw": url.encode("utf-8", "surrogatepass"),
            "thing": speak.telling(url),
        },
        {"event": "fetched %s in %d", "positional_args": (url, 3)},
        {"event": "fetched", "logger": url, "error": ValueError(url), "module": url},
    ]
    return repr([redact_urls(None, "info", event) for event in whole])


def errors_log(url: str) -> str:
    """Describe an error of every kind that carries a URL."""
    kinds = ["message", "note", "cause", "local", "bad_str"]
    errors = [speak.raised(url, kind) for kind in kinds] + [speak.raised([url, url], "group")]
    return "\n".join(describe(error) for error in errors)


@settings(max_examples=60, deadline=None)
@given(urls)
@example("https://a/")
@example("https://job.done/request finished/ok in 3 s?x")
@example("https://x/" + "a" * 5_000)
def test_targets_do_not_interfere(url: str) -> None:
    """Whatever the URL, the engine's log, an application's redacted log and errors are as for another URL."""
    assert engine_log(url) == engine_log(PLAIN)
    assert errors_log(url) == errors_log(PLAIN)
    assert application_log(url) == application_log(PLAIN)


@pytest.fixture
def _sealed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Seal the process, and put everything back afterwards."""
    root = logging.getLogger()
    handlers, factory, saved = root.handlers[:], logging.getLogRecordFactory(), structlog.get_config()
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    monkeypatch.setattr(logging, "raiseExceptions", logging.raiseExceptions)
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    seal.seal_logging()
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    logging.setLogRecordFactory(factory)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    structlog.reset_defaults()
    if saved["cache_logger_on_first_use"]:
        structlog.configure(**saved)


@pytest.mark.usefixtures("_sealed")
def test_targets_do_not_interfere_with_a_sealed_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the URL, all that a sealed process writes is as for another, and no tripwire fires."""

    def written(url: str) -> str:
        output = io.StringIO()
        monkeypatch.setattr(sys, "stderr", output)
        log = logging.getLogger("speaker")
        log.warning("fetched %s in %d", url, "x")
        log.warning(url, extra={"x": url}, stack_info=True)
        logging.getLogger(url).error(url)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(url, stacklevel=1)
        error = speak.raised(url, "cause")
        log.error(url, exc_info=error)
        sys.excepthook(type(error), error, error.__traceback__)
        thread = threading.Thread(target=log.warning, args=(url,), name=url)
        thread.start()
        thread.join()
        structlog.get_logger(url).bind(u=url).warning("job.settled", job_id=url, **{"x" + url: url})
        structlog.get_logger().info("fetched " + url, u=[url], exc_info=error)
        return normal(output.getvalue())

    expected = written(PLAIN)
    assert expected.count("\n") >= 8

    @settings(max_examples=60, deadline=None)
    @given(urls)
    @example("https://other/" + "%41" * 100)
    def check(url: str) -> None:
        assert written(url) == expected

    check()
    assert lines.tripwire.count == 0


@settings(max_examples=60, deadline=None)
@given(urls)
def test_no_four_characters_of_a_target_come_out(url: str) -> None:
    """No four characters in a row of a URL are in a log that are not in the log of another URL too."""
    said = engine_log(url) + errors_log(url) + application_log(url)
    baseline = engine_log(PLAIN) + errors_log(PLAIN) + application_log(PLAIN)
    grams = {url[i : i + 4] for i in range(len(url) - 3)}
    assert {gram for gram in grams if gram in said and gram not in baseline} == set()


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(), urls, st.text("a. :/@%\n", max_size=300)))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    """`scrub_text` and `redact_urls` take any text and give tokens of it alone, in ASCII."""
    scrubbed = scrub_text(text)
    assert all(token == "*" or token in text for token in scrubbed.split())
    out = redact_urls(None, "info", {"event": text})["event"]
    assert out == "" or out.isascii()
    assert all(token == REDACTED or token in text for token in out.split())
    lines.finished_line("info", {"event": out})


def test_the_tripwire_holds_a_line_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that looks like it holds an address, can't be JSON or is over 16 KiB comes out as a constant."""
    monkeypatch.setattr(lines.tripwire, "raising", False)
    monkeypatch.setattr(lines.tripwire, "count", 0)
    bad: list[object] = [
        "a://b",
        "a:\\/\\/b",
        "a:%2F",
        "%41",
        "1.2.3.4",
        "xn--a",
        "a@b",
        "\xe4",
        "\x1b",
        "\ud800",
        "a\nb",
    ]
    bad += [float("nan"), b"x", object(), "x" * 20_000, {1, 2}]
    for number, value in enumerate(bad):
        line = lines.finished_line("info", {"event": "x", "value": value})
        assert '"event":"log.tripwire"' in line
        assert "value" not in line
        assert lines.tripwire.count == number + 1
    assert lines.finished_line("info", {"event": 'a "b": c/d, 1.5 5%'}).endswith('c/d, 1.5 5%"}')
    assert lines.tripwire.count == len(bad)


def test_the_tripwire_raises_in_tests() -> None:
    """With `raising`, a mistake is an error where it is made."""
    with pytest.raises(lines.TripwireError):
        lines.finished_line("info", {"value": "a@b"})


def test_scrubbed_text_keeps_known_words_and_small_numbers() -> None:
    """Foreign prose keeps words of the vocabulary and numbers of up to three digits, token by token."""
    assert (
        scrub_text("read timeout after 30 s at kestrel:443 1234 timeout, done")
        == "read timeout after 30 * at * * * done"
    )
    assert scrub_text("h t t p : a b  kestrel a") == "* * a"
    assert scrub_text("refund" * 2_000) == ""
    assert scrub_text("no " * 2_728 + "  refundledger") == " ".join(["no"] * 2_728)
