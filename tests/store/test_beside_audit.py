"""What does a check of a store find, and what does it leave as it was?"""

import sqlite3
from pathlib import Path

import pytest
import trio
from folders import bytes_of, listed, make, sql

from sift_batch import StoreError, StoreInUseError, StoreVersionError, open_store
from sift_batch._store import beside
from sift_batch._store.audit import KINDS, Audit
from sift_batch._store.beside import check_store, count_store
from sift_batch.testing._ledger import ALICE, BOB, CAPS, FAILED, OWNER, SECRET, T0, Ledger, created, done

pytestmark = pytest.mark.real


async def fill(ledger: Ledger) -> None:
    """Bring jobs to every state that there is."""
    await ledger.ended("u", "v")
    mixed = await ledger.ended("u", "ü", "w", outcomes=[done("a ü"), FAILED, done("", code="empty")])
    again = created(
        await ledger.store.rerun(OWNER, ledger.new_id(), mixed.id, caller=ALICE, now=T0, ttl=100.0, caps=CAPS)
    )
    await ledger.begin()
    await ledger.record(again.id, 1)
    await ledger.ended("x", caller=BOB, outcomes=[FAILED])
    await ledger.ended("x", caller=SECRET)
    cancelled = await ledger.running("a", "b", "c")
    await ledger.record(cancelled.id, 0)
    await ledger.stop(cancelled.id)
    in_flight = await ledger.running("d", "e")
    await ledger.stop(in_flight.id, in_flight=True)
    deleted = await ledger.ended("f")
    await ledger.store.delete(OWNER, deleted.id, caller=None, now=T0, ttl=100.0)
    await ledger.running("g", "h")
    await ledger.queued("i", "j")


def kinds(found: Audit) -> set[str]:
    """Return the kinds of damage."""
    return {item.kind for item in found.findings}


async def test_every_state_is_sound(tmp_path: Path) -> None:
    """A store with jobs in every state is sound, while it is owned, after a crash and after a restart."""
    path = tmp_path / "jobs.sift"
    told: list[tuple[int, int]] = []
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        await fill(Ledger(store))
        found = await check_store(path, on_progress=lambda *parts: told.append(parts))
        assert found.findings == ()
        assert (found.jobs, found.version, found.journal_mode) == (9, 1, "wal")
        assert told[0] == (0, found.targets)
        assert told[-1] == (found.targets, found.targets)
    assert (await check_store(path)).sound
    async with open_store(path) as store:
        await store.acquire("owner-2", now=T0 + 1)
        assert (await check_store(path)).sound


DAMAGE = {
    "UPDATE batch_job SET targets_done = targets_done + 1 WHERE status = 'done'": "counts",
    "UPDATE batch_job SET targets_failed = 1 WHERE status = 'done'": "counts",
    "DELETE FROM batch_target WHERE idx = 1": "missing_targets",
    "UPDATE batch_target SET idx = 7 WHERE idx = 1": "missing_targets",
    "UPDATE batch_job SET targets_total = 5 WHERE status = 'done'": "missing_targets",
    "UPDATE batch_job SET nbytes = nbytes - 1": "job_bytes",
    "UPDATE batch_target SET nbytes = nbytes + 1": "target_bytes",
    "UPDATE batch_target SET url = url || 'ü' WHERE idx = 0": "target_bytes",
    "UPDATE batch_target SET result = NULL WHERE status = 'done'": "result",
    "UPDATE batch_target SET chars = 99 WHERE status = 'done'": "result",
    "UPDATE batch_target SET result = x'7b7d' WHERE status = 'done'": "target_row",
    "UPDATE batch_target SET result = 'text' WHERE status = 'done'": "target_row",
    "UPDATE batch_target SET result = 7 WHERE status = 'done'": "target_row",
    "UPDATE batch_target SET status = 'odd' WHERE idx = 0": "target_row",
    "UPDATE batch_target SET options = '[' WHERE idx = 0": "target_row",
    "UPDATE batch_job SET lease = 'soon' WHERE status = 'done'": "job_row",
    "UPDATE batch_job SET status = 'odd'": "job_row",
    "UPDATE batch_job SET caller_class = 'odd'": "job_row",
    "UPDATE batch_job SET settled = 0 WHERE status = 'done'": "state",
    "UPDATE batch_job SET settled = 1 WHERE status = 'running'": "state",
    "UPDATE batch_job SET finished_at = NULL WHERE status = 'done'": "state",
    "UPDATE batch_job SET started_at = NULL WHERE status = 'done'": "state",
    "UPDATE batch_job SET started_at = 1 WHERE status = 'queued'": "state",
    "UPDATE batch_job SET status = 'partial' WHERE status = 'done'": "state",
    "UPDATE batch_target SET status = 'running' WHERE status = 'pending'": "state",
    "DELETE FROM batch_job WHERE status = 'done'": "orphans",
    "INSERT INTO batch_gone SELECT id, caller, 'ttl', 1 FROM batch_job LIMIT 1": "gone",
}


