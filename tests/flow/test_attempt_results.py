"""What a fetch may return: what can be stored is, cut where it is too long, and the rest fails saying so."""

import enum
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from flow_desk import fetched_once, returning
from trio.testing import MockClock

from sift_batch import Result


class Unreadable(Mapping[str, Any]):
    """A mapping that raises whatever is asked of it."""

    def __getitem__(self, key: str) -> Any:
        raise OSError("no item")

    def __iter__(self) -> Iterator[str]:
        raise OSError("no keys")

    def __len__(self) -> int:
        raise OSError("no length")


class Evasive(Result):
    """A result whose content can't be read."""

    content = property(lambda self: 1 / 0)  # type: ignore[assignment]

    def __init__(self) -> None:
        pass


class Lying(str):
    """A text that answers nothing as it should."""

    __slots__ = ()

    def encode(self, *args: Any, **keywords: Any) -> bytes:
        """Raise."""
        raise RuntimeError("no bytes")

    def __len__(self) -> int:
        return 10**9


class Colour(enum.StrEnum):
    """A closed set of words."""

    RED = "red"


def _nested(depth: int) -> Any:
    value: Any = "core"
    for _ in range(depth):
        value = {"n": value}
    return value


def _cycle() -> dict[str, Any]:
    knot: dict[str, Any] = {}
    knot["self"] = [knot]
    return knot


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        b"bytes",
        {"content": "x"},
        3,
        object(),
        Result,
        ("x", {}),
        NotImplemented,
        ValueError("x"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_is_no_result_fails_saying_so(value: Any, autojump_clock: MockClock) -> None:
    """A fetch that returns something that is no `Result` fails its target, naming the type and no value."""
    target = await fetched_once(returning(value))
    assert (target.status, target.code, target.result) == ("failed", "bad_result", None)
    assert type(value).__name__ in target.error
    assert "Result" in target.error


@pytest.mark.parametrize("content", [None, b"bytes", 3, ["x"]], ids=lambda value: type(value).__name__)
async def test_content_that_is_no_text_fails(content: Any, autojump_clock: MockClock) -> None:
    """A `Result` whose content is no `str` fails its target, saying so."""
    target = await fetched_once(returning(Result(content)))
    assert (target.status, target.code) == ("failed", "bad_result")
    assert "content" in target.error


@pytest.mark.parametrize(
    "meta",
    [
        {"n": float("nan")},
        {"n": float("inf")},
        {"n": [1, {"deep": -float("inf")}]},
        {"b": b"bytes"},
        {"s": {1, 2}},
        {"o": object()},
        {"c": 1j},
        {1: "a number as key"},
        {None: 1},
        {"deep": {("t",): 1}},
        {"huge": 10**5_000},
        _cycle(),
        _nested(50_000),
        {"m": [[[_cycle()]]]},
    ],
    ids=range(14),
)
async def test_meta_that_json_cannot_hold_fails_saying_so(meta: Any, autojump_clock: MockClock) -> None:
    """Meta that JSON can't hold (NaN, bytes, a cycle, odd keys, endless depth) fails, saying so."""
    target = await fetched_once(returning(Result("fine", meta)))
    assert (target.status, target.code, target.result) == ("failed", "bad_result", None)
    assert "JSON" in target.error


@pytest.mark.parametrize("meta", [None, [("a", 1)], "text", 3])
async def test_meta_that_is_no_mapping_fails(meta: Any, autojump_clock: MockClock) -> None:
    """Meta that is no mapping fails the target, saying so."""
    target = await fetched_once(returning(Result("fine", meta)))
    assert (target.status, target.code) == ("failed", "bad_result")
    assert "meta" in target.error


@pytest.mark.parametrize("result", [Result("x", Unreadable()), Evasive()], ids=["meta", "content"])
async def test_a_result_that_cannot_be_read_fails(result: Result, autojump_clock: MockClock) -> None:
    """A result that raises when it is looked at fails its target, and no more."""
    target = await fetched_once(returning(result))
    assert (target.status, target.code) == ("failed", "bad_result")
    assert target.error


@pytest.mark.parametrize(
    ("meta", "stored"),
    [
        ({}, {}),
        ({"a": [1, 2.5, True, None, "x", {"b": []}]}, {"a": [1, 2.5, True, None, "x", {"b": []}]}),
        ({"t": (1, (2, 3))}, {"t": [1, [2, 3]]}),
        (MappingProxyType({"m": MappingProxyType({"n": 1})}), {"m": {"n": 1}}),
        (
            {"big": 2**64, "bigger": 10**30, "least": -(2**63)},
            {"big": 2**64, "bigger": 10**30, "least": -(2**63)},
        ),
        ({"": "empty key", "\0": "\0", "é": "😀"}, {"": "empty key", "\0": "\0", "é": "😀"}),
        (
            {"\ud800k": "v\udfff", "l": ["\ud83d", "\ude00"]},
            {"\ufffdk": "v\ufffd", "l": ["\ufffd", "\ufffd"]},
        ),
        ({"e": Colour.RED, Colour.RED: 1}, {"e": "red", "red": 1}),
        ({"f": -0.0, "g": 1e308, "h": 5e-324}, {"f": -0.0, "g": 1e308, "h": 5e-324}),
        (_nested(40), _nested(40)),
        ({"truncated": "mine"}, {"truncated": "mine"}),
        ({Lying("k"): Lying("v")}, {"k": "v"}),
    ],
    ids=range(12),
)
async def test_meta_that_json_can_hold_comes_back(meta: Any, stored: Any, autojump_clock: MockClock) -> None:
    """Whatever JSON can hold comes back as JSON gives it, with U+FFFD for each lone surrogate."""
    target = await fetched_once(returning(Result("fine", meta)))
    assert (target.status, target.error) == ("done", "")
    assert target.result == Result("fine", stored)


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        ("", ""),
        ("a\0b", "a\0b"),
        ("\ud800", "\ufffd"),
        ("\ud83d\ude00", "\ufffd\ufffd"),
        ("😀\udfffé", "😀\ufffdé"),
        ("\x01\x7f\x80\u2028\ufeff\uffff\U0010ffff", "\x01\x7f\x80\u2028\ufeff\uffff\U0010ffff"),
        ('"\\\r\n</script>', '"\\\r\n</script>'),
        (Lying("lied"), "lied"),
    ],
    ids=range(8),
)
async def test_content_comes_back(content: str, stored: str, autojump_clock: MockClock) -> None:
    """Content with NUL, quotes, noncharacters comes back as it was; a lone surrogate as U+FFFD."""
    target = await fetched_once(returning(Result(content)))
    assert target.result == Result(stored)
    assert target.chars == len(stored)


