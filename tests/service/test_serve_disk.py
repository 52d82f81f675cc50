"""A service whose disk is full: what is refused, what goes on, and how it recovers."""

import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from serve_rig import Plain, Served, eventually, served, site

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process's files"),
]


@pytest.fixture(params=["limit", "mount"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Callable[[Served], None], ...]]:
    """Give what fills the disk, and what makes room again."""
    data = tmp_path / "data"
    if request.param == "limit":

        def limit(service: Served, soft: int) -> None:
            resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))

        yield lambda service: limit(service, 4_096), lambda service: limit(service, resource.RLIM_INFINITY)
        return
    data.mkdir(0o700)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", data], check=False
    ).returncode:
        pytest.skip("no file system may be mounted here")
    filler = data / "filler"

    def fill(_: Served) -> None:
        with filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4_096):
                    pass
            except OSError:
                pass

    yield fill, lambda _: filler.unlink()
    subprocess.run(["umount", "-l", data], check=True)


async def test_a_full_disk_is_a_503_and_passes(
    tmp_path: Path, disk: tuple[Callable[[Served], None], Callable[[Served], None]]
) -> None:
    """A submit is refused with Retry-After, reads go on, it is not ready; with room it takes work again."""
    fill, make_room = disk
    flags = ("-q",)
    async with site() as pages, served(tmp_path, *flags, stdin=subprocess.DEVNULL) as service:
        client, anyone = service.client(), Plain(service.port, None)
        job_id = (await client.post("/v1/batch", {"targets": [pages.url("/ok/one")]})).json["id"]
        assert (await client.get(f"/v1/batch/{job_id}?wait=10")).json["status"] == "done"
        fill(service)
        body = {"targets": [pages.url(f"/ok/{n}?{'x' * 2_000}") for n in range(12)]}
        refused = await client.post("/v1/batch", body)
        problem = refused.problem(503, "store_unavailable")
        assert int(refused.headers["retry-after"]) == problem["retry_after"] > 0
        result = await client.get(f"/v1/batch/{job_id}/targets/0")
        assert "one to be read" in result.json["result"]["content"]
        assert (await client.get("/v1/batch")).json["items"][0]["id"] == job_id

        async def is_ready() -> bool:
            return (await anyone.get("/readyz")).status == 200

        async def is_not_ready() -> bool:
            return not await is_ready()

        await eventually(is_not_ready)
        assert (await anyone.get("/healthz")).status == 200
        metrics = await service.metrics()
        assert metrics["sift_batch_ready"] == 0
        assert metrics['sift_batch_store_errors_total{operation="submit"}'] == 1
        assert metrics['sift_batch_refused_total{reason="store"}'] == 1
        make_room(service)
        await eventually(is_ready)
        accepted = await client.post("/v1/batch", body)
        assert accepted.status == 202
        done = await client.get(f"/v1/batch/{accepted.json['id']}?wait=20")
        assert done.json["targets"]["done"] == 12
        assert (await service.metrics())["sift_batch_ready"] == 1
        assert await service.stop(signal.SIGTERM) == 0
