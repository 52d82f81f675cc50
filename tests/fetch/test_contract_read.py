"""What every kind of document has in common, whoever reads it."""

import pytest
from read_documents import failure, page, pdf, reading

JSON = '{"b": 1,\r\n "a": 2}'


def test_what_is_chosen_of_json_has_plain_lines():
    """JSON is given as it came, and its lines are searched as those of every text."""
    assert reading(JSON, "application/json").content == JSON
    found = reading(JSON, "application/json", grep="1,$")
    assert (found.content, found.facts["matches"]) == ('1:{"b": 1,', 1)


@pytest.mark.parametrize("kind", ["text/plain", "text/html", "application/json", "text/csv"])
def test_nothing_is_found_in_an_empty_document(kind):
    """An empty document is empty, whatever is looked for, and the facts say that nothing was found."""
    found = reading("", kind, grep="a", question="why")
    assert found.content == ""
    expected = {"code": "empty", "matches": 0, "passages": [], "chars": 0}
    assert {name: found.facts.get(name) for name in expected} == expected


@pytest.mark.parametrize("kind", ["text/plain", "text/x-python"])
def test_a_nul_goes_with_the_other_control_characters(kind):
    """A text with a NUL in it is read whole; mode raw keeps it."""
    assert reading(b"a\0b\nc", kind).content == "ab\nc"
    assert reading(b"a\0b\nc", kind, grep="b").content == "1:ab"
    assert reading(b"a\0b\nc", kind, mode="raw").content == "a\0b\nc"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<p>x</p>", "text/html"),
        ("x", "text/plain"),
        ("a,b\n", "text/csv"),
        ("{'a'}", "application/json"),
        ("", "application/json"),
        (pdf(page("x")), "application/pdf"),
    ],
)
def test_what_is_no_json_is_refused_to_jq_with_its_place(body, kind):
    """A jq program on a document that is no JSON is a bad option, and the place of the fault is told."""
    error = failure(body, kind, jq=".")
    assert error.code == "bad_option"
    assert "line 1, column " in error.message


def test_the_size_of_what_is_too_large_is_told_in_plain_digits():
    """A JSON document over the limit fails with its size, and with what could be asked for in its place."""
    error = failure('"' + "x" * 3_000 + '"', "application/json", limit=1_000)
    assert error.code == "too_large"
    assert "3002" in error.message
    assert "jq" in error.hint
    assert "grep" in error.hint
