"""What did the server answer?

One answer taken in and judged: its body under a cap, unpacked, and its status as text, as a
`TargetError` or as `RetryLater`. It knows no HTTP library, no gate and no page. Next: `_text`.
"""

import email.utils
import math
import zlib
from datetime import UTC
from typing import Final, NamedTuple

from .._model.errors import RetryLater, TargetError

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TEXTUAL: Final = frozenset(
    {
        "application/json",
        "application/x-ndjson",
        "application/jsonl",
        "application/xml",
        "application/javascript",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/sql",
    }
)
_REFUSALS: Final = {
    401: ("auth_required", 502, "the page asks for a login"),
    407: ("auth_required", 502, "the page asks for a login"),
    403: ("blocked", 403, "the site refuses to give the page"),
    404: ("page_not_found", 404, "the page does not exist"),
    410: ("page_gone", 410, "the page is gone"),
    451: ("page_gone", 410, "the page is withheld for legal reasons"),
}
_RETRY_AFTER_LIMIT: Final = 600.0


class Answer(NamedTuple):
    """A whole answer: header names in lower case, the body unpacked, `wire` its bytes as they came."""

    status: int
    headers: dict[str, bytes]
    body: bytes
    wire: int


def failed(code: str, status: int, message: str, *, hint: str = "", retryable: bool = False) -> TargetError:
    """Return the error of a target that can not be had."""
    return TargetError(message, code=code, status=status, hint=hint, retryable=retryable)


def too_large(limit: int) -> TargetError:
    """Return the error of a page over `limit` bytes."""
    return failed("too_large", 413, f"the page is larger than {limit:,} bytes")


class Body:
    """Takes a body as it comes and unpacks it, never holding more than `limit` bytes."""

    def __init__(self, encoding: bytes, limit: int) -> None:
        coding = encoding.strip().lower()
        if coding not in (b"", b"identity", b"gzip", b"x-gzip"):
            raise failed("unsupported_type", 415, "the page is packed in a way that was not asked for")
        self.wire = 0
        self._limit = limit
        self._data = bytearray()
        self._unpacker = zlib.decompressobj(31) if coding.endswith(b"gzip") else None
        self._ended = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes. Raises `TargetError` for too many or damaged ones."""
        self.wire += len(chunk)
        if self.wire > self._limit:
            raise too_large(self._limit)
        if self._unpacker is None:
            self._data += chunk
        else:
            self._unpack(self._unpacker, chunk)

    def _unpack(self, unpacker: "zlib._Decompress", chunk: bytes) -> None:
        while chunk and not self._ended:
            if unpacker.eof:
                # Another member follows; anything else after a member is padding.
                self._ended = not chunk.startswith(b"\x1f")
                unpacker = self._unpacker = zlib.decompressobj(31)
                continue
            try:
                # One byte more than allowed tells that there is more, and no bomb gets further.
                self._data += unpacker.decompress(chunk, self._limit + 1 - len(self._data))
            except zlib.error:
                raise failed("protocol", 502, "the packed page is damaged", retryable=True) from None
            if len(self._data) > self._limit:
                raise too_large(self._limit)
            chunk = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail

    def close(self) -> bytes:
        """Return the unpacked body. Raises `TargetError` when it ends too early."""
        if self._unpacker is not None and self.wire and not (self._unpacker.eof or self._ended):
            raise failed("protocol", 502, "the packed page is cut off", retryable=True)
        return bytes(self._data)


def judge(answer: Answer, now: float) -> None:
    """Raise unless the answer is a page: `RetryLater` for a site that asks for patience, else `TargetError`.

    `now` is the wall clock, for a Retry-After that names a date.
    """
    status = answer.status
    if 200 <= status < 300:
        return
    if status == 429 or (status == 503 and "retry-after" in answer.headers):
        seconds = retry_after(answer.headers.get("retry-after", b""), now)
        raise RetryLater(
            f"the site asks for patience (HTTP {status})",
            retry_after=seconds,
            reason="host" if seconds is None else "retry_after",
        )
    if status >= 500:
        raise failed("server_error", 502, f"the site has a fault (HTTP {status})", retryable=True)
    code, own, message = _REFUSALS.get(status, ("http_error", 502, "the site did not give the page"))
    raise failed(code, own, f"{message} (HTTP {status})", retryable=status == 408)


def retry_after(value: bytes, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, between 1 and 600; None if it asks none."""
    text = value.strip()
    if text.isdigit():
        # More than eight digits are over the limit anyway, and might be thousands of them.
        seconds = float(text) if len(text) <= 8 else math.inf
    else:
        try:
            moment = email.utils.parsedate_to_datetime(text.decode("ascii"))
            # A date without a zone is meant in UTC, like every date in HTTP.
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 1.0), _RETRY_AFTER_LIMIT)


def media_type(headers: dict[str, bytes]) -> str:
    """Return the media type of the Content-Type header, "" where there is none."""
    return headers.get("content-type", b"").decode("latin-1").split(";")[0].strip().lower()[:200]


def charset_label(headers: dict[str, bytes]) -> str:
    """Return what the Content-Type header calls its charset, as it is."""
    for part in headers.get("content-type", b"").decode("latin-1").split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value[:100]
    return ""


def check_type(media_type: str) -> None:
    """Raise `TargetError` for what is no text; "" passes, since its bytes will tell."""
    textual = media_type in HTML or media_type in _TEXTUAL or media_type.startswith("text/")
    if media_type and not textual and not media_type.endswith(("+json", "+xml")):
        raise failed("unsupported_type", 415, "the page is no text, HTML or JSON")
