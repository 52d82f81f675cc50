"""The whole service: opened, called, revoked, stopped; opened again on the same folder."""

import gc
import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import trio
from api_rig import ANN, BOB, Client, Fetch, until
from prometheus_client import CollectorRegistry, Counter
from trio.testing import wait_all_tasks_blocked

from sift_batch import Config, StoreError, open_runner, open_store
from sift_batch.service._keys import digest_of, digest_text
from sift_batch.service._open import Service, open_service
from sift_batch.service._settings import load_settings

pytestmark = pytest.mark.real

A, B = "https://a.example/", "https://b.example/"


def opened(fetch: Fetch):
    """Return what opens a scripted fetch in place of the pipeline."""

    @asynccontextmanager
    async def open_it(config, *, gate=None):
        yield fetch

    return open_it


def settings(folder: Path, **more: object):
    """Return the settings of a service in a folder."""
    flags = {"service.data": str(folder / "data"), "service.port": 0, "engine.shutdown_grace": "2s", **more}
    return load_settings(None, {}, flags)


def write_callers(path: Path, *names_and_keys: tuple[str, str]) -> None:
    """Write a callers file."""
    text = "".join(
        f'[[caller]]\nname = "{name}"\nclass = "fleet"\nkeys = ["{digest_text(digest_of(key.encode()))}"]\n'
        for name, key in names_and_keys
    )
    path.touch(0o600)
    path.write_text(text)


def left_open() -> tuple[int, int]:
    """Return how many tasks the run has, and how many files and sockets the process."""
    gc.collect()
    folder = Path("/proc/self/fd")
    descriptors = sum(1 for _ in folder.iterdir()) if folder.exists() else 0
    return trio.lowlevel.current_statistics().tasks_living, descriptors


async def runner_status(service: Service, job_id: str) -> str:
    """Return how a job ends that is being watched."""
    async with service.runner.watch(job_id) as statuses:
        async for status in statuses:
            if not status.job.status.live:
                return status.job.status
    raise AssertionError("it did not end")


async def test_a_single_user_is_served_with_the_key_in_the_folder(tmp_path: Path) -> None:
    """A job goes through; the folder, the store and the keys are for this user alone."""
    async with open_service(settings(tmp_path), fetcher=opened(Fetch())) as service:
        folder = tmp_path / "data"
        client = Client(service.port, (folder / "key").read_text().strip())
        job_id = (await client.post("/v1/batch", {"targets": [A]})).json["id"]
        job = await client.get(f"/v1/batch/{job_id}?wait=5")
        assert job.json["status"] == "done"
        (await Client(service.port, ANN).get("/v1/batch")).problem(401, "unauthorized")
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}
    with pytest.raises(OSError, match="all attempts"):
        await trio.open_tcp_stream("127.0.0.1", service.port)


async def test_jobs_and_cursors_outlive_the_service(tmp_path: Path) -> None:
    """Opened again, it knows the jobs, and a cursor goes on where it was."""
    async with open_service(settings(tmp_path), fetcher=opened(Fetch())) as service:
        key = (tmp_path / "data" / "key").read_text().strip()
        client = Client(service.port, key)
        for url in (A, B):
            job_id = (await client.post("/v1/batch", {"targets": [url]})).json["id"]
            await client.get(f"/v1/batch/{job_id}?wait=5")
        cursor = (await client.get("/v1/batch?limit=1")).json["next_cursor"]
    async with open_service(settings(tmp_path), fetcher=opened(Fetch())) as service:
        page = (await Client(service.port, key).get(f"/v1/batch?limit=1&cursor={cursor}")).json
        assert [job["targets"]["total"] for job in page["items"]] == [1]
        assert page["next_cursor"] is None


async def test_leaving_ends_waits_and_streams_and_stores_what_is_in_flight(tmp_path: Path) -> None:
    """A wait is answered, a stream is told, no further target starts, the fetch in flight is stored."""
    fetch = Fetch(hang=[A])
    got = {}
    async with trio.open_nursery() as tasks:
        async with open_service(settings(tmp_path), fetcher=opened(fetch)) as service:
            client = Client(service.port, (tmp_path / "data" / "key").read_text().strip())
            job_id = (await client.post("/v1/batch", {"targets": [A, B]})).json["id"]
            await fetch.wait_started(1)

            async def wait():
                got["wait"] = await client.get(f"/v1/batch/{job_id}?wait=50")

            async def follow():
                async with client.stream(f"/v1/batch/{job_id}/events") as stream:
                    while (event := await stream.event()) is not None:
                        got["event"] = event["event"]
                    got["whole"] = stream.whole

            tasks.start_soon(wait)
            tasks.start_soon(follow)
            await until(lambda: "event" in got)

            async def release():
                await trio.sleep(0.3)
                fetch.release()

            tasks.start_soon(release)
            started = trio.current_time()
        assert trio.current_time() - started < 2
    assert (got["wait"].status, got["wait"].json["settled"]) == (200, False)
    assert (got["event"], got["whole"]) == ("shutdown", True)
    assert fetch.order == [A]
    async with open_service(settings(tmp_path), fetcher=opened(fetch)) as service:
        client.port = service.port
        job = (await client.get(f"/v1/batch/{job_id}")).json
        assert (job["status"], job["error"], job["targets"]["done"]) == ("failed", "restart", 1)
        assert job["next"]["path"].endswith("/rerun")


