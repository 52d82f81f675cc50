"""Which commands are there?

A table of their names; the module of one is imported when it is asked for, so that `--help` and the
completion of a name wait for none of them. The flags of `run` are in `run_flags`, and so on.
"""

from importlib import import_module
from types import MappingProxyType
from typing import Final

import click
from click.shell_completion import CompletionItem

_HELP = """Fetch a series of pages, politely and durably.

\b
Examples:
  sift-batch demo
  sift-batch run -f urls.txt --out results.jsonl
  sift-batch serve --data ./data
"""

COMMANDS: Final = MappingProxyType(
    {
        "run": "Fetch URLs and write one line of JSON for each.",
        "fetch": "Fetch one page and print it.",
        "demo": "Fetch a small built-in site and show how it goes.",
        "serve": "Run the HTTP service.",
        "submit": "Submit a job to a service and print its id.",
        "status": "Show how a job stands.",
        "watch": "Follow a job until it has ended.",
        "results": "Write a job's results, one line of JSON each.",
        "list": "List your jobs.",
        "cancel": "Cancel a job; the fetch in flight is finished.",
        "rerun": "Fetch again what failed or was not fetched.",
        "delete": "Delete an ended job with its results.",
        "mcp": "Serve the tools of a batch to an agent (MCP over stdio).",
        "key": "Make keys for callers.",
        "db": "Check, count or back up a store.",
        "config": "Show or check the settings in force.",
        "completion": "Print the completion script of a shell.",
    }
)
"""Each command and what it does, in the order of `--help`. `<name>_flags` has it as `command`."""


class _Commands(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"{__package__}.{cmd_name}_flags").command
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items()]
        found = [item for item in names if item.value.startswith(incomplete)]
        # Past the group's own way, which imports each command for its help.
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sift-batch", prog_name="sift-batch")
def cli() -> None:
    """Take the flags that stand before a command."""
