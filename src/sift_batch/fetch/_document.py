"""What goes into a reader of pages, and what comes out?

The seam between the half that talks to servers and the half that reads what they sent. The first runs
in the application; the second runs in worker processes, imports no Trio, and may be killed at any
moment. These values are all that passes between them. Next: `_pool`, which carries them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Document:
    """What a server sent: `body` in pieces, decoded of gzip; `content_type` the header, "" without one.

    `url` is the address it came from in the end; links are resolved against it.
    """

    body: Sequence[bytes]
    content_type: str
    url: str


@dataclass(frozen=True, slots=True, repr=False)
class Reading:
    """What was read: the content as the options ask for it, and the facts that `Result.meta` gets.

    The facts are those that only the document can tell: `content_type`, `charset`, `chars`, `title`,
    `pages`, `matches`, `passages`, `truncated`, `chars_total`, `encoding`, `code`, `hint` and so on.
    """

    content: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class ReadError(Exception):
    """The document can't be read as the options ask. `code` is one of `CODES`; the texts are our own."""

    def __init__(self, code: str, message: str, *, hint: str = "", reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.reason = reason
