"""Do the rules of docs/security.md hold that are about the source as a whole?"""

import ast
import re
from pathlib import Path

import pytest

import sift_batch

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
PACKAGE = Path(sift_batch.__file__).parent


def importers(*libraries: str) -> set[str]:
    """Give the modules of the package that import one of these libraries."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] in libraries for name in names):
                found.add(path.relative_to(PACKAGE).as_posix())
    return found


SSRF = [*range(1, 7), *range(10, 17), *range(20, 25), *range(30, 33), *range(40, 46), *range(50, 55)]


def rules(prefix: str) -> list[tuple[int, list[str]]]:
    """Give the number of each rule of the page, with the cells of its row, in the page's order."""
    found = re.findall(rf"^\| {prefix}-(\d+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [(int(number), row.split(" | ")) for number, row in found]


def test_rules_are_listed_once() -> None:
    """Each rule of what is said has one row, in the order of its number."""
    numbers = [number for number, _ in rules("RED")]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert numbers[-1] == 24


def test_rules_of_the_pipeline_are_listed_once() -> None:
    """Each rule of the guard and of reading has one row, in order, and there is no other."""
    assert [number for number, _ in rules("SSRF")] == SSRF


@pytest.mark.parametrize(("number", "row"), rules("SSRF"), ids=lambda value: str(value)[:8])
def test_a_rule_of_the_pipeline_says_where_and_by_what(number: int, row: list[str]) -> None:
    """Each row says what holds, names modules of the pipeline, and tests; all of them exist."""
    what, where, shown = row
    assert len(what) > 20
    kept = re.findall(r"\]\(\.\./(src/sift_batch/fetch/[^)]+\.py)\)", where)
    tests = re.findall(r"\]\(\.\./(tests/[^)]+/test_[^)]+\.py)\)", shown)
    assert kept, number
    assert tests, number
    assert len(kept) + len(tests) == (where + shown).count("](")
    assert all((ROOT / path).is_file() for path in kept + tests), number


API = [*range(1, 6), *range(10, 15), *range(20, 29), 30, *range(40, 48)]


def test_rules_of_the_service_are_listed_once() -> None:
    """Each rule of what the service lets in and gives out has one row, in order, and there is no other."""
    assert [number for number, _ in rules("API")] == API


@pytest.mark.parametrize(("number", "row"), rules("API"), ids=lambda value: str(value)[:8])
def test_a_rule_of_the_service_says_where_and_by_what(number: int, row: list[str]) -> None:
    """Each row says what holds, names modules, and tests; all of them exist."""
    what, where, shown = row
    assert len(what) > 20
    kept = re.findall(r"\]\(\.\./(src/sift_batch/[^)]+\.py)\)", where)
    tests = re.findall(r"\]\(\.\./(tests/[^)]+/test_[^)]+\.py)\)", shown)
    assert kept, number
    assert tests, number
    assert all((ROOT / path).is_file() for path in kept + tests), number


def calls(*names: str) -> list[tuple[str, ast.Call]]:
    """Give the calls of functions and methods of these names in the pipeline, each with its module."""
    found = []
    for path in (PACKAGE / "fetch").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
                if called in names:
                    found.append((path.name, node))
    return found


def settings(call: ast.Call) -> dict[str, object]:
    """Give the keyword arguments of a call that are constants."""
    return {
        item.arg: item.value.value
        for item in call.keywords
        if item.arg and isinstance(item.value, ast.Constant)
    }


def test_parsers_have_no_network_and_no_entities() -> None:
    """SSRF-53: no parser of pages or feeds looks anything up, grows without bound or knows an address."""
    parsers = calls("HTMLParser", "XMLParser", "XMLPullParser", "HTMLPullParser", "iterparse")
    assert {name for name, _ in parsers} == {"html_tree.py", "html_stream.py", "feed_xml.py"}
    for name, call in parsers:
        given = settings(call)
        assert given["no_network"] is True, name
        assert not given.get("huge_tree"), name
        if name == "feed_xml.py":
            assert (given["resolve_entities"], given["load_dtd"]) == (False, False)
    for name, call in calls("fromstring", "parse", "HTML", "XML", "document_fromstring"):
        assert "base_url" not in {item.arg for item in call.keywords}, name
    assert calls("xinclude", "XInclude", "XSLT") == []


def test_the_extractor_never_hears_of_an_address() -> None:
    """SSRF-53: the extractor is called once, with a tree, and nothing of it that fetches is imported."""
    assert importers("trafilatura") == {"fetch/_read/html_extractor.py"}
    ((_, call),) = calls("bare_extraction")
    assert "url" not in {item.arg for item in call.keywords}
    assert len(call.args) == 1
    assert calls("fetch_url", "fetch_response") == []


def test_hashes_of_targets_stay_inside() -> None:
    """RED-4: targets are hashed for the store's key and the command line's look-up, nowhere else."""
    assert importers("hashlib", "hmac") == {
        "_model/idem.py",
        "cli/carry.py",
        "service/_keys.py",  # of callers' keys, never of a target
        "service/_cursors.py",  # with a key, of where a page of a list ended
    }


def test_no_tracing() -> None:
    """RED-24: nothing in the package imports a tracing library."""
    assert importers("opentelemetry", "ddtrace", "sentry_sdk", "newrelic", "elasticapm") == set()
