"""What does `sift-batch mcp` do?

Seals the process, takes standard input and output for messages alone, and serves the tools until the
client closes its side. Next: `sift_batch.mcp`, which has the tools.
"""

import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trio

import sift_batch

from .place import key_of, server_of
from .plan import Refused
from .process import seal_process
from .remote import with_flag
from .remote_flags import Remote
from .screen import Screen
from .service_start import close_ways_out, folder_refused, service_settings
from .setting_flags import allowed_settings
from .signals import ending_signals

if TYPE_CHECKING:
    from .._client import Client
    from ..service._settings import Settings

_OpenClient = Callable[[], AbstractAsyncContextManager["Client"]]


def mcp_command(
    remote: Remote, *, data: str | None, config: Path | None, allow: Sequence[str], ports: str | None
) -> int:
    """Serve the tools, and return the exit code."""
    seal_process()
    screen = Screen(quiet=remote.quiet, as_json=remote.as_json)
    try:
        close_ways_out()
        if remote.server is not None and data is None:
            _refuse_flags(
                "is for the service itself, which runs already", config=config, allow=allow, ports=ports
            )
            _serve(_to_service(remote))
        else:
            _refuse_flags("goes with --server alone, and this is with --data", key_file=remote.key_file)
            flags: dict[str, object] = {
                "service.data": data,
                "fetch.ports": ports,
                "fetch.ca_file": None if remote.ca_file is None else str(remote.ca_file),
            }
            settings = (
                service_settings(config, {**flags, **allowed_settings(allow)}, screen)
                if data or config
                else None
            )
            _in_process(settings)
    except ImportError:
        screen.error("this needs the extra mcp: pip install 'sift-batch[mcp]'")
        return 2
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    return 0


def _refuse_flags(why: str, **flags: object) -> None:
    for name, given in flags.items():
        if given:
            raise Refused(f"--{name.replace('_', '-')} {why}", 2)


def _to_service(remote: Remote) -> _OpenClient:
    from .._client import BadServer, open_client
    from .._client._address import parse_server

    server, key = server_of(remote), key_of(remote)
    try:
        # Now, and not when the first tool is called.
        parse_server(server, plain_http=remote.plain_http)
    except BadServer as error:
        raise Refused(with_flag(error.reason), 2) from None
    return partial(open_client, server, key, ca_file=remote.ca_file, plain_http=remote.plain_http)


def _in_process(settings: "Settings | None") -> None:
    if settings is None:
        raise Refused("name a service with --server, or a folder for jobs with --data DIR", 2)
    from ..mcp._in_process import open_in_process
    from ..service._caller_entries import CallersError
    from ..service._private_file import PrivateFileError

    data, begun = settings.service.data, []

    @asynccontextmanager
    async def opened() -> AsyncIterator["Client"]:
        async with open_in_process(settings, on_error=_tell_failure) as client:
            begun.append(True)
            yield client

    try:
        _serve(opened)
    except CallersError as error:
        raise Refused(f"{data}: the key in this folder can't be used: {error.problem.text}", 3) from None
    except PrivateFileError as error:
        raise folder_refused(data, error.code) from None
    except sift_batch.StoreInUseError:
        raise Refused(
            f"{data}: a running service or another process uses this folder; name the service with --server "
            "and its key with --key-file, or give another --data",
            3,
        ) from None
    except sift_batch.StoreError as error:
        raise Refused(f"{data}: {error.args[0]}", 3) from None
    except ValueError as error:
        if begun:
            raise
        # The fetch's, before it begins: their texts are our own and name the setting.
        raise Refused(str(error.args[0]), 2) from None


def _serve(opened: _OpenClient) -> None:
    from ..mcp._run import run
    from ..mcp._wire import taken_over

    with ExitStack() as stack:
        try:
            wire = stack.enter_context(taken_over())
        except OSError:
            raise Refused("standard input and output are closed; an agent's client starts this", 3) from None
        signals = (signal.SIGINT, *ending_signals())
        trio.run(partial(run, opened, wire, signals=signals, on_error=_tell_failure))


def _tell_failure(error: Exception) -> None:
    from ..logs import failure, open_log

    open_log().event("request.failed", **failure(error))
