"""What `redact_urls` keeps, what it takes, and what it never does."""

import datetime
import decimal
import enum
import logging
import uuid
from collections import OrderedDict, UserDict, defaultdict, deque
from typing import Any

import pytest
import speak
import structlog
from conftest import leaks, load_vectors

from sift_batch._observe.harmless import REDACTED, harmless_key, harmless_text
from sift_batch._observe.redact import redact_urls

URL = "https://atlas.kestrel.example/orchid?sig=tok_1"


def redacted(**fields: Any) -> dict[str, Any]:
    """Return an event with these fields after `redact_urls`."""
    return dict(redact_urls(None, "info", {"event": "request finished", **fields}))


class Colour(enum.Enum):
    """An enumeration whose values tell."""

    RED = URL


@pytest.mark.parametrize(
    "value",
    [
        "done", "alice", "GET", "ERROR", "Berlin", "info", "billing", "x", "",
        "request finished", "user logged in", "cache miss for user 42", "took 12.5ms", "disk 93% full",
        "job.ended", "http.request", "payment_settled", "order-created", "worker-3", "MainThread",
        "ValueError",
        "can't connect", "done: 3/32", "retrying in 5 s", "saved 3 of 4 rows", "text/html",
        "count=3",
        "2026-01-31", "2026-01-31T12:30:59.123456Z", "2026-01-31 12:30:59", "12:30",
        "2026-01-31T12:30:59+02:00",
        "0123456789abcdef0123456789abcdef", "fedcba9876543210",
        "9f1c2d3e-4b5a-6978-8796-a5b4c3d2e1f0",
        0, 1, -17, 404, 1_700_000_000, 2**62, 0.25, 1e-9, -3.5, True, False, None,
    ],
)  # fmt: skip
def test_harmless_values_survive(value: Any) -> None:
    """Short words, sentences of known words, numbers, times and ids come out as they went in."""
    out = redacted(field=value, nested={"field": value})
    assert out["field"] == value
    assert type(out["field"]) is type(value)
    assert out["nested"]["field"] == value


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (f"fetched {URL} in 3 s", "fetched [redacted]"),
        ("refused by kestrel", "refused by [redacted]"),
        ("kestrel timed out", "[redacted] timed out"),
        ("count=3 host=kestrel", "count=3 [redacted]"),
        (datetime.datetime(2026, 1, 31, 12, 0, tzinfo=datetime.UTC), "2026-01-31T12:00:00+00:00"),
        (datetime.date(2026, 1, 31), "2026-01-31"),
        (datetime.timedelta(seconds=90), 90.0),
        (decimal.Decimal("1.50"), 1.5),
        (uuid.UUID(int=0xABCD), "00000000-0000-0000-0000-00000000abcd"),
        (logging.INFO, 20),
        (Colour.RED, "RED"),
        ((1, "done"), [1, "done"]),
        (deque([1]), [1]),
        (OrderedDict(count=1), {"count": 1}),
        (defaultdict(int, count=1), {"count": 1}),
    ],
)
def test_values_are_put_plainly(value: Any, kept: Any) -> None:
    """What is harmless in a value comes out, as plain types, and the rest is one mark."""
    assert redacted(field=value)["field"] == kept


@pytest.mark.parametrize(
    "value",
    [
        URL, "kestrel.com", "atlas/orchid", "a@b", "10.0.0.1", "::1", "[::1]:80", "0x7f000001", "2130706433",
        "orchid-minutes", "tok_4c1d0a", "x%2Fy", "ärger", "a\nb", "tab\there", "\x1b[2J",
        "kestrel.data.world", "localhost", "x" * 40, "x" * 2_000,
        "ip-10-20-30-40", "aGVsbG8gd29ybGQ", "C:\\orchid", "/orchid", "?sig=1", "#orchid",
        "4d696e75746573206f66206b65737472",
        b"done", bytearray(b"done"), memoryview(b"done"), object(), print, type, 2**64, -(2**63),
        decimal.Decimal("NaN"), decimal.Decimal(10) ** 40, UserDict(a=1), speak.telling("done"),
        complex(1, 2), range(3), Exception,
    ],
)  # fmt: skip
def test_other_values_are_replaced(value: Any) -> None:
    """A value that is not plainly harmless is `[redacted]`, whatever its type."""
    assert redacted(field=value)["field"] == REDACTED


