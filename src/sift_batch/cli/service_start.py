"""What must be in order before a service is opened in this process?

Its settings, the process's ways out, and the folder's rights: for `serve`, and for `mcp` without a service.
What is opened then is `service/_open`'s business.
"""

import os
import resource
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .plan import Refused
from .screen import Screen

if TYPE_CHECKING:
    from ..service._settings import Settings

_FOLDER: Final = {
    "mode": "other users can write in this folder; take that away with chmod 700",
    "owner": "this folder belongs to another user; give another --data",
    "not_a_file": "this is no folder; give another --data",
}
_FOLDER_ELSE: Final = "this folder can't be made or used; check its permissions, or give another --data"


def close_ways_out() -> None:
    """Keep the process's memory out of files: no core dump, and no log of the keys of its connections."""
    if os.environ.get("SSLKEYLOGFILE"):
        raise Refused("SSLKEYLOGFILE is set, so connections would be written down; unset it", 2)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def service_settings(config: Path | None, flags: Mapping[str, object], screen: Screen) -> "Settings":
    """Put the settings together. Raises `Refused`: for what is wrong, and where no folder is given."""
    try:
        from ..service._settings import SettingsError, load_settings
    except ImportError as error:
        raise without_extra() from error
    try:
        settings = load_settings(config, os.environ, flags)
    except SettingsError as error:
        for problem in error.problems[:-1]:
            screen.error(str(problem))
        raise Refused(str(error.problems[-1]), 2) from None
    if settings.service.data is None:
        raise Refused("no folder is given for the store; give one with --data DIR", 2)
    return settings


def folder_refused(data: str | None, code: str) -> Refused:
    """Return what to say of a folder that can't be trusted or made; `code` is `PrivateFileError`'s."""
    return Refused(f"{data}: {_FOLDER.get(code, _FOLDER_ELSE)}", 3)


def without_extra() -> Refused:
    """Return what to say where the packages of a service are not there."""
    return Refused("the service needs the extra service: pip install 'sift-batch[service]'", 2)
