"""What the guard says of URLs, of a resolver's answers and of redirects, as data.

Each row: what is asked, the reason of the refusal ("" where it is let through), and why. At the end, what
IANA's registries of special-purpose addresses list.
"""

URLS = [
    ("http://127.0.0.1/", "special_address", "this machine"),
    ("http://127.255.255.254/", "special_address", "this machine, to the end of its network"),
    ("http://0.0.0.0/", "special_address", "Linux takes it for itself"),
    ("http://10.1.2.3/", "special_address", ""),
    ("http://168.63.129.16/", "special_address", "public, but in Azure the host of the virtual machine"),
    ("http://192.0.0.192/", "special_address", "the metadata service of a cloud"),
    ("http://192.0.2.1/", "special_address", "for examples only"),
    ("http://224.0.0.1/", "special_address", "multicast, which the standard library calls global"),
    ("http://239.255.255.250/", "special_address", "multicast to the devices of a home"),
    ("http://240.0.0.1/", "special_address", "nobody's"),
    ("http://[::]/", "special_address", ""),
    ("http://[::ffff:127.0.0.1]/", "special_address", "this machine as a mapped address"),
    ("http://[::ffff:a9fe:a9fe]/", "special_address", "a metadata service, mapped and in hex"),
    ("http://[::127.0.0.1]/", "special_address", "this machine in the old compatible form"),
    ("http://[64:ff9b::7f00:1]/", "special_address", "this machine behind a NAT64"),
    ("http://[64:ff9b:1::a9fe:a9fe]/", "special_address", "a NAT64 of some network's own"),
    ("http://[2002:7f00:1::]/", "special_address", "this machine behind 6to4"),
    ("http://[2001:0:1:2:3:4:80ff:fffe]/", "special_address", "a tunnel by Teredo"),
    ("http://[2606:4700::1111%25lo]/", "zone_id", "an interface beside a public address"),
    ("http://[fc00::1]/", "special_address", ""),
    ("http://[fd00:ec2::254]/", "special_address", "the metadata service of a cloud over IPv6"),
    ("http://[ff02::1]/", "special_address", "multicast"),
    ("http://[5f00::1]/", "special_address", "segment routing"),
    ("http://[100:0:0:1::1]/", "special_address", "the dummy prefix"),
    ("http://[3fff::1]/", "special_address", "for examples only"),
    ("http://[2606:4700::5efe:7f00:1]/", "special_address", "a tunnel by ISATAP"),
    ("http://[v1.x]/", "malformed", "an address of a kind to come"),
    ("http://[::1/", "malformed", ""),
    ("http://[::1]x/", "malformed", ""),
    ("http://2130706433/", "numeric_host", "the address as one number"),
    ("http://0x7f000001/", "numeric_host", "the same in hex"),
    ("http://0x7f.0.0.1/", "numeric_host", "one byte in hex"),
    ("http://0177.0.0.1/", "numeric_host", "one byte in octal"),
    ("http://127.1/", "numeric_host", "three bytes left out"),
    ("http://127.0.1/", "numeric_host", ""),
    ("http://1/", "numeric_host", ""),
    ("http://256.256.256.256/", "numeric_host", ""),
    ("http://1.2.3.4.5/", "numeric_host", "a name may not end in a number"),
    ("http://127.0.0.1./", "special_address", "the dot at the end goes first"),
    (
        "http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
        "numeric_host",
        "wide digits mean 127.0.0.1 to some",
    ),
    ("http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/", "numeric_host", "digits in circles"),
    ("http://127\u30020\u30020\u30021/", "numeric_host", "dots of another script"),
    ("http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/", "special_name", "letters in circles"),
    ("http://loc\u00adalhost/", "bad_character", "a hyphen that is not shown"),
    ("http://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54/", "special_name", "wide letters"),
    ("http://localhost/", "special_name", ""),
    ("http://LOCALHOST./", "special_name", ""),
    ("http://foo.localhost/", "special_name", ""),
    ("http://printer.local/", "special_name", "names of the local network"),
    ("http://metadata.google.internal/", "special_name", ""),
    ("http://intranet/", "special_name", "a name for a search domain"),
    (" http://public.org/", "bad_character", "a blank in front"),
    ("http://public.org\u0000.evil.org/", "bad_character", "a NUL in the host"),
    ("http://public.org\\@127.0.0.1/", "bad_character", "half of the parsers take what follows for the host"),
    ("http:\\\\127.0.0.1\\", "bad_character", ""),
    ("http://public.org@127.0.0.1/", "userinfo", ""),
    ("http://user:pw@public.org/", "userinfo", ""),
    ("http://@public.org/", "userinfo", "no name before the @"),
    ("http://127.0.0.1%2f@public.org/", "userinfo", ""),
    ("http://public.org%00.evil.org/", "percent_in_host", ""),
    ("http://%31%32%37.0.0.1/", "percent_in_host", ""),
    ("http://public..org/", "host_syntax", "two dots in a row"),
    ("http://public.org../", "host_syntax", ""),
    ("http://-public.org/", "host_syntax", ""),
    (f"http://{'a' * 64}.org/", "host_syntax", "a label of 64 letters"),
    (f"http://{'a.' * 127}org/", "host_syntax", "a name of more than 253 letters"),
    ("http://xn--/", "host_syntax", "Punycode of nothing"),
    ("http://a\u0301\u0327.\u2024org/", "idna", "a character that stands for a dot"),
    ("http://public.org:0/", "port", ""),
    ("http://public.org:65536/", "port", ""),
    ("http://public.org:22/", "port", "not one of the ports"),
    ("http://public.org:6379/", "port", "a database"),
    ("http://public.org:\uff18\uff10/", "port", "wide digits, which `int` would take"),
    ("http://public.org:-80/", "port", ""),
    ("data:text/html,x", "scheme", ""),
    ("unix:///var/run/docker.sock", "scheme", ""),
    ("ws://public.org/", "scheme", ""),
    ("//public.org/", "malformed", ""),
    ("http:/public.org/", "malformed", ""),
    ("http:public.org", "malformed", ""),
    ("http://", "malformed", ""),
    ("http://?x", "malformed", ""),
    (f"http://public.org/{'a' * 5000}", "too_long", ""),
    ("http://public.org#@127.0.0.1/", "", "the host ends at the fragment"),
    ("http://public.org/", "", ""),
    ("https://public.org:443/a?b=c", "", ""),
    ("http://public.org./", "", "one dot at the end goes"),
    ("https://b\u00fccher.de/", "", "an international name"),
    ("http://public.org/%0d%0aX:1", "", "an escaped line end stays escaped"),
    ("http://public.org/?u=http://127.0.0.1/", "", "a URL in the query is no host"),
    ("http://a_b.public.org/", "", "such hosts exist"),
    ("http://public.org/\u00fc?q=\u00fc", "", "path and query are escaped"),
    ("http://127.0.0.1.nip.io/", "", "its answer is judged later"),
    ("http://172.32.0.1/", "", "the first address after a private network"),
    ("http://100.128.0.1/", "", "the first address after the carriers' NAT"),
    ("http://11.0.0.1/", "", ""),
    ("http://1e1.org/", "", "looks like a number, but is none"),
]