@pytest.mark.parametrize(
    "key",
    ["url", "host", "remote_host", "targetUrl", "x-api-token", "path", "Cookie", "hostname", "exc_value"],
)
def test_telling_fields_hold_no_text(key: str) -> None:
    """In a field that is named after an address or a secret, not even a short word or an id stands."""
    assert redacted(**{key: "done"})[key] == REDACTED
    assert redacted(**{key: ["0" * 32, {"a": "done"}]})[key] == [REDACTED, {"a": REDACTED}]
    assert redacted(**{key: 2_130_706_433})[key] == REDACTED
    assert redacted(**{key: 3})[key] == 3


@pytest.mark.parametrize(
    "key", ["event", "job_id", "user", "xyz_ref", "requestId", "http.status_code", "x-request-id", "p99"]
)
def test_field_names_survive(key: str) -> None:
    """A key that looks like a programmer's name for a field is kept."""
    assert harmless_key(key)


@pytest.mark.parametrize(
    "key",
    [
        URL,
        "kestrel.com",
        "tok_9f8e7d",
        "",
        "a b",
        "ip.10.20.30.40",
        "atlas_kestrel_takeover",
        "x" * 50,
        b"event",
        None,
        2**40,
    ],
)
def test_other_keys_are_replaced(key: Any) -> None:
    """A key that may be data is replaced, in nested values too, and two of them stay two."""
    out = redact_urls(None, "info", {key: 1, URL: 2, "nested": {key: 1, URL + "x": 2}})
    assert set(out) == {REDACTED, "nested"} | ({"[redacted 2]"} if key != URL else set())
    assert set(out["nested"]) == {REDACTED, "[redacted 2]"}


@pytest.mark.parametrize("vector", load_vectors(), ids=lambda vector: vector["id"])
def test_a_vector_does_not_pass(vector: dict[str, Any]) -> None:
    """Nothing of a vector is left after `redact_urls`, wherever in an event it stands."""
    group, _, kind = vector["channel"].partition(".")
    payload = speak.revive(vector["payload"])
    if group == "exc":
        error = speak.raised(payload, kind)
        triple = (type(error), error, error.__traceback__)
        events = [{"event": "x", "exc_info": e} for e in (error, triple)] + [{"event": error, "why": [error]}]
        if kind != "bad_str":
            events.append(structlog.processors.format_exc_info(None, "error", dict(events[0])))
            events.append(structlog.processors.dict_tracebacks(None, "error", dict(events[0])))
    elif isinstance(payload, dict):
        events = [{"event": "x", **payload}, {"event": "x", "v": [payload]}]
    elif isinstance(payload, list):
        events = [{"event": payload[0], "positional_args": tuple(payload[1:])}]
    elif vector["id"] == "R74":
        events = [{"event": "x", "exception": payload}]
    else:
        raw = payload.encode("utf-8", "surrogatepass")
        events = [
            {"event": payload},
            {"event": "x", payload: [{payload: payload}], "v": (raw, speak.LyingText(payload))},
        ]
    for event in events:
        out = redact_urls(None, "info", event)
        shown = [repr(out), structlog.processors.JSONRenderer()(None, "info", dict(out))]
        assert leaks(vector, "\n".join(map(str, shown))) == []


def test_exc_info_becomes_a_description() -> None:
    """`exc_info` in any of its forms becomes `exception`: types and places, no text."""
    try:
        raise ConnectionRefusedError(111, URL) from ValueError(URL)
    except ConnectionRefusedError as error:
        for exc_info in (True, 1, error, (type(error), error, error.__traceback__)):
            out = redacted(exc_info=exc_info)
            assert "exc_info" not in out
            assert out["exception"].startswith("ConnectionRefusedError[ECONNREFUSED] at ")
            assert out["exception"].endswith("; from ValueError")
    for nothing in (None, False, 0, (None, None, None), True, "x"):
        assert "exception" not in redacted(exc_info=nothing)


def test_stack_info_becomes_a_place() -> None:
    """`stack_info` becomes the place of the call, without source lines."""
    out = redacted(stack_info=True)
    assert out["stack"].startswith(__name__ + ":")
    assert "stack_info" not in out


def test_positional_arguments_are_seen_whole() -> None:
    """Arguments are put into the event before it is judged, so that no part of a target slips through."""
    assert (
        redact_urls(None, "info", {"event": "user %d of %s", "positional_args": (3, "sales")})["event"]
        == "user 3 of sales"
    )
    out = redact_urls(None, "info", {"event": "x %s%s%s", "positional_args": ("https://", "kestrel", "/")})
    assert out == {"event": "[redacted]"}
    assert redact_urls(None, "info", {"event": "%d", "positional_args": ("sales",)}) == {"event": "%d"}
    assert redact_urls(None, "info", {"event": "%999999999d", "positional_args": (1,)}) == {"event": REDACTED}


