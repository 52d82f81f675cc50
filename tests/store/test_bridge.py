"""Do the other two ways, on the spot and in a worker thread, keep the writer's promises?"""

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from traced import Connection, connect

from sift_batch import StoreError
from sift_batch._store.bridge import Inline, Threads

pytestmark = pytest.mark.real


@pytest.mark.parametrize("kind", [Inline, Threads])
async def test_errors_become_store_errors(path: Path, kind: Any) -> None:
    """Inline and Threads turn errors into StoreError too, with the cause kept and no value shown."""
    connection = connect(path)
    bridge = kind(connection)
    with pytest.raises(StoreError) as caught:
        await bridge.run(lambda connection: connection.execute("INSERT INTO nowhere VALUES ('secret')"))
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert "secret" not in str(caught.value)
    assert await bridge.run(lambda connection: connection.execute("SELECT 7").fetchone()[0]) == 7
    connection.close()


async def test_reads_in_threads_go_one_at_a_time(path: Path) -> None:
    """Two reads never use the one connection at the same time."""
    connection = connect(path)
    bridge = Threads(connection)
    inside: list[int] = []
    most: list[int] = []

    def step(connection: Connection) -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.005)
        inside.pop()

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(bridge.run, step)
    connection.close()
    assert most == [1] * 8
