"""What may be known about a page? The form of `Result.meta`, as the fetch gives it.

The names are those of the fetch, in its order; a test compares them.
"""

from typing import Annotated, NotRequired, TypedDict

from ._schema_notes import Count, Note, Time


class PageCounts(TypedDict):
    """Pages of a document: all, and those that were given."""

    total: Count
    given: Count


class Passage(TypedDict):
    """Where a passage that answers a question stands."""

    lines: Annotated[list[int], Note("its first and its last line, from 1", min_items=2, max_items=2)]
    page: NotRequired[Annotated[int, Note(minimum=1)]]
    score: float
    headings: list[str]


class Original(TypedDict):
    """Why a page had to be recovered."""

    http_status: NotRequired[int]
    code: str


class Meta(TypedDict, total=False):
    """Facts about a page; those that are not known are left out."""

    url: Annotated[str, Note("where it was found in the end, spelled out")]
    http_status: Annotated[int, Note("what its server answered")]
    content_type: str
    charset: str
    bytes_wire: Count
    bytes_decoded: Count
    chars: Annotated[int, Note("characters of the content", minimum=0)]
    title: str
    redirects: Annotated[list[str], Note("the URLs that led there")]
    fetched_at: Time
    elapsed_seconds: float
    tries: Annotated[int, Note("if it took more than one", minimum=2)]
    pages: PageCounts
    matches: Annotated[int, Note("of `grep`", minimum=0)]
    passages: Annotated[list[Passage], Note("of `question`")]
    truncated: Annotated[bool, Note("the content was cut")]
    chars_total: Annotated[int, Note("characters before it was cut", minimum=0)]
    encoding: Annotated[str, Note("the content is bytes, written in this way", values=("base64",))]
    recovered: Annotated[bool, Note("it is a copy from an archive")]
    archived_at: str
    original: Original
    etag: str
    last_modified: str
    author: str
    published: str
    language: str
    description: str
    canonical: str
    lossy_numbers: Annotated[bool, Note("numbers of the document are not held exactly")]
    code: Annotated[str, Note("about the content", values=("empty", "no_match", "truncated"))]
    hint: str
