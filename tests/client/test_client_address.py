"""Which addresses can a service have, and where may a key go?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._client import BadServer
from sift_batch._client._address import Address, parse_server


@pytest.mark.parametrize(
    ("server", "address", "authority"),
    [
        ("http://127.0.0.1:8080", Address("http", "127.0.0.1", 8080, ""), "127.0.0.1:8080"),
        ("http://localhost", Address("http", "localhost", 80, ""), "localhost"),
        ("http://[::1]:8080/", Address("http", "::1", 8080, ""), "[::1]:8080"),
        ("http://127.9.9.9", Address("http", "127.9.9.9", 80, ""), "127.9.9.9"),
        ("HTTPS://Sift.Example.org", Address("https", "sift.example.org", 443, ""), "sift.example.org"),
        ("https://sift.example.org:443/a/b-c/", Address("https", "sift.example.org", 443, "/a/b-c"), None),
    ],
)
def test_an_address_is_read_as_it_is_written(server, address, authority):
    """Scheme, host, port and path come out, and the authority as the Host header has it."""
    found = parse_server(server)
    assert found == address
    assert found.authority == (authority or address.host)


@pytest.mark.parametrize(
    "server",
    [
        "",
        "127.0.0.1:8080",
        "localhost",
        "ftp://127.0.0.1",
        "file:///etc/passwd",
        "http://",
        "http://:80",
        "http://127.0.0.1:0",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:x",
        "http://[::1",
        "http://user@127.0.0.1",
        "http://user:word@127.0.0.1",
        "http://127.0.0.1/?a",
        "http://127.0.0.1?",
        "http://127.0.0.1/#a",
        "http://127.0.0.1/../x",
        "http://127.0.0.1/./x",
        "http://127.0.0.1/a b",
        "http://127.0.0.1/%2e",
        "http://127.0.0.1\\@example.org",
        "http://127.0.0.1\r\nX: y",
        "https://exämple.org",
    ],
)
def test_what_is_no_address_of_a_service_is_refused(server):
    """The reason is one line that holds nothing of the address."""
    with pytest.raises(BadServer) as caught:
        parse_server(server)
    assert caught.value.reason.isprintable()
    assert "user" not in caught.value.reason.replace("user name", "")


@pytest.mark.parametrize(
    "server",
    ["http://10.0.0.1", "http://sift", "http://localhost.example.org", "http://128.0.0.1", "http://0.0.0.0"],
)
def test_a_key_goes_to_other_machines_under_tls_only(server):
    """Over plain HTTP only this machine is talked to, unless that is allowed."""
    with pytest.raises(BadServer, match="can read the key"):
        parse_server(server)
    assert parse_server(server, plain_http=True).scheme == "http"
    assert parse_server(server.replace("http", "https")).scheme == "https"


@given(st.text() | st.text().map(lambda text: f"http://{text}"))
def test_no_text_breaks_the_reader(server):
    """Any text is an address or a `BadServer`; what comes out can stand in a request."""
    try:
        address = parse_server(server, plain_http=True)
    except BadServer:
        return
    assert f"{address.authority}{address.prefix}".isascii()
    assert f"{address.authority}{address.prefix}".isprintable()
    assert " " not in address.authority
