"""`sift-batch serve` as a process: it starts, says where it listens, is stopped, killed and reloaded."""

import json
import resource
import signal
import socket
import sqlite3
import stat
from pathlib import Path

import pytest
import trio
from api_rig import ANN, BOB
from serve_rig import (
    LOOPBACK,
    PROGRAM,
    Plain,
    entry,
    environment,
    eventually,
    refused,
    served,
    site,
    write_callers,
)

pytestmark = pytest.mark.real


async def test_it_says_where_it_listens_and_ends_with_0(tmp_path: Path) -> None:
    """One line on standard output; JSON on standard error, with the key's place and never the key."""
    for number in (signal.SIGTERM, signal.SIGINT):
        async with served(tmp_path) as service:
            assert (await service.client().get("/v1/batch")).status == 200
            assert (await Plain(service.port, None).get("/readyz")).status == 200
            if hasattr(resource, "prlimit"):
                assert resource.prlimit(service.process.pid, resource.RLIMIT_CORE) == (0, 0)
            assert await service.stop(number) == 0
            assert service.process.stdout is not None
            assert service.process.stdout.read() == b""
            assert service.key not in service.stderr
            assert str(service.data / "key") in service.stderr
            named = [line["event"] for line in service.events if "event" in line]
            assert named == [
                "service.starting",
                "runner.opened",
                "service.ready",
                "service.stopping",
                "runner.closing",
                "runner.closed",
                "service.stopped",
            ]
            ports = (service.port, service.metrics_port)
            assert [(line["port"], line["metrics_port"]) for line in service.named("service.ready")] == [
                ports
            ]
            assert service.named("service.stopping")[0]["signal"] == number.name
            assert stat.S_IMODE(service.data.stat().st_mode) == 0o700


async def test_as_json_and_quiet(tmp_path: Path) -> None:
    """`--json` gives the addresses as an object; `-q` says nothing but the log. IPv6 is in brackets."""
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    flags = ("--host", "::1", "--metrics-host", "::1", "-q", "--json")
    async with served(tmp_path, *flags) as service:
        assert json.loads(service.line) == {
            "listening": f"http://[::1]:{service.port}",
            "metrics": f"http://[::1]:{service.metrics_port}",
        }
        assert not [line for line in service.events if "event" not in line]
        # Before it is asked for anything, there is nothing that a stop would wait for.
        assert await service.stop() == 0


async def test_a_stop_stores_what_is_in_flight_and_tells_streams(tmp_path: Path) -> None:
    """The fetch in flight is stored, the next target never starts, a stream ends with `shutdown`."""
    async with site() as pages, served(tmp_path) as service:
        client = service.client()
        targets = [pages.url("/hold/one"), pages.url("/ok/two")]
        job_id = (await client.post("/v1/batch", {"targets": targets})).json["id"]
        await pages.holding.wait()
        got: list[str] = []
        async with client.stream(f"/v1/batch/{job_id}/events") as stream:
            assert await stream.event() is not None
            service.process.send_signal(signal.SIGTERM)
            with trio.fail_after(5):
                while (event := await stream.event()) is not None:
                    got.append(event["event"])
            assert (got[-1], stream.whole) == ("shutdown", True)
        pages.let_go.set()
        assert await service.ends() == 0
        assert pages.asked == ["/hold/one"]
        async with served(tmp_path) as again:
            job = (await again.client().get(f"/v1/batch/{job_id}")).json
            assert (job["status"], job["error"]) == ("failed", "restart")
            assert job["targets"] == {"total": 2, "pending": 1, "running": 0, "done": 1, "failed": 0}


