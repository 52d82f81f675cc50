"""One server, one key, however it is spelt."""

import ipaddress
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sift_batch._gate.hosts import host_key


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://example.com/", "example.com"),
        ("https://www.Example.COM:8443/a?b#c", "www.example.com"),
        ("http://EXAMPLE.com", "example.com"),
        ("http://example.com.", "example.com"),
        ("http://example.com..", "example.com."),
        ("http://exampl%65.org/", "example.org"),
        ("http://example%2Ecom/", "example.com"),
        ("http://user:secret@example.com/", "example.com"),
        ("http://a@b@c/", "c"),
        ("http://h.test#@x/", "h.test"),
        ("http://h.test?@x/", "h.test"),
        ("http://h:080/", "h"),
        ("http://h:/", "h"),
        ("http://h:99999/", "h"),
        ("http:/h/x", "h"),
        ("http:h", "h"),
        ("HTTP:h", "h"),
        ("WSS:/\\h", "h"),
        ("http:///h", "h"),
        ("http:\\\\h\\x", "h"),
        ("http://h.t\test/", "h.test"),
        ("ht\ntp://h\r.test/", "h.test"),
        (" \0http://h.test/\x1f ", "h.test"),
        ("http://127.0.0.1:6666\\@1.1.1.1/", "127.0.0.1"),
        ("foo://H.test/x", "h.test"),
    ],
)
def test_key_is_the_host_that_a_whatwg_parser_dials(url: str, key: str) -> None:
    """Case, trailing dot, escapes, userinfo, port, slashes and control characters change nothing."""
    assert host_key(url) == key


@pytest.mark.parametrize(
    "host", ["a_b.test", "-x.test", "r2---sn-x.test", "xn--.test", "localhost", "1a", "a.1.b", "0y1", "a-"]
)
def test_ascii_hosts_are_taken_as_they_are(host: str) -> None:
    """A name that a strict IDNA check would refuse has its own text as its key."""
    assert host_key(f"http://{host}/") == host


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0X7F.1", "017700000001", "0177.0.0.01",
        "127.0.0.1.", "127.0.0.%31",
        "\uff11\uff12\uff17\uff0e\uff10\uff0e\uff10\uff0e\uff11", "127\u30020\u30020\u30021",
        "[::ffff:127.0.0.1]",
        "[::FFFF:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "000000000000000000000177.1",
    ],
)  # fmt: skip
def test_every_spelling_of_an_ipv4_address_is_the_dotted_quad(host: str) -> None:
    """Decimal, octal, hexadecimal, short, escaped, fullwidth and IPv6-mapped forms share one key."""
    assert host_key(f"http://{host}/") == "127.0.0.1"
    assert host_key(f"https://user@{host}:8080?x") == "127.0.0.1"


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3.4.5", "09.1.1.1", "4294967296", "0xg", "1..2", "0x1.2.3.999"]
)
def test_what_is_no_ipv4_address_keeps_its_text(host: str) -> None:
    """An address that the standard refuses is not taken for another one."""
    assert host_key(f"http://{host}/") == host


def test_bare_hex_prefix_is_zero() -> None:
    """`0x` stands for 0 in an address, as the standard has it."""
    assert host_key("http://0x.0X.0/") == "0.0.0.0"


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("[2001:DB8:0:0:0:0:0:1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[::1]", "::1"),
        ("[1:0:0:2:0:0:0:3]", "1:0:0:2::3"),
        ("[64:ff9b::127.0.0.1]", "64:ff9b::7f00:1"),
        ("[FE80::1%25eth0]", "[fe80::1%25eth0]"),
        ("[::1", "[::1"),
        ("[]", "[]"),
        ("[x]y", "[x]y"),
    ],
)
def test_ipv6_addresses_are_canonical(host: str, key: str) -> None:
    """Spellings of one IPv6 address share its compressed form; what is none keeps its text."""
    assert host_key(f"http://{host}/") == key


@pytest.mark.parametrize(
    ("host", "key"),
    [
        ("Bücher.test", "xn--bcher-kva.test"),
        ("bu\u0308cher.test", "xn--bcher-kva.test"),
        ("XN--BCHER-KVA.test", "xn--bcher-kva.test"),
        ("b%C3%BCcher.test", "xn--bcher-kva.test"),
        ("faß.test", "xn--fa-hia.test"),
        ("\uff45xample\u3002test", "example.test"),
        ("soft\u00adhyphen.test", "softhyphen.test"),
        ("ⓔxample.test\uff0e", "example.test"),
        ("a\u200cb.test", "xn--ab-j1t.test"),
    ],
)
def test_international_names_share_their_ascii_form(host: str, key: str) -> None:
    """Names are mapped by UTS 46, non-transitional, and written in Punycode."""
    assert host_key(f"http://{host}/") == key


@pytest.mark.parametrize(
    "url",
    [
        "", " ", "/", "h", "//h/", "h:80", "mailto:a@h", "data:,x", "http:", "http://", "http:///", "http://user@/",
        "http://:80/", "http://.", "http://?x", "file:///etc", "1http://h/", ":", "http://" + "a" * 256,
        "http://" + "ab." * 100, "http://" + "%61" * 2_000, "http://[" + ":" * 300 + "]", "foo://",
    ],
)  # fmt: skip
def test_what_has_no_host_shares_the_empty_key(url: str) -> None:
    """No host, or a text longer than any host, is the key ""."""
    assert host_key(url) == ""


