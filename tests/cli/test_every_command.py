"""What does every command have? The same flags, help with examples, and a row in the documentation."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sift_batch.cli.commands import cli

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def commands(group: click.Group, *before: str) -> Iterator[tuple[str, click.Command]]:
    """Give every command that does something, by its whole name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *before, name)
        else:
            yield " ".join((*before, name)), command


COMMANDS = dict(commands(cli))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_json_quiet_and_examples(name: str) -> None:
    """Every command has `--json` and `-q`, and its help shows how it is used and what it exits with."""
    command = COMMANDS[name]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {"--json", "-q", "--quiet"} <= flags
    assert command.help is not None
    assert f"sift-batch {name}" in command.help.partition("Examples:")[2]
    assert "Exit codes:" in command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_a_key_is_never_an_argument(name: str) -> None:
    """No command takes a key where the table of processes would show it."""
    flags = {flag for parameter in COMMANDS[name].params for flag in parameter.opts}
    assert not flags & {"--key", "--token", "--api-key", "--password"}


def test_the_documentation_lists_every_command() -> None:
    """The table of commands has each of them, and no other."""
    table = PAGE.read_text("utf-8").partition("## All commands")[2].partition("\n\nEach")[0]
    listed = re.findall(r"`([a-z ]+)`", "\n".join(re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)))
    assert sorted(listed) == sorted(COMMANDS)
