"""Is this the head of a request that two readers can't read in two ways? Plain functions over bytes.

h11 parses; what h11 forgives is refused here first: bare LF, folded lines, control characters, a length given
twice or beside a transfer coding, a target that is no path. A proxy in front may forgive it differently, and
the difference is how one request hides in another. It reads no body and no socket: `_connection` does.
"""

import re
from typing import Final

import h11

from ._limits import ServerLimits
from ._refusal import Refused

_END: Final = b"\r\n\r\n"
_NOT_IN_A_HEAD: Final = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\n[ \t]")
_METHOD: Final = re.compile(rb"[A-Z-]{1,32}")
_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([^\r]*)", re.IGNORECASE)
_WHOLE_NUMBER: Final = re.compile(rb"[0-9]{1,19}[ \t]*")
_SPACE: Final = 0x21


def head_end(buffer: bytearray, limits: ServerLimits) -> int:
    """Where the head at the start of `buffer` ends; -1 when it goes on. `Refused` when it can't be one."""
    end = buffer.find(_END, 0, limits.head_bytes)
    stop = end + len(_END) if end >= 0 else len(buffer)
    if buffer and buffer[0] < _SPACE:
        raise Refused(400)  # a TLS handshake, a blank line: waiting for more would not help
    if buffer.count(b"\n", 0, stop) != buffer.count(b"\r\n", 0, stop):
        raise Refused(400)
    if end < 0 and len(buffer) >= limits.head_bytes:
        raise Refused(431)
    return stop if end >= 0 else -1


def parse_head(head: bytes, limits: ServerLimits) -> tuple[h11.Connection, h11.Request]:
    """The request in a whole head, and the parser that stands at its body. `Refused` with the status."""
    if _NOT_IN_A_HEAD.search(head):
        raise Refused(400)
    if head.count(b"\r\n") - 2 > limits.header_count:
        raise Refused(431)
    # One parser a request: nothing of one request can be left over in the next.
    wire = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
    wire.receive_data(head)
    try:
        request = wire.next_event()
    except h11.RemoteProtocolError as error:
        raise Refused(501 if error.error_status_hint == 501 else 400) from None
    if type(request) is not h11.Request:
        raise Refused(400)
    _check_line(request)
    _check_framing(request, head)
    return wire, request


def declared_length(request: h11.Request) -> int | None:
    """Bytes of body that the head announces; None for a chunked body."""
    fields = dict(request.headers)
    return None if b"transfer-encoding" in fields else int(fields.get(b"content-length", b"0"))


def _check_line(request: h11.Request) -> None:
    # The HTTP/2 preface is a well-formed request line of version 2.0.
    if request.http_version not in (b"1.0", b"1.1"):
        raise Refused(505)
    if request.method == b"CONNECT" or not _METHOD.fullmatch(request.method):
        raise Refused(501)
    # A whole URL, an authority or `*` would name the host a second time, or no path at all.
    if not request.target.startswith(b"/") or b"#" in request.target:
        raise Refused(400)


def _check_framing(request: h11.Request, head: bytes) -> None:
    # h11 takes the same length twice, and `5, 5`, for 5; and lets a transfer coding win over a length.
    lengths = _LENGTH.findall(head)
    if len(lengths) > 1 or not all(_WHOLE_NUMBER.fullmatch(length) for length in lengths):
        raise Refused(400)
    if declared_length(request) is None and (lengths or request.http_version == b"1.0"):
        raise Refused(400)