async def test_a_caller_that_is_taken_out_loses_its_jobs_and_streams(tmp_path: Path) -> None:
    """Its live job is cancelled and its stream cut; the other caller notices nothing."""
    path = tmp_path / "callers.toml"
    write_callers(path, ("ann", ANN), ("bob", BOB))
    fetch = Fetch(hang=[A, B])
    chosen = settings(tmp_path, **{"service.callers": str(path), "engine.workers": 2})
    async with open_service(chosen, fetcher=opened(fetch)) as service:
        ann, bob = Client(service.port, ANN), Client(service.port, BOB)
        taken = (await ann.post("/v1/batch", {"targets": [A]})).json["id"]
        kept = (await bob.post("/v1/batch", {"targets": [B]})).json["id"]
        await fetch.wait_started(2)
        with trio.fail_after(5):
            async with ann.stream(f"/v1/batch/{taken}/events") as stream:
                await stream.event()
                os.utime(path)
                write_callers(path, ("bob", BOB))
                assert await service.callers.reloaded()
                while await stream.event() is not None:
                    pass
                assert stream.whole is False
            (await ann.get("/v1/batch")).problem(401, "unauthorized")
            assert (await runner_status(service, taken)) == "cancelled"
            assert (await bob.get(f"/v1/batch/{kept}")).json["status"] == "running"
        fetch.release()


async def test_what_the_body_raises_comes_out_as_itself(tmp_path: Path) -> None:
    """Not as a group, however many tasks there are inside; and everything is closed."""
    with pytest.raises(KeyError, match="mine"):
        async with open_service(settings(tmp_path), fetcher=opened(Fetch())):
            raise KeyError("mine")
    async with open_service(settings(tmp_path), fetcher=opened(Fetch())):
        pass


async def test_an_address_that_is_taken_is_an_error_and_leaves_nothing_open(tmp_path: Path) -> None:
    """`OSError` comes out, and the folder can be opened at once."""
    async with open_service(settings(tmp_path), fetcher=opened(Fetch())) as service:
        (tmp_path / "other").mkdir()
        other = settings(tmp_path / "other", **{"service.port": service.port})
        with pytest.raises(OSError, match="in use"):
            async with open_service(other, fetcher=opened(Fetch())):
                raise AssertionError("it can't be open")
    async with open_service(settings(tmp_path / "other"), fetcher=opened(Fetch())):
        pass


async def test_a_service_needs_a_folder() -> None:
    """Without `service.data` it is a ValueError that says so."""
    with pytest.raises(ValueError, match=r"service\.data"):
        async with open_service(load_settings(None, {}, {}), fetcher=opened(Fetch())):
            raise AssertionError("it can't be open")


async def test_as_many_connections_wait_as_the_setting_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`service.backlog` is the length of the queue of each socket that listens for requests."""
    real, lengths = trio.open_tcp_listeners, []

    async def noting(port, *, host, backlog):
        lengths.append(backlog)
        return await real(port, host=host, backlog=backlog)

    monkeypatch.setattr(trio, "open_tcp_listeners", noting)
    async with open_service(settings(tmp_path, **{"service.backlog": 7}), fetcher=opened(Fetch())):
        assert lengths == [7]


@pytest.mark.parametrize("step", ["callers", "port", "metrics", "store", "fetcher", "cursor key", "registry"])
async def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path, step: str) -> None:
    """Whatever fails, its error comes out as itself, no file or task is left, and the next start is fine."""
    path = tmp_path / "callers.toml"
    write_callers(path, ("ann", ANN))
    registry = CollectorRegistry()
    flags: dict[str, object] = {"service.callers": str(path), "service.metrics_port": 0}
    async with open_service(settings(tmp_path, **flags), fetcher=opened(Fetch())):
        pass

    @asynccontextmanager
    async def broken(config, *, gate=None):
        raise ValueError("the fetch can't be opened")
        yield

    failing = opened(Fetch())
    async with AsyncExitStack() as around:
        if step == "callers":
            path.write_text("no")
        elif step in ("port", "metrics"):
            (taken,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
            around.push_async_callback(taken.aclose)
            name = "service.port" if step == "port" else "service.metrics_port"
            flags[name] = taken.socket.getsockname()[1]
        elif step == "store":
            store = await around.enter_async_context(open_store(tmp_path / "data" / "jobs.sift"))
            await around.enter_async_context(open_runner(store, Fetch(), Config()))
        elif step == "fetcher":
            failing = broken
        elif step == "cursor key":
            (tmp_path / "data" / "cursor-key").unlink()
            (tmp_path / "data" / "cursor-key").mkdir()
        else:
            Counter("sift_batch_auth_failures_total", "taken", registry=registry)
        await wait_all_tasks_blocked(0.1)
        before = left_open()
        with pytest.raises((OSError, ValueError, StoreError)):
            async with open_service(settings(tmp_path, **flags), fetcher=failing, registry=registry):
                raise AssertionError("it can't be open")
        # SQLite closes a file that this process has locked elsewhere only when that lock goes.
        assert left_open()[0] == before[0]
        assert step == "store" or left_open() == before
    write_callers(path, ("ann", ANN))
    if step == "cursor key":
        (tmp_path / "data" / "cursor-key").rmdir()
    flags = {"service.callers": str(path)}
    async with open_service(settings(tmp_path, **flags), fetcher=opened(Fetch())) as service:
        assert (await Client(service.port, ANN).get("/v1/batch")).status == 200
