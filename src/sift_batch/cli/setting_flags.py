"""Which flags are settings of the service, and which setting is each?

Those of `serve`, so that `config` can say what they would come to.
"""

from collections.abc import Mapping, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import click

from .flags import Command, complete_file, complete_folder, fetch_flags

_FLAGS = (
    ("--data", "DIR", "Folder for the store and the keys; made if there is none."),
    ("--host", "HOST", "Address to listen on; 127.0.0.1 if not given."),
    ("--port", "PORT", "Port to listen on, 0 for a free one; 8080 if not given."),
    ("--metrics-host", "HOST", "Address to give metrics on; 127.0.0.1 if not given."),
    ("--metrics-port", "PORT", "Port to give metrics on, 0 for a free one; 18081 if not given."),
    ("--callers", "FILE", "File of who may call, as `sift-batch key new` writes it."),
)
_COMPLETED = {"DIR": complete_folder, "FILE": complete_file}


def setting_flags(command: Command) -> Command:
    """Add the flags that are settings, and the one for their file."""
    command = fetch_flags(command)
    command = click.option(
        "--config", type=click.Path(path_type=Path), metavar="FILE", help="Read settings from FILE."
    )(command)
    command = click.option(
        "--server-name",
        multiple=True,
        metavar="NAME",
        help="Name that clients call the service by; may be given again.",
    )(command)
    for flag, metavar, text in reversed(_FLAGS):
        command = click.option(flag, metavar=metavar, help=text, shell_complete=_COMPLETED.get(metavar))(
            command
        )
    return command


def given_settings(flags: Mapping[str, Any]) -> dict[str, object]:
    """Return the settings among `flags` by their full names, all but what `--allow` says."""
    ca_file = flags["ca_file"]
    return {
        "service.data": flags["data"],
        "service.host": flags["host"],
        "service.port": flags["port"],
        "service.metrics_host": flags["metrics_host"],
        "service.metrics_port": flags["metrics_port"],
        "service.callers": flags["callers"],
        "service.server_name": flags["server_name"],
        "fetch.ports": flags["ports"],
        "fetch.ca_file": None if ca_file is None else str(ca_file),
    }


def allowed_settings(allow: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the settings that `--allow` says: networks, and names.

    What is wrong is told by the settings, with everything else.
    """
    networks = tuple(text for text in allow if _looks_like_network(text))
    names = tuple(text for text in allow if not _looks_like_network(text))
    return {"fetch.allow": networks, "fetch.allow_names": names}


def _looks_like_network(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        # No host has a name of digits alone: it is an address that was mistyped.
        return "/" in text or ":" in text or not text.strip(".0123456789")
    return True
