"""Nothing that an operator sees of a service holds any part of a target, a key or a request."""

import base64
import contextlib
import hashlib
import os
import signal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio
from api_rig import ANN, EVE
from serve_rig import PROGRAM, Plain, Served, Site, entry, eventually, served, site, write_callers

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at names in /proc"),
]

HOST, ADDRESS, PATH, QUERY, USER, OPTION, SENT = (
    "zephyrvault",
    "127.83.71.219",
    "quillmarch",
    "tok9f8e7d6c",
    "aliquippa",
    "wombatledger",
    "ghyllfjord",
)
WORDS = (HOST, ADDRESS, PATH, QUERY, USER, OPTION, SENT)
QUICK = {
    "SERVE_DEBUG": "1",
    "SERVE_NAMES": "1",
    "SIFT_BATCH_FETCH_TOTAL_TIMEOUT": "3s",
    "SIFT_BATCH_FETCH_EXTRACT_TIMEOUT": "1s",
    "SIFT_BATCH_FETCH_RETRIES": "0",
    "SIFT_BATCH_ENGINE_RETRY_FOR": "1s",
    "SIFT_BATCH_ENGINE_JOBS_PER_CALLER": "4",
}


def forms(word: str) -> set[str]:
    """Return a word as it is, reversed, in hex, percent and base64 (at each offset); all in lower case."""
    raw = word.encode()
    found = {word, word[::-1], raw.hex(), "".join(f"%{byte:02x}" for byte in raw), quote(word, safe="")}
    for offset in range(3):
        # What comes before and after changes the first and the last characters alone.
        text = base64.b64encode(b"\0" * offset + raw).decode().rstrip("=")
        found.add(text[(0, 2, 3)[offset] : len(text) - 1])
    return {form.lower() for form in found}


def test_a_word_is_found_in_all_its_forms() -> None:
    """What the tests below look for would be found."""
    for before in ("", "a", "ab"):
        hidden = base64.b64encode(f"{before}{HOST} and more".encode()).decode().lower()
        assert any(form in hidden for form in forms(HOST))