ANSWERS = [
    (["93.184.216.34"], "", ""),
    (["2606:2800:220:1::1", "93.184.216.34"], "", ""),
    (["2a00:1450:4001:81b::200e"], "", ""),
    (["93.184.216.34", "::ffff:10.0.0.1"], "special_address", ""),
    (["64:ff9b::808:808"], "special_address", "a NAT64 that nobody configured"),
    (["fe80::1%eth0"], "zone_id", ""),
    (["169.254.170.2"], "special_address", "the credentials of a container"),
    ([], "no_address", ""),
    (["0.0.0.0"], "special_address", ""),
    (["198.19.255.255"], "special_address", ""),
    (["8.8.8.8"] * 65, "too_many_addresses", "more answers than a site has"),
]

REDIRECTS = [
    ("http://public.org/", "http://127.0.0.1/", "special_address", "a hop is judged as the first URL"),
    ("http://public.org/", "//127.0.0.1/x", "special_address", "the scheme left out"),
    ("https://public.org/", "http://public.org/", "downgrade", "from safe to unsafe"),
    ("http://public.org/", "http://u:p@public.org/", "userinfo", ""),
    ("http://public.org/", "http://public.org:6379/", "port", ""),
    ("http://public.org/a", "/b", "", "a path"),
    ("http://public.org/", "https://public.org/", "", "from unsafe to safe"),
    (
        "http://public.org/",
        "http://other.org/",
        "",
        "another site",
    ),
]

