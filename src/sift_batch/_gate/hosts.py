"""Which server does a URL talk to? One normal form for all spellings of a host.

The gate counts by this key, so two spellings of one server must never get two allowances. It follows
the WHATWG URL standard, since that is what the fetch connects to, but it judges nothing: a URL that
the standard refuses still gets a key, and whether it may be fetched is the fetch's question. No URL
is kept. The next room is `plan`, where the keys are counted.
"""

import re
from typing import Final

# Nearly every URL is plain: an ASCII name whose last label can't be a number, or a strict dotted quad.
_NAME: Final = r"(?:[A-Za-z0-9_-]+\.)*[A-Za-z_][A-Za-z0-9_-]*"
_BYTE: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_PLAIN: Final = re.compile(
    rf"[Hh][Tt][Tt][Pp][Ss]?://({_NAME}|(?:{_BYTE}\.){{3}}{_BYTE})\.?(?::[0-9]*)?(?:[/?#\\]|\Z)"
)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SPECIAL: Final = frozenset({"http", "https", "ws", "wss", "ftp"})
_C0_AND_SPACE: Final = "".join(map(chr, range(0x21)))
_TAB_OR_NEWLINE: Final = str.maketrans("", "", "\t\n\r")
_SPECIAL_END: Final = re.compile(r"[/?#\\]")
_OTHER_END: Final = re.compile(r"[/?#]")
_HOST: Final = re.compile(r"\[[^\]]*(?:\][^:]*)?|[^:]*")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NUMBER: Final = re.compile(r"0[Xx](?P<hex>[0-9A-Fa-f]*)|0(?P<octal>[0-7]*)|(?P<decimal>[1-9][0-9]*)")

_LONGEST: Final = 255
"""No name in DNS is longer."""
_LONGEST_LABEL: Final = 63
_LONGEST_SPELLING: Final = 4_096
"""Escapes and ignored characters can make a spelling longer than its name, but not for ever."""


def host_key(url: object) -> str:
    """Return the normal form of the host of `url`: what the gate counts by.

    Lower case, one trailing dot off, internationalised names in their ASCII form (UTS 46,
    non-transitional), every WHATWG spelling of an IPv4 address and an IPv6-mapped one as the dotted
    quad, other IPv6 addresses in canonical form without brackets; no port, no userinfo. What has no
    host has the key "", and so has what is too long to be one: keys stay small, and padding a host
    buys no allowance of its own for each length. Never raises, whatever `url` is.
    """
    if not issubclass(type(url), str):
        return ""
    text = str.__str__(url)  # a subclass could have methods of its own
    plain = _PLAIN.match(text)
    if plain and len(plain[1]) <= _LONGEST:
        return plain[1].lower()
    return _normal(_raw_host(text))


def _raw_host(text: str) -> str:
    """Cut the host out of a URL, in the order in which the WHATWG parser looks at it."""
    text = text.strip(_C0_AND_SPACE).translate(_TAB_OR_NEWLINE)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return ""
    rest = text[scheme.end() :]
    if scheme[1].lower() in _SPECIAL:
        # Any number of slashes, none included, and backslashes as well, lead to the host.
        rest = rest.lstrip("/\\")
        end = _SPECIAL_END.search(rest)
    elif rest.startswith("//"):
        rest = rest[2:]
        end = _OTHER_END.search(rest)
    else:
        return ""
    authority = rest[: end.start()] if end else rest
    host = _HOST.match(authority.rpartition("@")[2])
    return host[0] if host else ""


def _normal(host: str) -> str:
    if len(host) > _LONGEST_SPELLING:
        return ""
    host = _SURROGATE.sub("\ufffd", host)
    host = _ipv6(host) if host.startswith("[") else _domain_or_ipv4(host)
    return host if len(host) <= _LONGEST else ""


def _domain_or_ipv4(host: str) -> str:
    if "%" in host:
        # Only hosts that are written to confuse have escapes, so the import may wait for one.
        from urllib.parse import unquote

        host = unquote(host, errors="replace")
    host = host.lower() if host.isascii() else _to_ascii(host)
    host = host.removesuffix(".")
    return _ipv4(host) or host


def _to_ascii(host: str) -> str:
    """Map a name as UTS 46 says, leniently: what it refuses keeps its own text, in lower case."""
    import idna  # its tables take milliseconds to load, and most processes never meet such a name

    try:
        mapped = idna.uts46_remap(host, std3_rules=False)
    except ValueError:
        return host.lower()
    return ".".join(
        # No check of bidi or joiners here: those decide whether a name is allowed. A label that DNS
        # can't hold is left as it is, since Punycode takes the square of its length.
        label
        if label.isascii() or len(label) > _LONGEST_LABEL
        else f"xn--{label.encode('punycode').decode('ascii')}"
        for label in mapped.split(".")
    )


def _ipv4(host: str) -> str | None:
    """Return the dotted quad if `host` is an IPv4 address in any WHATWG spelling, else None."""
    parts = host.split(".")
    if len(parts) > 4 or not parts[-1][:1].isdigit():
        return None
    numbers = [_number(part) for part in parts]
    *leading, last = [-1 if number is None else number for number in numbers]
    if any(not 0 <= number <= 255 for number in leading) or not 0 <= last < 256 ** (4 - len(leading)):
        return None
    # The last part fills all bytes that the others leave: 127.1 is 127.0.0.1.
    value = last
    for position, number in enumerate(leading):
        value += number << (8 * (3 - position))
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))


def _number(part: str) -> int | None:
    match = _NUMBER.fullmatch(part)
    if match is None:
        return None
    if (digits := match["hex"]) is not None:
        return int(digits or "0", 16)
    if (digits := match["octal"]) is not None:
        return int(digits or "0", 8)
    return int(match["decimal"])


def _ipv6(host: str) -> str:
    """Return the canonical form of a bracketed address; what is none keeps its own text."""
    from ipaddress import IPv6Address

    inner = host[1:-1]
    # A zone names an interface of this machine, not a server; the standard knows none.
    if not host.endswith("]") or "%" in inner:
        return host.lower()
    try:
        address = IPv6Address(inner)
    except ValueError:
        return host.lower()
    return str(address.ipv4_mapped or address.compressed)
