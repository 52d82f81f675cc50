"""What does `sift-batch mcp` do?

Seals the process, takes standard input and output for messages alone, and serves the tools until the
client closes its side. Next: `sift_batch.mcp`, which has the tools.
"""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

import sift_batch

from .plan import Refused
from .process import seal_process
from .screen import Screen
from .serve_command import _FOLDER, _FOLDER_ELSE, _allowed, _close_ways_out, _settings
from .signals import ending_signals

if TYPE_CHECKING:
    from .._client import Client
    from ..service._settings import Settings

_OpenClient = Callable[[], AbstractAsyncContextManager["Client"]]
_LONGEST_KEY = 1_024


def mcp_command(
    server: str | None,
    *,
    key_file: Path | None,
    data: str | None,
    config: Path | None,
    allow: Sequence[str],
    ports: str | None,
    ca_file: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Serve the tools, and return the exit code."""
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    try:
        _close_ways_out()
        if server is not None and data is None:
            for flag, given in (("--config", config), ("--allow", allow), ("--ports", ports)):
                if given:
                    raise Refused(f"{flag} is for the service itself, and --server names one that runs", 2)
            _serve(_remote(server, key_file, ca_file))
            return 0
        if data is None and config is None:
            raise Refused("name a service with --server, or a folder for jobs with --data DIR", 2)
        if key_file is not None:
            raise Refused("--key-file goes with --server; a service in this process needs none", 2)
        flags = {
            "service.data": data,
            "fetch.ports": ports,
            "fetch.ca_file": None if ca_file is None else str(ca_file),
        }
        _in_process(_settings(config, {**flags, **_allowed(allow)}, screen))
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    return 0


def _remote(server: str, key_file: Path | None, ca_file: Path | None) -> _OpenClient:
    from .._client import BadServer, open_client
    from .._client._address import check_key, parse_server

    key = _key(key_file)
    try:
        parse_server(server)
        check_key(key)
    except BadServer as error:
        raise Refused(error.reason, 2) from None
    return partial(open_client, server, key, ca_file=ca_file)


def _key(key_file: Path | None) -> str:
    if key_file is None:
        key = os.environ.get("SIFT_BATCH_KEY", "")
        if not key:
            raise Refused("no key is given; name its file with --key-file, or set SIFT_BATCH_KEY", 2)
        return key
    try:
        with key_file.open("rb") as file:
            raw = file.read(_LONGEST_KEY + 1)
    except (OSError, ValueError):
        raise Refused("--key-file can't be read; check its path and permissions", 2) from None
    # What can't be a key is told by `check_key`, without a word of what it was.
    return raw.decode("utf-8", "replace").strip() or "?"


def _in_process(settings: "Settings") -> None:
    from ..mcp._in_process import open_in_process
    from ..service._caller_entries import CallersError
    from ..service._private_file import PrivateFileError

    data = settings.service.data
    try:
        _serve(partial(open_in_process, settings, on_error=_tell_failure))
    except CallersError as error:
        raise Refused(f"{data}: the key in this folder can't be used: {error}", 3) from None
    except PrivateFileError as error:
        raise Refused(f"{data}: {_FOLDER.get(error.code, _FOLDER_ELSE)}", 3) from None
    except sift_batch.StoreInUseError:
        raise Refused(
            f"{data}: a running service or another process uses this folder; name the service with --server "
            "and its key with --key-file, or give another --data",
            3,
        ) from None
    except sift_batch.StoreError as error:
        raise Refused(f"{data}: {error.args[0]}", 3) from None
    except ValueError as error:
        # The fetch's: their texts are our own and name the setting.
        raise Refused(str(error.args[0]), 2) from None


def _serve(opened: _OpenClient) -> None:
    try:
        from ..mcp._run import run
        from ..mcp._wire import taken_over
    except ImportError:
        raise Refused("this needs the extra mcp: pip install 'sift-batch[mcp]'", 2) from None
    try:
        wire = taken_over()
        with wire as descriptors:
            signals = (signal.SIGINT, *ending_signals())
            trio.run(partial(run, opened, descriptors, signals=signals, on_error=_tell_failure))
    except OSError:
        raise Refused("standard input and output must be open: an agent's client starts this", 3) from None


def _tell_failure(error: Exception) -> None:
    from ..logs import failure, open_log

    open_log().event("request.failed", **failure(error))
