"""What may a fetch do, and how much? The settings of the pipeline, checked when they are made.

Plain values: nothing is looked up, opened or imported here but the standard library. What the settings
mean is decided where they are used: `_guard` for addresses and names, `_client` for the exchange,
`_pool` for the workers, `_fetcher` for the rest.
"""

import os
import re
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from .._model.config import check_number

WAYBACK: Final = "https://web.archive.org/web/2id_/{url}"
"""The newest copy that the Internet Archive has, as it was served."""

_NAME_LIMIT: Final = 253
_PORTS: Final = "ports must be a set of whole numbers between 1 and 65,535, or None for any"
_WHOLE: Final = (
    "max_wire_bytes",
    "max_decoded_bytes",
    "result_max_bytes",
    "extract_memory",
    "extract_workers",
)
_SECONDS: Final = ("total_timeout", "connect_timeout", "retry_after_limit", "extract_timeout")
_FROM_ZERO: Final = ("redirects", "retries", "min_bytes_per_second")
_KINDS: Final = {
    "user_agent": str,
    "archive": str | None,
    "ca_file": str | os.PathLike | None,
    "tls_context": ssl.SSLContext | None,
}
_NAME: Final = re.compile(r"\.?[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE | re.ASCII)

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""Gives the addresses of a host name."""


def _user_agent() -> str:
    from importlib.metadata import version

    return f"sift-batch/{version('sift-batch')} (+contact)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """Settings of the fetch pipeline.

    Which addresses: only public ones, unless `allow` lists their network ("10.0.0.0/8"); `deny` wins
    over both. `allow_names` ("wiki.corp", ".corp") lifts the rule against special names; the addresses
    behind them must be allowed too. `ports` are those that may be called (None: any). `resolve` gives
    the addresses of a host in place of the system's look-up. `nat64` lists the /96 prefixes of a
    network's own NAT64.

    TLS: `ca_file` in place of certifi's authorities, or a `tls_context` of the application's own.

    Seconds: `total_timeout` for all of one fetch but reading the page, `connect_timeout` for one
    connection, `extract_timeout` for reading a page; a Retry-After counts as at most
    `retry_after_limit`. Counts: at most `redirects` are followed, a passing failure is tried `retries`
    times more. Bytes: of a body as it comes (`max_wire_bytes`) and unpacked (`max_decoded_bytes`), of
    one result (`result_max_bytes`), of a worker's memory (`extract_memory`); a server must send
    `min_bytes_per_second` after its first ten seconds.

    `robots` obeys robots.txt. `archive` is where `recover` looks for the newest copy of a dead page,
    with `{url}` in the place of the page's URL (None: nowhere); for restricted callers only with
    `recover_restricted`, since the archive sees the URL.

    Raises `ValueError` (`TypeError` for what is no number), naming the field. That `ca_file` can be
    loaded and `archive` be called is looked at by `open_fetcher`, which raises the same.
    """

    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    allow_names: Sequence[str] = ()
    ports: frozenset[int] | None = frozenset({80, 443})
    resolve: Resolve | None = None
    nat64: Sequence[str] = ()
    ca_file: str | None = None
    tls_context: ssl.SSLContext | None = None
    total_timeout: float = 60.0
    connect_timeout: float = 10.0
    redirects: int = 5
    retries: int = 1
    retry_after_limit: float = 600.0
    max_wire_bytes: int = 10 * 2**20
    max_decoded_bytes: int = 10 * 2**20
    min_bytes_per_second: int = 256
    result_max_bytes: int = 256 * 2**10
    extract_timeout: float = 30.0
    extract_memory: int = 512 * 2**20
    extract_workers: int = 2
    user_agent: str = ""
    robots: bool = False
    archive: str | None = WAYBACK
    recover_restricted: bool = False

    def __post_init__(self) -> None:
        for name in _WHOLE:
            check_number(name, getattr(self, name), whole=True)
        for name in _SECONDS:
            check_number(name, getattr(self, name), whole=False)
        for name in _FROM_ZERO:
            check_number(name, getattr(self, name), whole=True, zero=True)
        for name in ("robots", "recover_restricted"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, not {type(getattr(self, name)).__name__}")
        for name in ("allow", "deny", "nat64", "allow_names"):
            _keep(self, name, _texts(name, getattr(self, name)))
        for name in ("allow", "deny", "nat64"):
            networks(name, getattr(self, name))
        for prefix in networks("nat64", self.nat64):
            if prefix.version != 6 or prefix.prefixlen != 96:
                raise ValueError("nat64 must list IPv6 networks of /96, as 64:ff9b::/96")
        for pattern in self.allow_names:
            if len(pattern) > _NAME_LIMIT + 2 or not _NAME.fullmatch(pattern):
                raise ValueError("allow_names must list ASCII names (wiki.corp) or suffixes (.corp)")
        if self.ports is not None:
            _keep(self, "ports", _ports(self.ports))
        self._check_texts()

    def _check_texts(self) -> None:
        for name, kinds in _KINDS.items():
            if not isinstance(value := getattr(self, name), kinds):
                raise TypeError(f"{name} can't be a {type(value).__name__}")
        if not self.user_agent:
            _keep(self, "user_agent", _user_agent())
        if not (self.user_agent.isascii() and self.user_agent.isprintable()):
            raise ValueError("user_agent must be printable ASCII")
        archive = self.archive
        if archive is not None and not archive.startswith(("http://", "https://")):
            raise ValueError("archive must be an http or https URL with {url} in it, or None")
        if self.resolve is not None and not callable(self.resolve):
            raise TypeError("resolve must be an async function of a host name")
        if self.ca_file is not None and self.tls_context is not None:
            raise ValueError("ca_file and tls_context exclude each other; load the file into the context")


def networks(name: str, given: Sequence[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return the networks that a setting lists. Raises `ValueError`, naming the setting."""
    try:
        return tuple(ip_network(text) for text in given)
    except ValueError:
        raise ValueError(f"{name} must list networks such as 10.0.0.0/8 or fd00::/8") from None


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str | bytes):
        raise TypeError(f"{name} must be a sequence of texts, not one text")
    try:
        items: tuple[str, ...] = tuple(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be a sequence of texts, not {type(value).__name__}") from None
    if not all(isinstance(item, str) for item in items):
        raise TypeError(f"{name} must be a sequence of texts")
    return items


def _ports(value: object) -> frozenset[int]:
    try:
        ports: frozenset[int] = frozenset(value)  # type: ignore[call-overload]
    except TypeError:
        raise TypeError(_PORTS) from None
    if not all(type(port) is int and 0 < port <= 65_535 for port in ports):
        raise ValueError(_PORTS)
    return ports


def _keep(config: FetchConfig, name: str, value: object) -> None:
    object.__setattr__(config, name, value)  # the value is frozen for everybody else
