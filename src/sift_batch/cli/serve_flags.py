"""Which flags has `sift-batch serve`? Next: `serve_command`."""

from pathlib import Path

import click

from .flags import fetch_flags, output_flags

_HELP = """Run the HTTP service: jobs are submitted, followed and read over HTTP, and kept in a folder.

Without --callers there is one caller: its key is made at the first start and kept in DIR/key, and only
this machine can reach the service. With --callers FILE there are as many as the file has; it is read again
when it changes, and on SIGHUP. Behind a proxy, name what clients call the service with --server-name.

Settings come from their defaults, from --config FILE, from the environment (SIFT_BATCH_SERVICE_PORT and
so on) and from these flags; the later one wins. `sift-batch config show` lists them all.

Once it is ready, it writes one line to standard output; its log is JSON lines on standard error.
SIGTERM and SIGINT stop it in good order: no target starts any more, fetches in flight are stored, streams
are closed. A second signal stops it at once.

\b
Examples:
  sift-batch serve --data ./data
  sift-batch serve --data ./data --port 0 --metrics-port 0
  (umask 077; sift-batch key new alice >callers.toml)
  sift-batch serve --data ./data --callers callers.toml --host 0.0.0.0 --server-name sift.example.org
  sift-batch serve --config sift.toml --allow 10.0.0.0/8 --allow .corp --ports any

\b
Exit codes:
  0    stopped by a signal, in good order
  2    a flag, a setting or the callers file is wrong, or an extra is missing
  3    an address, the folder or the store can't be had
  130  stopped at once by a second Ctrl-C; 143 by a second SIGTERM
"""


@click.command(help=_HELP)
@click.option("--data", metavar="DIR", help="Folder for the store and the keys; made if there is none.")
@click.option("--host", metavar="HOST", help="Address to listen on; 127.0.0.1 if not given.")
@click.option("--port", metavar="PORT", help="Port to listen on, 0 for a free one; 8080 if not given.")
@click.option("--metrics-host", metavar="HOST", help="Address to give metrics on; 127.0.0.1 if not given.")
@click.option(
    "--metrics-port", metavar="PORT", help="Port to give metrics on, 0 for a free one; 18081 if not given."
)
@click.option("--callers", metavar="FILE", help="File of who may call, as `sift-batch key new` writes it.")
@click.option(
    "--server-name",
    multiple=True,
    metavar="NAME",
    help="Name that clients call the service by; may be given again.",
)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Read settings from FILE.")
@fetch_flags
@output_flags
def command(  # one parameter for each flag
    data: str | None,
    host: str | None,
    port: str | None,
    metrics_host: str | None,
    metrics_port: str | None,
    callers: str | None,
    server_name: tuple[str, ...],
    config: Path | None,
    allow: tuple[str, ...],
    ports: str | None,
    ca_file: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Hand the flags on."""
    from .serve_command import serve_command

    flags = {
        "service.data": data,
        "service.host": host,
        "service.port": port,
        "service.metrics_host": metrics_host,
        "service.metrics_port": metrics_port,
        "service.callers": callers,
        "service.server_name": server_name,
        "fetch.ports": ports,
        "fetch.ca_file": None if ca_file is None else str(ca_file),
    }
    return serve_command(config, flags, allow=allow, quiet=quiet, as_json=as_json)
