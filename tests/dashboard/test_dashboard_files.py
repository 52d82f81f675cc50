"""The files of the page: small, plain, and with nothing in them that its policy would have to forbid."""

import re
from importlib.resources import files

import pytest
from api_rig import serving

WEB = files("sift_batch.service").joinpath("web")
NAMES = sorted(item.name for item in WEB.iterdir() if item.name.startswith("dashboard"))
SCRIPTS = [name for name in NAMES if name.endswith(".js")]
LARGEST = 62_000


def text_of(name: str) -> str:
    """The text of a file."""
    return WEB.joinpath(name).read_text("utf-8")


def test_the_page_is_small() -> None:
    """All its files together stay under a bound, and no script grows past three hundred lines."""
    assert sum(len(text_of(name).encode()) for name in NAMES) <= LARGEST
    assert all(text_of(name).count("\n") <= 300 for name in SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_turns_text_into_anything_else(name: str) -> None:
    """Nothing is parsed as HTML, evaluated, stored beyond the tab, or styled inline."""
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|eval\(|Function\("
        r"|localStorage|document\.cookie|\.style\b|setHTML|javascript:"
    )
    assert re.search(forbidden, text_of(name)) is None


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_asked_of_anybody_else(name: str) -> None:
    """No file names another origin; the namespace of SVG is a name and no address that is asked."""
    named = re.findall(r"(?:https?:)?//[\w.-]+", text_of(name).replace("http://www.w3.org/2000/svg", ""))
    assert [url for url in named if url.startswith("http")] == []


def test_the_page_has_nothing_inline() -> None:
    """No inline script, style or handler, and the field for the key has no name that a form could send."""
    page = text_of("dashboard.html")
    assert re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\bsrc=)", page) is None
    assert re.search(r"<input id=\"key\"[^>]*\bname=", page) is None


async def test_every_file_is_served_open_and_under_its_policy() -> None:
    """All of them come without a key, as what they are; the page may load from the service alone."""
    async with serving() as api:
        page = await api.nobody.get("/")
        assert page.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            "img-src 'self' data:; frame-ancestors 'none'"
        )
        for name in NAMES:
            reply = await api.nobody.get(f"/?{name}")
            if name.endswith(".html"):
                continue
            kind = "text/javascript" if name.endswith(".js") else "text/css"
            assert reply.headers["content-type"] == f"{kind}; charset=utf-8"
            assert reply.body == WEB.joinpath(name).read_bytes()
