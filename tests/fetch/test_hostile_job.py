"""A whole batch job over hostile targets: each ends in its own way, and nobody else notices.

The real engine, store, gate, sockets and readers, in an application of its own for each kind of target.
With `SIFT_HOSTILE=long` in the environment the monsters that cost their reader seconds are read too, and
with the limits that a fetch has if nobody sets any.
"""

import json
import os
import re
import sys
from pathlib import Path

import hostile_documents
import pytest
import trio
from hostile import SWITCHES, Switch, Talk, hostile_server
from hostile_documents import DOCUMENTS
from hostile_talk import answer
from test_client_memory import resettable
from test_fetcher_real import code_of_fetch

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes in /proc"),
]

MIB = 2**20
LONG = os.environ.get("SIFT_HOSTILE") == "long"
JOB = Path(__file__).with_name("hostile_job.py")

# A quick one has all the time of the world, so that a full machine makes no difference.
QUICK = {"total_timeout": 60.0, "min_bytes_per_second": 0, "retries": 0}
SMALL = {"max_wire_bytes": MIB, "max_decoded_bytes": MIB} | QUICK
SLOW = SMALL | {"total_timeout": 1.0}
READ = QUICK | ({} if LONG else {"extract_timeout": 8.0, "extract_memory": 400 * MIB})


async def _good(talk: Talk) -> None:
    body = f"<title>Page {talk.query}</title><h1>Good</h1><p>This is neighbour number {talk.query}.</p>"
    await talk.send(answer(body.encode(), "Content-Type: text/html"))


# What a site's robots.txt can do to a fetch of a harmless page, and the archive's copy to that of a dead one.
ROBOTS = {
    "page/head_silence": "timeout",
    "page/body_drip": "timeout",
    "page/head_garbage": "robots",
    "page/body_cut": "robots",
    "page/body_endless": "robots",
    "page/bomb_1000": "robots",
    "page/bomb_endless": "robots",
    "page/coding_br": "robots",
    "page/length_10_gib": "robots",
    "page/to_private": "robots",
    "page/to_file": "robots",
    "page/to_loop": "",
    "page/type_none_with_nul": "",
    "page/json_deep": "",
    "page/status_404": "",
    "page/status_503": "robots",
    "page/busy_429_day": "busy",
}
_BAD_COPIES = [
    *("head_silence", "body_drip", "head_garbage", "body_cut", "body_endless", "bomb_1000", "to_private"),
    *("to_file", "to_loop", "type_html_is_pdf", "status_503", "busy_429_day", "pdf_deep_objects"),
]
COPIES = {f"status_404/{name}": "page_not_found" for name in _BAD_COPIES}


