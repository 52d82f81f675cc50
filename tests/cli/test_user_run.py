"""What does somebody meet who uses `run` for the first time, or with something in its way?"""

import http.server
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from test_run import _full_disk

from sift_batch.fetch._extra import MODULES

pytestmark = pytest.mark.real

_WITHOUT = """
import sys

class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hiding())
{then}
"""
_MAIN = "from sift_batch.cli import main\nsys.exit(main())"
_OPEN = """
import trio
from sift_batch.fetch import open_fetcher
async def opened():
    async with open_fetcher():
        print("opened")
try:
    trio.run(opened)
except ImportError as error:
    print(error.msg)
"""


def _without(hidden, then, tmp_path, *args):
    program = _WITHOUT.format(hidden=set(hidden), then=then)
    return subprocess.run(
        [sys.executable, "-c", program, *args],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


_OF_FETCH_ALONE = sorted(set(MODULES) - {"httpcore2", "certifi"})


@pytest.mark.parametrize("hidden", [_OF_FETCH_ALONE, *([name] for name in ("trafilatura", "jq", "re2"))])
def test_without_a_part_of_the_extra_nothing_is_fetched(tmp_path, hidden):
    """Whatever part of the extra `fetch` is missing, no fetcher opens: no page fails in its place."""
    done = _without(hidden, _OPEN, tmp_path)
    assert done.stdout == "fetching needs the extra `fetch`: pip install 'sift-batch[fetch]'\n", done.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("demo", "--dir", "d"),
        ("run", "http://127.0.0.1/", "--allow", "127.0.0.1", "--out", "o"),
        ("fetch", "https://example.org/"),
    ],
)
def test_a_command_that_fetches_says_at_once_that_its_extra_is_missing(tmp_path, args):
    """With the extra `cli` alone they end with exit 2 and one line, and leave nothing behind."""
    done = _without(_OF_FETCH_ALONE, _MAIN, tmp_path, *args)
    said = "sift-batch: fetching needs the extra `fetch`: pip install 'sift-batch[fetch]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "extras"),
    [
        (("run", "x"), "cli,fetch"),
        (("serve",), "cli,service"),
        (("mcp",), "mcp"),
        (("--help",), "cli"),
        ((), "cli"),
    ],
)
def test_a_bare_installation_names_the_extras_of_the_command(tmp_path, args, extras):
    """Without Click, one line says what to install for the command that was meant."""
    done = _without(["click"], _MAIN, tmp_path, *args)
    said = f"sift-batch: the command line needs the extra cli: pip install 'sift-batch[{extras}]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_the_list_of_modules_is_the_extra() -> None:
    """What is looked for before a fetch is what pyproject.toml says of the extra `fetch`."""
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    named = {
        line.partition(">")[0].partition("[")[0].replace("-", "_").lower()
        for line in project["optional-dependencies"]["fetch"]
    }
    imported = {"google_re2": "re2"}
    assert {imported.get(name, name) for name in named} == set(MODULES)


def _broken(path, how):
    data = bytearray(path.read_bytes())
    if how == "pages":
        data[4_096:] = os.urandom(len(data) - 4_096)
    elif how == "half":
        del data[max(4_096, len(data) // 2) :]
    else:
        data[60:64] = (99).to_bytes(4)  # PRAGMA user_version
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["pages", "half", "version"])
def test_fresh_begins_again_over_a_damaged_store(run, site, tmp_path, read, how):
    """A store of ours that can't be used is refused with --fresh as the way on, which then works."""
    args = ("run", site.url("/a"), site.url("/404"), "--out", "o")
    assert run(*args).code == 1
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"o.sift{suffix}").unlink(missing_ok=True)
    _broken(tmp_path / "o.sift", how)
    done = run(*args)
    assert (done.code, done.err.count("\n")) == (3, 1), done.err
    assert done.err.startswith("sift-batch: o.sift: ")
    assert "--fresh" in done.err
    site.asked.clear()
    assert run(*args, "--fresh").code == 1
    assert sorted(site.asked) == ["/404", "/a"]
    assert [view["status"] for view in read(tmp_path / "o")] == ["done", "failed"]


def test_fresh_leaves_a_file_that_may_be_somebodys(run, site, tmp_path):
    """What is no store of ours stays, with --fresh too, and the refusal says to move it away."""
    for kind in ("text", "database"):
        store = tmp_path / f"{kind}.sift"
        if kind == "text":
            store.write_bytes(b"my diary" * 1_000)
        else:
            with sqlite3.connect(store) as connection:
                connection.execute("CREATE TABLE mine (x)")
            connection.close()
        before = store.read_bytes()
        done = run("run", site.url("/a"), "--out", kind, "--fresh")
        assert (done.code, done.err.count("\n")) == (3, 1)
        assert "move it away, or choose another --out" in done.err
        assert store.read_bytes() == before


def test_fresh_waits_for_no_run_that_has_the_store(start, run, site, tmp_path, read):
    """--fresh beside a run of the same output is refused, and takes nothing from under it."""
    running = start("run", site.url("/hold"), "--out", "o")
    assert site.holding.acquire(timeout=30)
    done = run("run", site.url("/a"), "--out", "o", "--fresh")
    assert done.code == 3
    assert "another sift-batch run is using it" in done.err
    site.let_go.set()
    assert running.end().code == 0
    assert len(read(tmp_path / "o")) == 1


@pytest.mark.parametrize("gap", [" ", "\t", "\u00a0"])
def test_a_space_in_a_url_is_called_one(run, site, tmp_path, gap):
    """Two URLs on one line are told as a space in one, as a line and as an argument."""
    two = f"{site.url('/a')}{gap}{site.url('/b')}"
    (tmp_path / "f").write_text(f"{two}\n", encoding="utf-8")
    for args in (("-f", "f"), (two,)):
        done = run("run", *args)
        assert done.code == 2
        assert "there is a space in the URL; give one URL on each line" in done.err
    assert site.asked == []


