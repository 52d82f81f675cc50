"""What goes out? A status, headers, a body; and the headers that every answer has.

Values only: what they say is the routes' business, sending is one function.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ._asgi import Send

Header = tuple[bytes, bytes]

SECURITY_HEADERS: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer, so that no browser keeps it, guesses its type, frames it, or runs anything of it."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. The headers that every answer has are added when it is sent."""

    status: int
    body: bytes = b""
    headers: Sequence[Header] = ()


def json_bytes(value: Any) -> bytes:
    """JSON on one line. A lone surrogate that came from a page becomes `?`: UTF-8 can't hold it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def json_response(value: Any, status: int = 200, headers: Sequence[Header] = ()) -> Response:
    """An answer of one JSON value."""
    return Response(status, json_bytes(value), ((b"content-type", b"application/json"), *headers))


def text_response(text: str, status: int = 200) -> Response:
    """An answer of plain text."""
    return Response(status, text.encode(), ((b"content-type", b"text/plain; charset=utf-8"),))


async def send_response(send: Send, response: Response) -> None:
    """Send a whole answer."""
    headers = [*SECURITY_HEADERS, *response.headers]
    if response.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


class Stream:
    """An answer in pieces. Left unfinished, it is cut: its reader sees that it is not whole."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def start(self, content_type: bytes, headers: Sequence[Header] = ()) -> None:
        """Send the head."""
        all_headers = [*SECURITY_HEADERS, (b"content-type", content_type), *headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": all_headers})

    async def put(self, data: bytes) -> None:
        """Send a piece; waits until the client takes it."""
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        """Say that it is whole."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
