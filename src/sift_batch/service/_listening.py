"""Which addresses does the service hold? Taken before anything else is opened, given back whatever happens.

A service whose address is taken must not have touched its store. How sockets are made is `_listener`'s.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import trio

from ._listener import address_of, open_listeners


class AddressError(OSError):
    """An address that can't be had. `setting` names the port's: `port` or `metrics_port`."""

    def __init__(self, setting: str, error: OSError) -> None:
        super().__init__(*error.args)
        self.setting = setting


@dataclass(frozen=True, slots=True)
class Listeners:
    """Sockets that listen, all on one port. `address` is the host as it stands in a URL, and the port."""

    all: list[trio.SocketListener]

    @property
    def address(self) -> tuple[str, int]:
        """The address of the first one."""
        return address_of(self.all[0])


@asynccontextmanager
async def open_listening(
    setting: str, host: str, port: int, *, backlog: int | None = None
) -> AsyncGenerator[Listeners]:
    """Listen round a block. Raises `AddressError` when the address can't be had."""
    try:
        listeners = await open_listeners(host, port, backlog=backlog)
    except OSError as error:
        failure = error
    else:
        try:
            yield Listeners(listeners)
        finally:
            for listener in listeners:
                listener.socket.close()  # the server has closed it already, if it ran
        return
    raise AddressError(setting, failure) from None
