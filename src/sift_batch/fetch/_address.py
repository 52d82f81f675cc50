"""Which server and which path does a URL name?

One strict grammar on the raw text: what it gives is what is connected to, and no second parser reads
the URL again. It decides on the spelling alone. Whether the address may be called is not asked here:
that is `_guard`, the next room.

The result is spelled as a browser would: the serialisation is that of the WHATWG URL standard, but for
the one trailing dot of a host, which goes. What the standard repairs (tabs, backslashes, short forms
of IPv4, missing slashes) is refused, since parsers repair it in different ways, and a difference means
to check one host and to call another.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from .._gate.hosts import host_key
from ._errors import FetchError, refused

LIMIT: Final = 4_096
"""The longest URL, in characters, as it is given and as it is spelled out."""
PORTS: Final = {"http": 80, "https": 443}

_NAME_LIMIT: Final = 253
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_REST: Final = re.compile(r"//([^/?#]+)([^?#]*)(\?[^#]*)?")
# Blanks and controls, what RFC 3986 never allows, soft hyphen, everything that has no width or turns
# the direction of writing, and surrogates. Parsers and eyes disagree on each of them.
_BAD: Final = re.compile(
    '[\x00-\x20\x7f-\xa0"<>\\\\^`{|}\xad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f'
    "\u3000\ufeff\ud800-\udfff]"
)
_SPACE: Final = re.compile(r"[\s\u180e]")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_LABEL: Final = r"[a-z0-9_][a-z0-9_-]{0,62}"
_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_DOT_SEGMENT: Final = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A parsed URL: `host` as ASCII in lower case (IPv6 without brackets), `target` path and query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The URL, spelled out again in ASCII and without a fragment."""
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(url: str) -> Address:
    """Take `url` apart.

    Raises `FetchError` (`refused`, with the reason) unless it is an absolute http or https URL without
    a user name that all parsers read alike. `parse(address.url) == address` for whatever it returns.
    """
    if len(url) > LIMIT:
        raise _too_long()
    if _BAD.search(url):
        if _SPACE.search(url):
            # Most often two URLs on one line, or a copied one that was broken.
            raise refused(
                "bad_character", "there is a space in the URL; give one URL on each line, or write it as %20"
            )
        raise refused(
            "bad_character", "the URL holds a character that no URL may have, or that can't be seen"
        )
    scheme, rest = _scheme(url)
    parts = _REST.match(rest)
    if parts is None:
        raise refused("malformed", "the URL names no host; write it as https://host/path")
    host, port = _authority(parts[1])
    address = Address(
        scheme,
        _ipv6(host) if host[0] == "[" else _name(host),
        PORTS[scheme] if port is None else _number(port),
        _target(parts[2], parts[3] or ""),
    )
    if len(url) > LIMIT // 12 and len(address.url) > LIMIT:
        raise _too_long()  # percent-encoding makes a character up to twelve
    return address


def resolve(base: Address, location: str) -> Address:
    """Return the address that a reference names, seen from `base`. Raises `FetchError` as `parse` does.

    A blank counts as %20, as servers leave it in a Location header, and at either end as nothing;
    everything else is as strict.
    """
    location = location.strip(" ").replace(" ", "%20")
    if _SCHEME.match(location):
        return parse(location)
    if location.startswith("//"):
        return parse(f"{base.scheme}:{location}")
    path, mark, query = base.target.partition("?")
    if location.startswith("/"):
        return parse(base.origin + location)
    if location.startswith("?"):
        return parse(base.origin + path + location)
    if not location or location.startswith("#"):
        return parse(base.origin + path + mark + query + location)
    return parse(base.origin + path[: path.rindex("/") + 1] + location)


def _scheme(url: str) -> tuple[str, str]:
    match = _SCHEME.match(url)
    if match is None:
        raise refused("malformed", "this is no absolute URL; write it as https://host/path")
    scheme = match[1].lower()
    if scheme not in PORTS:
        raise refused("scheme", "only http and https URLs can be fetched")
    return scheme, url[match.end() :]


