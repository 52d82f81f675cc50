"""The table of special-purpose networks, and what `allow`, `deny` and `nat64` change of it."""

from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from guard_cases import OWN_BLOCKS, REACHABLE_BUT_REFUSED, REGISTRY, REGISTRY_DAY
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._special import PUBLIC_IPV6, SNAPSHOT, SPECIAL, Networks, embedded

DEFAULT = Networks()
REFUSED = """
127.0.0.1 127.255.255.254 0.0.0.0 169.254.169.254 100.64.0.1 168.63.129.16 224.0.0.1 ::1 ::ffff:127.0.0.1
::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: 2001:0:1:2:3:4:80ff:fffe fec0::1 5f00::1 :: ::ffff:8.8.8.8
::ffff:0:808:808 2606:4700::5efe:808:808 2606:4700::200:5efe:808:808 100.100.100.200 255.255.255.255
"""
PUBLIC = """
8.8.8.8 172.15.255.255 172.32.0.1 100.63.255.255 100.128.0.1 11.0.0.1 93.184.216.34 223.255.255.255
2606:4700::1111 2a00:1450:4001:81b::200e 2001:200::1 2003::1
"""
ROWS = [tuple(line.split()) for line in REGISTRY.strip().splitlines()]


def networks(*texts: str):
    """Take texts for networks."""
    return tuple(map(ip_network, texts))


def allowed(text: str, **lists: tuple[str, ...]) -> bool:
    """Ask about one address."""
    rules = Networks(**{name: networks(*texts) for name, texts in lists.items()})
    return rules.allowed(ip_address(text))


