"""Which server and path a URL names: the grammar, and that nobody reads the URL in another way."""

import subprocess
import sys

import ada_url
import httpcore2
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import host_key
from sift_batch.fetch import _address
from sift_batch.fetch._address import LIMIT, Address, parse, resolve
from sift_batch.fetch._errors import FetchError

# Texts that look like URLs, with all that parsers quarrel about.
HOSTS = """
    a.org A.Org. 1.2.3.4 [2606:4700::1] [::ffff:1.2.3.4] a_b.org a-.org 1e1.org
    bücher.de ☃.net faß.de é-.de xn--bcher-kva.de xn--zca.de \uff11.\uff12.\uff13.\uff14 a\u3002b
"""
PIECES = [
    "/",
    ".",
    "..",
    "%2e",
    "%2E",
    "?",
    "#",
    "'",
    "a",
    "%",
    "%zz",
    ";",
    "ü",
    "☃",
    "@",
    ":",
    "//",
    "[",
    "~",
    "+",
]
SCHEME = st.sampled_from(["http://", "https://", "HtTp://"])
HOST = st.sampled_from(HOSTS.split()) | st.from_regex(
    r"[a-zA-Z0-9_\u00df-\u00ff-]{1,9}\.[a-zA-Z]{2,3}", fullmatch=True
)
PORT = st.sampled_from(["", "", "", ":80", ":443", ":8080", ":65535"])
REST = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
GOOD = st.builds("{}{}{}{}{}".format, SCHEME, HOST, PORT, st.sampled_from(["", "/", "?", "#"]), REST)
BAD_AUTHORITY = st.from_regex(
    r"[a-zA-Z0-9_.\[\]@%:\u00df-\u00ff\u3002\uff10-\uff19-]{0,20}", fullmatch=True
) | st.text(max_size=12)
BAD_PORT = st.sampled_from(["", ":", ":0", ":080", ":65536", ":\uff18\uff10", ":-80", ":80:80"])
BAD_SCHEME = st.sampled_from(["http://", "https:", "http:/", "", "//", "ftp://", "http:\\\\"])
BAD = st.builds("{}{}{}{}".format, BAD_SCHEME, BAD_AUTHORITY | HOST, BAD_PORT, st.text(max_size=20) | REST)
URL = GOOD | GOOD | BAD | st.text(max_size=40)


def parsed(url: str) -> Address | None:
    """Return the address of a URL, None for one that is refused."""
    try:
        return parse(url)
    except FetchError as error:
        return None if error.code == "refused" and error.reason else pytest.fail("another error")


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("http://a.org", "http://a.org/"),
        ("HTTPS://A.Org./x?y=1#z", "https://a.org/x?y=1"),
        ("http://a.org?q", "http://a.org/?q"),
        ("http://a.org#@b.org/", "http://a.org/"),
        ("http://a.org:80/", "http://a.org/"),
        ("https://a.org:80/", "https://a.org:80/"),
        ("http://a.org:8080/%0d%0aX:1", "http://a.org:8080/%0d%0aX:1"),
        ("https://bücher.de/grün?ü", "https://xn--bcher-kva.de/gr%C3%BCn?%C3%BC"),
        ("http://faß.de/", "http://xn--fa-hia.de/"),
        ("http://a_b.org/", "http://a_b.org/"),
        ("http://[2606:4700:0:0::1]:81/", "http://[2606:4700::1]:81/"),
        ("http://localhost/?u=http://b.org/", "http://localhost/?u=http://b.org/"),
        ("http://a.org/x/../y/./z", "http://a.org/y/z"),
        ("http://a.org/%2E%2e/y", "http://a.org/y"),
        ("http://a.org/.well-known/x..y", "http://a.org/.well-known/x..y"),
        ("http://a.org/?x='y'", "http://a.org/?x=%27y%27"),
        ("http://a.org/it's?/../", "http://a.org/it's?/../"),
        ("http://a.org/100%?%zz", "http://a.org/100%?%zz"),
        ("http://a.org/?", "http://a.org/?"),
        ("http://a.org//b//", "http://a.org//b//"),
    ],
)
def test_spells_urls_out(url, spelled):
    """A URL is spelled out as a browser would send it, in ASCII, without fragment and default port."""
    assert parse(url).url == spelled


def test_parts():
    """Host, port, authority, origin and target are what a connection and its request need."""
    address = parse("https://[2606:4700::1]:8443/x?y#z")
    assert (address.scheme, address.host, address.port) == ("https", "2606:4700::1", 8443)
    assert (address.authority, address.target) == ("[2606:4700::1]:8443", "/x?y")
    assert address.origin == "https://[2606:4700::1]:8443"
    assert parse("https://a.org:443/").authority == "a.org"


