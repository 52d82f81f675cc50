"""What an application and its machine may hear of a target that fails in every way there is: nothing.

The same hostile job runs in an application of its own with other words in the targets: hosts, paths,
queries, users, titles, options. Whatever a reader of logs, of the list of processes and of the directory
of temporary files sees must be the same, and hold no part of a word.
"""

import json
import os
import re
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
import trustme
from hostile import hostile_server
from hostile_canary import SWITCHES

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at names in /proc"),
]

CANARY = Path(__file__).with_name("hostile_canary.py")
ONE = {
    "host": "zephyrvault",
    "path": "quillmarch",
    "query": "sig=tok9f8e7d6c",
    "user": "aliquippa",
    "option": "wombatledger",
}
OTHER = {
    "host": "kestrel-moor-holding",
    "path": "jyxqwvhumb",
    "query": "k=1&k=vowkpz",
    "user": "hb",
    "option": "ghyllfjord77",
}


def closed_port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Application:
    """Runs the application against servers that are there for all runs."""

    def __init__(self, tmp_path: Path, plan: dict) -> None:
        self._place = tmp_path
        self._plan = plan
        self._runs = 0

    async def run(self, mode: str, words: dict[str, str], *, quick: bool = False) -> tuple[dict, str]:
        """Give what the application says, and its standard error."""
        self._runs += 1
        here = self._place / f"run{self._runs}"
        temporary = here / "temporary"
        await trio.Path(temporary).mkdir(parents=True)
        plan = {**self._plan, "words": words, "quick": quick, "store": str(here / "store.db")}
        environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONDEVMODE": "1"}
        with trio.fail_after(120):
            run = await trio.run_process(
                [sys.executable, str(CANARY), mode],
                stdin=json.dumps(plan).encode(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=environment,
            )
        assert run.returncode == 0, run.stderr.decode()[-2_000:]
        told = json.loads(run.stdout)
        told["names"]["temporary"] = [normal(name) for name in told["names"]["temporary"]]
        return told, normal(run.stderr.decode())


@pytest.fixture
async def application(tmp_path):
    """Give a way to run the application."""
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    import ssl

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("somebody-else.example").configure_cert(context)
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(hostile_server(more=SWITCHES))
        tls = await stack.enter_async_context(hostile_server(tls=context))
        garbage = await stack.enter_async_context(hostile_server(accept="garbage"))
        ports = {"port": plain.port, "tls": tls.port, "garbage": garbage.port, "closed": closed_port()}
        yield Application(tmp_path, {**ports, "ca_file": str(tmp_path / "ca.pem")})


def normal(text: str) -> str:
    """Return a text without what differs between any two runs: times, ids and random names."""
    text = re.sub(r'"timestamp": ?"[^"]*"', '"timestamp":""', text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "<id>", text)
    text = re.sub(r'"(seconds|waited)": ?[0-9.e-]+', r'"\1":0', text)
    text = re.sub(r"sift-batch-reader-\w+", "sift-batch-reader-X", text)
    return re.sub(r"run\d+|runN", "run", text)


def parts(words: dict[str, str]) -> set[str]:
    """Give every part of five characters of the words."""
    return {word[at : at + 5] for word in words.values() for at in range(len(word) - 4)}


def heard(text: str, words: dict[str, str]) -> list[str]:
    """Give the parts of the words that a text holds."""
    lower = text.lower()
    return sorted(part for part in parts(words) if part in lower)


# A thread may or may not be seen in the moments in which somebody looks; a name may be cut by the system.
THREADS = re.compile(r"MainThread|python\w*|Trio thread \w+|sift[-_]batch [a-z -]*|wrapper from [\w.]*")


def nobody_hears(told: dict, said: str, words: dict[str, str]) -> None:
    """Check that nothing of the words is in what the application's surroundings see, or in an error."""
    assert heard(said + json.dumps(told["names"]), words) == []
    assert [name for name in told["names"]["thread"] if not THREADS.fullmatch(name)] == []
    for target in told["targets"]:
        assert heard(target["error"] + target["hint"] + target["note"] + target["shown"], words) == []


async def test_a_sealed_application_tells_nothing(application):
    """Two runs that differ in their targets alone are the same from outside, and tell no part of a word."""
    results: dict[str, tuple[dict, str]] = {}

    async def run(name: str, words: dict[str, str]) -> None:
        results[name] = await application.run("sealed", words)
        nobody_hears(*results[name], words)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run, "one", ONE)
        nursery.start_soon(run, "other", OTHER)
    (one, one_said), (other, other_said) = results["one"], results["other"]
    assert one_said.splitlines() == other_said.splitlines()
    for kind in ("task", "command", "temporary"):
        assert one["names"][kind] == other["names"][kind]
    # That there was something to see at all:
    assert one_said.count('"logger":"httpcore2"') > 500
    assert one_said.count('"event":"target.stored"') > 60
    assert one["names"]["command"]
    assert {"sift-batch reader process", "sift-batch tls"} <= set(one["names"]["thread"])
    ends = [
        [(row["state"], row["code"], row["error"], row["hint"]) for row in told["targets"]]
        for told in (one, other)
    ]
    assert ends[0] == ends[1]
    found = {end[1] for end in ends[0]}
    assert {"dns", "connect", "tls", "refused", "protocol", "robots", "too_large", "timeout"} <= found
    assert {"bad_option", "extract_failed", "busy", "redirect_loop", "page_not_found"} <= found


async def test_an_application_that_configures_nothing_tells_nothing(application):
    """With every logger at DEBUG and no handler nothing is printed, not even a warning of Python's."""
    told, said = await application.run("plain", ONE, quick=True)
    nobody_hears(told, said, ONE)
    assert said == ""


async def test_only_the_http_library_tells_more_when_an_application_asks_for_everything(application):
    """With a handler of its own for DEBUG an application hears of targets from httpcore2 and nobody else."""
    told, said = await application.run("debug", ONE, quick=True)
    nobody_hears(told, said, ONE)
    loud = {name for name, text in told["records"] if heard(text, ONE)}
    assert {name.partition(".")[0] for name in loud} == {"httpcore2"}
    assert "sift_batch" in {name.partition(".")[0] for name, _ in told["records"]}
