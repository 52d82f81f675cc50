"""What did the service say? Answers, lines and events, or one of the two ways in which it ends badly.

It stands on any `Transport`, sends the key with every request, and believes nothing: what comes back is
bounded in time and size, and checked before it is handed on. It tries nothing twice: whoever follows a
job does that. Next: `_http`.
"""

import json
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import trio

from ._address import check_key
from ._pieces import EventReader, Lines, too_long
from ._problems import Unreachable, problem_of, read_json, stranger
from ._transport import Headers, Transport

BODY_LIMIT: Final = 64 * 2**20
"""Bytes of an answer, of a line, and of an event: a page of results has some 4 million characters."""

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_PROBLEM_LIMIT: Final = 2**20
_PROBLEM_SECONDS: Final = 20.0
_HEAD_SECONDS: Final = 65.0
# The service sends a comment every fifteen seconds.
_EVENT_SECONDS: Final = 50.0


class Answer(NamedTuple):
    """A whole answer below 400, redirects excepted. `headers` by lower-case name, the first of equals."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body's JSON. Raises `Unreachable` for a body that is none."""
        value = read_json(self.body)
        if value is NotImplemented:
            raise stranger(self.status)
        return value


class Event(NamedTuple):
    """One server-sent event; `id` is the last one that was given, `data` the JSON object it holds."""

    name: str
    id: str
    data: dict[str, Any]


class Client:
    """Talks to one service with one key, one request on each connection. Any number of tasks may use it.

    Without a key, only what is open to all can be asked for. Raises `BadServer` for what can be no key.
    """

    def __init__(self, transport: Transport, key: str) -> None:
        check_key(key)
        self._transport = transport
        self._key = key

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 65.0,
    ) -> Answer:
        """Send one request and return its whole answer, within `seconds` in all.

        `path` has its query with it; `body` is sent as JSON, `None` is no body. If cancelled, the service
        may or may not have done what was asked.

        Raises `ServiceProblem` for what the service refuses, `Unreachable` when nothing answers in time
        or what answers is no service of ours.
        """
        sent, data = self._head(headers), b""
        if body is not None:
            data = json.dumps(body).encode()
            sent.append((b"content-type", b"application/json"))
        with trio.move_on_after(seconds):
            async with self._transport.request(method, path, sent, data, seconds=seconds) as (
                status,
                got,
                pieces,
            ):
                found = _by_name(got)
                limit = BODY_LIMIT if status < 400 else _PROBLEM_LIMIT
                whole = await _read(pieces, limit)
                _check(status, found, whole)
                return Answer(status, found, whole)
        raise _too_slow()

    @asynccontextmanager
    async def lines(self, path: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Give the JSON objects of an answer in lines, as they come; they may take any time to.

        Raises what `call` raises, also in the middle: an answer that was cut off is `Unreachable`.
        """
        async with self._stream(path, {"accept": "application/jsonl"}, math.inf) as (status, pieces):
            yield _Objects(Lines(pieces, BODY_LIMIT), status)

    @asynccontextmanager
    async def events(self, path: str, *, last: str = "") -> AsyncIterator[AsyncIterator[Event]]:
        """Give the server-sent events of an answer, as they come; `last` is the id to go on after.

        They end when the answer does, which may have none. Raises what `call` raises, also in the middle:
        an answer that was cut off, or has gone silent, is `Unreachable`.
        """
        headers = {"accept": "text/event-stream"}
        if last:
            headers["last-event-id"] = last
        async with self._stream(path, headers, _EVENT_SECONDS) as (status, pieces):
            yield _Events(pieces, status)

    @asynccontextmanager
    async def _stream(
        self, path: str, headers: Mapping[str, str], seconds: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        sent, wanted = self._head(headers), headers["accept"]
        async with self._transport.request("GET", path, sent, b"", seconds=_HEAD_SECONDS) as (
            status,
            got,
            pieces,
        ):
            found = _by_name(got)
            if status >= 300:
                whole = b""
                with trio.move_on_after(_PROBLEM_SECONDS):
                    whole = await _read(pieces, _PROBLEM_LIMIT)
                _check(status, found, whole)
                raise stranger(status)
            kind = found.get("content-type", "").partition(";")[0].strip().lower()
            if status not in (200, 204) or (status == 200 and kind != wanted):
                raise stranger(status)
            yield status, _Paced(pieces, seconds)

    def _head(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        named = {"accept": "application/json", **headers}
        if self._key:
            named["authorization"] = f"Bearer {self._key}"
        return [(name.encode("ascii"), value.encode("ascii")) for name, value in named.items()]


def _by_name(headers: Headers) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in headers:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def _check(status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise for everything but a plain answer."""
    if status >= 400:
        raise problem_of(status, headers.get("content-type", ""), body)
    if status >= 300 and status != 304:
        # Never followed: the key is meant for the address that was given, and for no other.
        raise Unreachable(
            f"what answers there sends on to another address (HTTP {status}); name the service's own",
            status=status,
        )
    if status < 200 or "content-encoding" in headers:
        raise stranger(status)  # nobody asked for it, and a small one can be unpacked into a very large one


async def _read(pieces: AsyncIterator[bytes], limit: int) -> bytes:
    whole = bytearray()
    async for piece in pieces:
        whole += piece
        if len(whole) > limit:
            raise too_long()
    return bytes(whole)


# Iterators and no generators from here on: one that is left half-way needs no closing.


class _Paced:
    """Pieces, each of which must come within some seconds."""

    def __init__(self, pieces: AsyncIterator[bytes], seconds: float) -> None:
        self._pieces, self._seconds = pieces, seconds

    def __aiter__(self) -> "_Paced":
        return self

    async def __anext__(self) -> bytes:
        with trio.move_on_after(self._seconds):
            return await anext(self._pieces)
        raise _too_slow()


class _Objects:
    """The JSON objects of lines."""

    def __init__(self, lines: AsyncIterator[bytes], status: int) -> None:
        self._lines, self._status = lines, status

    def __aiter__(self) -> "_Objects":
        return self

    async def __anext__(self) -> dict[str, Any]:
        return _object(await anext(self._lines), self._status)


class _Events:
    """The events of an event stream, whose data are JSON objects."""

    def __init__(self, pieces: AsyncIterator[bytes], status: int) -> None:
        self._lines, self._status = Lines(pieces, BODY_LIMIT, keep_blank=True), status
        self._reader = EventReader()

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> Event:
        while True:
            fields = self._reader.take(await anext(self._lines), BODY_LIMIT)
            if fields is not None:
                return Event(fields.name, fields.id, _object(fields.data.encode(), self._status))


def _object(data: bytes, status: int) -> dict[str, Any]:
    value = read_json(data)
    if not isinstance(value, dict):
        raise stranger(status)
    return value


def _too_slow() -> Unreachable:
    return Unreachable("the service does not answer in time", transient=True)
