"""What may the service itself do? Its settings, in frozen values that are checked when they are made.

The engine's and the fetch's settings are `sift_batch.Config` and `sift_batch.fetch.FetchConfig`; here
are those of the gate, as a value, and of the HTTP service. Next: `_fields`, which reads them all.
"""

import re
from dataclasses import dataclass, fields
from ipaddress import ip_address
from typing import Final

from sift_batch import Gate

from ._limits import ServerLimits

STORE_FILE: Final = "jobs.sift"
"""The store in the folder of a service."""

_LARGEST: Final = 2**62
_NAME: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)
_PATH_LIMIT: Final = 4_096

CALLERS_NEEDED: Final = (
    "must be a loopback address while there is no callers file; make one with "
    "`(umask 077; sift-batch key new NAME >callers.toml)` and name it with `--callers callers.toml`"
)
"""What `host` is told when there is one key for everybody who can reach it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateConfig:
    """The arguments of a `sift_batch.Gate`, as a value; `batch_wait` is seconds.

    Raises what `Gate` raises: `ValueError` (`TypeError` for what is no number), naming the field.
    """

    total: int = 8
    per_host: int = 2
    batch_wait: float = 60.0

    def __post_init__(self) -> None:
        # The gate lowers its default for one host when it has a single slot: show what is in force.
        object.__setattr__(self, "per_host", self.make().statistics().per_host)

    def make(self) -> Gate:
        """Return a new gate with these limits."""
        return Gate(total=self.total, per_host=self.per_host, batch_wait=self.batch_wait)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceConfig:
    """Settings of the HTTP service. Times are seconds, sizes bytes.

    Where: `data` is the folder of the store, and of the key while there is no `callers` file (then
    `host` must be loopback); it listens on `host` and `port`, for metrics on `metrics_host` and
    `metrics_port` (port 0: a free one). `server_name` lists the names, beside loopback ones and `host`,
    that a request may be addressed to.

    How much: the ten limits of the server have the names and meanings of `ServerLimits`; `backlog` is
    how many connections may wait to be accepted. `auth_failures_per_minute`: requests without a valid
    key that one address may make. `inflight_bytes`: of results in memory, for all requests together.

    Raises `ValueError` (`TypeError` for a wrong type), naming the field.
    """

    data: str | None = None
    host: str = "127.0.0.1"
    port: int = 8_080
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 18_081
    callers: str | None = None
    server_name: tuple[str, ...] = ()
    connections: int = 256
    backlog: int = 100
    head_bytes: int = 16 * 2**10
    header_count: int = 100
    head_seconds: float = 5.0
    idle_seconds: float = 5.0
    body_bytes: int = 2**20
    body_seconds: float = 30.0
    send_seconds: float = 30.0
    grace_seconds: float = 10.0
    linger_seconds: float = 2.0
    auth_failures_per_minute: int = 600
    inflight_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        self.limits()
        for name in ("port", "metrics_port"):
            _check_count(name, getattr(self, name), lowest=0, highest=65_535)
        for name in ("backlog", "auth_failures_per_minute", "inflight_bytes"):
            _check_count(name, getattr(self, name), lowest=1, highest=_LARGEST)
        for name in ("data", "callers"):
            _check_path(name, getattr(self, name))
        for name in ("host", "metrics_host"):
            if not is_host(getattr(self, name)):
                raise ValueError(f"{name} must be an address or a host name")
        if not isinstance(self.server_name, tuple) or not all(is_host(name) for name in self.server_name):
            raise ValueError("server_name must be a tuple of host names")
        if self.callers is None and not is_loopback(self.host):
            raise ValueError(f"host {CALLERS_NEEDED}")

    def limits(self) -> ServerLimits:
        """Return the limits of the server that these settings ask for."""
        return ServerLimits(**{item.name: getattr(self, item.name) for item in fields(ServerLimits)})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens on `host`."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_host(value: object) -> bool:
    """Return whether a value is an IP address or a host name in ASCII."""
    if not isinstance(value, str):
        return False
    try:
        ip_address(value)
    except ValueError:
        return _NAME.fullmatch(value) is not None
    return True


def _check_path(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a path as a text, or None")
    if not 0 < len(value) <= _PATH_LIMIT or "\0" in value:
        raise ValueError(f"{name} must be a path")


def _check_count(name: str, value: object, *, lowest: int, highest: int) -> None:
    if type(value) is not int:
        raise TypeError(f"{name} must be a whole number")
    if not lowest <= value <= highest:
        raise ValueError(f"{name} must be from {lowest:,} to {highest:,}")
