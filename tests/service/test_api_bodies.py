"""Bodies and problems: what is read as JSON, and what a client is told when something is wrong."""

import json
import threading
import time
from contextlib import AsyncExitStack, suppress

import pytest
import trio
from api_rig import Client, Fetch, read_reply, serving, until
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._errors import CODES
from sift_batch.service import _request
from sift_batch.service._codes import KINDS, TARGET_CODES
from sift_batch.service._json_body import check_media_type, parse_json
from sift_batch.service._problems import BadItem, Problem, problem, server_answer

MEMBERS = {
    "type",
    "title",
    "status",
    "detail",
    "code",
    "retryable",
    "retry_after",
    "hint",
    "next",
    "errors",
}
SERVICE_CODES = {
    "unauthorized": 401,
    "unknown_job": 404,
    "unknown_target": 404,
    "unknown_path": 404,
    "method_not_allowed": 405,
    "not_finished": 409,
    "job_live": 409,
    "gone": 410,
    "body_too_large": 413,
    "media_type": 415,
    "unknown_host": 421,
    "bad_json": 400,
    "no_targets": 422,
    "too_many_targets": 422,
    "bad_request": 422,
    "caller_busy": 429,
    "jobs_busy": 429,
    "gate_busy": 429,
    "store_unavailable": 503,
    "internal": 500,
}


@pytest.mark.parametrize("code", sorted(KINDS))
def test_every_code_has_all_its_fields(code: str) -> None:
    """A status that is an error, a title, and what to do, in the words of each door."""
    kind = KINDS[code]
    assert 400 <= kind.status <= 599
    assert all(isinstance(text, str) and text for text in (kind.title, kind.http, kind.cli, kind.mcp))
    assert type(kind.retryable) is bool


def test_the_codes_of_the_service_have_their_statuses() -> None:
    """What is documented is what is answered."""
    assert {code: KINDS[code].status for code in SERVICE_CODES} == SERVICE_CODES


def test_the_codes_of_the_fetch_are_all_there() -> None:
    """Each has the status, and the answer to whether a later try can help, that the fetch gives it."""
    assert {code: (KINDS[code].status, KINDS[code].retryable) for code in TARGET_CODES} == dict(CODES)


@pytest.mark.parametrize("code", sorted(KINDS))
def test_a_problem_has_exactly_its_members(code: str) -> None:
    """Status and code agree; Retry-After says what the body says."""
    response = problem(code, retry_after=1.2, errors=[BadItem("/x", "type", "must be")])
    body, headers = json.loads(response.body), dict(response.headers)
    assert set(body) == MEMBERS
    assert (body["status"], body["code"]) == (response.status, code)
    assert (body["retry_after"], headers[b"retry-after"]) == (2, b"2")
    assert body["errors"] == [{"pointer": "/x", "code": "type", "detail": "must be"}]
    assert headers[b"content-type"] == b"application/problem+json"


@pytest.mark.parametrize("status", [400, 408, 413, 431, 500, 501, 503, 505])
def test_the_servers_own_refusals_are_problems_too(status: int) -> None:
    """Each has the members, its own status, and the headers of every answer."""
    answer = server_answer(status)
    body = json.loads(answer.body)
    assert (set(body), body["status"]) == (MEMBERS, status)
    assert (b"cache-control", b"no-store") in answer.headers


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[1,]",
        b"{}{}",
        b"nul",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\0}\0",
        b'"\xff"',
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"\\u0062":2}}',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b"[-1e999]",
        b"1" * 20,
        b"-" + b"1" * 20,
        b'"\\ud800"',
        b'"\\udc00x"',
        b'{"\\ud83d":1}',
        b'"\\u0000"',
        b'{"a\\u0000":1}',
        b"[" * 17 + b"]" * 17,
        b'{"a":' * 17 + b"1" + b"}" * 17,
        b"[" * 100_000,
        b'"\x01"',
        b'"',
    ],
)
def test_json_that_can_be_read_in_two_ways_is_refused(raw: bytes) -> None:
    """Broken, twice the same name, not finite, too long, half a character, NUL, too deep: `bad_json`."""
    with pytest.raises(Problem) as caught:
        parse_json(raw)
    assert (caught.value.code, caught.value.status) == ("bad_json", 400)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b' {"a": [1, -2.5e3, null, true]} \n', {"a": [1, -2500.0, None, True]}),
        (b"[" * 16 + b"]" * 16, json.loads("[" * 16 + "]" * 16)),
        (b'"[[[[[[[[[[[[[[[[[[[[{{{\\"[["', '[[[[[[[[[[[[[[[[[[[[{{{"[['),
        (b"1" * 19, int("1" * 19)),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"\u00e9"'.encode(), "\u00e9"),
    ],
)
def test_json_that_is_sound_is_read(raw: bytes, value: object) -> None:
    """Depth counts outside of texts; a whole surrogate pair is one character."""
    assert parse_json(raw) == value


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(json_values)
def test_what_another_writer_writes_is_read(value: object) -> None:
    """Any sound value, written with or without escapes, comes out as it went in."""
    for ascii_only in (True, False):
        assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=100))
def test_any_bytes_are_a_value_or_a_problem(raw: bytes) -> None:
    """Nothing else comes out of bad bytes."""
    with suppress(Problem):
        parse_json(raw)