@pytest.mark.parametrize(("statement", "kind"), DAMAGE.items())
async def test_damage_is_found(tmp_path: Path, statement: str, kind: str) -> None:
    """Rows that do not go together are found, by kind, with the ids of jobs and no value of theirs."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        await fill(Ledger(store))
    sql(path, statement)
    found = await check_store(path)
    assert kind in kinds(found)
    (finding,) = (item for item in found.findings if item.kind == kind)
    assert finding.count >= len(finding.jobs) > 0
    assert all(len(job_id) == 32 for job_id in finding.jobs)
    assert finding.notes == []
    assert finding.text == KINDS[kind]


def test_every_kind_of_damage_to_rows_is_tried() -> None:
    """Each kind of damage that rows can have is made by one of the statements above."""
    assert set(DAMAGE.values()) == set(KINDS) - {"pages", "foreign_keys", "settings"}


async def test_damaged_pages_are_found(tmp_path: Path) -> None:
    """Pages that were written over are damage that is found, whichever they are, and end nothing."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        for number in range(12):
            await ledger.ended(f"https://host/{number}" + "x" * 900, outcomes=[done("y" * 3_000)])
    whole = path.read_bytes()
    for page in range(2, len(whole) // 4096):
        damaged = bytearray(whole)
        damaged[page * 4096 : page * 4096 + 64] = b"\xff" * 64
        path.write_bytes(damaged)
        found = await check_store(path)
        assert "pages" in kinds(found), page


async def test_an_index_that_misses_a_row(tmp_path: Path) -> None:
    """An index without the rows it should have is damage to pages."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    connection = sqlite3.connect(path)
    root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'batch_job_key'").fetchone()[0]
    connection.close()
    content = bytearray(path.read_bytes())
    # The count of cells on an index's one leaf.
    content[(root - 1) * 4096 + 3 : (root - 1) * 4096 + 5] = b"\0\0"
    path.write_bytes(content)
    found = await check_store(path)
    assert "pages" in kinds(found)
    assert any("batch_job_key" in note for note in found.findings[0].notes)


async def test_settings_of_the_file(tmp_path: Path) -> None:
    """A file that never gives its pages back is told, which a runner would refuse."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    sql(path, "PRAGMA journal_mode = DELETE", "PRAGMA auto_vacuum = NONE", "VACUUM")
    found = await check_store(path)
    assert kinds(found) == {"settings"}
    assert found.findings[0].notes == ["auto_vacuum is not incremental"]


@pytest.mark.parametrize("look", [check_store, lambda path: count_store(path, now=1, ttl=1, max_bytes=1)])
async def test_what_is_no_store(tmp_path: Path, look) -> None:
    """What is missing, empty, foreign or of a newer version is a StoreError that says so, left as it was."""
    newer, foreign, text = (tmp_path / name for name in ("newer", "foreign", "text"))
    await make(newer, "u")
    sql(newer, "PRAGMA user_version = 2")
    sql(foreign, "CREATE TABLE t(x)")
    text.write_text("not a database " * 100)
    (tmp_path / "empty").touch()
    before = bytes_of(tmp_path)
    for path, words in {
        "missing": "no store here",
        "empty": "no store here",
        "nowhere/jobs.sift": "folder",
        ".": "no regular file",
        "foreign": "another program's",
        "text": "no database",
    }.items():
        with pytest.raises(StoreError, match=words):
            await look(tmp_path / path)
    with pytest.raises(StoreVersionError, match="newer sift-batch"):
        await look(newer)
    assert bytes_of(tmp_path) == before
    assert "missing" not in listed(tmp_path)


async def test_the_owner_goes_on(tmp_path: Path) -> None:
    """A check writes nothing, and the owner keeps its lock, its log and what it has stored."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store, open_store(path) as other:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        job = await ledger.running("u", "v")
        before = bytes_of(tmp_path)
        await check_store(path)
        await count_store(path, now=T0, ttl=1, max_bytes=1)
        assert bytes_of(tmp_path) == before
        with pytest.raises(StoreInUseError):
            await other.acquire("owner-2", now=T0)
        await ledger.record(job.id, 0)
        assert (await ledger.there(job.id)).targets_done == 1
    assert (await check_store(path)).sound


async def test_a_check_that_is_cancelled(tmp_path: Path) -> None:
    """A cancellation ends a check between two targets."""
    path = tmp_path / "jobs.sift"
    await make(path, *map(str, range(200)))
    told: list[int] = []
    with trio.CancelScope() as scope:

        def on_progress(done_so_far: int, _: int) -> None:
            told.append(done_so_far)
            trio.from_thread.run_sync(scope.cancel)

        await check_store(path, on_progress=on_progress)
    assert scope.cancelled_caught
    assert told == [0]


async def test_sqlite_is_stopped_by_a_cancellation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation ends a statement that would take seconds."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    with trio.CancelScope() as scope:

        def endless(connection: sqlite3.Connection, _: object) -> Audit:
            trio.from_thread.run_sync(scope.cancel)
            connection.execute(
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000000) "
                "SELECT count(*) FROM n"
            ).fetchall()
            raise AssertionError

        monkeypatch.setattr(beside, "audit", endless)
        await check_store(path)
    assert scope.cancelled_caught
