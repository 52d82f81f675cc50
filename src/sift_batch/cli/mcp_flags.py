"""Which flags has `sift-batch mcp`? Next: `mcp_command`."""

from pathlib import Path

import click

from .flags import complete_folder
from .remote_flags import Remote, remote_flags

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
@click.option(
    "--data",
    metavar="DIR",
    shell_complete=complete_folder,
    help="Without a service: the folder for jobs and results; made if there is none.",
)
@click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="With --data: read settings from FILE."
)
@click.option("--ports", metavar="any|N,N", help="Ports that may be called; 80 and 443 if not given.")
@click.option(
    "--allow",
    multiple=True,
    metavar="NETWORK|NAME|.SUFFIX",
    help="Allow a private network, or a name of one; may be given again.",
)
@remote_flags
def command(
    data: str | None, config: Path | None, allow: tuple[str, ...], ports: str | None, remote: Remote
) -> int:
    """Hand the flags on."""
    from .mcp_command import mcp_command

    # A service that only the environment names gives way to a folder that was asked for.
    named = click.get_current_context().get_parameter_source("server")
    if data is not None and named is click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("--server and --data exclude each other: leave one out.")
    return mcp_command(remote, data=data, config=config, allow=allow, ports=ports)
