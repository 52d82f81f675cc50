"""Does the operations page say what is so? Events, files, settings, commands and flags are compared."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sift_batch._observe.service_events import ALL_EVENTS
from sift_batch.cli.commands import cli
from sift_batch.logs import SERVICE_EVENTS
from sift_batch.service._codes import KINDS
from sift_batch.service._open import open_service
from sift_batch.service._settings import load_settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text("utf-8")


def section(title: str) -> str:
    """Give a section of the page, without the ones below it."""
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """Give the cells of the table in a text, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_event_is_listed() -> None:
    """The table of the log has each event of the service, with its level, and no other."""
    listed = {row[0].strip("`"): row[1] for row in rows(section("The log"))}

    assert listed == {name: logging.getLevelName(item.level).lower() for name, item in SERVICE_EVENTS.items()}


@pytest.mark.real
async def test_every_file_is_listed(tmp_path: Path) -> None:
    """A service in single-user mode leaves in its folder what the page lists, nobody else may read it."""
    folder = tmp_path / "data"
    async with open_service(load_settings(flags={"service.data": str(folder), "service.port": 0})):
        made = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}

    listed = {name for row in rows(section("Files")) for name in re.findall(r"`([^`]+)`", row[0])}
    left_by_a_kill = {name for name in listed if name.endswith(".draft")}
    assert listed - left_by_a_kill == made.keys()
    assert set(made.values()) == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_every_setting_exists_and_has_the_value_that_is_said() -> None:
    """A setting that the page names is one, and a value in parentheses behind it is its default."""
    defaults = {row.name: row.value for row in load_settings().rows()}
    named = re.findall(r"`((?:engine|gate|fetch|service)\.\w+)`(?: \((\d[^)]*)\))?", TEXT)

    assert len(named) > 20
    for name, value in named:
        if name in ALL_EVENTS:
            continue
        assert name in defaults, name
        if value:
            assert defaults[name] == value, name


def commands() -> Iterator[list[str]]:
    """Give each command of ours in the page, as words."""
    blocks = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    shown = [*lines, *re.findall(r"`(sift-batch [^`]+)`", TEXT)]
    for line in shown:
        for found in re.findall(r"(?:^|[/ ])sift-batch ((?:key|db|config|serve|run)\b[^>|)']*)", line):
            yield found.split()


def test_every_command_and_flag_exists() -> None:
    """What the page tells an operator to type is known to the command line."""
    seen = set()
    for words in commands():
        command: click.Command = cli
        context = click.Context(cli)
        while isinstance(command, click.Group) and words:
            found = command.get_command(context, words[0])
            assert found is not None, words
            seen.add(words.pop(0))
            command = found
        known = {name for item in command.params for name in item.opts}
        assert {word for word in words if word.startswith("-")} <= known, words
    assert {"new", "check", "backup", "stats"} <= seen


def test_every_code_of_an_answer_exists() -> None:
    """A status with a code behind it is one of the service's."""
    for status, code in re.findall(r"`(\d{3}) ([a-z_]+)`", TEXT):
        assert KINDS[code].status == int(status)