def test_the_input_is_left_alone() -> None:
    """A new dict is returned; the one that was given, and what is in it, are not changed."""
    inner = {"url": [URL]}
    given = {"event": URL, "inner": inner, "exc_info": None, "stack_info": True}
    before = dict(given)
    out = redact_urls(None, "info", given)
    assert out is not given
    assert given == before
    assert inner == {"url": [URL]}


def test_redacting_twice_is_redacting_once() -> None:
    """A second pass changes nothing of what the first has left of texts, keys and values."""
    once = redacted(
        a=URL, b=f"fetched {URL}", c=[URL, 1], d={URL: URL, URL + "x": 1}, e="refused by kestrel today"
    )
    assert redact_urls(None, "info", dict(once)) == once


class Hostile:
    """Raises, loudly, at whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise ValueError(URL)

    def __repr__(self) -> str:
        raise ValueError(URL)

    __str__ = __len__ = __iter__ = __hash__ = __bool__ = __eq__ = __repr__  # type: ignore[assignment]


class HostileDict(dict):
    """A dict whose own methods raise."""

    def _fail(self, *args: object) -> Any:
        raise ValueError(URL)

    __iter__ = items = keys = __getitem__ = _fail  # type: ignore[assignment]


class HostileError(Exception):
    """An error that raises at every question."""

    def __getattribute__(self, name: str) -> Any:
        raise ValueError(URL)


class LyingInt(int):
    """An int that claims to be a URL."""

    def __add__(self, other: object) -> Any:
        return URL

    __repr__ = __str__ = __int__ = __index__ = __abs__ = lambda self: URL  # type: ignore[assignment]


def test_no_code_of_a_value_runs() -> None:
    """Values, keys, errors and containers that raise or lie are handled by what they really are."""
    out = redacted(
        a=Hostile(),
        b=HostileDict(count=1),
        c=HostileError(URL),
        d=LyingInt(3),
        e=speak.LyingText("kestrel.com"),
        exc_info=HostileError(URL),
    )
    assert out["a"] == REDACTED
    assert out["b"] == {"count": 1}
    assert out["c"] == out["exception"] == f"{__name__}.HostileError"
    assert out["d"] == 3
    assert type(out["d"]) is int
    assert out["e"] == REDACTED
    assert redact_urls(None, "info", HostileDict(event="done")) == {"event": "done"}


def test_cycles_depth_and_size_are_bounded() -> None:
    """A cycle, a deep nest and a huge container end in `...`, a huge text in the mark."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    wide = {f"k{i % 999}": "done " * 200 for i in range(900)}
    out = redacted(
        cycle=cycle, deep=deep, wide=wide, many=list(range(10**6)), text="a." * 2_000_000, k={"x" * 10**6: 1}
    )
    assert len(repr(out)) < 60_000
    assert "..." in repr(out["cycle"])
    assert out["text"] == REDACTED
    assert out["many"][-1] == "..."


def test_never_raises() -> None:
    """What is no event dict at all comes out as an event that says nothing."""
    for given in (None, 3, "x", Hostile(), [], object):
        assert redact_urls(given, given, given) in ({"event": REDACTED}, {})  # type: ignore[arg-type]


def test_logger_names_of_modules_survive() -> None:
    """A logger's name stays if it is a loaded module's, is cut to the part that is, or is judged as text."""
    assert redacted(logger="logging.handlers")["logger"] in ("logging.handlers", "logging")
    assert redacted(logger=f"{__name__}.kestrel")["logger"] == __name__
    assert redacted(logger="billing")["logger"] == "billing"
    assert redacted(logger="fetch.atlas.kestrel.example")["logger"] == REDACTED


def test_works_inside_a_processor_formatter() -> None:
    """With structlog's formatter for the standard logging, foreign records pass without their message."""
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name],
        processors=[
            redact_urls,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.JSONRenderer(),
        ],
    )
    record = logging.LogRecord("kestrel.com", 30, "orchid.py", 3, "fetched %s", (URL,), None)
    assert "fetched [redacted]" in (shown := formatter.format(record))
    assert "kestrel" not in shown


def test_a_long_text_is_cut_between_tokens() -> None:
    """Of a text over the limit the first part is judged, without the token that the cut may have split."""
    assert harmless_text("done " * 10**6) == "done " * 204 + REDACTED
    assert harmless_text("no " * 339 + "refund" * 10) == "no " * 339 + REDACTED
    assert harmless_text("fetched " + "x" * 10**6) == f"fetched {REDACTED}"
