"""Which flags has `sift-batch serve`? Next: `serve_command`."""

from pathlib import Path
from typing import Any

import click

from .flags import output_flags
from .setting_flags import given_settings, setting_flags

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
@setting_flags
@output_flags
def command(config: Path | None, allow: tuple[str, ...], quiet: bool, as_json: bool, **flags: Any) -> int:
    """Hand the flags on."""
    from .serve_signals import StoppedEarly, early_signals

    try:
        with early_signals():
            from .serve_command import serve_command

            return serve_command(config, given_settings(flags), allow=allow, quiet=quiet, as_json=as_json)
    except StoppedEarly:
        return 0
