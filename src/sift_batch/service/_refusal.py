"""What is a client told when the server itself says no? A status, a short problem, and a closed connection.

Nothing of the request is in it. The application replaces headers and bodies with `answers=` of `serve`;
status line, length and `Connection: close` stay the server's.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, NamedTuple


class Answer(NamedTuple):
    """Headers and body of a refusal."""

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


Answers = Callable[[int], Answer]
"""Gives the answer for a status: 400, 408, 413, 431, 500, 501, 503 or 505."""

_TITLES: Final = {413: "Content Too Large", 431: "Request Header Fields Too Large"}
_FRAMING: Final = (b"content-length", b"transfer-encoding", b"connection")


class Refused(Exception):
    """The server refuses a request with `status` and closes the connection."""

    def __init__(self, status: int) -> None:
        super().__init__("the server refused the request")
        self.status = status


class BodyRefused(Refused):
    """Raised from `receive()`: the body is too large (413), too slow (408) or malformed (400).

    An application that catches it may answer on its own; the connection is closed after the answer.
    """


class ClientGone(OSError):
    """Raised from `send()`: the client went away or did not read."""

    def __init__(self) -> None:
        super().__init__("the client is gone")


def title(status: int) -> str:
    """The standard phrase for a status, empty for one that has none."""
    try:
        return _TITLES.get(status) or HTTPStatus(status).phrase
    except ValueError:
        return ""


def problem(status: int) -> Answer:
    """A problem of type `about:blank` (RFC 9457): title and status, no more."""
    headers = [(b"content-type", b"application/problem+json"), (b"cache-control", b"no-store")]
    headers.append((b"x-content-type-options", b"nosniff"))
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.append((b"retry-after", b"1"))
    body = f'{{"type":"about:blank","title":"{title(status)}","status":{status}}}'
    return Answer(tuple(headers), body.encode("ascii"))


def refusal_bytes(status: int, answers: Answers, *, mute: bool = False) -> bytes:
    """The whole refusal as it goes out; `mute` leaves the body out, as HEAD wants it."""
    try:
        return _whole(status, answers(status), mute=mute)
    except Exception:  # a broken replacement must not cost the client its answer
        return _whole(status, problem(status), mute=mute)


def _whole(status: int, answer: Answer, *, mute: bool) -> bytes:
    lines = [b"HTTP/1.1 %d %s" % (status, title(status).encode("ascii"))]
    lines += [b"%s: %s" % pair for pair in answer.headers if pair[0].lower() not in _FRAMING]
    lines += [b"content-length: %d" % len(answer.body), b"connection: close", b"", b""]
    return b"\r\n".join(lines) + (b"" if mute else answer.body)