class Names:
    """Notes what the process and its children show of themselves to others, again and again."""

    def __init__(self, service: Served, temporary: Path) -> None:
        self._pid, self._temporary = service.process.pid, temporary
        self.seen: set[str] = set()
        self.workers: set[int] = set()

    async def watch(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await trio.sleep(0.01)

    def look(self) -> None:
        """Look once."""
        for pid in (self._pid, *self.children()):
            self._note(Path(f"/proc/{pid}/cmdline"))
            for task in self._entries(Path(f"/proc/{pid}/task")):
                self._note(task / "comm")
        for folder, folders, files in os.walk(self._temporary):
            self.seen.update((folder, *folders, *files))

    def children(self) -> list[int]:
        """Return the processes that it has started and that live."""
        found = []
        for task in self._entries(Path(f"/proc/{self._pid}/task")):
            try:
                found += [int(pid) for pid in (task / "children").read_text().split()]
            except OSError:
                continue
        self.workers.update(found)
        return found

    @staticmethod
    def _entries(folder: Path) -> list[Path]:
        try:
            return list(folder.iterdir())
        except OSError:
            return []

    def _note(self, path: Path) -> None:
        try:
            self.seen.add(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            return


def targets_of(pages: Site) -> list[Any]:
    """Return a target for every kind of failure, with words in every place."""

    def url(kind: str, host: str = f"a.{HOST}.org", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{pages.port}/{kind}/{PATH}?{QUERY}#{PATH}"

    kinds = ("ok", "404", "403", "500", "reset", "cut", "garbage", "pdf", "odd", "redirect", "json")
    answered = [url(kind, host) for kind in kinds for host in (f"a.{HOST}.org", ADDRESS)]
    json_page = url("json")
    return [
        *answered,
        url("ok", f"nowhere.{HOST}.org"),
        url("ok", scheme="https"),
        f"http://a.{HOST}.org:1/{PATH}?{QUERY}",
        {"url": json_page, "options": {"jq": f"def {OPTION}: {OPTION}; {OPTION}"}},
        {"url": json_page, "options": {"jq": f'"{OPTION}"*1e9'}},
        {"url": json_page, "options": {"jq": f'error("{OPTION}")'}},
        {"url": url("ok"), "options": {"grep": OPTION, "question": ""}},
    ]


async def misuse(service: Served, client: Plain, pages: Site) -> None:
    """Send requests that are refused, with words in every place."""
    await client.get(f"/v1/batch/{SENT}")
    await client.get(f"/{SENT}?{SENT}={SENT}")
    await client.get(f"/v1/batch?{SENT}={SENT}", X_Odd=SENT, Referer=f"http://{SENT}.org/")
    await client.get("/v1/batch", Host=f"{SENT}.org")
    await client.send(SENT.upper(), "/v1/batch")
    await Plain(service.port, SENT).get("/v1/batch")
    await Plain(service.port, None).get(f"/{SENT}")
    for body in (f'{{"{SENT}": 1}}'.encode(), f"{SENT}".encode(), b'{"targets": []}'):
        await client.post("/v1/batch", body)
    for bad in (
        f"http://{USER}:{USER}@a.{HOST}.org/",
        f"gopher://{HOST}.org/",
        f"http://{HOST}.internal/",
        f"http://b\u00fc-{HOST}\ud800.org/",
        {"url": pages.url(f"/{PATH}"), "options": {"jq": f".{OPTION} | ("}},
        {"url": pages.url(f"/{PATH}"), "options": {"grep": f"({OPTION}"}},
        {"url": pages.url(f"/{PATH}"), "options": {"mode": OPTION}},
    ):
        for path, send in (("/v1/batch", {"targets": [bad]}), ("/v1/fetch", {"url": bad})):
            assert (await client.post(path, send)).status >= 400
    await Plain(service.metrics_port, None).get(f"/{SENT}?{SENT}")
    # A request that no application ever sees.
    async with await trio.open_tcp_stream("127.0.0.1", service.port) as stream:
        await stream.send_all(f"GET /{SENT} HTTP/1.1\r\n{SENT}\r\n\r\n".encode())
        assert b"400" in await stream.receive_some(65_536)


async def test_no_canary_comes_out(tmp_path: Path) -> None:
    """Jobs fail in every way, workers are killed, there is misuse and a bug: no word in all that is shown."""
    write_callers(tmp_path / "callers.toml", entry("ann", ANN), entry("eve", EVE, "restricted"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {**QUICK, "TMPDIR": str(temporary), "SERVE_BUG": f"http://{HOST}.org/{PATH}"}
    async with (
        site() as pages,
        served(tmp_path, "--callers", "callers.toml", command=PROGRAM, env=env) as service,
        trio.open_nursery() as tasks,
    ):
        names = Names(service, temporary)
        tasks.start_soon(names.watch)
        for key in (ANN, EVE):
            client = service.client(key)
            targets = targets_of(pages)
            reply = await client.post("/v1/batch", {"targets": targets[: 32 if key == ANN else 12]})
            assert reply.status == 202, reply.body
            await misuse(service, client, pages)
            await client.post("/v1/fetch", {"url": pages.url(f"/404/{PATH}", ADDRESS)})
            held = await client.post("/v1/batch", {"targets": [pages.url(f"/ok/{PATH}?{QUERY}")]})
            assert held.status == 202, held.body
        for worker in names.children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        await eventually(lambda: len(service.named("job.settled")) == 4, 30)
        health = [await Plain(service.port, None).get(path) for path in ("/healthz", "/readyz")]
        kills = {name: value for name, value in (await service.metrics()).items() if "_kills_" in name}
        page = await Plain(service.metrics_port, None).get("/metrics", Accept="application/openmetrics-text")
        codes = [line["code"] for line in service.named("target.stored")]
        assert {"page_not_found", "blocked", "server_error", "protocol", "dns", "connect", "refused"} <= set(
            codes
        )
        assert service.named("request.failed")[0]["error"] == "LookupError"
        assert kills['sift_batch_worker_kills_total{reason="timeout"}'] >= 1
        assert await service.stop() == 0
        assert len(names.workers) > 2
        assert any("sift_batch.fetch._worker" in name for name in names.seen)
        assert not service.named("log.tripwire")
        seen = {
            "log": service.stderr,
            "output": service.line + service.process.stdout.read().decode(),  # type: ignore[union-attr]
            "metrics": page.body.decode(),
            "health": "".join(reply.body.decode() for reply in health),
            "names": "\n".join(names.seen),
            "files": "\n".join(path for paths in os.walk(tmp_path) for path in (*paths[1], *paths[2])),
        }
        tasks.cancel_scope.cancel()
    assert "target.stored" in seen["log"]
    assert "sift_batch_http_seconds_count" in seen["metrics"]
    secrets = [*WORDS]
    for key in (ANN, EVE):
        digest = hashlib.sha256(key.encode())
        secrets += [key, key.removeprefix("siftb_"), digest.hexdigest(), digest.hexdigest()[:16]]
    for place, text in seen.items():
        found = {word for word in secrets for form in forms(word) if form in text.lower()}
        assert not found, (place, found)
