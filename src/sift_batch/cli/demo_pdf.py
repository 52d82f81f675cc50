"""How does the demo come by a PDF? A few lines of text on a few pages, written as the format asks.

Next: `demo_pages`, which holds it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

_HEADER: Final = b"%PDF-1.4\n"


def pdf(title: str, *pages: Sequence[str]) -> bytes:
    """Return a PDF (ISO 32000-1) with one page for each series of lines, in the ASCII of Helvetica."""
    objects = list(_objects(title, pages))
    out, places = bytearray(_HEADER), []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size, start = len(objects) + 1, len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, start)
    return bytes(out)


def _objects(title: str, pages: Sequence[Sequence[str]]) -> Iterator[bytes]:
    kids = b" ".join(b"%d 0 R" % (5 + 2 * index) for index in range(len(pages)))
    yield b"<< /Type /Catalog /Pages 2 0 R >>"
    yield b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages))
    yield b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    yield b"<< /Title (%s) >>" % _escaped(title)
    for index, lines in enumerate(pages):
        yield (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F 3 0 R >> >> >>" % (6 + 2 * index)
        )
        text = b"".join(b"(%s) Tj T*\n" % _escaped(line) for line in lines)
        stream = b"BT /F 12 Tf 16 TL 72 770 Td\n%sET" % text
        yield b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream)


def _escaped(text: str) -> bytes:
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return escaped.encode("ascii")
