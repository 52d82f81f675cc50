"""What goes out? A status, headers, a body; and the headers that every answer has.

Values only: what they say is the routes' business, sending is one function.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ._asgi import Send

Header = tuple[bytes, bytes]


def security_headers(policy: bytes) -> tuple[Header, ...]:
    """Return the headers that keep a browser from keeping an answer, guessing its type, or leaking it.

    `policy` says what it may load, run, and be framed by.
    """
    return (
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", policy),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )


SECURITY_HEADERS: Final = security_headers(b"default-src 'none'; frame-ancestors 'none'; sandbox")
"""On every answer but the pages that a browser runs: nothing of it may be framed, loaded or run."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. The headers of `security` are added when it is sent."""

    status: int
    body: bytes = b""
    headers: Sequence[Header] = ()
    security: Sequence[Header] = SECURITY_HEADERS


def json_bytes(value: Any) -> bytes:
    """JSON on one line. A lone surrogate that came from a page becomes `?`: UTF-8 can't hold it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def json_response(value: Any, status: int = 200, headers: Sequence[Header] = ()) -> Response:
    """An answer of one JSON value, and a line end behind it for whoever reads it on a terminal."""
    return Response(status, json_bytes(value) + b"\n", ((b"content-type", b"application/json"), *headers))


def text_response(text: str, status: int = 200) -> Response:
    """An answer of plain text."""
    return Response(status, text.encode(), ((b"content-type", b"text/plain; charset=utf-8"),))


async def send_response(send: Send, response: Response) -> None:
    """Send a whole answer."""
    headers = [*response.security, *response.headers]
    if response.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


class Stream:
    """An answer in pieces. Left unfinished, it is cut: its reader sees that it is not whole."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def start(self, content_type: bytes, headers: Sequence[Header] = ()) -> None:
        """Send the head; it goes out now, whenever the first piece may come."""
        all_headers = [*SECURITY_HEADERS, (b"content-type", content_type), *headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": all_headers})
        await self.put(b"")

    async def put(self, data: bytes) -> None:
        """Send a piece; waits until the client takes it."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        """Say that it is whole."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
