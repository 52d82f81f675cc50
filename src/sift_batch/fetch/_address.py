"""Which server and which path does a URL name?

One strict grammar on the raw text: what it gives is what is connected to, and no second parser reads
the URL again. It decides on the spelling alone; whether an address may be called is not asked here.
Next: `_plain`, which connects.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urljoin

import idna

_LIMIT: Final = 4_096
_PORTS: Final = {"http": 80, "https": 443}
_SHAPE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)")
# Blanks, controls, what RFC 3986 never allows, and characters that can't be seen: parsers disagree
# on each of them, and a disagreement means to check one host and to call another.
_BAD: Final = re.compile(
    '[\x00-\x20\x7f-\xa0"<>\\\\^`{|}\xad\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]'
)
_AUTHORITY: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
# Everything that may stand in a path or query as it is; "%" too, since it is escaped already.
_KEEP: Final = "!#$%&'()*+,/:;=?@[]~"


class BadURL(ValueError):
    """A URL that can't be fetched. `reason` says what is wrong with it and never quotes it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL, spelled out again in ASCII and without a fragment."""
        return f"{self.scheme}://{self.authority}{self.target}"


def check_url(url: str) -> None:
    """Raise `BadURL` unless `url` is an absolute http or https URL without a user name."""
    parse(url)


def parse(url: str) -> Address:
    """Take `url` apart. Raises `BadURL`."""
    if len(url) > _LIMIT:
        raise BadURL(f"the URL is longer than {_LIMIT:,} characters")
    if _BAD.search(url):
        raise BadURL("the URL holds a blank, a control or another character that a URL can't have")
    shape = _SHAPE.match(url)
    if shape is None:
        raise BadURL("this is no absolute URL; write it with http:// or https://")
    scheme, authority, rest = shape[1].lower(), shape[2], shape[3]
    if scheme not in _PORTS:
        raise BadURL("only http and https URLs can be fetched")
    if "@" in authority:
        raise BadURL("the URL holds a user name or password; leave it out")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise BadURL("the host or the port of the URL is malformed")
    port = int(parts[2]) if parts[2] is not None else _PORTS[scheme]
    if not 0 < port <= 65_535:
        raise BadURL("the port of the URL is not between 1 and 65,535")
    path = rest if rest.startswith("/") else "/" + rest
    # Of ASCII, whatever would have to be escaped was refused above.
    target = path if path.isascii() else quote(path, safe=_KEEP)
    return Address(scheme, _host(parts[1]), port, target)


def join(base: Address, location: bytes) -> Address:
    """Return the address that a Location header names, seen from `base`. Raises `BadURL`."""
    try:
        text = location.decode()
    except UnicodeDecodeError:
        raise BadURL("the Location header is no UTF-8") from None
    try:
        return parse(urljoin(base.url, text))
    except BadURL:
        raise
    except ValueError:
        # The standard library's own complaints quote the URL.
        raise BadURL("the Location header is malformed") from None


def _host(host: str) -> str:
    if host.startswith("["):
        try:
            return ipaddress.IPv6Address(host[1:-1]).compressed
        except ValueError:
            raise BadURL("the host of the URL is no IPv6 address") from None
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True, transitional=False).decode()
        except UnicodeError:
            raise BadURL("the host of the URL is no valid international name") from None
    labels = host.lower().removesuffix(".").split(".")
    if sum(map(len, labels)) + len(labels) > 254 or not all(map(_LABEL.fullmatch, labels)):
        raise BadURL("the host of the URL is malformed")
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        # 127.1, 0x7f.1 and 2130706433 are addresses to some systems and names to others.
        try:
            return str(ipaddress.IPv4Address(".".join(labels)))
        except ValueError:
            raise BadURL("the host of the URL is a number, but no plain IPv4 address") from None
    return ".".join(labels)
