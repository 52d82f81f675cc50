"""What a site can do to one exchange: each switch of the hostile server ends as it says."""

import pytest
import trio
from hostile import SWITCHES, hostile_server

from sift_batch.fetch._client import Answer, Client
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import CODES, FetchError
from sift_batch.fetch._guard import Guard


def make(**settings) -> tuple[Client, Guard]:
    """Give a client that may call this machine."""
    config = FetchConfig(allow=("127.0.0.0/8",), ports=None, **settings)
    guard = Guard(config)
    return Client(config, guard), guard


async def outcome(server, name, **settings) -> Answer | FetchError:
    """Make one exchange; return what it gives or raises."""
    client, guard = make(**settings)
    try:
        return await client.get(guard.parse(server.url(name)))
    except FetchError as error:
        return error


QUICK = sorted(name for name, switch in SWITCHES.items() if not switch.slow)
SLOW = sorted(name for name, switch in SWITCHES.items() if switch.slow)


@pytest.mark.parametrize("name", QUICK)
async def test_a_switch_ends_in_its_code_at_once(name):
    """No answer waits for a deadline if it is wrong in itself, and each ends in its own code."""
    async with hostile_server() as server:
        with trio.fail_after(30):  # far below any limit of the client that is a time
            found = await outcome(server, name)
        assert getattr(found, "code", "") == SWITCHES[name].code
        await server.no_connection()


@pytest.mark.parametrize("name", SLOW)
async def test_a_slow_site_ends_by_the_pace(name, monkeypatch):
    """A site that says too little for too long ends as `timeout`, in any stage."""
    monkeypatch.setattr("sift_batch.fetch._wire.PACE_SECONDS", 0.4)
    async with hostile_server() as server:
        # Before its first byte a site may think until the whole fetch has taken too long.
        thinks = name == "head_silence"
        with trio.move_on_after(1.5 if thinks else 60) as whole:
            found = await outcome(server, name, min_bytes_per_second=1_000)
        assert whole.cancelled_caught == thinks
        if not thinks:
            assert isinstance(found, FetchError)
            assert found.code == "timeout"
        await server.no_connection()


def test_every_switch_names_a_code():
    """No switch expects a code that does not exist."""
    for switch in SWITCHES.values():
        assert {switch.code, switch.fetch or ""} <= {"", *CODES}
