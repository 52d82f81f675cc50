"""Where does the server listen? Sockets for a host and a port.

It accepts nothing: `_server` does.
"""

from ipaddress import ip_address
from typing import Final

import trio

_TRIES: Final = 8


async def open_listeners(host: str, port: int, *, backlog: int | None = None) -> list[trio.SocketListener]:
    """Listen on `port` of every address that `host` stands for, IPv4 and IPv6 alike.

    `backlog` connections may wait to be accepted on each; None leaves that to Trio.
    Port 0 takes a free port, the same one on each address. `OSError` when one of them can't be had; then,
    and after a cancel, nothing is left open.
    """
    for attempt in range(_TRIES):
        listeners = await trio.open_tcp_listeners(port, host=host, backlog=backlog)
        if port != 0 or len(listeners) == 1:
            return listeners
        # `localhost` has two addresses, and the kernel gave each a free port of its own.
        taken = listeners[0].socket.getsockname()[1]
        hosts = [listener.socket.getsockname()[0] for listener in listeners]
        _close(listeners)
        try:
            return await _open_each(hosts, taken, backlog)
        except OSError:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("unreachable")  # pragma: no cover


def address_of(listener: trio.SocketListener) -> tuple[str, int]:
    """Host and port of a listener, the host as it stands in a URL (IPv6 in brackets)."""
    host, port = listener.socket.getsockname()[:2]
    host = host.partition("%")[0]
    return (f"[{host}]" if ip_address(host).version == 6 else host), port


async def _open_each(hosts: list[str], port: int, backlog: int | None) -> list[trio.SocketListener]:
    opened: list[trio.SocketListener] = []
    try:
        for host in hosts:
            opened += await trio.open_tcp_listeners(port, host=host, backlog=backlog)
    except BaseException:
        _close(opened)
        raise
    return opened


def _close(listeners: list[trio.SocketListener]) -> None:
    for listener in listeners:
        listener.socket.close()
