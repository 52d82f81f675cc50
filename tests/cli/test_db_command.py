"""Does `db` look at a store beside whoever owns it, and is a backup one that can be restored?"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from sift_batch import (
    Caller,
    Config,
    JobState,
    Result,
    Target,
    TargetError,
    open_reader,
    open_runner,
    open_store,
)
from sift_batch.cli import db_command
from sift_batch.service import _open

pytestmark = pytest.mark.real

DRAINING = """
import sys, trio
from sift_batch import Caller, Config, Result, Target, open_runner, open_store

async def fetch(caller, target):
    await trio.sleep(0.002)
    return Result("x" * 20_000, {"url": "of " + caller.name})

async def main():
    config = Config(jobs_total=10**6, jobs_per_caller=10**6, workers=4, workers_limit=4, max_bytes=2**40)
    async with open_store(sys.argv[1]) as store, open_runner(store, fetch, config) as runner:
        for number in range(10**6):
            targets = [Target(f"http://host/{number}/{n}") for n in range(6)]
            job = await runner.submit(Caller(f"caller-{number % 3}"), targets)
            print(job.id, flush=True)
            await trio.sleep(0.01)

trio.run(main)
"""


async def fetch(_: Caller, target: Target) -> Result:
    """Fetch a page; `fail` fails, and `live` never ends."""
    if "fail" in target.url:
        raise TargetError("no such page", code="not_found")
    if "live" in target.url:
        await trio.sleep_forever()
    return Result("text " * 40, {})


def fill(path: Path, *jobs: tuple[str, ...]) -> list[str]:
    """Make a store with these jobs, the last of them live if it has such a target; return their ids."""

    async def main() -> list[str]:
        ids = []
        config = Config(shutdown_grace=0, jobs_per_caller=9)
        async with open_store(path) as store, open_runner(store, fetch, config) as runner:
            for number, urls in enumerate(jobs):
                made = await runner.submit(Caller(f"caller-{number % 2}"), [Target(url) for url in urls])
                ids.append(made.id)
                if "live" not in urls:
                    await runner.wait(made.id)
        return ids

    return trio.run(main)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return the folder of a service with two ended jobs."""
    folder = tmp_path / "data"
    folder.mkdir()
    fill(folder / "jobs.sift", ("http://a/", "http://a/fail"), ("http://b/",))
    return folder


def test_the_store_of_a_service() -> None:
    """The file that --data stands for is the one that the service makes."""
    assert db_command.STORE_FILE == _open.STORE_FILE


def test_a_sound_store(run, data) -> None:
    """A sound store is one line, or one object, and exit 0; nothing on standard error."""
    done = run("db", "check", "--data", "data")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(b"data/jobs.sift: sound (version 1, 2 jobs, 3 targets, ")
    (view,) = run("db", "check", "--store", str(data / "jobs.sift"), "--json").views
    assert view["sound"] is True
    assert (view["jobs"], view["targets"], view["findings"]) == (2, 3, [])


def test_a_damaged_store(run, data) -> None:
    """Damage is named with its jobs and is exit 3, in text and in JSON."""
    with sqlite3.connect(data / "jobs.sift") as connection:
        connection.execute("UPDATE batch_job SET nbytes = nbytes + 1")
    done = run("db", "check", "--data", "data")
    assert done.code == 3
    assert b"DAMAGED" in done.out
    assert b"job_bytes" in done.out
    assert done.err.count("\n") == 1
    assert "backup" in done.err
    done = run("db", "check", "--data", "data", "--json")
    assert done.code == 3
    (view,) = done.views
    assert view["sound"] is False
    assert [(item["kind"], item["count"]) for item in view["findings"]] == [("job_bytes", 2)]
    assert "error" in json.loads(done.err)


