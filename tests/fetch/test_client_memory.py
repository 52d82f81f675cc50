"""How much memory an answer can take from the application: a bounded amount."""

import gzip
import json
import random
import sys
from pathlib import Path

import pytest
import trio
from hostile import SWITCHES, Switch, Talk, hostile_server
from hostile_talk import answer, says

MIB = 2**20
METER = Path(__file__).with_name("exchange_meter.py")


def resettable() -> bool:
    """Tell whether the highest mark of memory can be set back here."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


async def _two_bytes_each(talk: Talk) -> None:
    """As many pieces as may come, each in an object of its own if nobody joins them."""
    await talk.send(answer(b"", "Transfer-Encoding: chunked", length=None))
    await talk.flood([b"2\r\nab\r\n" * 1_000] * 131)
    await talk.send(b"0\r\n\r\n")


MORE = {
    "just_under_the_cap": Switch(says(answer(b"x" * (10 * MIB)))),
    "just_under_both_caps": Switch(
        says(answer(gzip.compress(random.Random(1).randbytes(10 * MIB - 4_096)), "Content-Encoding: gzip"))
    ),
    "two_bytes_each": Switch(_two_bytes_each),
}


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not resettable(), reason="measures memory in /proc, which is not there or read-only")
async def test_no_answer_costs_more_than_32_mib():
    """With the default caps no answer, honest or hostile, lifts the client's memory by 32 MiB."""
    names = [name for name, s in SWITCHES.items() if not s.slow and s.kind != "content"]
    names = ["ok", *sorted(names, key=lambda name: not name.startswith("bomb")), *MORE]
    async with hostile_server(more=MORE) as server:
        with trio.fail_after(120):
            run = await trio.run_process(
                [sys.executable, str(METER), str(server.port), *names], capture_stdout=True
            )
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == len(names)
    assert not [row for row in found if row["rise"] >= 32 * MIB]
    assert not [row for row in found if row["code"] != {**SWITCHES, **MORE}[row["name"]].code]
    bombs = [row for row in found if row["name"].startswith("bomb")]
    assert bombs
    assert not [row for row in bombs if row["rise"] >= 8 * MIB]
    # That the measure sees memory at all: a body of ten megabytes is kept, and is no more than that twice.
    kept = next(row["rise"] for row in found if row["name"] == "just_under_the_cap")
    assert 8 * MIB < kept < 24 * MIB
