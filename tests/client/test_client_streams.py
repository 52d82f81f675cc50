"""Lines and events as they come: on the mock clock, over a transport in memory."""

import json

import pytest
import trio
from client_rig import KEY, MemoryTransport, Pieces
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._client import Client, Event, ServiceProblem, Unreachable
from sift_batch._client._pieces import EventReader, Lines

_LINES = "application/jsonl"
_EVENTS = "text/event-stream"


async def _all(client: Client, *, events: bool = False, last: str = "") -> list:
    opened = client.events("/e", last=last) if events else client.lines("/l")
    async with opened as stream:
        return [item async for item in stream]


async def test_lines_come_one_by_one(autojump_clock):
    """Each line is handed on as soon as it has ended, however long the next one takes."""
    script = (200, _LINES, [b'{"a":', b'1}\n{"b": 2}\r\n\n', 3_600.0, b'{"c": 3}'])
    came = []
    async with Client(MemoryTransport(script), KEY).lines("/l") as lines:
        async for line in lines:
            came.append((line, trio.current_time()))  # noqa: PERF401 - one by one is the point
    start = came[0][1]
    assert [(line, time - start) for line, time in came] == [({"a": 1}, 0), ({"b": 2}, 0), ({"c": 3}, 3_600)]


@pytest.mark.parametrize("line", [b"x\n", b"[1]\n", b'"a"\n', b"\xff\n", b"{" * 100_000 + b"\n"])
async def test_a_line_that_is_no_object_is_unreachable(line):
    """A line of anything but a JSON object is a stranger's."""
    with pytest.raises(Unreachable):
        await _all(Client(MemoryTransport((200, _LINES, [line])), KEY))


@pytest.mark.parametrize("script", [(200, "text/html", [b"{}\n"]), (206, _LINES, []), (202, _LINES, [])])
async def test_another_kind_of_answer_is_unreachable(script):
    """Lines and events are taken from an answer of their type only."""
    for events in (False, True):
        with pytest.raises(Unreachable):
            await _all(Client(MemoryTransport(script), KEY), events=events)


async def test_a_refused_stream_is_a_problem():
    """What the service refuses is raised before the first line."""
    body = json.dumps({"code": "unknown_job"}).encode()
    client = Client(MemoryTransport((404, "application/problem+json", [body])), KEY)
    for events in (False, True):
        with pytest.raises(ServiceProblem, match="unknown_job"):
            await _all(client, events=events)


async def test_a_problem_that_drips_is_given_up(autojump_clock):
    """A refusal whose text never ends is given up."""
    client = Client(MemoryTransport((404, "application/problem+json", [100_000.0])), KEY)
    with pytest.raises(Unreachable), trio.fail_after(60):
        await _all(client)


async def test_events_have_name_id_and_data():
    """The id stays until there is another; comments and what is unknown are passed over."""
    text = (
        b'retry: 3000\n\nevent: job\ndata: {"a": 1}\n\n: still here\n\n'
        b'event: target\nid: 7\ndata: {"b":\ndata: 2}\n\ndata: {"c": 3}\n\nevent: end\nid: 8\n'
    )
    got = await _all(Client(MemoryTransport((200, _EVENTS, [text])), KEY), events=True)
    assert got == [
        Event("job", "", {"a": 1}),
        Event("target", "7", {"b": 2}),
        Event("message", "7", {"c": 3}),
    ]


async def test_events_are_asked_for_from_where_they_broke_off():
    """The last id is sent; an answer without content has no events."""
    transport = MemoryTransport((204, "", []))
    assert await _all(Client(transport, KEY), events=True, last="12") == []
    assert transport.asked[0][2]["last-event-id"] == "12"


async def test_silence_ends_a_stream_of_events_and_a_comment_does_not(autojump_clock):
    """The service says at least a comment every fifteen seconds; one that says nothing is gone."""
    comments = [part for _ in range(100) for part in (15.0, b": still here\n\n")]
    client = Client(MemoryTransport((200, _EVENTS, [*comments, 1_000.0])), KEY)
    start = trio.current_time()
    with pytest.raises(Unreachable, match="in time") as caught:
        await _all(client, events=True)
    assert caught.value.transient
    assert 1_500 < trio.current_time() - start < 1_600


async def test_an_event_that_is_no_object_is_unreachable():
    """An event's data is a JSON object."""
    with pytest.raises(Unreachable):
        await _all(Client(MemoryTransport((200, _EVENTS, [b"data: 1\n\n"])), KEY), events=True)


@given(st.binary(), st.lists(st.integers(0, 40)))
def test_lines_don_t_depend_on_how_they_are_cut(data, cuts):
    """However a body comes in pieces, its lines are the same, and no bytes break the reader."""

    async def main() -> None:
        pieces, rest = [], data
        for cut in cuts:
            pieces.append(rest[:cut])
            rest = rest[cut:]
        pieces.append(rest)

        lines = [line async for line in Lines(Pieces(pieces), 1_000_000, keep_blank=True)]
        wanted = [line.removesuffix(b"\r") for line in data.split(b"\n")[:-1]]
        last = data.rpartition(b"\n")[2]
        assert lines == wanted + ([last] if last else [])
        reader = EventReader()
        for line in lines:
            found = reader.take(line, 1_000)
            assert found is None or found.data is not None

    trio.run(main)


async def test_a_line_and_an_event_are_bounded():
    """What never ends is given up, and is not gathered."""
    with pytest.raises(Unreachable, match="larger"):
        await anext(Lines(Pieces([b"x" * 100] * 20), 1_000))
    reader = EventReader()
    for _ in range(9):
        assert reader.take(b"data: " + b"x" * 100, 1_000) is None
    with pytest.raises(Unreachable, match="larger"):
        reader.take(b"data: " + b"x" * 100, 1_000)
