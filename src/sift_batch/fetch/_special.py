"""Which addresses are no public servers?

One dated table of networks and one question, `Networks.allowed`. The table is our own: what the standard
library's flags say differs from release to release, and it counts tunnels to private networks as
public. Nothing is looked up here. Next: `_guard`, which asks for each address of a host.

IPv4: everything but the listed networks is public. IPv6: only 2000::/3 is, less the listed networks,
so whatever is assigned outside it later needs no row.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

SNAPSHOT: Final = "2026-07-18"
"""The day up to which the table follows IANA's special-purpose registries. Look again each year."""

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SPECIAL: Final = (
    "0.0.0.0/8",  # this network; Linux takes 0.0.0.0 for itself
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # carriers' NAT
    "127.0.0.0/8",  # this machine
    "168.63.129.16/32",  # a public address, but in Azure it is the host of the virtual machine
    "169.254.0.0/16",  # link-local, with the clouds' metadata services
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.31.196.0/24",  # AS112, answered by whoever is near
    "192.52.193.0/24",  # AMT relays, likewise
    "192.88.99.0/24",  # 6to4 relays, likewise
    "192.168.0.0/16",  # private
    "192.175.48.0/24",  # AS112
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, with the broadcast address
    "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID, anycast
    "2001:db8::/32",  # documentation
    "2002::/16",  # 6to4: a tunnel to the IPv4 address inside
    "2620:4f:8000::/48",  # AS112
    "3fff::/20",  # documentation
)
PUBLIC_IPV6: Final = "2000::/3"

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIIT: Final = IPv6Network("::ffff:0:0:0/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)
_LOW: Final = 0xFFFF_FFFF


class Networks:
    """Which addresses may be connected to: `deny` beats `allow`, and both beat the table.

    A network of IPv4 counts for the mapped form of its addresses too. An IPv6 address that carries an
    IPv4 address to which the packets may go on (NAT64, 6to4, Teredo, ISATAP and so on) may be called
    only if that one may be called as well. `nat64` lists prefixes that are as good as the address in
    them.
    """

    def __init__(
        self, allow: Iterable[Network] = (), deny: Iterable[Network] = (), nat64: Iterable[Network] = ()
    ) -> None:
        self._allow = _ranges(allow)
        self._deny = _ranges(deny)
        self._nat64 = tuple(network for network in nat64 if isinstance(network, IPv6Network))

    def allowed(self, address: Address) -> bool:
        """Say whether `address` may be connected to."""
        if isinstance(address, IPv4Address):
            return self._verdict(address, public=_public(address))
        mapped = address.ipv4_mapped
        if mapped is not None:
            # The same server in another spelling: what the operator says of it holds, while the table
            # never admits the spelling.
            return _inside(self._allow, mapped) and not self.denied(address)
        if any(address in prefix for prefix in self._nat64):
            inner = IPv4Address(int(address) & _LOW)
            return self._verdict(address, public=True) and self.allowed(inner)
        if not self._verdict(address, public=_public(address)):
            return False
        return all(self.allowed(inner) for inner in embedded(address))

    def denied(self, address: Address) -> bool:
        """Say whether the operator's own `deny` lists `address`."""
        mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        return _inside(self._deny, address) or (mapped is not None and _inside(self._deny, mapped))

    def _verdict(self, address: Address, *, public: bool) -> bool:
        return not _inside(self._deny, address) and (public or _inside(self._allow, address))


def is_nat64(address: Address) -> bool:
    """Say whether `address` has the prefix that all networks may use for their NAT64."""
    return isinstance(address, IPv6Address) and address in _NAT64


def embedded(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that `address` may lead on to. A mapped address is one itself: none."""
    number = int(address)
    found = []
    if address in _SIX_TO_FOUR:
        found.append(IPv4Address(number >> 80 & _LOW))
    elif address in _TEREDO:
        found += [IPv4Address(number >> 64 & _LOW), IPv4Address(~number & _LOW)]
    elif address in _NAT64 or address in _SIIT or (address in _COMPATIBLE and number > 1):
        found.append(IPv4Address(number & _LOW))
    if number >> 32 & _LOW in _ISATAP:
        found.append(IPv4Address(number & _LOW))
    return found


def _ranges(networks: Iterable[Network]) -> tuple[tuple[int, int, int], ...]:
    """Return version, first and last address of each network, as numbers: quick to compare."""
    ranges = []
    for network in networks:
        first, last = int(network.network_address), int(network.broadcast_address)
        if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
            ranges.append((4, first & _LOW, last & _LOW))  # a network of IPv4, spelled as mapped
        ranges.append((network.version, first, last))
    return tuple(ranges)


_SPECIAL: Final = _ranges(IPv6Network(text) if ":" in text else IPv4Network(text) for text in SPECIAL)
_PUBLIC_IPV6: Final = _ranges([IPv6Network(PUBLIC_IPV6)])


def _inside(ranges: tuple[tuple[int, int, int], ...], address: Address) -> bool:
    version, number = address.version, int(address)
    return any(of == version and first <= number <= last for of, first, last in ranges)


def _public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and (
        not _inside(_PUBLIC_IPV6, address) or int(address) >> 32 & _LOW in _ISATAP
    ):
        return False
    return not _inside(_SPECIAL, address)