def spots(block: str):
    """Give addresses of a block: its ends and some between."""
    network = ip_network(block)
    first, last = int(network.network_address), int(network.broadcast_address)
    make = type(network.network_address)
    return {make(first + (last - first) * part // 16) for part in range(17)}


@pytest.mark.parametrize(("block", "reachable"), ROWS)
def test_the_table_covers_what_iana_lists(block, reachable):
    """No address of a block in IANA's registries is let through."""
    assert not any(map(DEFAULT.allowed, spots(block)))
    assert (reachable == "yes") == (block in REACHABLE_BUT_REFUSED)


def test_the_table_lists_nothing_but_what_iana_lists():
    """Each network of the table stands in IANA's registries, or its own reason is given."""
    listed = {block for block, _ in ROWS}
    assert {block for block in SPECIAL if block not in listed} == set(OWN_BLOCKS)
    assert SNAPSHOT == REGISTRY_DAY


@pytest.mark.parametrize("block", SPECIAL)
def test_the_neighbours_of_a_block_are_public(block):
    """A network of the table ends where it says: the addresses around it are another's."""
    network = ip_network(block)
    rest = [other for other in SPECIAL if other != block]
    for number in (int(network.network_address) - 1, int(network.broadcast_address) + 1):
        if not 0 <= number < 2**network.max_prefixlen:
            continue
        neighbour = type(network.network_address)(number)
        outside = network.version == 6 and neighbour not in IPv6Network(PUBLIC_IPV6)
        special = any(neighbour in other for other in networks(*rest) if other.version == network.version)
        assert DEFAULT.allowed(neighbour) == (not outside and not special)


@given(st.integers(0, 2**128 - 1))
def test_only_one_eighth_of_ipv6_is_public(number):
    """Nothing outside 2000::/3 is let through, whatever is assigned there one day."""
    if number >> 125 != 1:
        assert not DEFAULT.allowed(IPv6Address(number))


@pytest.mark.parametrize(
    "text",
    REFUSED.split(),
)
def test_refuses(text):
    """An address of this machine, a private network, a tunnel or nobody is refused by default."""
    assert not allowed(text)


@pytest.mark.parametrize(
    "text",
    PUBLIC.split(),
)
def test_admits(text):
    """A public address is let through."""
    assert allowed(text)


@pytest.mark.parametrize(
    ("text", "lists", "expected"),
    [
        ("10.1.2.3", {"allow": ("10.0.0.0/8",)}, True),
        ("10.1.2.3", {"allow": ("10.0.0.0/8",), "deny": ("10.1.0.0/16",)}, False),
        ("11.0.0.1", {"allow": ("10.0.0.0/8",)}, True),
        ("192.168.0.1", {"allow": ("10.0.0.0/8",)}, False),
        ("8.8.8.8", {"deny": ("8.8.8.0/24",)}, False),
        ("2606:4700::1", {"deny": ("2606:4700::/32",)}, False),
        ("8.8.8.8", {"allow": ("8.8.8.8/32",), "deny": ("0.0.0.0/0",)}, False),
        ("fd00::1", {"allow": ("fd00::/8",)}, True),
        # A network of IPv4 counts for the mapped spelling too, in both lists and both ways.
        ("::ffff:10.1.2.3", {"allow": ("10.0.0.0/8",)}, True),
        ("::ffff:10.1.2.3", {"allow": ("10.0.0.0/8",), "deny": ("10.1.0.0/16",)}, False),
        ("::ffff:10.1.2.3", {"allow": ("10.0.0.0/8",), "deny": ("::ffff:0:0/96",)}, False),
        ("10.1.2.3", {"allow": ("::ffff:a00:0/104",)}, True),
        ("::ffff:8.8.8.8", {"allow": ("10.0.0.0/8",)}, False),
        ("::ffff:10.1.2.3", {"allow": ("::/0",)}, False),
        # What is allowed as a tunnel is so only for what is allowed at its other end.
        ("2002:808:808::1", {"allow": ("2002::/16",)}, True),
        ("2002:7f00:1::1", {"allow": ("2002::/16",)}, False),
        ("2002:7f00:1::1", {"allow": ("2002::/16", "127.0.0.0/8")}, True),
        ("2002:808:808::1", {"allow": ("2002::/16",), "deny": ("8.8.8.8/32",)}, False),
        ("2001:0:7f00:1::f7f7:f7f7", {"allow": ("2001::/32",)}, False),
        ("2001:0:808:808::80ff:fffe", {"allow": ("2001::/32",)}, False),
        ("2001:0:808:808::f7f7:f7f7", {"allow": ("2001::/32",)}, True),
        ("fd00::5efe:7f00:1", {"allow": ("fd00::/8",)}, False),
        ("64:ff9b::7f00:1", {"allow": ("64:ff9b::/96",)}, False),
        ("::7f00:1", {"allow": ("::/96",)}, False),
        ("::ffff:0:7f00:1", {"allow": ("::/0",)}, False),
        # A NAT64 of the network's own: the address inside decides.
        ("64:ff9b::808:808", {"nat64": ("64:ff9b::/96",)}, True),
        ("64:ff9b::7f00:1", {"nat64": ("64:ff9b::/96",)}, False),
        ("64:ff9b::a00:1", {"nat64": ("64:ff9b::/96",), "allow": ("10.0.0.0/8",)}, True),
        ("64:ff9b::808:808", {"nat64": ("64:ff9b::/96",), "deny": ("8.8.8.8/32",)}, False),
        ("64:ff9b::808:808", {"nat64": ("64:ff9b::/96",), "deny": ("64:ff9b::/96",)}, False),
        ("fd00:64::808:808", {"nat64": ("fd00:64::/96",)}, True),
        ("fd00:64::1:808:808", {"nat64": ("fd00:64::/96",)}, False),
    ],
)
def test_the_operator_decides(text, lists, expected):
    """`deny` beats `allow`, `allow` beats the table, and an IPv4 address inside counts as itself."""
    assert allowed(text, **lists) is expected


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_inside_is_found(number):
    """Each way to carry an IPv4 address in an IPv6 one shows that address."""
    inner = ip_address(number)
    for carrier in (
        (0x2002 << 112) | (number << 80) | 1,
        (0x2001_0000 << 96) | (number << 64),
        (0x2001_0000 << 96) | (number ^ 0xFFFF_FFFF),
        (0x64_FF9B << 96) | number,
        (0xFFFF_0000 << 32) | number,
        (0x2606_4700 << 96) | (0x5EFE << 32) | number,
        (0xFE80 << 112) | (0x0200_5EFE << 32) | number,
    ):
        assert inner in embedded(IPv6Address(carrier))
