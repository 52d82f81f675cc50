"""Which flags has `config`? Next: `config_command`."""

from pathlib import Path
from typing import Any

import click

from .flags import output_flags
from .setting_flags import given_settings, setting_flags

_HELP = """Show or check the settings in force.

A setting has its default, unless the TOML file --config has it; the environment (SIFT_BATCH_ENGINE_TTL and
so on) wins over the file, and a flag over both. The flags are those of `serve`.

\b
Examples:
  sift-batch config show --toml >sift-batch.toml
  sift-batch config check --config sift-batch.toml
"""

_SHOW_HELP = """Show each setting, its value, and where that came from.

With --toml the output is a settings file: what has its default is commented out, with what it may be. The
output holds no secret: of the URL of fetch.archive, a password and the values of its query are hidden.

\b
Examples:
  sift-batch config show
  sift-batch config show --config sift-batch.toml --port 9000
  sift-batch config show --json
  sift-batch config show --toml >sift-batch.toml

\b
Exit codes:
  0  the settings are shown
  2  something is wrong with them
"""

_CHECK_HELP = """Check the settings, and the files that they name, as the service would on its start.

Names everything that is wrong at once, each in a line with its place, and no value.

\b
Examples:
  sift-batch config check --config sift-batch.toml

\b
Exit codes:
  0  all of it can be used
  2  something is wrong
"""


@click.group(help=_HELP, short_help="Show or check the settings in force.")
def command() -> None:
    """Take the flags that stand before a command."""


@command.command(help=_SHOW_HELP, short_help="Show each setting and where it came from.")
@click.option("--toml", "as_toml", is_flag=True, help="Write a settings file.")
@setting_flags
@output_flags
def show(
    as_toml: bool, config: Path | None, allow: tuple[str, ...], quiet: bool, as_json: bool, **flags: Any
) -> int:
    """Hand the flags on."""
    from .config_command import show_command

    if as_toml and as_json:
        raise click.UsageError("--toml and --json are two forms of one output; give one of them.")
    return show_command(
        config, given_settings(flags), allow=allow, as_toml=as_toml, quiet=quiet, as_json=as_json
    )


@command.command(help=_CHECK_HELP, short_help="Check the settings.")
@setting_flags
@output_flags
def check(config: Path | None, allow: tuple[str, ...], quiet: bool, as_json: bool, **flags: Any) -> int:
    """Hand the flags on."""
    from .config_command import check_command

    return check_command(config, given_settings(flags), allow=allow, quiet=quiet, as_json=as_json)
