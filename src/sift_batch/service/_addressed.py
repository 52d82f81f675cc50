"""Is this request meant for us? The names under which the service is called.

A page on the web can point a name of its own at 127.0.0.1 and let a browser call us: such a request
carries that name, and is refused.
"""

import re
from collections.abc import Iterable
from typing import Final

from ._service_config import is_loopback

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253})(?::[0-9]{0,5})?", re.ASCII)


class Names:
    """The names of a service, beside those of loopback addresses."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(_plain(name) for name in names)

    def has(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Return whether a request's one `Host` header names this service, whatever the port."""
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1:
            return False
        found = _HOST.fullmatch(hosts[0].decode("latin-1").strip())
        if found is None:
            return False
        name = _plain(found[1].strip("[]"))
        return name in self._names or is_loopback(name)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")
