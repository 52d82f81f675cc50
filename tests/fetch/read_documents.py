"""Documents for the tests of the readers: a short way to read one, and PDFs written by hand."""

from collections.abc import Sequence
from typing import Any

from sift_batch._model.values import Options
from sift_batch.fetch._document import Document, ReadError, Reading
from sift_batch.fetch._read import read

URL = "http://site.test/a/page.html"


def reading(body: bytes | str, content_type: str, *, limit: int = 262_144, **options: Any) -> Reading:
    """Read a document with these options."""
    data = body.encode() if isinstance(body, str) else body
    document = Document(body=[data], content_type=content_type, url=URL)
    return read(document, Options(**options), result_max_bytes=limit)


def text_of(body: bytes | str, content_type: str, **options: Any) -> str:
    """Give the content of a document alone."""
    return reading(body, content_type, **options).content


def failure(body: bytes | str, content_type: str, **options: Any) -> ReadError:
    """Give the error of a document that can't be read."""
    try:
        got = reading(body, content_type, **options)
    except ReadError as error:
        return error
    raise AssertionError(f"read as {got.content[:80]!r}")


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """Give a stream object."""
    return b"<< /Length %d %s >> stream\n%s\nendstream" % (len(data), entries, data)


def pdf_of(objects: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """Give a PDF of these objects, numbered from 1, the first of them the catalogue."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R %s >>\n" % (len(objects) + 1, trailer)
    return bytes(out) + b"startxref\n%d\n%%%%EOF\n" % start


FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"


def pdf(*pages: bytes, info: bytes = b"", catalogue: bytes = b"") -> bytes:
    """Give a PDF with a page for each content stream."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * at) for at in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R %s >>" % catalogue,
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), kids),
        FONT,
    ]
    for at, content in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % (5 + 2 * at)
        )
        objects.append(content if content.startswith(b"<<") else stream(content))
    if not info:
        return pdf_of(objects)
    return pdf_of([*objects, info], b"/Info %d 0 R" % (len(objects) + 1))


def page(*lines: str, top: int = 720, step: int = 14, left: int = 72) -> bytes:
    """Give the content of a page with these lines; an empty one leaves a gap."""
    shown = b" ".join(b"(%s) Tj T*" % _escaped(line) for line in lines)
    return b"BT /F1 12 Tf %d %d Td %d TL %s ET" % (left, top, step, shown)


def _escaped(line: str) -> bytes:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)").encode("cp1252")
