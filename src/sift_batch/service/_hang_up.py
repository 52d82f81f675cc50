"""Has the client of a connection hung up, though bytes of it are unread? Looked at, without reading.

What is there to be read hides the end of it from `receive`. `_body` looks when it must not read any more.
"""

import select
from typing import Final

import trio

# What is reported unasked has to be asked for on macOS, which has no name for half a hang-up: there a
# client's end is a whole one.
_GONE: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


def hung_up(stream: trio.abc.Stream) -> bool:
    """Return whether the other side has ended or broken the connection; costs one system call.

    False where it can't be seen: on a stream that is no socket, and while so much is unread that the
    end of it has not come.
    """
    if not isinstance(stream, trio.SocketStream) or stream.socket.fileno() < 0:
        return False
    look = select.poll()
    look.register(stream.socket, _GONE)
    return bool(look.poll(0))
