"""What does a PDF say?"""

import io
import subprocess
import sys
import time
from pathlib import Path

import pypdf
import pytest
from pdf_bombs import BOMBS
from read_documents import failure, page, pdf, reading, text_of

from sift_batch.fetch._read import pdf_layout

THREE = pdf(page("First page"), page(), page("Third (page)", "second line"))


def test_each_page_stands_after_its_mark():
    """The text of each page follows a mark with a blank line either side, empty pages too."""
    got = reading(THREE, "application/pdf")
    assert got.content == (
        "[page 1 of 3]\n\nFirst page\n\n[page 2 of 3]\n\n[page 3 of 3]\n\nThird (page)\nsecond line"
    )
    assert got.facts == {"content_type": "application/pdf", "pages": {"total": 3, "given": 3}, "chars": 81}


@pytest.mark.parametrize(
    ("pages", "given"),
    [
        ("1", [1]),
        ("-1", [3]),
        ("2-99", [2, 3]),
        ("1-999999999999", [1, 2, 3]),
        ("3,1,1-1", [1, 3]),
        ("2-", [2, 3]),
        ("-3,3", [1, 3]),
    ],
)
def test_pages_are_chosen(pages, given):
    """The pages asked for come in the document's order, each once; what is past the end is left out."""
    got = reading(pdf(page("a"), page("b"), page("c")), "application/pdf", pages=pages)
    marks = [line for line in got.content.split("\n") if line.startswith("[")]
    assert marks == [f"[page {number} of 3]" for number in given]
    assert got.facts["pages"] == {"total": 3, "given": len(given)}


@pytest.mark.parametrize("pages", ["4", "4-", "99999999999-", "-4", "0", "0-3", "10-5", "1,,3", " 2 "])
def test_pages_that_are_none(pages):
    """Pages past the end, with the count, and what is no page number at all are bad options."""
    error = failure(THREE, "application/pdf", pages=pages)
    assert error.code == "bad_option"
    if "4" in pages or "9" in pages:
        assert "3" in error.message


def test_a_huge_range_costs_nothing():
    """A range to the end of the numbers over a document of 100,000 pages is read in a moment."""
    body = BOMBS["a hundred thousand pages"]()
    began = time.process_time()
    got = reading(body, "application/pdf", pages="99999-999999999")
    assert time.process_time() - began < 5
    assert got.content == "[page 99999 of 100000]\n\nx\n\n[page 100000 of 100000]\n\nx"


def test_five_hundred_pages_are_the_most():
    """Pages over the cap are left out, and the reading says so."""
    got = reading(BOMBS["a hundred thousand pages"](), "application/pdf")
    assert got.content.endswith("[page 500 of 100000]\n\nx")
    assert got.facts["pages"] == {"total": 100_000, "given": 500}
    assert (got.facts["truncated"], got.facts["code"]) == (True, "truncated")
    assert "pages" in got.facts["hint"]


def test_what_the_document_tells_of_itself():
    """Title, author, subject and date come from the document, clean and in ISO 8601."""
    names = b"/Title (A \\(b\\)\\nc) /Author <FEFF00E9202E> /Subject (S)"
    info = b"<< %s /CreationDate (D:20260102030405+01'30') >>" % names
    facts = reading(pdf(page("x"), info=info), "application/pdf").facts
    assert facts["title"] == "A (b) c"
    assert facts["author"] == "é"
    assert facts["description"] == "S"
    assert facts["published"] == "2026-01-02T03:04:05+01:30"


@pytest.mark.parametrize(
    ("given", "date"),
    [
        ("D:20260102", "2026-01-02"),
        ("D:2026", "2026"),
        ("20260102030405Z", "2026-01-02T03:04:05Z"),
        ("D:20260102030405-00'00'", "2026-01-02T03:04:05Z"),
        ("D:202601020304", "2026-01-02T03:04:00"),
        ("D:20261502", None),
        ("yesterday", None),
        ("D:00000101", None),
    ],
)
def test_a_date_is_as_exact_as_it_was_given(given, date):
    """What is no date is no fact."""
    info = b"<< /CreationDate (%s) >>" % given.encode()
    assert reading(pdf(page("x"), info=info), "application/pdf").facts.get("published") == date


def test_paragraphs_stand_apart():
    """Lines that stand further apart than the page's usual distance are blocks of their own."""
    body = pdf(page("Heading", "", "one", "two", "three", "", "four", "five", "six"))
    content = text_of(body, "application/pdf").removeprefix("[page 1 of 1]\n\n")
    assert content == "Heading\n\none\ntwo\nthree\n\nfour\nfive\nsix"


