"""What does somebody read who uses the command line for the first time? Help, advice, notes, completion."""

import json
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.shell_completion import ShellComplete
from remote_rig import ran

from sift_batch import Options, Target, TargetState, TargetStatus
from sift_batch._client import ServiceProblem
from sift_batch.cli import job_text, key_command, problems
from sift_batch.cli.commands import cli
from sift_batch.cli.hints import hint_with_flag
from sift_batch.cli.lines import target_view
from sift_batch.cli.serve_command import _name_note, _tell_ready
from sift_batch.cli.targets import Item
from sift_batch.fetch import FetchConfig, FetchError
from sift_batch.fetch._guard import LOCALHOST_HINT, NAME_HINT, NETWORK_HINT, PORT_HINT, Guard
from sift_batch.fetch._options import MODES
from sift_batch.service._codes import KINDS
from sift_batch.service._settings import SettingsError, load_settings


def helped(name: str) -> str:
    """Return the help of a command."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help is not None
    return command.help


def test_the_bare_program_is_its_help(capfd) -> None:
    """Without a command there is the help of `--help` on standard output, and exit 0."""
    said = ran(capfd)
    assert (said.code, said.err) == (0, "")
    assert said.out == ran(capfd, "--help").out


@pytest.mark.parametrize("group", ["db", "key", "config"])
def test_a_group_without_its_command(capfd, group: str) -> None:
    """The help of a group is text, but on standard error and with exit 2: a script left something out."""
    said = ran(capfd, group)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"Usage: sift-batch {group} [OPTIONS] COMMAND")
    assert "\\u000a" not in said.err
    assert "\nCommands:\n" in said.err


@pytest.mark.parametrize(
    "args",
    [("completion",), ("completion", "tcsh"), ("list", "--status", "x"), ("run", "--parallel"), ("nope",)],
)
def test_a_usage_error_is_one_line(capfd, args: tuple[str, ...]) -> None:
    """What there is to choose from stands in the one line of the error, with commas between."""
    said = ran(capfd, *args)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "\\u" not in said.err
    if args == ("completion",):
        assert "Choose from: bash, zsh, fish. See: sift-batch completion --help" in said.err


@pytest.mark.parametrize(
    "args",
    [
        ("completion", "--json", "tcsh"),
        ("list", "--status", "\x1b", "--json"),
        ("run", "--json", "-x"),
        ("nope", "--json"),
    ],
)
def test_a_usage_error_is_json_where_that_was_asked_for(capfd, args: tuple[str, ...]) -> None:
    """A flag that can't be parsed does not make the error's form another one."""
    said = ran(capfd, *args)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert " --help" in json.loads(said.err)["error"]
    # After -- it is a value.
    assert ran(capfd, "nope", "--", "--json").err.startswith("sift-batch: ")


def test_a_line_break_of_the_users_is_escaped(capfd) -> None:
    """A flag that holds a line break makes no second line."""
    said = ran(capfd, "run", "--a\nb")
    assert said.err.count("\n") == 1
    assert "--a\\nb" in said.err


def test_too_many_targets_have_honest_advice() -> None:
    """No door tells to send the rest at once, which one live job a caller would refuse."""
    kind = KINDS["too_many_targets"]
    for text in (kind.http, kind.cli, helped("submit")):
        assert "when this job has" in text
        assert "engine.targets_per_job" in text
    assert "when that job has ended" in kind.mcp
    assert "several\njobs" not in helped("submit")


@pytest.mark.parametrize("name", ["status", "list", "cancel", "delete"])
def test_a_table_of_exit_codes_has_what_can_come(name: str) -> None:
    """A command that never exits with 1 does not say so."""
    table = helped(name).partition("Exit codes:")[2]
    assert "\n  0    " in table
    assert "\n  1    " not in table
    assert "target" not in table


def test_status_says_what_its_wait_gives() -> None:
    """The help of `status` says that the exit code does not depend on how the job ended."""
    assert "also if --wait was over first" in helped("status")


def complete(*words: str) -> list[tuple[str, str]]:
    """Return what Tab offers after some words: kind and value."""
    found = ShellComplete(cli, {}, "sift-batch", "_X").get_completions(list(words[:-1]), words[-1])
    return [(item.type, item.value) for item in found]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("run", "-f", "x"), "file"),
        (("submit", "--file", "x"), "file"),
        (("serve", "--callers", "x"), "file"),
        (("serve", "--config", "x"), "file"),
        (("serve", "--data", "x"), "dir"),
        (("mcp", "--data", "x"), "dir"),
        (("config", "show", "--data", "x"), "dir"),
        (("db", "check", "--data", "x"), "dir"),
    ],
)
def test_paths_are_completed(words: tuple[str, ...], kind: str) -> None:
    """The shell is told to offer files or folders where a flag takes one."""
    assert complete(*words) == [(kind, "x")]


@pytest.mark.parametrize("command", ["run", "submit", "fetch"])
def test_modes_are_completed(command: str) -> None:
    """Tab offers the modes; what is no mode is still told with the target."""
    assert complete(command, "--mode", "") == [("plain", mode) for mode in MODES[1:]]
    assert complete(command, "--mode", "t") == [("plain", "text")]


def test_a_cancel_tells_what_is_in_flight() -> None:
    """What is being finished is not told as not fetched; once settled, nothing is in flight."""
    targets = {"total": 6, "done": 2, "failed": 0, "pending": 3, "running": 1}
    view = {"status": "cancelled", "settled": False, "targets": targets}
    said = "cancelled: 6 targets: 2 done, 1 in flight is being finished, 3 not fetched"
    assert job_text.ended_text(view) == said
    assert job_text.ended_text({**view, "settled": True}) == "cancelled: 6 targets: 2 done, 4 not fetched"


@pytest.mark.parametrize(
    ("code", "hint", "text"),
    [
        ("job_live", "", "or cancel it first; try again in 5 s"),
        ("request_timeout", "", "try again in 5 s"),
        ("gate_busy", "", "try again in 5 s, or submit it as a job"),
        ("store_unavailable", "", "nothing has changed; try again in 5 s, and look at the disk"),
        ("nothing_known", "", "try again in 5 s"),
    ],
)
def test_a_wait_is_part_of_the_advice(code: str, hint: str, text: str) -> None:
    """How long to wait is said once, as what to do."""
    said = problems.text_of(ServiceProblem(429, {"code": code, "hint": hint, "retry_after": 5}))
    assert said.endswith(text)
    assert said.count("try again") == 1
    assert "(" not in said


def test_what_is_wrong_is_said_once() -> None:
    """The place of the one bad thing is not told with the words that were read before it; others are."""
    errors = [
        {"pointer": "/options", "code": "bad_option", "detail": "no such mode"},
        {"pointer": "/targets/1/url", "code": "refused", "detail": "no such port"},
    ]
    view = {"code": "bad_option", "detail": "no such mode", "hint": "mend it", "errors": errors}
    assert problems.text_of(ServiceProblem(422, view)) == "no such mode, targets/1/url no such port; mend it"


@pytest.mark.parametrize("hint", [PORT_HINT, NAME_HINT, NETWORK_HINT, LOCALHOST_HINT])
def test_a_refusal_names_the_flag(hint: str) -> None:
    """A line of `run` says which flag lifts a refusal, and tells nobody to ask an operator."""
    url = "http://a.example/"
    status = TargetStatus(
        0, url, Options(), TargetState.FAILED, None, "no", hint, "refused", 403, retryable=False, chars=0
    )
    view = target_view(Item(0, Target(url)), status)
    assert view["hint"] == hint_with_flag(hint)
    assert view["hint"].partition("--")[1]
    assert "operator" not in view["hint"]


def test_the_hints_are_those_of_the_fetch() -> None:
    """Each hint that is put in other words is one that the fetch gives."""
    guard, found = Guard(FetchConfig()), set()
    for url in ("http://a.example.org:81/", "http://wiki.corp/", "http://10.0.0.1/", "http://localhost/"):
        try:
            guard.parse(url)
        except FetchError as error:
            found.add(error.hint)
    assert {PORT_HINT, NAME_HINT, NETWORK_HINT} <= found


@pytest.mark.parametrize(
    ("host", "names", "said"),
    [
        ("0.0.0.0", (), "as a loopback address alone"),
        ("::", (), "as a loopback address alone"),
        ("192.0.2.1", (), "as 192.0.2.1 or a loopback address alone"),
        ("0.0.0.0", ("sift.example.org",), ""),
        ("127.0.0.1", (), ""),
    ],
)
def test_a_service_without_a_name_says_so(host: str, names: tuple[str, ...], said: str) -> None:
    """A service on a network that has no name but its address warns of the 421 that others get."""
    note = _name_note(SimpleNamespace(host=host, server_name=names))
    assert said in note
    assert bool(said) == ("421" in note and "--server-name" in note)


def test_a_new_name_is_noted_before_its_key(capfd, monkeypatch, tmp_path: Path) -> None:
    """A name that the callers file lacks is noted; the key is a line of its own after that."""
    monkeypatch.setattr(key_command, "seal_process", lambda: None)
    file = tmp_path / "callers.toml"
    file.write_text(ran(capfd, "key", "new", "alice").out)
    file.chmod(0o600)
    said = ran(capfd, "key", "new", "bob", "--callers", str(file))
    note, key = said.err.splitlines()
    assert note == f"note: {file} has no caller of this name; the entry is a new one"
    assert key.startswith("siftb_")
    assert ran(capfd, "key", "new", "alice", "--callers", str(file)).err.startswith("siftb_")
    noted = ran(capfd, "key", "new", "bob", "--json", "--callers", str(file)).err.splitlines()
    assert [list(json.loads(line)) for line in noted] == [["note"], ["key"]]
    assert ran(capfd, "key", "new", "bob", "-q", "--callers", str(file)).err.startswith("siftb_")


def test_problems_of_a_settings_file_are_in_its_order(tmp_path: Path) -> None:
    """What is wrong with a file is told from its first line to its last, and then what is elsewhere."""
    file = tmp_path / "s.toml"
    file.write_text("[service]\nport = 'x'\nprt = 1\n[engine]\nttl = -1\n[foo]\n[fetc]\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {"SIFT_BATCH_NOPE": "1"}, {"service.metrics_port": "x"})
    places = [problem.place.removeprefix(f"{file}, ") for problem in caught.value.problems]
    assert places == ["line 2", "line 3", "line 5", "line 6", "line 7", "SIFT_BATCH_NOPE", "--metrics-port"]
    texts = [problem.text for problem in caught.value.problems]
    assert texts[3] == "there is no table foo; the tables are [engine], [gate], [fetch], [service]"
    assert texts[4] == "there is no table fetc; did you mean [fetch]?"


def test_notes_come_before_ready(capfd) -> None:
    """`service.ready` is the last that a start says: notes of the key and of names stand before it."""
    events: list[tuple[str, str]] = []
    log = SimpleNamespace(event=lambda name, **_: events.append((name, capfd.readouterr().err)))
    service = SimpleNamespace(address=("0.0.0.0", 8080), metrics_address=("127.0.0.1", 18081))
    given = SimpleNamespace(callers=None, data="data", host="192.0.2.1", server_name=())
    _tell_ready(service, SimpleNamespace(service=given), log, quiet=False, as_json=False)
    ((name, before),) = events
    assert name == "service.ready"
    notes = [json.loads(line)["note"] for line in before.splitlines()]
    assert ["key" in notes[0], "--server-name" in notes[1]] == [True, True]
    assert capfd.readouterr().err == ""
