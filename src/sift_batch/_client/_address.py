"""Where is the service, and may a key be sent there? Nothing is looked up or called here.

Next: `_http`, which connects.
"""

import re
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ._problems import BadServer

_PORTS: Final = {"http": 80, "https": 443}
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,256}", re.ASCII)
_PREFIX: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)*", re.ASCII)
_WRITE_IT: Final = "write it as http://127.0.0.1:8080 or https://sift.example.org"


class Address(NamedTuple):
    """The address of a service. `host` has no brackets; `prefix` stands before every path."""

    scheme: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        """Host and port as the Host header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_server(server: str, *, plain_http: bool = False) -> Address:
    """Return the address that `server` names. Raises `BadServer`.

    Over plain HTTP whoever is on the way can read the key: unless `plain_http` allows it, that is refused
    for every host but this machine.
    """
    if not server.isascii() or not server.isprintable() or " " in server or "\\" in server:
        raise BadServer(f"the server's address has characters that no address has; {_WRITE_IT}")
    try:
        parts = urlsplit(server)
        port = parts.port
    except ValueError:
        raise BadServer(f"the server's address is no URL; {_WRITE_IT}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BadServer(f"the server's address must begin with http:// or https://; {_WRITE_IT}")
    if parts.username is not None or parts.password is not None:
        raise BadServer("the server's address must hold no user name and no password; the key goes elsewhere")
    prefix = parts.path.rstrip("/")
    plain = _PREFIX.fullmatch(prefix) is not None and not {".", ".."} & set(prefix.split("/"))
    if "?" in server or "#" in server or not plain or port == 0:
        raise BadServer(f"the server's address must be scheme, host, port and a plain path; {_WRITE_IT}")
    if parts.scheme == "http" and not plain_http and not _is_this_machine(parts.hostname):
        raise BadServer(
            "over http:// to another machine, whoever is on the way can read the key; "
            "use https://, or a tunnel to this machine"
        )
    return Address(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], prefix)


def check_key(key: str) -> None:
    """Raise `BadServer` for a key that can't be sent: a line end in it would forge a header."""
    if key and not _KEY.fullmatch(key):
        raise BadServer("the key has characters that no key has; give it as `sift-batch key new` printed it")


def _is_this_machine(host: str) -> bool:
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