REGISTRY_DAY = "2026-07-18"
"""The day of the state of IANA's two registries that the table below follows."""

# Block and "Globally Reachable"; "ended" where the registry gives a termination date instead.
REGISTRY = """
0.0.0.0/8 no
0.0.0.0/32 no
10.0.0.0/8 no
100.64.0.0/10 no
127.0.0.0/8 no
169.254.0.0/16 no
172.16.0.0/12 no
192.0.0.0/24 no
192.0.0.0/29 no
192.0.0.8/32 no
192.0.0.9/32 yes
192.0.0.10/32 yes
192.0.0.170/32 no
192.0.0.171/32 no
192.0.2.0/24 no
192.31.196.0/24 yes
192.52.193.0/24 yes
192.88.99.0/24 ended
192.88.99.2/32 no
192.168.0.0/16 no
192.175.48.0/24 yes
198.18.0.0/15 no
198.51.100.0/24 no
203.0.113.0/24 no
240.0.0.0/4 no
255.255.255.255/32 no
::1/128 no
::/128 no
::ffff:0:0/96 no
64:ff9b::/96 yes
64:ff9b:1::/48 no
100::/64 no
100:0:0:1::/64 no
2001::/23 no
2001::/32 n/a
2001:1::1/128 yes
2001:1::2/128 yes
2001:1::3/128 yes
2001:2::/48 no
2001:3::/32 yes
2001:4:112::/48 yes
2001:10::/28 ended
2001:20::/28 yes
2001:30::/28 yes
2001:db8::/32 no
2002::/16 n/a
2620:4f:8000::/48 yes
3fff::/20 no
5f00::/16 no
fc00::/7 no
fe80::/10 no
"""

# Blocks that the registry calls reachable, refused all the same: nobody serves pages at any of them.
REACHABLE_BUT_REFUSED = {
    "192.0.0.9/32": "anycast of a protocol to control the port mappings of the nearest NAT",
    "192.0.0.10/32": "anycast of the nearest relay",
    "192.31.196.0/24": "answered by whichever name server is near",
    "192.52.193.0/24": "answered by whichever relay is near",
    "192.175.48.0/24": "answered by whichever name server is near",
    "64:ff9b::/96": "leads to the IPv4 address inside, by a NAT64 that only the operator knows",
    "2001:1::1/128": "anycast of a protocol to control the port mappings of the nearest NAT",
    "2001:1::2/128": "anycast of the nearest relay",
    "2001:1::3/128": "anycast of the nearest registrar",
    "2001:3::/32": "answered by whichever relay is near",
    "2001:4:112::/48": "answered by whichever name server is near",
    "2001:20::/28": "keys, not places",
    "2001:30::/28": "names of drones, not places",
    "2620:4f:8000::/48": "answered by whichever name server is near",
}

# What the table refuses beyond the registries.
OWN_BLOCKS = {
    "168.63.129.16/32": "the host of a virtual machine in Azure",
    "224.0.0.0/4": "multicast has a registry of its own",
}