def test_two_urls_with_a_comma_are_noted_and_fetched(run, site, tmp_path):
    """A path with `,http://` in it is named on standard error by its line; a query with it is not."""
    lines = [site.url("/a"), site.url("/b,http://a.example/"), site.url("/c?d=,https://a.example/")]
    (tmp_path / "f").write_text("\n".join(lines))
    done = run("run", "-f", "f")
    assert (done.code, len(done.views)) == (0, 3)
    notes = [line for line in done.err.splitlines() if "two URLs" in line]
    assert notes == ["note: line 2: this looks like two URLs in one; give one URL on each line"]
    assert "two URLs" not in run("run", "-q", "-f", "f").err


def test_what_was_meant_is_said_of_files(run, tmp_path):
    """A file as a URL, a file that is not there, an empty --out and --file: each says what is wrong."""
    (tmp_path / "urls.txt").write_text("https://example.org/\n")
    for args, said in (
        (("urls.txt",), "URL argument 1: this is no URL but a file; did you mean -f urls.txt?"),
        (("-f", "nofile"), "nofile can't be read (No such file or directory); check the path of --file"),
        (("-f", ""), "--file is empty"),
        (("-f", "urls.txt", "--out", ""), "--out is empty"),
    ):
        done = run("run", *args)
        assert (done.code, done.out) == (2, b"")
        assert done.err.startswith(f"sift-batch: {said}"), done.err
        assert "Traceback" not in done.err


def test_equal_complaints_are_told_once_for_all_their_lines(run, site, tmp_path):
    """Lines that follow each other with one thing wrong share a message; each line is still named."""
    bad = [site.url(f"/{number}") for number in range(40)]
    (tmp_path / "f").write_text("\n".join([*bad, "ftp://a.example/", "https://example.org/", bad[0]]))
    done = run("run", "-f", "f", guarded=True)
    first, other, last, count = done.err.splitlines()
    assert first.startswith("sift-batch: f, lines 1-40: the port of the URL is not one that may be called; ")
    # What stands behind the refused port is named at once.
    assert "--ports admits others" in first
    assert "--allow admits its network" in first
    assert other.startswith("sift-batch: f, line 41: only http")
    assert last.startswith("sift-batch: f, line 43: the port")
    assert count == "sift-batch: 42 bad inputs; nothing was fetched"
    told = [json.loads(line) for line in run("run", "--json", "-f", "f", guarded=True).err.splitlines()]
    assert [view["line"] for view in told[:-1]] == [*range(1, 42), 43]


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("key", "--help")])
def test_help_that_nobody_reads_is_no_error(args):
    """A reader that is gone ends the help quietly and with 0."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sift_batch", *args],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


_INTERRUPTED = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.parametrize("name", ["click", "sift_batch.cli.commands", "sift_batch.cli.run_flags", "trio"])
def test_an_early_ctrl_c_is_quiet(tmp_path, name):
    """While anything is still being imported, Ctrl-C ends the command with 130 and no traceback."""
    program = _INTERRUPTED.format(name=name) + _MAIN
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "https://example.org/"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    # Click itself ends the line on which a terminal shows ^C.
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, b"", b"")


def test_a_full_disk_ends_a_run_that_is_stopping(start, tmp_path):
    """The output is full first; what is in flight can't be stored either, and is not offered for long."""
    held, asked = threading.Event(), threading.Semaphore(0)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # In the output each of the first ones takes six bytes, in the store two.
            body = "\u00e9".encode() * 40_000
            if self.path == "/hold":
                asked.release()
                held.wait(60)
                body = os.urandom(120_000).hex().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        root = f"http://127.0.0.1:{server.server_port}"
        # Of two jobs side by side, one gives the line that does not fit, the other is in flight then.
        running = start(
            "run",
            f"{root}/a",
            f"{root}/hold",
            "--out",
            "o",
            "--parallel",
            "2",
            preexec_fn=_full_disk(220_000),
        )
        assert asked.acquire(timeout=60)
        # The line is written while the other fetch still waits.
        stopping = threading.Timer(3.0, held.set)
        stopping.start()
        done = running.end()
        stopping.join()
    finally:
        held.set()
        server.shutdown()
        thread.join()
        server.server_close()
    assert done.code == 3
    assert "the output can't be written" in done.err
    assert "results can't be stored: " in done.err


def test_ctrl_c_loses_no_result_of_a_run_without_a_file(start, site):
    """On standard output, what is done beyond a target that was not fetched is written too, in order."""
    # Two jobs: the first has targets 0 and 2, the second 1 and 3.
    running = start("run", "--parallel", "2", *[site.url(path) for path in ("/hold", "/a", "/b", "/c")])
    assert site.holding.acquire(timeout=30)
    stop = time.monotonic() + 30
    while "/c" not in site.asked:
        assert time.monotonic() < stop
        time.sleep(0.02)
    running.signal(signal.SIGINT)
    assert b"stopping" in running.process.stderr.readline()
    site.let_go.set()
    done = running.end()
    assert (done.code, [view["idx"] for view in done.views]) == (130, [0, 1, 3])
    assert "3 done, 1 not fetched" in done.err
    assert "lost" not in done.err


def test_a_signal_is_still_130_once_the_batch_runs(start, site):
    """What is quiet at the start takes nothing from the orderly stop later on."""
    running = start("run", site.url("/hold"), "--out", "o")
    assert site.holding.acquire(timeout=30)
    running.signal(signal.SIGINT)
    assert b"stopping" in running.process.stderr.readline()
    site.let_go.set()
    assert running.end().code == 130
