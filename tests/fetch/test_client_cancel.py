"""What a cancelled exchange leaves behind: nothing."""

import contextlib
import random
import ssl
from pathlib import Path

import pytest
import trio
import trustme
from hostile import hostile_server
from test_client_hostile import make

from sift_batch.fetch._errors import FetchError

NAMES = (
    "ok_open",
    "head_silence",
    "head_drip",
    "body_silence",
    "body_drip",
    "body_quick_drip",
    "body_endless",
    "body_endless_chunks",
    "bomb_endless",
    "gzip_endless_members",
    "head_endless_interim",
    "head_reset",
    "to_ok_302",
)


def sockets() -> int:
    """Count the sockets that this process has open."""
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found += entry.readlink().name.startswith("socket:")
        except FileNotFoundError:
            continue
    return found


async def storm(server, client, guard, *, calls: int, seed: int) -> None:
    """Cancel many exchanges, each at a moment of its own."""
    dice = random.Random(seed)

    async def one(name: str, seconds: float, checkpoints: int) -> None:
        with trio.move_on_after(seconds) as scope:
            async with trio.open_nursery() as nursery:
                if checkpoints:
                    nursery.start_soon(count_down, scope, checkpoints)
                with contextlib.suppress(FetchError):
                    await client.get(guard.parse(server.url(name)))
                nursery.cancel_scope.cancel()

    async def count_down(scope: trio.CancelScope, checkpoints: int) -> None:
        for _ in range(checkpoints):
            await trio.lowlevel.checkpoint()
        scope.cancel()

    for _ in range(calls // 20):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                late = dice.random() < 0.5
                nursery.start_soon(
                    one,
                    dice.choice(NAMES),
                    dice.expovariate(1 / 0.02) if late else 1.0,
                    0 if late else dice.randrange(1, 60),
                )


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open sockets in /proc")
@pytest.mark.parametrize(("secure", "accept"), [(False, ""), (True, ""), (True, "mute")])
async def test_a_thousand_cancelled_exchanges_leave_no_socket(tmp_path, secure, accept):
    """After cancellations at random moments no socket is open on either side, and a page comes at once."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    calls = 300 if secure else 1_000
    async with (
        hostile_server(tls=tls if secure else None, accept=accept) as server,
        hostile_server() as healthy,
    ):
        client, guard = make(ca_file=str(tmp_path / "ca.pem"))
        before = sockets()
        await storm(server, client, guard, calls=calls, seed=20_260)
        await server.no_connection()
        assert sockets() == before
        with trio.fail_after(30):
            assert (await client.get(guard.parse(healthy.url("ok")))).decoded == 5