@pytest.mark.parametrize("value", [None, 1, b"http://h/", object(), ["http://h/"]])
def test_what_is_no_text_has_the_empty_key(value: object) -> None:
    """A value that is no `str` raises nothing."""
    assert host_key(value) == ""


def test_padding_buys_no_other_key() -> None:
    """Ignored characters and escapes lead to the key of the plain name."""
    assert host_key("http://" + "\u00ad" * 500 + "h.test/") == "h.test"
    assert (
        host_key("http://" + "".join(f"%{ord(char):02X}" for char in "a" * 200 + ".test"))
        == "a" * 200 + ".test"
    )


def test_a_label_that_dns_can_not_hold_is_left_as_it_is() -> None:
    """A label of more than 63 characters, which Punycode would take long for, keeps its own text."""
    assert host_key("http://" + "é" * 64 + ".test/") == "é" * 64 + ".test"
    assert host_key("http://" + "é" * 63 + ".test/").startswith("xn--")


def test_methods_of_a_subclass_are_not_called() -> None:
    """A `str` with methods of its own can't make `host_key` raise."""

    class Trap(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError

        strip = lower = translate = __str__  # type: ignore[assignment]

    assert host_key(Trap(" HTTP://h.test/")) == "h.test"


@pytest.mark.parametrize(
    "text",
    [
        "http://" + "a" * 1_000_000, "http://" + "a." * 500_000, "http://" + "é" * 1_000_000,
        "\t" * 1_000_000,
        "http://" + "@" * 1_000_000 + "h", "http://" + "/" * 1_000_000 + "h", "http://" + "%" * 1_000_000,
        "http://" + "9" * 1_000_000, "http://" + "[" * 1_000_000, "http:" + "\\" * 1_000_000,
        "a" * 1_000_000 + ":",
        "http://" + "".join(map(chr, range(0x4E00, 0x4E00 + 1_000))),
    ],
)  # fmt: skip
def test_a_megabyte_costs_little(text: str) -> None:
    """No text, however long, keeps the loop from running for long."""
    started = time.thread_time()
    assert len(host_key(text)) <= 255
    assert time.thread_time() - started < 0.5


_HOSTILE = st.text(
    st.one_of(
        st.sampled_from(
            "ht:/\\@?#[]%.-_0123456789abcdefxX\0\t\n\r "
            "\u3002\uff0e\uff58\uff11ßüéⅨ\u00ad\u200d\ufeff\ud800\udfff"
        ),
        st.characters(),
    ),
    max_size=60,
)


@given(st.one_of(_HOSTILE, _HOSTILE.map("http://{}".format)))
@settings(max_examples=400, deadline=None)
def test_never_raises_and_is_stable(text: str) -> None:
    """Any text has a short key, and case of an ASCII text does not change it."""
    key = host_key(text)
    assert type(key) is str
    assert len(key) <= 255
    assert not any("\ud800" <= char <= "\udfff" for char in key)
    if text.isascii():
        assert host_key(text.upper()) == key


# Characters whose mapping has been the same in every version of Unicode since 5.2.
_OLD = "abcxyzABC0123456789-_.äÄéñçßαΣςЖж中文あ한\u3002\uff0e\uff41\uff22\uff11\uff10ﬁ²③Å\u00ad\u200b%"
_AUTHORITY = st.one_of(
    st.text(_OLD, min_size=1, max_size=20),
    st.from_regex(r"(0[xX]?)?[0-9a-fA-F]{1,4}(\.(0[xX]?)?[0-9a-fA-F]{0,4}){0,4}\.?", fullmatch=True),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map("[{}]".format),
    st.text("aA%4165eE.:@/\\?#[]\t \x7f^|<>", max_size=20),
)


@given(
    st.sampled_from(["http://", "HTTPS://", "http:", "http:/", "ws:\\\\", " http://", "http:///", "ftp://"]),
    st.sampled_from(["", "user@", "a:b@", "a@b:c@", "é@"]),
    _AUTHORITY,
    st.sampled_from(["", "/", ":80", ":/", ":8080/x@y", "?q", "#f", "\\x", "/é"]),
)
@settings(max_examples=600, deadline=None)
def test_agrees_with_a_whatwg_parser(scheme: str, user: str, host: str, rest: str) -> None:
    """Where ada-url accepts a URL, the key is the host that it would connect to."""
    ada_url = pytest.importorskip("ada_url", reason="ada-url is the other opinion")
    url = scheme + user + host + rest
    try:
        expected = ada_url.URL(url).hostname
    except ValueError:
        return  # a host that the standard refuses is nobody's to connect to
    if expected.startswith("["):
        address = ipaddress.IPv6Address(expected[1:-1])
        expected = str(address.ipv4_mapped or address.compressed)
    assert host_key(url) == expected.removesuffix(".")


def test_plain_hosts_need_no_idna() -> None:
    """A process that only meets ASCII hosts never loads the IDNA mapping tables."""
    code = (
        "import sys; from sift_batch._gate.hosts import host_key\n"
        "for host in ('h.test', 'H%65', '[::1]', '127.1', 'xn--bcher-kva'): host_key(f'http://{host}/')\n"
        "assert 'idna.uts46data' not in sys.modules, 'loaded'"
    )
    subprocess.run([sys.executable, "-I", "-c", code], check=True)