def test_stats(run, data) -> None:
    """Each caller has its figures, and the victims of the budget in force are named."""
    done = run("db", "stats", "--data", "data", "--json", env={"SIFT_BATCH_ENGINE_MAX_BYTES": "10"})
    (view,) = done.views
    assert (view["live_jobs"], view["stored_jobs"], view["max_bytes"]) == (0, 2, 10)
    assert view["stored_bytes"] == sum(item["stored_bytes"] for item in view["callers"])
    by_name = {item["caller"]: item for item in view["callers"]}
    assert set(by_name) == {"caller-0", "caller-1"}
    # The newest one always stays.
    (victim,) = view["next_victims"]
    assert (victim["caller"], victim["over_budget"]) == ("caller-0", True)
    assert by_name["caller-0"]["next_victims"] == [victim["id"]]
    assert by_name["caller-0"]["oldest_lease"].endswith("Z")
    text = run("db", "stats", "--data", "data").out.decode()
    assert "caller-1" in text
    assert victim["id"] in text
    assert "of 64.0 MiB" in text
    assert victim["id"] not in run("db", "stats", "--data", "data", "--victims", "0").out.decode()


def test_names_of_callers_are_written_out(run, tmp_path) -> None:
    """A caller's name can't tell the terminal anything."""

    async def main() -> None:
        async with open_store(tmp_path / "jobs.sift") as store, open_runner(store, fetch) as runner:
            await runner.wait((await runner.submit(Caller("\x1b[31m\n"), [Target("http://a/")])).id)

    trio.run(main)
    out = run("db", "stats", "--store", "jobs.sift").out
    assert b"\x1b" not in out
    assert b"\\u001b[31m\\u000a" in out


def test_a_backup(run, data, tmp_path) -> None:
    """A backup is a new file of its user alone; a second one needs --force, and says so."""
    done = run("db", "backup", "--data", "data", "copy.sift")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(b"copy.sift: 2 jobs, ")
    assert (tmp_path / "copy.sift").stat().st_mode & 0o777 == 0o600
    before = (tmp_path / "copy.sift").read_bytes()
    again = run("db", "backup", "--data", "data", "copy.sift")
    assert again.code == 2
    assert "--force" in again.err
    assert again.err.count("\n") == 1
    assert (tmp_path / "copy.sift").read_bytes() == before
    (view,) = run("db", "backup", "--data", "data", "--force", "copy.sift", "--json").views
    assert view == {
        "store": "data/jobs.sift",
        "backup": str(tmp_path / "copy.sift"),
        "bytes": len(before),
        "jobs": 2,
    }
    assert run("db", "check", "--store", "copy.sift").code == 0
    assert sorted(item.name for item in tmp_path.iterdir()) == ["copy.sift", "data"]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("check",), 2, "--data DIR"),
        (("check", "--data", "data", "--store", "x"), 2, "one of them"),
        (("check", "--data", "missing"), 3, "no such folder"),
        (("check", "--data", "."), 3, "no store here"),
        (("check", "--store", "missing"), 3, "no store here"),
        (("check", "--store", "text"), 3, "no database"),
        (("stats", "--store", "newer"), 3, "newer sift-batch"),
        (("stats", "--data", "data", "--config", "bad.toml"), 2, "line 2"),
        (("backup", "--store", "foreign", "copy"), 3, "another program's"),
        (("backup", "--data", "data", "data"), 2, "is a folder"),
        (("backup", "--data", "data", "missing/copy"), 3, "folder"),
        (("backup", "--data", "data", "--force", "data/jobs.sift"), 3, "store itself"),
        (("backup", "--data", "data", "/dev/full", "--force"), 3, "something else"),
    ],
)
def test_what_is_refused(run, data, tmp_path, args: tuple[str, ...], code: int, words: str) -> None:
    """What is missing, foreign or newer is one line and exit 3, a wrong flag exit 2; nothing is made."""
    (tmp_path / "text").write_text("text " * 400)
    (tmp_path / "bad.toml").write_text("[engine]\nttl = 'soon'\n")
    for name, statement in {"foreign": "CREATE TABLE t(x)", "newer": "PRAGMA user_version = 2"}.items():
        if name == "newer":
            shutil.copy(data / "jobs.sift", tmp_path / name)
        connection = sqlite3.connect(tmp_path / name)
        connection.execute(statement)
        connection.close()
    done = run("db", *args)
    assert (done.code, done.out) == (code, b"")
    assert words in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "copy").exists()


def test_the_folder_may_be_a_setting(run, data, tmp_path) -> None:
    """Without --data and --store the store is that of service.data, from the file or the environment."""
    (tmp_path / "sift.toml").write_text('[service]\ndata = "data"\n')
    assert run("db", "check", "--config", "sift.toml").code == 0
    assert run("db", "check", env={"SIFT_BATCH_SERVICE_DATA": "data"}).code == 0


