"""PDF manuals that ship with Debian packages, against what a person reads on them."""

import gzip
from pathlib import Path

import pytest
from read_documents import reading, text_of

LIBTASN1 = ("libtasn1-doc", "/usr/share/doc/libtasn1-doc/libtasn1.pdf")
BZIP2 = ("bzip2-doc", "/usr/share/doc/bzip2/manual.pdf.gz")
FAQ = ("debian-faq", "/usr/share/doc/debian/FAQ/debian-faq.en.pdf.gz")
CARD = ("debian-refcard", "/usr/share/doc/debian-refcard/refcard-en-a4.pdf.gz")
CARD_JAPANESE = ("debian-refcard", "/usr/share/doc/debian-refcard/refcard-ja-a4.pdf.gz")

pytestmark = pytest.mark.real


def _document(given: tuple[str, str]) -> bytes:
    package, place = given
    path = Path(place)
    if not path.exists():
        pytest.skip(f"needs the Debian package {package}, whose documentation is not here")
    body = path.read_bytes()
    return gzip.decompress(body) if path.suffix == ".gz" else body


def test_a_page_of_a_manual_from_tex():
    """A chapter reads as on paper: headings apart, code as it is, a parted word in one piece."""
    assert text_of(_document(LIBTASN1), "application/pdf", pages="7") == (
        "[page 7 of 36]\n\n"
        "Chapter 2: ASN.1 structure handling 4\n\n"
        "2.3 Simple parsing\n"
        "For simple types like OCTET STRING the simple parsing functions listed below may be used\n"
        "instead.\n"
        "• [asn1 decode simple der], page 22,\n"
        "• [asn1 encode simple der], page 16,\n\n"
        "2.4 Library Notes\n"
        "The header file of this library is libtasn1.h.\n"
        "The main type used in it is asn1_node, and it\u2019s used to store the ASN.1 definitions and\n"
        "structures (instances).\n"
        "The NULL constant can be used for the variable initialization. For example:\n"
        "asn1_node definitions = NULL;\n"
        "Some functions require an errorDescription argument of type char *, pointing to a\n"
        "pre-allocated buffer of at least ASN1_MAX_ERROR_DESCRIPTION_SIZE bytes size (e.g., as in\n"
        "\u2018char description[ASN1_MAX_ERROR_DESCRIPTION_SIZE];\u2019).\n"
        "ASN1_MAX_NAME_SIZE is the maximum number of characters allowed for an ASN.1 identifier.\n\n"
        "2.5 Future developments\n"
        "• Add functions for a C code file generation containing equivalent data structures (not a\n"
        "single array like now).\n"
        "• The REAL type."
    )


def test_an_index_in_two_columns():
    """The index at the end of a manual is read column by column."""
    lines = text_of(_document(LIBTASN1), "application/pdf", pages="-1").split("\n")
    names = [line.split(" ")[0].rstrip(".") for line in lines if line.startswith("asn1_")]
    assert len(names) == 41
    assert names == sorted(names, key=lambda name: name.lower().replace("_", " "))


def test_a_manual_from_docbook():
    """Ligatures are letters, tables keep their rows, a heading over two lines is one block."""
    got = reading(_document(BZIP2), "application/pdf", pages="9")
    assert got.facts["pages"] == {"total": 38, "given": 1}
    assert "a file 20,000 bytes long with the flag -9 will" in got.content
    assert "\n-1 1200k 500k 350k 914704\n-2 2000k 900k 600k 877703\n" in got.content
    assert "\n\n2.6. RECOVERING DATA FROM DAMAGED\nFILES\n" in got.content


def test_a_card_in_columns_that_spaces_words_by_place():
    """A folded card is read panel by panel, with the blanks that its file does not hold."""
    got = reading(_document(CARD), "application/pdf")
    assert got.facts["title"] == "Debian Reference Card"
    assert "Query installed packages,\nformat e.g." in got.content
    assert "Debian Reference Card\nVersion 12" in got.content
    assert "Show and manipulate\nnetwork interfaces and\nrouting, needs iproute2." in got.content


def test_a_card_in_japanese():
    """A document in another script is its characters."""
    content = text_of(_document(CARD_JAPANESE), "application/pdf")
    assert "インストール" in content
    assert "\ufffd" not in content


def test_a_question_to_a_long_document():
    """A question finds the passage, with its page, among the 73 pages of a list of answers."""
    got = reading(_document(FAQ), "application/pdf", question="why the code name Bo Rex Buzz from Toy Story")
    assert got.facts["pages"]["total"] == 73
    best = got.facts["passages"][0]
    assert "Toy Story" in got.content.split("\n\n[2]")[0]
    assert best["page"]
