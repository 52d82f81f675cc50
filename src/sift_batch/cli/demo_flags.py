"""Which flags has `sift-batch demo`? Next: `demo_command`."""

from pathlib import Path

import click

from .flags import output_flags

_HELP = """Fetch a small site that is served on this machine, and show how it goes.

Uses no network. The site has ordinary pages, a slow one, a missing one, a redirect and a host that asks
for patience first. Results stay in the folder; after Ctrl-C a second run carries on from there.

\b
Examples:
  sift-batch demo
  sift-batch demo --dir /tmp/sift-demo

\b
Exit codes:
  0    the demo ran to its end
  2    the folder holds something else, or an extra is missing
  3    the folder or the store can't be written
  130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
"""


@click.command(help=_HELP)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("sift-demo"),
    show_default=True,
    help="Folder for the results; made if there is none.",
)
@output_flags
def command(folder: Path, quiet: bool, as_json: bool) -> int:
    """Hand the flags on."""
    from .demo_command import demo_command

    return demo_command(folder, quiet=quiet, as_json=as_json)