async def _robots(talk: Talk) -> None:
    host = re.search(rb"Host: t(\d+)\.", talk.server.heads[-1])
    at = int(host[1]) if host else 1
    name = "status_404" if at % 2 else list(ROBOTS)[at // 2].partition("/")[2]
    await talk.server.switches[name].act(talk)


async def _copy(talk: Talk) -> None:
    await talk.server.switches[talk.target.rpartition("/")[2]].act(talk)


MORE = {
    **hostile_documents.SWITCHES,
    "good": Switch(_good),
    "robots.txt": Switch(_robots),
    "archived": Switch(_copy),
}


def switches(*kinds: str, slow: bool = False) -> list[str]:
    """Name the switches of some kinds."""
    return [name for name, switch in SWITCHES.items() if switch.kind in kinds and switch.slow == slow]


def documents(kind: str) -> list[str]:
    """Name the documents of a kind that are to be read now."""
    return [name for name, case in DOCUMENTS.items() if case.kind == kind and (LONG or not case.slow)]


KINDS = {
    # name: (targets, settings of the fetch, how many jobs at once)
    "head": (switches("head"), SMALL, 2),
    "body": (switches("body"), SMALL, 2),
    "length": (switches("length"), SMALL, 2),
    "packing": (switches("packed"), SMALL, 1),
    "silence": (switches(*{switch.kind for switch in SWITCHES.values()}, slow=True), SLOW, 8),
    "status": (switches("status"), SMALL, 2),
    "redirect": (switches("redirect"), SMALL, 2),
    "busy": (switches("busy"), SMALL, 8),
    "content": (switches("content"), SMALL, 1),
    "robots": (list(ROBOTS), SLOW | {"robots": True, "total_timeout": 8.0}, 8),
    "recover": (list(COPIES), SLOW | {"total_timeout": 8.0}, 8),
    "html": (documents("html"), READ, 1),
    "packed": (documents("packed"), READ, 1),
    "pdf": (documents("pdf"), READ, 1),
    "feed": (documents("feed"), READ, 1),
    "json": (documents("json"), READ, 1),
    "jq": (documents("jq"), READ, 1),
    "grep": (documents("grep"), READ, 1),
    "charset": (documents("charset"), READ, 1),
    "text": (documents("text"), READ, 1),
}


def test_every_switch_and_every_document_is_in_a_job():
    """No way to misbehave is forgotten."""
    named = {name for names, _, _ in KINDS.values() for name in names}
    left_out = {name for name, case in DOCUMENTS.items() if case.slow and not LONG}
    assert named | left_out == SWITCHES.keys() | DOCUMENTS.keys() | ROBOTS.keys() | COPIES.keys()


async def run_job(plan: dict, temporary: Path) -> dict:
    """Run the application on a plan and give what it says."""
    await trio.Path(temporary).mkdir()
    command = [sys.executable, "-W", "always", str(JOB)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with trio.fail_after(600):
        run = await trio.run_process(
            command,
            stdin=json.dumps(plan).encode(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env=environment,
        )
    assert (run.returncode, run.stderr) == (0, b"")
    return json.loads(run.stdout)


def ends_as_it_should(name: str, row: dict) -> bool:
    """Say whether a target of this name may end so."""
    case = DOCUMENTS.get(name)
    if case is None:
        code = {**ROBOTS, **COPIES}[name] if "/" in name else code_of_fetch(name)
        codes, says = (code,), ""
    else:
        codes, says = case.codes, case.says
    if row["state"] == "done":
        return "" in codes and says in row["text"]
    return row["code"] in codes and row["code"] != ""


# What no text about a failure holds: of the target, of the machine, or a library's own words.
GIVEN_AWAY = re.compile(
    r"\.org|127\.|://|/t|localhost|neighbour|secret|passwd|traceback|Error|Exception|libxml|lxml|pypdf|h11|"
    r"httpcore|trafilatura|line \d+ of|0x[0-9a-f]|\\x|[^\x20-\x7e]"
)


def report(names: list[str], found: dict) -> str:
    """Give a line for each target: to read with `pytest -s` and SIFT_HOSTILE=long."""
    lines = [
        f"{name:32}{row['code'] or row['meta'].get('code') or 'done':18}"
        f"{row['seconds']:6.2f} s {row['rise'] / MIB:6.1f} MiB"
        for name, row in zip(names, found["targets"][::2], strict=True)
    ]
    return "\n".join([*lines, f"rise {found['rise'] / MIB:.1f} MiB, workers ended {found['ended']}"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.skipif(not resettable(), reason="measures memory in /proc, which is not there or read-only")
async def test_a_hostile_job_ends_target_by_target_and_costs_its_neighbours_nothing(kind, tmp_path):
    """Each hostile target ends in its own code or a good text within its time; its neighbours are done."""
    names, settings, jobs = KINDS[kind]
    targets = []
    for at, name in enumerate(names):
        options = hostile_documents.options_of(name) if name in DOCUMENTS else {"recover": name in COPIES}
        targets += [{"name": name, "options": options}, {"name": f"good?{at}"}]
    async with hostile_server(more=MORE) as server:
        plan = {
            "port": server.port,
            "targets": targets,
            "fetch": settings | {"archive": f"http://archive.org:{server.port}/archived/{{url}}"},
            "config": {"retry_for": 0.4},
            "jobs": jobs,
            "store": str(tmp_path / "store.db"),
        }
        found = await run_job(plan, tmp_path / "temporary")
        await server.no_connection()
    print(f"\n{kind}\n{report(names, found)}")
    bad = dict(zip(names, found["targets"][::2], strict=True))
    assert {name: row for name, row in bad.items() if not ends_as_it_should(name, row)} == {}
    texts = {name: row["error"] + row["hint"] for name, row in bad.items() if row["state"] == "failed"}
    assert {name: text for name, text in texts.items() if GIVEN_AWAY.search(text)} == {}
    most = settings["total_timeout"] + settings.get("extract_timeout", 30.0) + 5
    assert {name: row["seconds"] for name, row in bad.items() if row["seconds"] > most} == {}
    for at, row in enumerate(found["targets"][1::2]):
        assert (row["state"], row["text"]) == ("done", f"# Good\n\nThis is neighbour number {at}.")
        assert row["meta"]["title"] == f"Page {at}"
    # With several jobs at once one may have got the harmless targets of its kind only.
    assert {"partial"} <= set(found["status"]) <= {"partial", "done"} or not texts
    assert jobs > 1 or len(set(found["status"])) == 1
    assert found["left"] == {"children": [], "files": [], "temporary": []}
    assert found["busy"] == {"workers": 0, "slots": 0}
    assert found["rise"] < 32 * MIB
