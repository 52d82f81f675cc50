"""One loopback server that misbehaves on request: a switch for every way a site can.

    from hostile import SWITCHES, hostile_server

    async with hostile_server() as server:
        ... fetch server.url("body_cut") ...                 # http://127.0.0.1:<port>/body_cut
        assert server.requests["body_cut"] == 1               # how often it was asked for
        assert b"cookie:" not in server.heads[-1].lower()     # what the last request said

`SWITCHES` maps a name to a `Switch`: what it sends, the code that one exchange ends in ("" for an
answer), and, in `fetch`, the code of a whole fetch where that differs (a redirect, a 429, a label of
the content). `kind` groups them: "head", "body", "length", "packed", "status", "redirect", "busy",
"content". Everything works over TLS too: `hostile_server(tls=context)` with a server's `ssl.SSLContext`
(trustme makes one), `server.url(name)` is then https.

What happens before HTTP is an argument: `hostile_server(accept="mute")` takes connections and says
nothing (no TLS either), "close" closes them, "reset" resets them, "garbage" sends what is no TLS.

`server.pause` is the time between two pieces of a drip, 0.02 seconds if not set; no switch needs more
than the client's own limits to end. `server.open_now` counts connections that are open. Switches of
one's own: `hostile_server(more={"name": Switch(...)})`. A name may be followed by a path or a query.
"""

import ssl
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import hostile_bodies
import hostile_heads
import hostile_sites
import trio
from hostile_talk import Switch, Talk

SWITCHES: Mapping[str, Switch] = hostile_heads.SWITCHES | hostile_bodies.SWITCHES | hostile_sites.SWITCHES

__all__ = ["SWITCHES", "HostileServer", "Switch", "Talk", "hostile_server"]


class HostileServer:
    """A running server. `heads` are the requests as they came, the last 1,000."""

    def __init__(self, switches: Mapping[str, Switch], *, scheme: str, accept: str) -> None:
        self.switches = switches
        self.pause = 0.02
        self.open_now = 0
        self.port = 0
        self.requests: Counter[str] = Counter()
        self.heads: list[bytes] = []
        self._scheme = scheme
        self._accept = accept

    def url(self, name: str, host: str = "127.0.0.1") -> str:
        """Return the URL that turns a switch on."""
        return f"{self._scheme}://{host}:{self.port}/{name}"

    async def handle(self, stream: trio.abc.Stream) -> None:
        """Serve one connection."""
        self.open_now += 1
        talk = Talk(stream, self)
        try:
            async with stream:
                await self._serve(talk)
        except (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
            return
        finally:
            self.open_now -= 1

    async def _serve(self, talk: Talk) -> None:
        match self._accept:
            case "mute":
                return await talk.silence()
            case "close":
                return None
            case "reset":
                return talk.reset()
            case "garbage":
                return await talk.send(b"220 mail.example ESMTP\r\n")
        head = await talk.read_head()
        if not head:
            return None
        self.heads[:] = [*self.heads[-999:], head]
        name = talk.target.lstrip("/").split("?")[0].split("/")[0]
        self.requests[name] += 1
        await self.switches[name].act(talk)
        return None

    async def no_connection(self) -> None:
        """Return once no connection is open; fails after half a minute."""
        with trio.fail_after(30):
            while self.open_now:  # noqa: ASYNC110 - what is waited for happens in sockets
                await trio.sleep(0.005)


@asynccontextmanager
async def hostile_server(
    *, tls: ssl.SSLContext | None = None, accept: str = "", more: Mapping[str, Switch] | None = None
) -> AsyncGenerator[HostileServer]:
    """Run a server on 127.0.0.1 for the time of the block."""
    server = HostileServer({**SWITCHES, **(more or {})}, scheme="https" if tls else "http", accept=accept)
    async with trio.open_nursery() as nursery:
        if tls is None or accept:
            serve = partial(trio.serve_tcp, server.handle, 0, host="127.0.0.1")
        else:
            serve = partial(
                trio.serve_ssl_over_tcp, server.handle, 0, tls, host="127.0.0.1", https_compatible=True
            )
        listener = (await nursery.start(serve))[0]
        inner = getattr(listener, "transport_listener", listener)
        server.port = inner.socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()
