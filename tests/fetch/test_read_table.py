"""How does a CSV or TSV file read?"""

import time

import pytest
from read_documents import reading, text_of


@pytest.mark.parametrize(
    ("header", "body", "table"),
    [
        ("text/csv", "a,b\n1,2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("text/csv", "a;b\r\n1,5;2\r\n", "| a | b |\n| --- | --- |\n| 1,5 | 2 |"),
        ("text/csv", "a\tb\n1,5\t2\n", "| a | b |\n| --- | --- |\n| 1,5 | 2 |"),
        ("text/tab-separated-values", "a,x\tb\n1\t2", "| a,x | b |\n| --- | --- |\n| 1 | 2 |"),
        ("text/csv", 'a,b\n"x, ""y""","p|q"\n', '| a | b |\n| --- | --- |\n| x, "y" | p\\|q |'),
        ("text/csv", 'a,b\n"one\ntwo",  3  \n', "| a | b |\n| --- | --- |\n| one two | 3 |"),
        ("text/csv", "a,b,c\n1\n\n1,2,3,4\n", None),
        ("text/csv", "only\none\n", "| only |\n| --- |\n| one |"),
        ("text/csv", "a,b\n", "| a | b |\n| --- | --- |"),
        ("text/csv", "\ufeffa,b\n1,\u200b2\x07\n", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ],
)
def test_a_file_is_one_table(header, body, table):
    """Each row of a file is one row of a table, as wide as the widest, bars and breaks harmless."""
    uneven = "| a | b | c |  |\n| --- | --- | --- | --- |\n| 1 |  |  |  |\n| 1 | 2 | 3 | 4 |"
    assert text_of(body, header) == (table or uneven)


def test_a_table_without_markup():
    """Mode text joins the cells by a bar."""
    assert text_of('a,b\n"p|q",2\n', "text/csv", mode="text") == "a | b\np|q | 2"


@pytest.mark.parametrize(
    "body",
    [
        'a,b\n"x" y,2\n',
        'a,b\n"never closed\n',
        "x" * 200_000 + ",b\n",
        "a\n" * 4_000 + "," * 4_000 + "x\n",
    ],
    ids=["broken quotes", "open quotes", "huge cell", "one long row"],
)
def test_what_is_no_table_is_plain_text(body):
    """A file with broken quotes or out of all proportion is given as it is."""
    assert text_of(body, "text/csv", limit=10**7) == body


@pytest.mark.parametrize("unit", ["a,b\n", '"', ",", '""', "\n", "a;b,c\td\n", '"a""b",'])
def test_hostile_tables_take_linear_time(unit):
    """A megabyte of anything is a table or a text in a few seconds."""
    began = time.process_time()
    reading(unit * (1_000_000 // len(unit)), "text/csv")
    assert time.process_time() - began < 10
