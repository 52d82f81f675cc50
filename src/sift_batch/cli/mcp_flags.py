"""Which flags has `sift-batch mcp`? Next: `mcp_command`."""

from pathlib import Path

import click

from .flags import fetch_flags, output_flags, server_flags

_HELP = """Serve the tools of a batch to an agent: the Model Context Protocol over stdin and stdout.

With --server the tools work on that service, with its key. Without it everything runs in this process, on
the folder that --data names: jobs and results stay there, and `sift-batch serve` on the same folder, later,
has them too. One process at a time can use a folder; while a service does, name that with --server.

It is not for typing into: an agent's client starts it, and ends it by closing its input. Then no target
starts any more, and the fetch in flight is stored. SIGTERM and SIGINT do the same; a second one ends at
once. Nothing but messages of the protocol is written to standard output.

\b
Examples:
  sift-batch mcp --data ~/.local/share/sift-batch
  sift-batch mcp --data ./data --allow 10.0.0.0/8 --ports any
  sift-batch mcp --server http://127.0.0.1:8080 --key-file ./data/key

\b
In the settings of a client:
  {"mcpServers": {"sift-batch": {"command": "sift-batch", "args": ["mcp", "--data", "/path/to/data"]}}}

\b
Exit codes:
  0    the client has closed its side, or a signal has stopped it in good order
  2    a flag or a setting is wrong, or an extra is missing
  3    the folder or the store can't be had
  130  stopped at once by a second Ctrl-C; 143 by a second SIGTERM
"""


@click.command(help=_HELP)
@server_flags
@click.option(
    "--data",
    metavar="DIR",
    help="Without a service: the folder for jobs and results; made if there is none.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="With --data: read settings from FILE."
)
@fetch_flags
@output_flags
def command(  # one parameter for each flag
    server: str | None,
    key_file: Path | None,
    data: str | None,
    config: Path | None,
    allow: tuple[str, ...],
    ports: str | None,
    ca_file: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Hand the flags on."""
    from .mcp_command import mcp_command

    return mcp_command(
        server,
        key_file=key_file,
        data=data,
        config=config,
        allow=allow,
        ports=ports,
        ca_file=ca_file,
        quiet=quiet,
        as_json=as_json,
    )