def test_nobody_reads(data, tmp_path) -> None:
    """A closed pipe is quiet, and a full disk behind standard output is one line."""
    read, write = os.pipe()
    os.close(read)
    args = [sys.executable, "-m", "sift_batch", "db", "check", "--data", str(data)]
    done = subprocess.run(args, stdout=write, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(args, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1


@pytest.mark.slow
def test_a_backup_while_jobs_drain_is_restored(run, data, tmp_path) -> None:
    """A backup beside a process that drains, restored, has every job acknowledged before, and goes on."""
    store = data / "jobs.sift"
    draining = subprocess.Popen([sys.executable, "-c", DRAINING, store], stdout=subprocess.PIPE)
    acknowledged: dict[str, list[bytes]] = {}
    lines = []
    try:
        for number in range(3):
            lines += [draining.stdout.readline().strip() for _ in range(30)]
            acknowledged[f"backup-{number}"] = list(lines)
            assert run("db", "backup", "--data", "data", f"backup-{number}").code == 0
            assert run("db", "check", "--data", "data").code == 0
            assert run("db", "stats", "--data", "data").code == 0
    finally:
        draining.send_signal(signal.SIGKILL)
        lines += [line.strip() for line in draining.stdout.read().splitlines()]
        draining.wait()
        draining.stdout.close()
    for name, ids in acknowledged.items():
        aside = tmp_path / f"aside-{name}"
        aside.mkdir()
        for item in data.iterdir():
            item.rename(aside / item.name)
        shutil.copy(tmp_path / name, store)
        assert run("db", "check", "--data", "data").code == 0
        trio.run(_goes_on, store, [job_id.decode() for job_id in ids])
        assert run("db", "check", "--data", "data").code == 0


async def _goes_on(store: Path, ids: list[str]) -> None:
    async with open_reader(store) as reader:
        jobs = [await reader.job(job_id) for job_id in ids]
    assert None not in jobs
    assert any(job.status is JobState.DONE for job in jobs if job)
    config = Config(jobs_total=10**6, jobs_per_caller=10**6)
    async with open_store(store) as opened, open_runner(opened, fetch, config) as runner:
        for before in filter(None, jobs):
            job = await runner.job(before.id)
            assert job is not None
            if before.status.live:
                assert (job.status, job.error) == (JobState.FAILED, "restart")
        live = [job for job in jobs if job and job.status.live]
        if live:
            again = await runner.rerun(Caller(live[0].caller), live[0].id)
            ended = await runner.wait(again.id)
            assert ended is not None
            assert ended.status is JobState.DONE


def big_store(path: Path) -> None:
    """Make a store of some hundred megabytes, so that a backup takes a while."""

    async def main() -> None:
        async with open_store(path):
            pass

    trio.run(main)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "INSERT INTO batch_target(job_id, idx, url, options, nbytes, result) "
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300) "
            "SELECT 'job', x, 'u', '{}', 1, zeroblob(1000000) FROM n"
        )
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_backup_that_is_stopped(start, tmp_path, number: signal.Signals) -> None:
    """A signal ends a backup: exit 128 and its number, one line, and nothing is left."""
    big_store(tmp_path / "jobs.sift")
    folder = tmp_path / "backups"
    folder.mkdir()
    running = start("db", "backup", "--store", "jobs.sift", "backups/copy")
    until = time.monotonic() + 30
    while not any(item.stat().st_size for item in folder.glob("*/store")) and time.monotonic() < until:
        time.sleep(0.001)
    running.signal(number)
    done = running.end()
    assert done.code == 128 + number
    assert (done.out, done.err.count("\n")) == (b"", 1)
    assert "stopped" in done.err
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_bar_on_a_terminal(tmp_path) -> None:
    """On a terminal a long backup shows how far it is."""
    import pty

    big_store(tmp_path / "jobs.sift")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sift_batch", "db", "backup", "--store", "jobs.sift", "copy"],
        stdout=subprocess.PIPE,
        stderr=child,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(child)
    said = b""
    while True:
        try:
            said += os.read(parent, 65_536)
        except OSError:
            break
    os.close(parent)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"/288" in said or b"MiB copied" in said
    assert out.startswith(b"copy: 0 jobs")
