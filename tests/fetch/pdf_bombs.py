"""PDFs that are made to hurt, and a process in which one of them is read under a worker's limits.

Run as a program with the name of one: prints the code of the failure or the beginning of the text.
"""

import resource
import sys
import zlib
from collections.abc import Callable

from read_documents import FONT, page, pdf, pdf_of, reading, stream

_PAGES = b"<< /Type /Catalog /Pages 2 0 R >>"
_LEAF = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] "


def _packed(layers: int) -> bytes:
    data = b" " * 2**28
    for _ in range(layers):
        data = zlib.compress(data, 9)
    return pdf(stream(data, b"/Filter [%s]" % (b"/FlateDecode " * layers)))


def _tree(*nodes: bytes) -> bytes:
    return pdf_of([_PAGES, *nodes])


def _forms() -> bytes:
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] "
    within = b"/Resources << /XObject << /X %d 0 R >> >>"
    forms = [stream(b"/X Do " * 10, form + within % (6 + at)) for at in range(12)]
    top = _LEAF + b"/Contents 4 0 R " + within % 5 + b" >>"
    return _tree(
        b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>", top, stream(b"/X Do"), *forms, stream(b"", form)
    )


BOMBS: dict[str, Callable[[], bytes]] = {
    "nested flate": lambda: _packed(3),
    "a million objects": lambda: pdf(b"BT /F1 12 Tf 72 720 Td " + b"(x) Tj " * 10**6 + b"ET"),
    "a million paths": lambda: pdf(b"0 0 m 1 1 l S " * 500_000),
    "image without end": lambda: pdf(b"BI /W 9 /H 9 /BPC 8 /CS /G ID " + b"\x01" * 100_000),
    "images without end": lambda: pdf(b"BI /W 9 /H 9 /BPC 8 /CS /G ID " * 50_000),
    "tree in itself": lambda: _tree(b"<< /Type /Pages /Count 1 /Kids [2 0 R] >>"),
    "tree in a circle": lambda: _tree(
        b"<< /Type /Pages /Count 5 /Kids [3 0 R 3 0 R] >>",
        b"<< /Type /Pages /Count 5 /Parent 2 0 R /Kids [2 0 R 2 0 R] >>",
    ),
    "a milliard pages": lambda: _tree(b"<< /Type /Pages /Count 1000000000 /Kids [] >>"),
    "pages that are not there": lambda: _tree(b"<< /Type /Pages /Count 9999 /Kids [3 0 R] >>", _LEAF + b">>"),
    "no page": lambda: _tree(b"<< /Type /Pages /Count 0 /Kids [] >>"),
    "xref in a circle": lambda: pdf(page("x")).replace(b"/Root 1 0 R", b"/Root 1 0 R /Prev 9"),
    "deep arrays": lambda: pdf(b"[" * 10**6),
    "deep objects": lambda: pdf_of([_PAGES, b"[" * 10**6]),
    "forms in forms": _forms,
    "half a surrogate in the title": lambda: pdf(page("x"), info=b"<< /Title <FEFFD83D0041> >>"),
    "a title of megabytes": lambda: pdf(page("x"), info=b"<< /Title (%s) >>" % (b"a" * 3_000_000)),
    "a hundred thousand pages": lambda: pdf_of(
        [
            _PAGES,
            b"<< /Type /Pages /Count 100000 /Kids [%s] >>" % (b"3 0 R " * 10**5),
            _LEAF + b"/Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
            stream(page("x")),
            FONT,
        ]
    ),
}


def main(name: str) -> None:
    """Read one of them with a worker's memory and time."""
    body = BOMBS[name]()
    resource.setrlimit(resource.RLIMIT_AS, (2**29, 2**29))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        got = reading(body, "application/pdf")
    except Exception as error:
        print(getattr(error, "code", "escaped"))
    else:
        print("text", got.facts.get("code", ""), repr(got.content[:60]))


if __name__ == "__main__":
    main(sys.argv[1])
