"""What does a status mean, and how long does a server ask to be left alone?

Two small tables as plain code: a status to one of the closed codes, a Retry-After to seconds. It sends
nothing, waits for nothing and knows no gate. Next: `_busy`, which holds the host back.
"""

import re
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from ._errors import FetchError

_CODES: Final = {
    401: ("auth_required", "the page asks for a login"),
    403: ("blocked", "the site refuses to give the page"),
    404: ("page_not_found", "the page does not exist"),
    407: ("auth_required", "the page asks for a login"),
    410: ("page_gone", "the page is gone"),
    429: ("busy", "the site asks for patience"),
    451: ("page_gone", "the page is withheld for legal reasons"),
}

# The three spellings of RFC 9110 with or without a zone, and the offsets that mail headers have. The
# parser of the standard library reads nearly anything as a date, so that the shape is checked first.
_ZONE: Final = r"(?: (?:GMT|UTC|UT|Z|[+-]\d{4}))?"
_CLOCK: Final = r"\d{1,2}:\d{2}:\d{2}"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE: Final = re.compile(
    rf"(?:[A-Za-z]{{3,9}}, ?)?\d{{1,2}}[ -]{_MONTH}[ -](?:\d{{4}}|\d{{2}}) {_CLOCK}{_ZONE}"
    rf"|[A-Za-z]{{3}} {_MONTH} [ \d]?\d {_CLOCK} \d{{4}}{_ZONE}",
    re.ASCII | re.IGNORECASE,
)
_SECONDS: Final = re.compile(rb"[0-9]+")


def judge(status: int) -> None:
    """Return for a status that comes with a page, else raise `FetchError` with the code it stands for.

    Redirects that are followed, statuses that are tried again, and a 429 or 503 that asks for patience
    are to be dealt with before.
    """
    if 200 <= status < 300:
        return
    code, message = _CODES.get(status, ("http_error", "the site did not give the page"))
    if status >= 500:
        code, message = "server_error", "the site has a fault"
    raise FetchError(code, f"{message} (HTTP {status})")


def retry_after(value: bytes, now: float, limit: float = 600.0) -> float | None:
    """Return the seconds that a Retry-After asks for, between 1 and `limit`; None if it asks for none.

    It counts if it is one number in ASCII digits or one HTTP date (without a zone: in GMT); repeated
    headers arrive here as a list with commas, and a list is neither. `now` is the wall clock in unix
    seconds.
    """
    value = value.strip(b" \t")
    if _SECONDS.fullmatch(value):
        seconds = float(value)  # thousands of digits are infinity here, and an error as an int
    else:
        moment = _moment(value)
        if moment is None:
            return None
        seconds = moment - now
    return min(max(seconds, 1.0), limit)


def _moment(value: bytes) -> float | None:
    text = value.decode("latin-1")
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None  # the shape of a date, as 31 February has it
