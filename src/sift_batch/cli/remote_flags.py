"""Which flags has every command that talks to a service? Next: `remote`, which does the talking."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .flags import Command, ca_file_flag, output_flags, server_flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """What the flags of a command say about the service, and about what is shown."""

    server: str | None
    key_file: Path | None
    ca_file: Path | None
    plain_http: bool
    quiet: bool
    as_json: bool


def exit_codes(done: str, *, missing: str = "", wrong: str = "a flag or the id is wrong") -> str:
    """Return a command's table of exit codes: what 0, 1 and 2 say; it has no 1 without `missing`."""
    rows = [f"  0    {done}"]
    rows += [f"  1    {missing}"] if missing else []
    rows += [
        f"  2    {wrong}",
        "  3    the service can't be reached or used, or refuses the key",
        "  130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP",
    ]
    return "\n".join(["", "\b", "Exit codes:", *rows, ""])


def plain_http_flag(command: Command) -> Command:
    """Add the flag that lets a key be sent unprotected."""
    return click.option(
        "--plain-http",
        is_flag=True,
        help="Send the key over http:// to another machine too, where everybody on the way can read it.",
    )(command)


def remote_flags(command: Command) -> Command:
    """Add the flags of every command that needs a service; they come together, as `remote`."""

    @functools.wraps(command)
    def with_remote(
        *args: Any,
        server: str | None,
        key_file: Path | None,
        ca_file: Path | None,
        plain_http: bool,
        quiet: bool,
        as_json: bool,
        **others: Any,
    ) -> Any:
        remote = Remote(
            server=server,
            key_file=key_file,
            ca_file=ca_file,
            plain_http=plain_http,
            quiet=quiet,
            as_json=as_json,
        )
        return command(*args, remote=remote, **others)

    return server_flags(ca_file_flag(plain_http_flag(output_flags(with_remote))))


job_argument = click.argument("job_id", metavar="ID")
