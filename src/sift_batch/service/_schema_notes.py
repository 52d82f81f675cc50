"""What can a type alone not say? Notes beside it: what a member means, and its bounds.

And the kinds of texts and numbers that many forms have. The forms are in `_schema_types`, `_schema_facts` and
`_schema_orders`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Final


@dataclass(frozen=True, slots=True)
class Note:
    """Something about a type or a member: a text, and words of JSON Schema (`min_length` is `minLength`)."""

    text: str = ""
    format: str | None = None
    pattern: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    values: Collection[str] | None = None
    """What a text may be, where its type is a plain `str`."""
    form: Any = None
    """What is known of a mapping's members: a form that may have more."""
    holds: Any = None
    """The form of the JSON that a text is."""


JOB_ID: Final = r"^[0-9a-f]{32}$"

JobId = Annotated[str, Note("the id of a job", pattern=JOB_ID)]
Count = Annotated[int, Note(minimum=0)]
Time = Annotated[
    str,
    Note(format="date-time", pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"),
]
Path = Annotated[str, Note("a path of this service, never a whole URL", pattern=r"^/v1/")]
