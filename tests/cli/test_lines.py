"""What a result looks like on the outside."""

import json
import os

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from sift_batch import Options, Result, Target, TargetState, TargetStatus
from sift_batch.cli.escape import visible
from sift_batch.cli.lines import Sink, json_line, target_view
from sift_batch.cli.targets import Item


def _status(**fields) -> TargetStatus:
    given_fields = {
        "idx": 0,
        "url": "http://a.example/",
        "options": Options(),
        "status": TargetState.DONE,
        "result": Result("text", {"code": "truncated", "hint": "ask for less"}),
        "error": "",
        "hint": "",
        "code": "",
        "http_status": None,
        "retryable": False,
        "chars": 4,
    }
    return TargetStatus(**{**given_fields, **fields})


@given(st.text(alphabet=st.characters()))
def test_visible_text_can_t_command_a_terminal(text):
    """Escaped text holds no control character and no mark that turns text round."""
    shown = visible(text)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or "\u202a" <= char <= "\u202e" for char in shown)


@given(st.dictionaries(st.text(alphabet=st.characters()), st.text(alphabet=st.characters())))
@example({"every control": "".join(map(chr, range(160))), "turned\u202e": "half \ud800"})
def test_a_json_line_is_printable_ascii_and_says_the_same(view):
    """A line is one line of printable ASCII that reads back as what went in."""
    line = json_line(view)
    assert line.endswith(b"\n")
    assert all(32 <= byte < 127 for byte in line[:-1])
    assert json.loads(line) == view


def test_a_note_on_a_done_target_comes_from_its_meta():
    """`code` and `hint` of a done target are those that its result's meta holds."""
    view = target_view(Item(7, Target("http://a.example/")), _status())
    assert (view["idx"], view["code"], view["hint"]) == (7, "truncated", "ask for less")


def test_a_failed_target_has_its_own_code():
    """A failed target shows its error, and no result."""
    view = target_view(
        Item(0, Target("http://a.example/"), line=3, extra={"k": 1}),
        _status(status=TargetState.FAILED, result=None, error="no", code="dns", hint="later", retryable=True),
    )
    assert (view["result"], view["error"], view["code"], view["hint"]) == (None, "no", "dns", "later")
    assert (view["line"], view["input"], view["retryable"]) == (3, {"k": 1}, True)


@pytest.mark.real
async def test_a_reader_that_does_not_read_holds_up_nobody_else():
    """While a write waits for a full pipe, other tasks go on; cancelling the write ends the wait."""
    reading, writing = os.pipe()
    try:
        sink = Sink(writing)
        with trio.move_on_after(0.2) as scope:
            await sink.write(b"x" * 1_000_000)
        assert scope.cancelled_caught
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.real
async def test_a_sink_that_starts_over_keeps_the_file_until_it_begins(tmp_path):
    """An existing output is emptied by `begin`, and not before."""
    path = tmp_path / "out"
    path.write_bytes(b"old lines")
    descriptor = os.open(path, os.O_WRONLY)
    try:
        sink = Sink(descriptor, starts_over=True)
        assert path.read_bytes() == b"old lines"
        sink.begin()
        await sink.write(b"new\n")
        sink.sync()
        assert path.read_bytes() == b"new\n"
    finally:
        os.close(descriptor)