@pytest.mark.parametrize(
    ("content", "limit", "kept"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcde"),
        ("abcdef", 1, "a"),
        ("ééé", 6, "ééé"),
        ("ééé", 5, "éé"),
        ("ééé", 1, ""),
        ("€€", 5, "€"),
        ("😀😀", 8, "😀😀"),
        ("😀😀", 7, "😀"),
        ("😀😀", 5, "😀"),
        ("😀😀", 4, "😀"),
        ("😀", 3, ""),
        ("a\ud800b", 5, "a\ufffdb"),
        ("a\ud800b", 4, "a\ufffd"),
        ("a\ud800b", 3, "a"),
        ("\0" * 6, 5, "\0" * 5),
    ],
)
async def test_long_content_is_cut_at_a_character(
    content: str, limit: int, kept: str, autojump_clock: MockClock
) -> None:
    """Content over `result_max_bytes` of UTF-8 is cut at a character boundary and marked `truncated`."""
    target = await fetched_once(returning(Result(content)), result_max_bytes=limit)
    assert target.status == "done"
    assert target.result is not None
    assert target.result.content == kept
    assert dict(target.result.meta) == ({} if len(kept) == len(content) else {"truncated": True})
    assert target.chars == len(kept)


async def test_a_cut_keeps_the_meta_beside_the_mark(autojump_clock: MockClock) -> None:
    """Cut content keeps its meta, and the mark says true whatever the fetch had put there."""
    target = await fetched_once(
        returning(Result("x" * 99, {"title": "t", "truncated": "no"})), result_max_bytes=50
    )
    assert target.result == Result("x" * 50, {"title": "t", "truncated": True})


@pytest.mark.parametrize(
    ("length", "state"),
    [(11, "done"), (12, "failed"), (10_000, "failed")],
)
async def test_meta_over_the_limit_fails(length: int, state: str, autojump_clock: MockClock) -> None:
    """Meta of more than `result_max_bytes` bytes of JSON fails, saying so; exactly as many are stored."""
    target = await fetched_once(returning(Result("", {"k": "x" * length})), result_max_bytes=19)
    assert target.status == state
    if state == "failed":
        assert target.code == "bad_result"
        assert "meta" in target.error
        assert "19" in target.error


async def test_meta_is_measured_in_bytes(autojump_clock: MockClock) -> None:
    """Meta counts in UTF-8 bytes, not in characters."""
    for text, state in (("é" * 5, "done"), ("é" * 6, "failed"), ("\ud800" * 4, "failed")):
        target = await fetched_once(returning(Result("", {"k": text})), result_max_bytes=19)
        assert target.status == state


async def test_the_mark_itself_is_never_too_much(autojump_clock: MockClock) -> None:
    """Meta that is just within the limit stays so when its content is cut."""
    target = await fetched_once(returning(Result("y" * 20, {"k": "x" * 11})), result_max_bytes=19)
    assert target.result == Result("y" * 19, {"k": "x" * 11, "truncated": True})


async def test_a_result_tells_its_http_status(autojump_clock: MockClock) -> None:
    """A result whose meta names an HTTP status has it beside it; what can be none is passed over."""
    for status, stored in ((200, 200), (99, None), (1_000, None), ("200", None), (True, None), (2**70, None)):
        target = await fetched_once(returning(Result("", {"http_status": status})))
        assert (target.status, target.http_status) == ("done", stored)


async def test_a_result_may_change_after_it_was_returned(autojump_clock: MockClock) -> None:
    """What was stored is what was there when the fetch returned."""
    meta: dict[str, Any] = {"n": 1}
    target = await fetched_once(returning(Result("x", meta)))
    meta["n"] = 2
    assert target.result == Result("x", {"n": 1})
