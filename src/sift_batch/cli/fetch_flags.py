"""Which flags has `sift-batch fetch`? Next: `fetch_command`."""

from pathlib import Path
from typing import Any

import click

from .flags import fetch_flags, given_options, option_flags, output_flags, server_flags
from .remote_flags import Remote, plain_http_flag

_HELP = """Fetch one page and print what it says.

A page comes as the Markdown of its main content, a PDF as the text of its pages, text and JSON as they
are; the options below say what else to give. Control characters are written out; --json gives content and
meta as one JSON object. With a service (--server, SIFT_BATCH_SERVER) the service fetches, by its own
rules; without one this process does: only public addresses, but for what --allow and --ports admit.

\b
Examples:
  sift-batch fetch https://example.org/
  sift-batch fetch --mode links --json https://example.org/ | jq .content
  sift-batch fetch --pages 1-3 https://example.org/report.pdf
  sift-batch fetch --allow .corp --allow 10.0.0.0/8 http://wiki.corp/
  sift-batch fetch --server http://127.0.0.1:8080 --key-file data/key https://example.org/

\b
Exit codes:
  0    the page is printed
  1    the page can't be had
  2    a flag or an option is wrong, or the URL is one that is not fetched
  3    the service can't be reached or used, or refuses the key
  130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
"""


@click.command(help=_HELP)
@click.argument("url")
@option_flags
@fetch_flags
@server_flags
@plain_http_flag
@output_flags
def command(
    url: str,
    allow: tuple[str, ...],
    ports: str | None,
    server: str | None,
    key_file: Path | None,
    ca_file: Path | None,
    plain_http: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Hand the flags on."""
    from .fetch_command import fetch_command

    remote = Remote(
        server=server,
        key_file=key_file,
        ca_file=ca_file,
        plain_http=plain_http,
        quiet=quiet,
        as_json=as_json,
    )
    if server is None and key_file is not None:
        raise click.UsageError("--key-file goes with --server.")
    if server is not None and (allow or ports):
        raise click.UsageError(
            "the service has rules of its own: leave out --allow and --ports, or --server."
        )
    return fetch_command(url, given_options(options), allow=allow, ports=ports, remote=remote)
