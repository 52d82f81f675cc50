"""Can the bytes of a store's file hurt whoever opens it? A file that was cut, flipped or written over.

Opening and reading it gives a value or a `StoreError`, and what is not ours stays byte for byte as it was.
Real files, real threads. Next: `fuzz_run`, which feeds all of these.
"""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import trio

from sift_batch import (
    Caller,
    Config,
    Options,
    Store,
    StoreError,
    Target,
    open_reader,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch

_ALICE: Final = Caller("alice")
_PAGE: Final = 4_096


@contextmanager
def template() -> Iterator[Path]:
    """Give a store file with a few jobs in it, and nothing in its log."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "whole.sift"

        async def fill() -> None:
            async with open_store(path, durability="normal") as store:
                config = Config(jobs_per_caller=9, jobs_total=99)
                async with open_runner(store, ScriptedFetch(), config) as runner:
                    for number in range(4):
                        targets = [
                            Target(f"http://h.test/{number}/{idx}", Options(mode="raw")) for idx in "abc"
                        ]
                        await runner.wait((await runner.submit(_ALICE, targets)).id)

        trio.run(fill)
        yield path


def damage(data: bytes, seed: int) -> bytes:
    """Return the bytes with something wrong: cut, flipped, zeroed, copied, in the header or anywhere."""
    chance = random.Random(seed)
    changed = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8, 64])):
        limit = chance.choice([16, 100, _PAGE, len(changed), len(changed)])
        place = chance.randrange(max(1, min(limit, len(changed))))
        length = chance.choice([1, 1, 4, 100, _PAGE])
        kind = chance.randrange(6)
        if kind == 0:
            changed[place] ^= 1 << chance.randrange(8)
        elif kind == 1:
            changed[place : place + length] = bytes(len(changed[place : place + length]))
        elif kind == 2:
            changed[place : place + length] = chance.randbytes(len(changed[place : place + length]))
        elif kind == 3:
            source = chance.randrange(len(changed))
            piece = changed[source : source + length]
            changed[place : place + len(piece)] = piece
        elif kind == 4:
            changed[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF])
        else:
            del changed[max(place, 1) :]
    return bytes(changed)


async def _read(reads: Any, ids: list[str]) -> None:
    with suppress(StoreError):
        ids = ids + [job.id for job in await reads.jobs(limit=50)]
    for job_id in ids:
        for ask in (reads.job, reads.status):
            with suppress(StoreError):
                await ask(job_id)


async def _work(store: Store, ids: list[str]) -> None:
    with suppress(StoreError):
        async with open_runner(
            store, ScriptedFetch(), Config(ttl=1, jobs_total=99, shutdown_grace=0)
        ) as runner:
            await _read(runner, ids)
            with suppress(StoreError):
                job_id = (await runner.submit(_ALICE, [Target("http://h.test/")])).id
                with trio.move_on_after(0.2):
                    await runner.wait(job_id)


def _is_still(path: Path, before: bytes) -> bool:
    return path.read_bytes() == before


async def _open_all(path: Path, before: bytes, *, work: bool) -> None:
    ids = ["0" * 32]
    taken = False
    with suppress(StoreError):
        async with open_reader(path) as reader:
            await _read(reader, ids)
    assert _is_still(path, before), "a reader changed the file"
    with suppress(StoreError):
        async with open_store(path, durability="normal") as store:
            taken = True
            if work:
                await _work(store, ids)
    if not taken:
        assert _is_still(path, before), "a file that was refused was changed"


def store_bytes(whole: Path, seed: int) -> None:
    """Damage a copy of a store as `seed` says, open it in every way, read and work."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.sift"
        shutil.copyfile(whole, path)
        path.write_bytes(damage(path.read_bytes(), seed))
        before = path.read_bytes()
        # An empty file is a new store, so it may be filled.
        if before:
            trio.run(lambda: _open_all(path, before, work=seed % 4 == 0))
