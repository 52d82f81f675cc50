"""A real nginx with the shipped file, in front of a service or of any port, and a client for it.

Only what can't be the same on a test machine is replaced: ports, certificate, log files.
"""

import json
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import h11
import trio
import trustme

from sift_batch.service._open import Service, open_service
from sift_batch.service._settings import load_settings
from sift_batch.testing import ScriptedFetch

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
CONF = Path(__file__).parents[2] / "deploy" / "nginx" / "sift-batch.conf"
NAME = "batch.example.org"


class Fetch(ScriptedFetch):
    """A scripted fetch with what a service asks beside it."""

    async def check(self, _target: Any) -> None:
        """Take every target."""
        await trio.lowlevel.checkpoint()


class Reply(NamedTuple):
    """The start of a response, and what came of its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)


class Exchange:
    """One request on a TLS connection of its own; the answer is read piece by piece."""

    def __init__(self, stream: trio.SSLStream[Any], request: bytes) -> None:
        self._stream, self._request = stream, request
        self._wire = h11.Connection(h11.CLIENT)
        self._wire.send(h11.Request(method="GET", target="/", headers=[("host", NAME)]))
        self._wire.send(h11.EndOfMessage())
        self.body = b""

    async def start(self) -> tuple[int, dict[str, str]]:
        """Send the request; return status and headers of the answer."""
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                # An answer may come before a large body was sent, and close the connection.
                nursery.start_soon(self._send)
                event = await self._next()
                nursery.cancel_scope.cancel()
        assert isinstance(event, h11.Response)
        return event.status_code, {key.decode(): value.decode() for key, value in event.headers}

    async def _send(self) -> None:
        with suppress(trio.BrokenResourceError):
            await self._stream.send_all(self._request)

    async def more(self) -> bool:
        """Wait for the next piece of the body; False at its end."""
        with trio.fail_after(5):
            event = await self._next()
        if isinstance(event, h11.Data):
            self.body += event.data
        return isinstance(event, h11.Data)

    async def until(self, mark: bytes) -> None:
        """Read on until the body so far holds `mark`."""
        while mark not in self.body:
            assert await self.more(), self.body

    async def _next(self) -> Any:
        while (event := self._wire.next_event()) is h11.NEED_DATA:
            try:
                self._wire.receive_data(await self._stream.receive_some(65536))
            except trio.BrokenResourceError:
                self._wire.receive_data(b"")
        return event


class Proxy:
    """A running nginx, and a client that trusts its certificate."""

    def __init__(self, port: int, ca: trustme.CA, logs: Path, key: str) -> None:
        self.port, self.logs, self.key = port, logs, key
        self.context = ssl.create_default_context()
        ca.configure_trust(self.context)

    @asynccontextmanager
    async def connect(self, name: str = NAME, *protocols: str) -> AsyncIterator[trio.SSLStream[Any]]:
        """Open a TLS connection that asks for `name`."""
        if protocols:
            self.context.set_alpn_protocols(protocols)
        raw = await trio.open_tcp_stream("127.0.0.1", self.port)
        async with raw:
            stream = trio.SSLStream(raw, self.context, server_hostname=name, https_compatible=True)
            await stream.do_handshake()
            yield stream

    @asynccontextmanager
    async def exchange(
        self, method: str, path: str, body: bytes = b"", **headers: str
    ) -> AsyncIterator[Exchange]:
        """Prepare one request."""
        fields = {"Host": NAME, "Authorization": f"Bearer {self.key}", "Connection": "close", **headers}
        if body:
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()
        async with self.connect() as stream:
            yield Exchange(stream, head + body)

    async def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Reply:
        """Send a request and read its whole answer."""
        async with self.exchange(method, path, body, **headers) as exchange:
            status, got = await exchange.start()
            while await exchange.more():
                pass
            return Reply(status, got, exchange.body)

    async def submitted(self, *urls: str) -> str:
        """Submit a job and return its id."""
        reply = await self.send("POST", "/v1/batch", json.dumps({"targets": urls}).encode())
        assert reply.status == 202, reply.body
        job_id: str = reply.json["id"]
        return job_id


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def written(folder: Path, port: int, upstream: int) -> Path:
    """Write a configuration that includes the shipped file, as this machine can run it."""
    text = CONF.read_text("utf-8")
    text = re.sub(r"^ *listen \[::\]:443.*\n", "", text, flags=re.MULTILINE)
    replaced = {
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "127.0.0.1:8080": f"127.0.0.1:{upstream}",
        "/etc/nginx/tls": str(folder),
        "/var/log/nginx": str(folder),
    }
    for shipped, here in replaced.items():
        assert shipped in text
        text = text.replace(shipped, here)
    (folder / "sift-batch.conf").write_text(text, "utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    lines = [
        "daemon off;",
        "master_process off;",
        f"pid {folder}/nginx.pid;",
        f"error_log {folder}/main-error.log;",
        "events { worker_connections 64; }",
        "http {",
        # The service asks for streams in a header too; here the file alone must see to it.
        "proxy_ignore_headers X-Accel-Buffering;",
        *(f"{kind}_temp_path {folder}/{kind};" for kind in kinds),
        f"include {folder}/sift-batch.conf;",
        "}",
    ]
    main = folder / "nginx.conf"
    main.write_text("\n".join(lines), "utf-8")
    return main


@asynccontextmanager
async def proxied(folder: Path, upstream: int, key: str = "siftb_nobody") -> AsyncIterator[Proxy]:
    """Run nginx with the shipped file in front of a port."""
    ca, port = trustme.CA(), free_port()
    certificate = ca.issue_cert(NAME)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / f"{NAME}.pem")
    certificate.private_key_pem.write_to_path(folder / f"{NAME}.key")
    main = written(folder, port, upstream)
    command = [str(NGINX), "-p", str(folder), "-c", str(main), "-e", str(folder / "early.log")]
    checked = await trio.run_process([*command, "-t"], capture_stderr=True, check=False)
    assert checked.returncode == 0, checked.stderr.decode()
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(trio.run_process, command, stderr=subprocess.DEVNULL, check=False)
        )
        try:
            await listening(port)
            yield Proxy(port, ca, folder, key)
        finally:
            process.terminate()


async def listening(port: int) -> None:
    """Return once somebody listens on a port; five seconds at most."""
    with trio.fail_after(5):
        while True:
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                await trio.sleep(0.02)
            else:
                await stream.aclose()
                return


@asynccontextmanager
async def service_of(folder: Path, fetch: Fetch) -> AsyncIterator[tuple[Service, str]]:
    """Run a service with a scripted fetch; gives it and its key."""

    @asynccontextmanager
    async def opened(*_: Any, **__: Any) -> AsyncIterator[Fetch]:
        yield fetch

    flags = {"service.data": str(folder / "data"), "service.port": 0, "service.server_name": (NAME,)}
    async with open_service(load_settings(flags=flags), fetcher=opened) as service:
        try:
            yield service, (folder / "data" / "key").read_text().strip()
        finally:
            fetch.release()


@asynccontextmanager
async def everything(folder: Path, fetch: Fetch) -> AsyncIterator[Proxy]:
    """A service, and nginx in front of it."""
    async with service_of(folder, fetch) as (service, key), proxied(folder, service.port, key) as proxy:
        yield proxy