def test_shows_nothing():
    """An address that is printed or logged shows no target."""
    assert "vault" not in repr(parse("https://vault.org/vault")) + str(parse("https://vault.org/vault"))


def test_length():
    """A URL is at most 4,096 characters long, also as it is spelled out."""
    assert parse(f"http://a.org/{'x' * (LIMIT - 13)}").target.count("x") == LIMIT - 13
    for url in (
        f"http://a.org/{'x' * (LIMIT - 12)}",
        f"http://a.org/{'ü' * 700}",
        f"http://a.org/?{chr(39) * 1400}",
    ):
        with pytest.raises(FetchError) as caught:
            parse(url)
        assert caught.value.reason == "too_long"


@given(URL)
def test_any_text_is_an_address_or_refused(url):
    """No text raises anything but a refusal; an address is ASCII, and spelled the same again."""
    address = parsed(url)
    if address is not None:
        assert address.url.isascii()
        assert len(address.url) <= LIMIT
        assert parse(address.url) == address


@given(URL)
def test_a_browser_reads_the_same(url):
    """The WHATWG parser reads each allowed URL, raw and spelled out, as we do."""
    address = parsed(url)
    if address is None:
        return
    for text in (url, address.url):
        browser = ada_url.URL(text)
        browser.hash = ""
        browser.hostname = browser.hostname.removesuffix(".")
        assert browser.href == (address.url if "[::ffff:" not in address.url else browser.href)
        assert int(browser.port or {"http:": 80, "https:": 443}[browser.protocol]) == address.port


@given(URL)
def test_the_gate_counts_the_host_that_is_named(url):
    """The gate's key of the raw URL is the host (a mapped address is one more spelling of the IPv4 one)."""
    address = parsed(url)
    if address is not None and not address.host.startswith("::ffff:"):
        assert host_key(url) == host_key(address.url) == address.host


def test_two_readings_of_a_name_refuse_it(monkeypatch):
    """An international name that the gate would count as another one is refused."""
    monkeypatch.setattr(_address, "host_key", lambda _url: "xn--another.de")
    with pytest.raises(FetchError) as caught:
        parse("http://bücher.de/")
    assert caught.value.reason == "idna"
    assert parse("http://buecher.de/").host == "buecher.de"


class _Recorder(httpcore2.AsyncNetworkBackend):
    """A network that connects nowhere and keeps where it was asked to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.sent = b""
        self.tls: str | None = None

    async def connect_tcp(self, host, port, **_):
        self.asked.append((host, port))
        return self

    async def start_tls(self, ssl_context, server_hostname=None, timeout=None):  # noqa: ASYNC109
        self.tls = server_hostname
        return self

    async def write(self, buffer, timeout=None):  # noqa: ASYNC109
        self.sent += buffer

    async def read(self, max_bytes, timeout=None):  # noqa: ASYNC109
        return b"HTTP/1.1 204 No Content\r\n\r\n"

    async def aclose(self):
        pass

    def get_extra_info(self, info):
        return None


@given(URL)
def test_the_client_connects_where_the_address_says(url):
    """For each allowed URL httpcore2 asks for that host and port, and sends that path and Host."""
    address = parsed(url)
    if address is None:
        return

    parts = httpcore2.URL(
        scheme=address.scheme.encode(),
        host=address.host.encode(),
        port=address.port,
        target=address.target.encode(),
    )

    async def request() -> _Recorder:
        network = _Recorder()
        async with httpcore2.AsyncConnectionPool(network_backend=network) as pool:
            await pool.request("GET", parts, headers={"Host": address.authority})
        return network

    network = trio.run(request)
    assert network.asked == [(address.host, address.port)]
    assert network.sent.startswith(f"GET {address.target} HTTP/1.1\r\nHost: {address.authority}\r\n".encode())
    assert network.tls == (address.host if address.scheme == "https" else None)
    # Read from the text, it is the same server.
    origin = httpcore2.URL(address.url).origin
    assert (origin.host.strip(b"[]").decode(), origin.port) == (address.host, address.port)


@given(st.text(max_size=40))
def test_a_reference_is_an_address_or_refused(reference):
    """No reference raises anything but a refusal, and a browser goes to the same place."""
    base = parse("https://a.org/dir/page?q")
    try:
        address = resolve(base, reference)
    except FetchError as error:
        assert error.reason  # noqa: PT017  # both ends are fine
        return
    browser = ada_url.URL(reference, base.url)
    browser.hash = ""
    browser.hostname = browser.hostname.removesuffix(".")
    assert browser.href == address.url


def test_import_is_light():
    """A plain URL is parsed without loading ada, which waits for an international one."""
    code = (
        "import sys; from sift_batch.fetch._address import parse; parse('https://a.org/x?y');"
        "print('ada_url' in sys.modules); parse('https://bücher.de/'); print('ada_url' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
