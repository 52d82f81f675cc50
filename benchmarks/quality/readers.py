"""Who reads the pages? This project and what else there is, each with the options that its users would take.

Every reader is a function of a page's source and URL that returns Markdown. Libraries are imported when their
reader is made, so that one that is missing is left out and not all of them.
"""

from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

Read = Callable[[str, str], str]

RESULT_MAX_BYTES = 10 * 2**20


class Reader(NamedTuple):
    """A reader: its name in the table, the packages it is made of, and what it was told."""

    name: str
    packages: tuple[str, ...]
    settings: str
    make: Callable[[], Read]

    @property
    def versions(self) -> str:
        """The versions of its packages; raises `PackageNotFoundError` if one is missing."""
        return ", ".join(f"{package} {version(package)}" for package in self.packages)


def _sift(mode: str) -> Read:
    from sift_batch import Options
    from sift_batch.fetch import _read
    from sift_batch.fetch._document import Document

    def read(source: str, url: str) -> str:
        document = Document(body=[source.encode()], content_type="text/html; charset=utf-8", url=url)
        return _read.read(document, Options(mode=mode), result_max_bytes=RESULT_MAX_BYTES).content

    return read


def _trafilatura(*, recall: bool) -> Read:
    import trafilatura

    def read(source: str, url: str) -> str:
        found = trafilatura.extract(
            source,
            url=url,
            output_format="markdown",
            include_links=True,
            include_formatting=True,
            include_tables=True,
            favor_recall=recall,
        )
        return found or ""

    return read


def _readability() -> Read:
    import markdownify
    import readability

    def read(source: str, url: str) -> str:
        document = readability.Document(source, url=url)
        body = markdownify.markdownify(document.summary(html_partial=True), heading_style="ATX")
        return f"# {document.short_title()}\n\n{body}"

    return read


def _html_to_markdown() -> Read:
    import html_to_markdown

    # The title and other facts in front of the page would be words that nobody sees on it.
    def read(source: str, url: str) -> str:
        options = html_to_markdown.ConversionOptions(extract_metadata=False, base_url=url)
        return html_to_markdown.convert(source, options).content or ""

    return read


def _markdownify() -> Read:
    import markdownify

    return lambda source, _: markdownify.markdownify(source, heading_style="ATX", strip=["script", "style"])


OURS = Reader("sift-batch", ("sift-batch",), 'mode "" (markdown)', lambda: _sift(""))
PEERS = (
    Reader(
        "trafilatura",
        ("trafilatura",),
        "Markdown, with links, formatting, tables and comments",
        lambda: _trafilatura(recall=False),
    ),
    Reader(
        "trafilatura, recall",
        ("trafilatura",),
        "the same with favor_recall",
        lambda: _trafilatura(recall=True),
    ),
    Reader(
        "readability",
        ("readability-lxml", "markdownify"),
        "title as a heading, then the summary through markdownify",
        _readability,
    ),
    Reader(
        "html-to-markdown",
        ("html-to-markdown",),
        "the whole page, absolute links, no metadata",
        _html_to_markdown,
    ),
    Reader("markdownify", ("markdownify",), "the whole page, ATX headings, no scripts", _markdownify),
)
READERS = (
    OURS,
    Reader("sift-batch, full", ("sift-batch",), 'mode "full": the whole body', lambda: _sift("full")),
    *PEERS,
)


def installed() -> tuple[Mapping[Reader, Read], list[str]]:
    """Return the readers that can be made here, and why the others can't."""
    made, missing = {}, []
    for reader in READERS:
        try:
            reader.versions  # noqa: B018 - raises for what is not there
            made[reader] = reader.make()
        except (PackageNotFoundError, ImportError):
            missing.append(f"{reader.name}: not installed")
    return made, missing
