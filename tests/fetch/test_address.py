"""Which server and path a URL names."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import host_key
from sift_batch.fetch import BadURL, check_url
from sift_batch.fetch._address import join, parse


@pytest.mark.parametrize(
    ("url", "host", "port", "target"),
    [
        ("http://a.example", "a.example", 80, "/"),
        ("HTTPS://A.Example./x?y=1#z", "a.example", 443, "/x?y=1"),
        ("http://a.example?q", "a.example", 80, "/?q"),
        ("http://a.example#@b.example/", "a.example", 80, "/"),
        ("http://a.example:8080/%0d%0aX:1", "a.example", 8080, "/%0d%0aX:1"),
        ("https://bücher.example/grün?ü", "xn--bcher-kva.example", 443, "/gr%C3%BCn?%C3%BC"),
        ("http://a_b.example/", "a_b.example", 80, "/"),
        ("http://127.0.0.1:81/", "127.0.0.1", 81, "/"),
        ("http://[0:0::1]:81/", "::1", 81, "/"),
        ("http://localhost/?u=http://b.example/", "localhost", 80, "/?u=http://b.example/"),
    ],
)
def test_takes_urls_apart(url, host, port, target):
    """Scheme, host, port and target are those that the URL names, in ASCII."""
    address = parse(url)
    assert (address.host, address.port, address.target) == (host, port, target)
    assert parse(address.url) == address


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "//a.example/",
        "http:/a.example/",
        "http:a.example",
        "http://",
        "http://?x",
        "ftp://a.example/",
        "data:text/html,x",
        "ws://a.example/",
        "http://u:p@a.example/",
        "http://@a.example/",
        "http://a.example%2f@b.example/",
        "http://a.example\\@b.example/",
        "http:\\\\a.example\\",
        " http://a.example/",
        "http://a.example/\n",
        "http://a\0b.example/",
        "http://a%00b.example/",
        "http://loc\xadalhost/",
        "http://a..example/",
        "http://a.example../",
        "http://-a.example/",
        f"http://{'a' * 64}.example/",
        f"http://{'a.' * 130}example/",
        "http://a.example:0/",
        "http://a.example:65536/",
        "http://a.example:\uff18\uff10/",
        "http://a.example:-80/",
        "http://a.example:/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[v1.x]/",
        "http://[fe80::1%25lo]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://256.1.1.1/",
        "http://\uff11\uff12\uff17.1/",
        "http://a\u2024.\u2024example/",
        f"http://a.example/{'x' * 5_000}",
    ],
)
def test_refuses_what_parsers_disagree_on(url):
    """A URL that is malformed, or that two parsers could read in two ways, is refused; no part is quoted."""
    with pytest.raises(BadURL) as caught:
        check_url(url)
    assert "example" not in caught.value.reason
    assert caught.value.reason.isascii()


@given(st.text(max_size=60) | st.text(max_size=60).map("http://".__add__))
def test_any_text_is_an_address_or_a_bad_url(url):
    """No text raises anything but `BadURL`, and an address is ASCII, spelled the same again."""
    try:
        address = parse(url)
    except BadURL:
        return
    assert address.url.isascii()
    assert parse(address.url) == address


@given(st.from_regex(r"[a-zA-Z0-9_.\u00e0-\u00ff-]{1,30}", fullmatch=True))
def test_the_gate_counts_the_host_that_is_connected_to(host):
    """The gate's key of the raw URL is that of the address which is connected to."""
    try:
        address = parse(f"http://{host}/")
    except BadURL:
        return
    assert host_key(f"http://{host}/") == host_key(address.url) == address.host


@given(st.binary(max_size=60))
def test_any_location_is_an_address_or_a_bad_url(location):
    """No Location header raises anything but `BadURL`."""
    base = parse("http://a.example/dir/page")
    try:
        assert join(base, location).url.isascii()
    except BadURL as error:
        assert error.reason  # noqa: PT017  # both ends are fine


def test_locations_are_seen_from_the_page():
    """A relative, a host-relative and an absolute Location lead where a browser would go."""
    base = parse("https://a.example/dir/page")
    assert join(base, b"other?x").url == "https://a.example/dir/other?x"
    assert join(base, b"//b.example").url == "https://b.example/"
    assert join(base, "/grün".encode()).url == f"https://a.example/{quote('grün')}"
    assert join(base, b"http://c.example:80/").url == "http://c.example/"


@pytest.mark.parametrize(
    "url", ["http://u:p@a.example/", "http://@a.example/", "http://a.example%2f@b.example/"]
)
def test_a_user_name_is_told_from_a_bad_host(url):
    """The reason says that a user name has to go, not that something is malformed."""
    with pytest.raises(BadURL, match="user name"):
        check_url(url)