@pytest.mark.parametrize(("second", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_second_signal_stops_at_once(tmp_path: Path, second: signal.Signals, code: int) -> None:
    """With a fetch that would hold it up for its whole grace; the exit code names the signal."""
    async with site() as pages, served(tmp_path) as service:
        await service.client().post("/v1/batch", {"targets": [pages.url("/hold/one")]})
        await pages.holding.wait()
        service.process.send_signal(signal.SIGTERM)
        await eventually(lambda: service.named("runner.closing"))
        before = trio.current_time()
        assert await service.stop(second) == code
        assert trio.current_time() - before < 5  # of a grace of 30
        assert service.named("service.cut_short")[0]["signal"] == second.name


async def test_killed_and_started_again(tmp_path: Path) -> None:
    """After SIGKILL the job has failed with `restart`, what was done is there, a rerun fetches the rest."""
    async with site() as pages:
        async with served(tmp_path) as service:
            targets = [pages.url("/ok/one"), pages.url("/hold/two")]
            job_id = (await service.client().post("/v1/batch", {"targets": targets})).json["id"]
            await pages.holding.wait()
            service.process.kill()
            await service.ends()
        pages.let_go.set()
        async with served(tmp_path) as again:
            client = again.client()
            job = (await client.get(f"/v1/batch/{job_id}")).json
            assert (job["status"], job["error"], job["targets"]["done"]) == ("failed", "restart", 1)
            first = (await client.get(f"/v1/batch/{job_id}/targets/0")).json
            assert "one to be read" in first["result"]["content"]
            assert job["next"]["path"] == f"/v1/batch/{job_id}/rerun"
            rerun = (await client.post(job["next"]["path"])).json
            done = (await client.get(f"/v1/batch/{rerun['id']}?wait=10")).json
            assert (done["status"], done["targets"]["done"]) == ("done", 2)
            assert pages.asked.count("/ok/one") == 1


async def test_the_callers_are_read_again_on_sighup(tmp_path: Path) -> None:
    """Who is taken out loses stream and job; a file that is wrong changes nothing, and is told by place."""
    path = tmp_path / "callers.toml"
    write_callers(path, entry("ann", ANN), entry("bob", BOB))
    flags = ("--callers", "callers.toml")
    async with site() as pages, served(tmp_path, *flags) as service:
        ann, bob = service.client(ANN), service.client(BOB)
        assert not (service.data / "key").exists()
        job_id = (await ann.post("/v1/batch", {"targets": [pages.url("/hold/one")]})).json["id"]
        await pages.holding.wait()
        async with ann.stream(f"/v1/batch/{job_id}/events") as stream:
            await stream.event()
            path.write_text("[[caller]\n")
            service.process.send_signal(signal.SIGHUP)
            await eventually(lambda: service.named("callers.refused"))
            said = service.named("callers.refused")[0]
            assert (said["problem"], said["line"], said["level"]) == ("toml", 1, "warning")
            assert isinstance(said["column"], int)
            assert (await service.metrics())["sift_batch_callers_reload_ok"] == 0
            assert (await ann.get("/v1/batch")).status == 200
            write_callers(path, entry("bob", BOB))
            service.process.send_signal(signal.SIGHUP)
            with trio.fail_after(5):
                while await stream.event() is not None:
                    pass
            assert stream.whole is False
        (await ann.get("/v1/batch")).problem(401, "unauthorized")
        assert (await bob.get("/v1/batch")).status == 200
        await eventually(lambda: service.named("job.ended"))
        assert service.named("job.ended")[0]["outcome"] == "cancelled"
        assert (
            service.named("callers.taken")[0] | {"callers": 1, "keys": 1} == service.named("callers.taken")[0]
        )
        assert service.named("callers.reloaded")
        metrics = await service.metrics()
        assert metrics["sift_batch_callers_reload_ok"] == 1
        assert metrics["sift_batch_auth_failures_total"] == 1
        pages.let_go.set()
        assert await service.stop() == 0
        (failures,) = service.named("auth.failures")
        assert failures["failures"] == 1


async def test_what_keeps_it_from_starting_is_one_line(tmp_path: Path) -> None:
    """Each says what to do and gives 2 for a mistake of the operator's, 3 for the machine's."""
    (tmp_path / "open.toml").write_text(entry("ann", ANN))
    (tmp_path / "open.toml").chmod(0o644)
    write_callers(tmp_path / "bad.toml", '[[caller]]\nname = "ann"\n')
    (tmp_path / "file").write_text("")
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide").chmod(0o777)
    newer = tmp_path / "newer"
    newer.mkdir(0o700)
    async with served(tmp_path) as service:
        with sqlite3.connect(service.data / "jobs.sift") as store:
            store.execute("VACUUM INTO ?", (str(newer / "jobs.sift"),))
        store.close()
        with sqlite3.connect(newer / "jobs.sift") as store:
            store.execute("PRAGMA user_version = 9999")
        store.close()
        free = ("--port", "0", "--metrics-port", "0", *LOOPBACK)
        data = ("--data", "other")
        cases = {
            "port taken": (3, ("--data", "a", "--metrics-port", "0", "--port", str(service.port)), "--port"),
            "metrics port taken": (
                3,
                ("--data", "b", "--port", "0", "--metrics-port", str(service.port)),
                "--metrics-port",
            ),
            "store in use": (3, (*free, "--data", "data"), "--data"),
            "newer": (3, (*free, "--data", "newer"), "newer"),
            "no folder": (3, (*free, "--data", "file/data"), "permissions"),
            "a file": (3, (*free, "--data", "file"), "no folder"),
            "others write": (3, (*free, "--data", "wide"), "chmod 700"),
            "no data": (2, free, "--data"),
            "callers mode": (2, (*free, *data, "--callers", "open.toml"), "chmod 600"),
            "callers bad": (2, (*free, *data, "--callers", "bad.toml"), "line 1"),
            "callers missing": (2, (*free, *data, "--callers", "none.toml"), "key new"),
            "not loopback": (2, (*free, *data, "--host", "0.0.0.0"), "key new"),
            "ca file": (2, (*free, *data, "--ca-file", "file"), "ca_file"),
            "no such host": (2, (*free, *data, "--host", "a b"), "--host"),
        }
        found = await refused(tmp_path, *(flags for _, flags, _ in cases.values()))
    for (name, (code, _, word)), (given, lines) in zip(cases.items(), found, strict=True):
        assert given == code, (name, lines)
        (line,) = lines
        assert line.startswith("sift-batch: "), line
        assert word in line, (name, line)


async def test_it_does_not_start_with_sslkeylogfile(tmp_path: Path) -> None:
    """The keys of its connections would be written down."""
    keys = tmp_path / "keys"
    ((code, lines),) = await refused(tmp_path, ("--data", "d"), SSLKEYLOGFILE=str(keys))
    assert (code, len(lines)) == (2, 1)
    assert "SSLKEYLOGFILE" in lines[0]
    assert not keys.exists()
    assert not (tmp_path / "d").exists()


async def test_it_says_which_extra_is_missing(tmp_path: Path) -> None:
    """One line, with the command that installs it."""
    done = await trio.run_process(
        [*PROGRAM, "serve", "--data", "d"],
        cwd=tmp_path,
        env=environment(SERVE_WITHOUT="prometheus_client"),
        capture_stderr=True,
        check=False,
    )
    said = done.stderr.decode().splitlines()[-1]
    assert (done.returncode, said.startswith("sift-batch: ")) == (2, True)
    assert "pip install 'sift-batch[service]'" in said


async def test_all_bad_settings_are_told(tmp_path: Path) -> None:
    """One line for each, whichever source they are from, and as objects with `--json`."""
    (tmp_path / "sift.toml").write_text("[gate]\ntotal = 0\n")
    flags = ("--config", "sift.toml", "--port", "x", "--allow", "10.0.0.0/99", "--json")
    ((code, lines),) = await refused(tmp_path, flags, SIFT_BATCH_ENGINE_TTL="soon")
    told = [json.loads(line)["error"] for line in lines]
    assert (code, len(told)) == (2, 4)
    for word in ("sift.toml, line 2: gate.total", "SIFT_BATCH_ENGINE_TTL", "--port", "--allow"):
        assert any(line.startswith(word) for line in told), (word, told)