def test_columns_are_read_one_after_the_other():
    """Two columns that the file sets one after the other are read so."""
    body = pdf(page("left one", "left two") + b" " + page("right one", "right two", left=320))
    assert text_of(body, "application/pdf").split("\n")[2:] == [
        "left one",
        "left two",
        "right one",
        "right two",
    ]


def test_parted_words_are_joined():
    """A word that was parted at a line's end is one word, unless the document writes it with a hyphen."""
    text = (
        "an iden-/tifier and a well-/known name of the ISO-/Standard well known and self-/made, so self-made"
    )
    shown = page(*text.split("/"))
    content = text_of(pdf(shown), "application/pdf")
    assert "an identifier" in content
    assert "a well-known" in content
    assert "ISO-Standard" in content
    assert content.count("self-made") == 2
    assert "identifier\nand" in content or "identifier and" in content


def test_a_line_after_a_parted_word_is_no_paragraph():
    """Two lines that a parted word makes one do not push the next line away."""
    body = pdf(page("one", "two iden-", "tifier and", "four", "five", "six", "seven"))
    assert "\n\n" not in text_of(body, "application/pdf").removeprefix("[page 1 of 1]\n\n")


def test_a_ligature_that_the_file_names_is_letters():
    """A ligature that a font maps to one character is its letters."""
    assert pdf_layout.finished([(1, "\ufb01le o\ufb03ce")]) == [(1, "file office")]


def test_ligatures_are_letters():
    """The ligatures of a font are the letters that a reader sees."""
    differences = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Type /Encoding "
    body = pdf(b"BT /F1 12 Tf 72 720 Td (o\x01ce \x02ow) Tj ET")
    body = body.replace(
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        differences + b"/Differences [1 /ffi /fl] >> >>",
    )
    assert text_of(body, "application/pdf").endswith("office flow")


def test_a_scanned_document_says_so():
    """A PDF without text is done, empty, with a hint that says why."""
    got = reading(pdf(b"0 0 612 792 re f", b""), "application/pdf")
    assert (got.content, got.facts["code"]) == ("", "empty")
    assert "scanned" in got.facts["hint"]
    assert got.facts["pages"] == {"total": 2, "given": 2}


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-128", "AES-256"])
def test_an_encrypted_document_opens_without_a_password_or_not_at_all(algorithm):
    """A PDF that opens with the empty password is read; one that needs a word fails and says so."""
    pytest.importorskip("cryptography")
    for word, code in (("", ""), ("secret", "extract_failed")):
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(THREE))
        writer.encrypt(word, "owner", algorithm=algorithm)
        out = io.BytesIO()
        writer.write(out)
        if not code:
            assert text_of(out.getvalue(), "application/pdf") == text_of(THREE, "application/pdf")
            continue
        error = failure(out.getvalue(), "application/pdf")
        assert error.code == code
        assert "password" in error.message


def test_grep_and_question_know_the_page():
    """A match in a PDF is on its line, marks never match, and a passage names its page."""
    assert text_of(THREE, "application/pdf", grep="page") == "3:First page\n9:Third (page)"
    got = reading(THREE, "application/pdf", question="second")
    assert got.facts["passages"][0]["page"] == 3


# Whatever the library gives for these is right only if it is one of these words.
_HARMLESS = ("extract_failed", "text empty ''")
_READABLE = {
    "half a surrogate in the title": "text  '[page 1 of 1]\\n\\nx'",
    "a title of megabytes": "text  '[page 1 of 1]\\n\\nx'",
    "xref in a circle": "text  '[page 1 of 1]\\n\\nx'",
    "a hundred thousand pages": "text truncated '[page 1 of 100000]",
    "a million objects": "text ",
}


def test_a_page_cannot_say_which_page_it_is():
    """A line of a page's own text that looks like a mark is text, found by grep and counted for its page."""
    data = pdf(page("Relay", "[page 7 of 1]", "pump"))
    assert text_of(data, "application/pdf").startswith("[page 1 of 1]\n\n")
    assert "7 of 1" in text_of(data, "application/pdf", grep="page 7")
    assert text_of(data, "application/pdf", grep="page 1") == ""
    passages = reading(data, "application/pdf", question="pump").facts["passages"]
    assert [passage["page"] for passage in passages] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_pdf_bomb_is_a_code_or_a_kill(name):
    """Under a worker's limits a hostile PDF fails, ends its process, or gives what it says: nothing else."""
    program = Path(__file__).with_name("pdf_bombs.py")
    ran = subprocess.run([sys.executable, program, name], capture_output=True, timeout=90, check=False)
    said = ran.stdout.decode().strip()
    if ran.returncode:
        assert ran.returncode < 0, ran.stderr.decode()
        assert not said
    else:
        assert said in _HARMLESS or (name in _READABLE and said.startswith(_READABLE[name]))