def _authority(authority: str) -> tuple[str, str | None]:
    """Part host and port. The host is not empty, and in brackets only if it is all in brackets."""
    if "@" in authority:
        raise refused("userinfo", "the URL holds a user name or password; leave it out")
    if authority[0] == "[":
        host, bracket, rest = authority.partition("]")
        if "%" in host:
            raise refused("zone_id", "the address in the URL names a network interface (a zone id)")
        if not bracket or (rest and rest[0] != ":"):
            raise refused("malformed", "the brackets of the URL's host are malformed")
        return host + bracket, rest[1:] if rest else None
    host, colon, port = authority.partition(":")
    if "%" in host:
        raise refused("percent_in_host", "the host of the URL holds a percent sign; write it out")
    if not host or ":" in port or "[" in authority or "]" in authority:
        raise refused("malformed", "the host or the port of the URL is malformed")
    return host, port if colon else None


def _number(port: str) -> int:
    # `int` would take digits of other scripts, signs and underscores.
    if _PORT.fullmatch(port) is None or int(port) > 65_535:
        raise refused("port", "the port of the URL is no plain number between 1 and 65,535")
    return int(port)


def _ipv6(host: str) -> str:
    try:
        return IPv6Address(host[1:-1]).compressed
    except ValueError:
        raise refused("malformed", "the host of the URL is no IPv6 address") from None


def _name(host: str) -> str:
    name = host.lower() if host.isascii() else _mapped(host)
    name = name.removesuffix(".")
    if len(name) > _NAME_LIMIT or _NAME.fullmatch(name) is None:
        raise refused("host_syntax", "the host of the URL is no name that can be looked up")
    last = name[name.rfind(".") + 1 :]
    if _NUMBER.fullmatch(last):
        # 127.1, 0x7f.1 and 2130706433 are addresses to some systems and names to others; so are digits
        # of other scripts.
        try:
            return str(IPv4Address(name if host.isascii() else ""))
        except ValueError:
            message = "the host of the URL is a number, but no plain IPv4 address"
            raise refused("numeric_host", message) from None
    if "xn--" in name:
        _check_labels(name)
    return name


def _mapped(host: str) -> str:
    """Return the ASCII form of an international name: UTS 46, non-transitional, as browsers have it."""
    import ada_url  # most processes never meet such a name

    try:
        name: str = ada_url.idna_to_ascii(host).decode("ascii")
    except ValueError:
        name = ""
    # The gate counts by a reading of its own. Where the two differ (another version of Unicode), nobody
    # can say which server is meant.
    if not name or name.removesuffix(".") != host_key(f"http://{host}/"):
        raise refused("idna", "the host of the URL is no valid international name")
    return name


def _check_labels(name: str) -> None:
    """Refuse a label in Punycode that is not the one spelling of an international label."""
    import ada_url

    for label in name.split("."):
        if not label.startswith("xn--"):
            continue
        try:
            text = label[4:].encode("ascii").decode("punycode")
            valid = not text.isascii() and ada_url.idna_to_ascii(text) == label.encode("ascii")
        except ValueError:
            valid = False
        if not valid:
            raise refused("host_syntax", "the host of the URL holds xn-- without a valid international name")


def _target(path: str, query: str) -> str:
    """Return path and query as a browser would send them."""
    if "'" in query:
        query = query.replace("'", "%27")
    if not (path.isascii() and query.isascii()) or _DOT_SEGMENT.search(path):
        import ada_url

        # The host plays no part here: only what follows it is taken.
        href: str = ada_url.URL(f"http://h{path or '/'}{query}").href
        return href.removeprefix("http://h")
    return (path or "/") + query


def _too_long() -> FetchError:
    return refused("too_long", f"the URL is longer than {LIMIT:,} characters")
