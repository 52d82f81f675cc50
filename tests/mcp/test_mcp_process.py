"""Does the real process serve a real client over real pipes, and stop as it should?"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_rig import Agent
from mcp_site import Site, served

from sift_batch import open_runner, open_store
from sift_batch.testing import ScriptedFetch

pytestmark = [pytest.mark.real, pytest.mark.slow]

PROGRAM = (sys.executable, "-m", "sift_batch", "mcp")
LOCAL = ("--allow", "127.0.0.1", "--ports", "any")
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A site for all tests here."""
    with served() as running:
        yield running


@asynccontextmanager
async def connected(*args: str, errors: Path, mode: str = "auto") -> AsyncIterator[Agent]:
    """The SDK's client, with a process of ours."""
    command = StdioServerParameters(command=PROGRAM[0], args=[*PROGRAM[1:], *args])
    with errors.open("w") as errlog, trio.fail_after(60):
        async with Client(stdio_client(command, errlog=errlog), mode=mode) as client:
            yield Agent(client)


class Raw:
    """A process, and its lines as they are."""

    def __init__(self, *args: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*PROGRAM, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )
        self._held = b""

    def say(self, *messages: Any) -> None:
        """Send messages, or bytes as they are."""
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds: float = 20) -> Any:
        """The next message; each line must be one."""
        assert self.process.stdout is not None
        end = time.monotonic() + seconds
        while b"\n" not in self._held:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            assert ready, "no message came"
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the process has ended"
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return json.loads(line)

    def tool(self, number: int, name: str, **arguments: Any) -> Any:
        """Call a tool, without waiting for it."""
        params = {"name": name, "arguments": arguments}
        self.say({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def answer(self, number: int) -> Any:
        """The answer to a call: the next message."""
        message = self.hear()
        assert message["id"] == number
        return json.loads(message["result"]["content"][0]["text"])

    def ended(self, seconds: float = 20) -> tuple[int, bytes, bytes]:
        """Close the input, wait for the end; code, what else was said, standard error."""
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, self._held + out, err


@contextmanager
def raw(*args: str, **more: Any) -> Iterator[Raw]:
    """A process that is ended with its test."""
    process = Raw(*args, **more)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()
        for stream in (process.process.stdin, process.process.stdout, process.process.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


TWELVE = [
    "/one", "/two", "/three", "/missing", "/moved", "/busy", "/report.pdf", "/data.json", "/long", "/broken",
    "/login", "/empty",
]  # fmt: skip


async def test_twelve_targets_by_the_tools_alone(site: Site, tmp_path: Path) -> None:
    """On a folder of its own, an agent gets twelve targets of all kinds, told apart by their codes."""
    seen: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, _word: str | None) -> None:
        seen.append((done, total))

    errors = tmp_path / "errors"
    async with connected("--data", str(tmp_path / "data"), *LOCAL, errors=errors) as agent:
        targets: list[Any] = [site.url(path) for path in TWELVE]
        targets[7] = {"url": targets[7], "options": {"jq": "[.items[].price] | add"}}
        targets[6] = {"url": targets[6], "options": {"pages": "2"}}
        job = await agent.call("batch_submit", targets=targets)
        arguments = {"job_id": job["id"], "seconds": 55}
        while not (await agent.tell("batch_wait", arguments, progress_callback=note))["settled"]:
            pass
        assert seen[-1] == (12, 12)
        assert sorted(seen) == seen
        items: list[Any] = []
        told = await agent.call("batch_results", job_id=job["id"])
        while True:
            assert len(told.text) <= 20_000
            items += told["items"]
            if told["next"] is None:
                break
            told = await agent.follow(told["next"])
        assert [item["idx"] for item in items] == list(range(12))
        by_path = dict(zip(TWELVE, items, strict=True))
        codes = {path: item["code"] for path, item in by_path.items() if item["code"]}
        assert codes == {
            "/missing": "page_not_found",
            "/long": "over_budget",
            "/broken": "server_error",
            "/login": "auth_required",
            "/empty": "empty",
        }
        assert by_path["/data.json"]["result"]["content"].strip() == "12"
        assert "page 2" in by_path["/report.pdf"]["result"]["content"]
        assert "page 1" not in by_path["/report.pdf"]["result"]["content"]
        assert "page at one" in by_path["/moved"]["result"]["content"]
        part, content = await agent.follow(by_path["/long"]["next"]), ""
        while True:
            assert len(part.text) <= 20_000
            content += part["result"]["content"]
            if part["next"] is None:
                break
            part = await agent.follow(part["next"])
        assert content.index("Paragraph 0 ") < content.index("Paragraph 399 ")
        assert len(content) == by_path["/long"]["chars"]
        fetched = await agent.call("fetch", url=site.url("/two"))
        assert "page at two" in fetched["content"]
        (await agent.tell("fetch", {"url": site.url("/missing")})).problem("page_not_found")
    said = errors.read_text()
    assert "127.0.0.1" not in said
    assert "missing" not in said


async def test_a_service_elsewhere_does_the_work(site: Site, tmp_path: Path) -> None:
    """With --server the tools work on that service, with its key; without a valid key they say so."""
    data = tmp_path / "data"
    command = [*PROGRAM[:3], "serve", "--data", str(data), "--port", "0", "--metrics-port", "0", *LOCAL]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
    assert service.stdout is not None
    try:
        server = service.stdout.readline().split()[2].decode()
        # The folder is taken: that is said, with what to do.
        taken = subprocess.run(  # noqa: ASYNC221
            [*PROGRAM, "--data", str(data)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        assert taken.returncode == 3
        assert taken.stdout == b""
        assert b"--server" in taken.stderr
        assert taken.stderr.count(b"\n") == 1
        wrong = tmp_path / "wrong"
        wrong.write_text("siftb_" + "A" * 52)
        options = ("--server", server, "--key-file")
        async with (
            connected(*options, str(data / "key"), errors=tmp_path / "errors", mode="legacy") as agent,
            connected(*options, str(wrong), errors=tmp_path / "errors2") as stranger,
        ):
            job_id = await agent.settled(site.url("/one"), site.url("/missing"))
            told = await agent.call("batch_results", job_id=job_id)
            assert [item["status"] for item in told["items"]] == ["done", "failed"]
            for tool, arguments in (("batch_list", {}), ("fetch", {"url": site.url("/one")})):
                problem = (await stranger.tell(tool, arguments)).problem("unauthorized")
                assert problem["hint"] == "start the server with a valid key"
            service.send_signal(signal.SIGTERM)
            service.wait(20)
            (await agent.tell("batch_list")).problem("unreachable")
    finally:
        service.kill()
        service.wait()
        service.stdout.close()


def test_garbage_costs_only_itself(tmp_path: Path) -> None:
    """Lines that are no messages are answered as such; the next good one is served, nothing else is said."""
    with raw("--data", str(tmp_path / "data")) as process:
        process.say(
            b"not json", b"", b"[1, 2]", b'{"jsonrpc": "2.0", "id": 9}', b"\xff\xfe\x00", b"[" * 100_000
        )
        process.say(b'"' + b"x" * (9 * 2**20))
        heard = [process.hear() for _ in range(6)]
        assert [(item["id"], item["error"]["code"]) for item in heard] == [
            (None, -32700),
            (None, -32600),
            (9, -32600),
            (None, -32700),
            (None, -32700),
            (None, -32600),
        ]
        process.say(HELLO)
        assert process.hear()["result"]["serverInfo"]["name"] == "sift-batch"
        process.say(READY, {"jsonrpc": "2.0", "id": "x", "method": "no/such/method"})
        assert process.hear()["error"]["code"] == -32601
        process.say({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": 5}})
        assert process.hear()["error"]["code"] == -32602
        process.tool(3, "no_such_tool")
        assert process.hear()["error"]["code"] == -32602
        # Whatever is said to be cancelled, the next call is answered.
        for named in ([1], {"a": 1}, None, 1.5, True):
            process.say(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": named}}
            )
        process.tool(4, "batch_list")
        assert process.answer(4)["items"] == []
        code, out, err = process.ended()
        assert (code, out) == (0, b"")
        # What the SDK has to say of those, without its words.
        assert {json.loads(line)["event"] for line in err.splitlines()} == {"foreign"}


def test_what_was_asked_before_the_end_is_answered(tmp_path: Path) -> None:
    """A client that writes all it has to say and closes its side at once is told all the answers."""
    calls = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "batch_list", "arguments": {}}}
        for n in (1, 2, 3)
    ]
    with raw("--data", str(tmp_path / "data")) as process:
        process.say(HELLO, READY, *calls, {"jsonrpc": "2.0", "id": 4, "method": "tools/list"})
        code, out, err = process.ended()
    answers = {message["id"]: message for message in map(json.loads, out.splitlines())}
    assert (code, err, sorted(answers)) == (0, b"", [0, 1, 2, 3, 4])
    assert all("error" not in message for message in answers.values())
    assert answers[3]["result"]["isError"] is False


def test_a_cancelled_wait_is_not_answered_and_its_job_goes_on(site: Site, tmp_path: Path) -> None:
    """`notifications/cancelled` ends a wait without an answer, while the job is finished."""
    with raw("--data", str(tmp_path / "data"), *LOCAL) as process:
        process.say(HELLO, READY)
        process.hear()
        site.held.clear()
        site.let_go.clear()
        process.tool(1, "batch_submit", targets=[site.url("/hold")])
        job_id = process.answer(1)["id"]
        assert site.held.wait(20)
        process.tool(2, "batch_wait", job_id=job_id, seconds=55)
        process.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
        process.tool(3, "batch_wait", job_id=job_id, seconds=0)
        assert process.answer(3)["settled"] is False
        site.let_go.set()
        process.tool(4, "batch_wait", job_id=job_id, seconds=20)
        assert process.answer(4)["status"] == "done"
        assert process.ended()[:2] == (0, b"")


@pytest.mark.parametrize("how", ["input closed", "SIGTERM"])
async def test_the_fetch_in_flight_is_stored(site: Site, tmp_path: Path, how: str) -> None:
    """Whatever ends the process in good order, the fetch in flight is stored first, and no other begins."""
    site.held.clear()
    site.let_go.clear()
    before = len(site.asked)
    with raw("--data", str(tmp_path / "data"), *LOCAL) as process:
        process.say(HELLO, READY)
        process.hear()
        process.tool(1, "batch_submit", targets=[site.url("/hold"), site.url("/never")])
        job_id = process.answer(1)["id"]
        process.tool(2, "batch_wait", job_id=job_id, seconds=55)
        assert await trio.to_thread.run_sync(site.held.wait, 20)
        assert process.process.stdin is not None
        if how == "input closed":
            process.process.stdin.close()
            process.process.stdin = None
        else:
            process.process.send_signal(getattr(signal, how))
        assert process.hear()["error"]["code"] == -32000  # the wait ends at once
        assert process.process.poll() is None  # and the fetch goes on
        site.let_go.set()
        code, out, err = process.ended()
    assert (code, out, err) == (0, b"", b"")
    assert "/never" not in site.asked[before:]
    async with (
        open_store(tmp_path / "data" / "jobs.sift") as store,
        open_runner(store, ScriptedFetch()) as runner,
    ):
        found = await runner.status(job_id)
    assert found is not None
    assert [target.status for target in found.targets] == ["done", "pending"]


def test_a_second_signal_ends_at_once(site: Site, tmp_path: Path) -> None:
    """With a fetch that hangs, the second signal ends the process without waiting for it."""
    site.held.clear()
    site.let_go.clear()
    with raw("--data", str(tmp_path / "data"), *LOCAL) as process:
        process.say(HELLO, READY)
        process.hear()
        process.tool(1, "batch_submit", targets=[site.url("/hold")])
        process.answer(1)
        assert site.held.wait(20)
        process.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.process.poll() is None
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(5) == 143
    site.let_go.set()


def test_a_client_that_reads_nothing_holds_up_no_stop(tmp_path: Path) -> None:
    """With its answers unread and the pipe full, a signal still ends the process in good order."""
    with raw("--data", str(tmp_path / "data")) as process:
        process.say(HELLO, READY)
        process.hear()
        for number in range(60):
            process.say({"jsonrpc": "2.0", "id": number, "method": "tools/list"})
        time.sleep(0.5)
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(15) == 0


def test_nothing_else_can_write_to_standard_output(tmp_path: Path) -> None:
    """In the block that takes the descriptors over, prints go nowhere, children's too; messages get out."""
    code = (
        "import os, subprocess, sys\n"
        "from sift_batch.mcp._wire import taken_over\n"
        "with taken_over() as wire:\n"
        "    print('stray', flush=True)\n"
        "    os.write(1, b'stray')\n"
        "    subprocess.run(['echo', 'stray'])\n"
        "    assert sys.stdin.read() == ''\n"
        "    os.write(wire.outgoing, b'message')\n"
        "print(' after')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"text", capture_output=True, timeout=30, check=True
    )
    assert done.stdout == b"message after\n"


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        ((), 2, "--server"),
        (("--data", "d", "--key-file", "k"), 2, "--key-file"),
        (("--data", "d", "--server", "http://127.0.0.1:9"), 2, "--server"),
        (("--server", "http://127.0.0.1:9"), 3, "SIFT_BATCH_KEY"),
        (("--server", "http://127.0.0.1:9", "--allow", ".corp"), 2, "--allow"),
        (("--data", "d", "--allow", "10.0.0.0/99"), 2, "--allow"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line(tmp_path: Path, args: Any, code: int, word: str) -> None:
    """A wrong flag, or a folder that can't be had, is one line on standard error that says what to do."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SIFT_BATCH_")}
    done = subprocess.run(
        [*PROGRAM, *args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        cwd=tmp_path,
        env=env,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.count(b"\n") == 1
    assert word in done.stderr.decode()
