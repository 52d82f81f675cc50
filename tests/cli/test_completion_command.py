"""Do the printed scripts complete, in the shells themselves, and without waiting for a command?"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sift_batch.cli.commands import COMMANDS

pytestmark = pytest.mark.real

ASKED = {
    "sift-batch ": [*COMMANDS],
    "sift-batch d": ["db", "delete", "demo"],
    "sift-batch db ": ["backup", "check", "stats"],
    "sift-batch db backup --fo": ["--force"],
    "sift-batch key new alice --class ": ["fleet", "restricted"],
    "sift-batch completion ": ["bash", "fish", "zsh"],
    "sift-batch config show --tom": ["--toml"],
    "sift-batch run --parallel 3 --ou": ["--out"],
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which `sift-batch` is the one under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "sift-batch"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m sift_batch "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def call(
    shell: str, script: str, environment: dict[str, str], *flags: str, lines: tuple[str, ...] = ()
) -> str:
    """Run a script in a shell, with `lines` as its arguments, and return what it prints."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, *flags, "-c", script, *([shell] if lines and shell != "fish" else []), *lines],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


BASH = """
eval "$(sift-batch completion bash)"
completer=$(complete -p sift-batch)
completer=${completer##*-F }
for line in "$@"; do
    read -ra COMP_WORDS <<<"$line"
    case $line in *' ') COMP_WORDS+=('') ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    ${completer%% *} sift-batch
    printf '%s|' "${COMPREPLY[@]}"
    echo
done
"""


def test_in_bash(environment: dict[str, str]) -> None:
    """Bash completes commands, subcommands, flags and values with the function it has registered."""
    out = call("bash", BASH, environment, lines=tuple(ASKED))
    assert [sorted(line.rstrip("|").split("|")) for line in out.splitlines()] == [
        sorted(wanted) for wanted in ASKED.values()
    ]


def test_in_an_interactive_bash(environment: dict[str, str], tmp_path: Path) -> None:
    """The Tab key in a terminal finishes a word."""
    import pty
    import time

    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    parent, child = pty.openpty()
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"],
        stdin=child,
        stdout=child,
        stderr=child,
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
    )
    os.close(child)
    os.write(parent, b'eval "$(sift-batch completion bash)"; echo rea""dy\n')
    said = b""
    until = time.monotonic() + 30
    while b"ready" not in said and time.monotonic() < until:
        said += os.read(parent, 65_536)
    os.write(parent, b"sift-batch compl\tfi\t| wc -l; exit\n")
    while True:
        try:
            said += os.read(parent, 65_536)
        except OSError:
            break
    os.close(parent)
    assert process.wait(30) == 0
    assert b"sift-batch completion fish " in said


FISH = """
sift-batch completion fish | source
for line in $argv
    complete -C $line | string split -f1 \\t | string join '|'
end
"""


def test_in_fish(environment: dict[str, str]) -> None:
    """Fish completes commands, subcommands and values."""
    asked = {line: wanted for line, wanted in ASKED.items() if " --" not in line or line.endswith(" ")}
    out = call("fish", FISH, environment, lines=tuple(asked))
    assert [sorted(line.split("|")) for line in out.splitlines()] == [
        sorted(wanted) for wanted in asked.values()
    ]


ZSH = """
autoload -Uz compinit; compinit -D -u
# What would go to the line editor is printed.
_describe() { local item; for item in ${(P)3}; do print -rn -- "${item%%:*}|"; done }
compadd() { shift 4; _describe . . $1 }
eval "$(sift-batch completion zsh)"
for line in "$@"; do
    words=("${(@s: :)line}") CURRENT=${#words}
    $_comps[sift-batch]
    print
done
"""


def test_in_zsh(environment: dict[str, str]) -> None:
    """Zsh's registered function offers commands, subcommands, flags and values."""
    out = call("zsh", ZSH, environment, "-f", lines=tuple(ASKED))
    assert [sorted(line.rstrip("|").split("|")) for line in out.splitlines()] == [
        sorted(wanted) for wanted in ASKED.values()
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(run, shell: str) -> None:
    """The script is all that is printed, and in JSON it is one string."""
    done = run("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert b"_SIFT_BATCH_COMPLETE" in done.out
    (view,) = run("completion", shell, "--json").views
    assert view == {"shell": shell, "script": done.out.decode()}


def test_an_unknown_shell(run) -> None:
    """A shell that has no script is a usage error that names those that do."""
    done = run("completion", "tcsh")
    assert (done.code, done.out) == (2, b"")
    assert "bash" in done.err


def test_a_name_is_completed_without_its_command(environment: dict[str, str]) -> None:
    """Completing the name of a command imports no command, and neither does --help."""
    program = (
        "import sys, json\n"
        "from sift_batch.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('sift_batch.cli.')"
        " or name in ('trio', 'rich')]))\n"
    )
    for args, more in (
        ((), {"_SIFT_BATCH_COMPLETE": "bash_complete", "COMP_WORDS": "sift-batch d", "COMP_CWORD": "1"}),
        (("--help",), {}),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *args],
            env={**environment, **more},
            capture_output=True,
            timeout=60,
            check=True,
        )
        loaded = json.loads(done.stdout.splitlines()[-1])
        assert [name for name in loaded if name.endswith(("_flags", "_command"))] == []
        assert "rich" not in loaded