def test_a_text_without_an_end_costs_no_more_than_its_length() -> None:
    """A megabyte of quotes that are escaped is refused; tried again at each of them, it would take hours."""
    started = time.process_time()
    with pytest.raises(Problem):
        parse_json(b'"' + b'\\"' * 500_000)
    assert time.process_time() - started < 60


@pytest.mark.parametrize(
    ("headers", "known"),
    [
        ([(b"content-type", b"application/json")], True),
        ([(b"content-type", b"Application/JSON ; charset=UTF-8")], True),
        ([(b"content-type", b'application/json;charset="utf-8"')], True),
        ([], False),
        ([(b"content-type", b"text/plain")], False),
        ([(b"content-type", b"application/json; charset=latin-1")], False),
        ([(b"content-type", b"application/jsonx")], False),
        ([(b"content-type", b"application/json")] * 2, False),
        ([(b"content-type", b"application/json"), (b"content-encoding", b"gzip")], False),
        ([(b"content-type", b"application/json"), (b"content-encoding", b"identity")], False),
    ],
)
def test_only_plain_json_in_utf_8_is_taken(headers: list[tuple[bytes, bytes]], *, known: bool) -> None:
    """Everything else is `media_type`."""
    if known:
        check_media_type(headers)
    else:
        with pytest.raises(Problem) as caught:
            check_media_type(headers)
        assert caught.value.code == "media_type"


@pytest.mark.real
async def test_bad_bodies_over_the_wire() -> None:
    """The type, the size and the JSON are refused with their statuses, for jobs and fetches alike."""
    async with serving() as api:
        for path in ("/v1/batch", "/v1/fetch"):
            (await api.ann.post(path, b"{}", Content_Type="text/plain")).problem(415, "media_type")
            (await api.ann.post(path)).problem(415, "media_type")
            (await api.ann.post(path, b'{"a":1,"a":1}')).problem(400, "bad_json")
            (await api.ann.post(path, b" " * (2**20 + 1))).problem(413, "body_too_large")
            (await api.ann.post(path, b"{}" + b" " * (2**20 - 2))).problem(
                422, "no_targets" if path == "/v1/batch" else "bad_request"
            )
            (await api.ann.post(f"{path}?x=1", b"{}")).problem(422, "bad_request")


@pytest.mark.real
async def test_a_bad_body_where_none_belongs_is_the_clients_fault() -> None:
    """A body that is too large, or malformed, ends a wait with its own status and never as our own error."""
    async with serving(Fetch(hang=["https://a.example/"])) as api:
        head = f"/v1/batch/{await api.submitted('https://a.example/')}?wait=5"
        with trio.fail_after(3):
            (await api.ann.send("GET", head, b" " * (2**20 + 1))).problem(413, "body_too_large")
            async with await trio.open_tcp_stream("127.0.0.1", api.server.port) as stream:
                await stream.send_all(api.ann.head("GET", head, b"", {"Transfer-Encoding": "chunked"}))
                await stream.send_all(b"no length\r\n")
                (await read_reply(stream, "GET")).problem(400, "malformed_request")
        assert (api.errors, api.server.events["app_failed"]) == ([], 0)


async def test_large_bodies_are_looked_through_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time and one of each caller's in line: others have their answers, large ones too."""
    seen: list[str] = []
    release = threading.Event()

    def slow(raw: bytes) -> object:
        if len(raw) > 2**15:
            seen.append(raw[:40].decode())
            release.wait(30)
        return parse_json(raw)

    monkeypatch.setattr(_request, "parse_json", slow)
    async with serving(Fetch()) as api, trio.open_nursery() as tasks:

        async def large(client: Client, name: str) -> None:
            body = {name: 1, "targets": ["x" * 40_000]}
            (await client.post("/v1/batch", body)).problem(422, "bad_request")

        opened = api.app._shared.open
        for number in range(4):
            tasks.start_soon(large, api.ann, f"ann{number}")
        await until(lambda: seen and opened._counts == {"ann": 4})
        tasks.start_soon(large, api.bob, "bob")
        await until(lambda: opened._counts == {"ann": 4, "bob": 1})
        try:
            (await api.eve.post("/v1/batch", {"targets": 5})).problem(422, "bad_request")
            await until(lambda: api.app._shared.body_threads.statistics().tasks_waiting == 1)
            assert len(seen) == 1
        finally:
            release.set()
    assert "bob" in seen[1]
    assert len(seen) == 5
    assert len(api.app._shared.bodies) == 0


async def test_a_large_body_whose_client_left_is_not_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who leaves, and whom a stop ends, gives its place in line to the next one."""
    seen: list[int] = []
    release = threading.Event()

    def slow(raw: bytes) -> object:
        seen.append(len(raw))
        release.wait(30)
        return parse_json(raw)

    monkeypatch.setattr(_request, "parse_json", slow)
    body = b'{"targets": ["' + b"x" * 40_000 + b'"]}'
    async with serving(Fetch()) as api:
        head = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        try:
            async with AsyncExitStack() as clients:
                for _ in range(3):
                    stream = await clients.enter_async_context(
                        await trio.open_tcp_stream("127.0.0.1", api.server.port)
                    )
                    await stream.send_all(api.ann.head("POST", "/v1/batch", b"", head) + body)
                await until(lambda: seen and api.app._shared.open._counts == {"ann": 3})
            await until(lambda: not api.app._shared.open._counts)
            assert len(seen) == 1
        finally:
            release.set()
