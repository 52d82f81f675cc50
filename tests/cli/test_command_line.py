"""The command line around its commands: help, version, usage errors, what it imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sift_batch import __version__

pytestmark = pytest.mark.real


def test_help_has_examples_and_exit_codes(run):
    """`--help` shows examples, and `run --help` says what the exit codes mean and what is not guarded."""
    done = run("--help")
    assert (done.code, done.err) == (0, "")
    assert b"sift-batch run -f urls.txt --out results.jsonl" in done.out
    text = run("run", "--help").out.decode()
    for promise in (
        "Examples:",
        "130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP",
        "Only public",
    ):
        assert promise in text


def test_version_is_the_package_s(run):
    """`--version` prints the package's version."""
    assert run("--version").out.decode() == f"sift-batch, version {__version__}\n"


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("run", "--nonsense"),
        ("run", "--parallel", "0"),
        ("run", "--out"),
        ("run", "-x\x1b[2J"),
        ("run", "-f", "a", "-f", "b"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_2(run, args):
    """A wrong flag is one line that says where to look, without a control character, and exit 2."""
    done = run(*args)
    assert done.code == 2
    assert done.out == b""
    assert done.err.startswith("sift-batch: ")
    assert done.err.count("\n") == 1
    assert "--help" in done.err
    assert "\x1b" not in done.err


def test_completion_is_click_s(run):
    """The shell's completion script comes out."""
    done = run(env={"_SIFT_BATCH_COMPLETE": "bash_source"})
    assert b"_SIFT_BATCH_COMPLETE=bash_complete" in done.out


@pytest.mark.parametrize("args", [(), ("--help",), ("--version",), ("run", "--help", "--json")])
def test_help_that_can_t_be_written_is_one_line_and_exit_3(args):
    """A full disk under standard output is told as of any command, without a traceback."""
    program = [sys.executable, "-m", "sift_batch", *args]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, timeout=30, check=False)
    said = done.stderr
    assert done.returncode == 3
    assert said.count(b"\n") == 1
    assert b"No space left on device" in said
    assert said.startswith(b'{"error": ' if "--json" in args else b"sift-batch: ")


def test_the_bare_program_s_help_into_a_closed_pipe_is_quiet(start):
    """Nobody reads the help that comes without a flag."""
    running = start()
    running.process.stdout.close()
    running.process.stdin.close()
    assert running.process.wait(30) == 0
    assert running.process.stderr.read() == b""


def test_help_into_a_closed_pipe_is_quiet(start):
    """Nobody reads the help: no traceback, not even at exit."""
    running = start("run", "--help")
    running.process.stdout.close()
    running.process.stdin.close()
    running.process.wait(30)
    assert running.process.stderr.read() == b""


def _python(code: str, folder: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60, cwd=folder
    )


def test_the_library_loads_no_extra():
    """`import sift_batch` loads none of the packages that only the extras bring."""
    extras = "{'click', 'rich', 'httpcore2', 'charset_normalizer'}"
    code = f"import sift_batch, sys; print({extras} & sys.modules.keys())"
    assert _python(code).stdout == "set()\n"


def test_importing_the_fetch_loads_no_http_library():
    """`import sift_batch.fetch` works without the extra; its HTTP library is loaded when it is opened."""
    code = "import sift_batch.fetch, sys; print({'httpcore2', 'charset_normalizer'} & sys.modules.keys())"
    assert _python(code).stdout == "set()\n"


def test_a_missing_extra_is_named(tmp_path):
    """Without click, or without the HTTP library, one line names the extra that brings it."""
    code = "import sys; sys.modules[{!r}] = None; from sift_batch.cli import main; sys.exit(main({!r}))"
    done = _python(code.format("click", ["--help"]))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "sift-batch[cli]" in done.stderr
    for args in (["run", "http://example.org/", "--out", "o"], ["demo"]):
        done = _python(code.format("httpcore2", args), tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert "sift-batch[fetch]" in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
