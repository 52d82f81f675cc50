"""What does `sift-batch serve` do?

Seals the process, reads the settings, runs the service until a signal, and says in one line why it can't
start. What the service is made of is `service/_open`'s business.
"""

import json
import logging
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import trio

import sift_batch

from .plan import Refused
from .screen import Screen

if TYPE_CHECKING:
    from sift_batch.logs import EventLog
    from sift_batch.service._open import Service
    from sift_batch.service._settings import Settings

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
_OF_THE_MACHINE: Final = frozenset({"unmakeable", "unreadable"})
"""Problems with the callers that are no mistake in their file."""

_FOLDER: Final = {
    "mode": "other users can write in this folder; take that away with chmod 700",
    "owner": "this folder belongs to another user; give another --data",
    "not_a_file": "this is no folder; give another --data",
}
_FOLDER_ELSE: Final = "this folder can't be made or used; check its permissions, or give another --data"


def serve_command(
    config: Path | None,
    flags: Mapping[str, object],
    *,
    allow: Sequence[str] = (),
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Run the service until a signal, and return the exit code."""
    # First of all: whatever fails from here on must not say a target aloud.
    sift_batch.seal_logging()
    # What libraries log of a fetch below a warning would tell how it went, also a restricted caller's.
    # Our own events don't come this way.
    logging.disable(logging.INFO)
    screen = Screen(quiet=quiet, as_json=as_json)
    try:
        _close_ways_out()
        settings = _settings(config, {**flags, **_allowed(allow)}, screen)
        _run(settings, quiet=quiet, as_json=as_json)
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    return 0


def _close_ways_out() -> None:
    """Keep the process's memory out of files: no core dump, and no log of the keys of its connections."""
    if os.environ.get("SSLKEYLOGFILE"):
        raise Refused("SSLKEYLOGFILE is set, so connections would be written down; unset it", 2)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _allowed(allow: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Tell networks from names. What is wrong is told by the settings, with everything else."""
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


def _settings(config: Path | None, flags: Mapping[str, object], screen: Screen) -> "Settings":
    try:
        from sift_batch.service._settings import SettingsError, load_settings
    except ImportError as error:
        raise _without_extra() from error
    try:
        settings = load_settings(config, os.environ, flags)
    except SettingsError as error:
        for problem in error.problems[:-1]:
            screen.error(str(problem))
        raise Refused(str(error.problems[-1]), 2) from None
    if settings.service.data is None:
        raise Refused("no folder is given for the store; give one with --data DIR", 2)
    return settings


def _without_extra() -> Refused:
    return Refused("the service needs the extra service: pip install 'sift-batch[service]'", 2)


def _run(settings: "Settings", *, quiet: bool, as_json: bool) -> None:
    try:
        # Here, so that a bad flag is told at once.
        from sift_batch.service._caller_entries import CallersError
        from sift_batch.service._listening import AddressError
        from sift_batch.service._private_file import PrivateFileError
    except ImportError as error:
        raise _without_extra() from error
    data = settings.service.data
    try:
        trio.run(_serve, settings, quiet, as_json)
    except ImportError as error:
        raise _without_extra() from error
    except CallersError as error:
        code = 3 if error.problem.code in _OF_THE_MACHINE else 2
        raise Refused(f"{settings.service.callers or _key_file(settings)}: {error}", code) from None
    except PrivateFileError as error:
        raise Refused(f"{data}: {_FOLDER.get(error.code, _FOLDER_ELSE)}", 3) from None
    except AddressError as error:
        raise Refused(_address_reason(settings, error.setting, error.errno), 3) from None
    except sift_batch.StoreInUseError:
        raise Refused(
            f"{data}: another service uses this folder; stop it, or give another --data", 3
        ) from None
    except sift_batch.StoreError as error:
        raise Refused(f"{data}: {error.args[0]}", 3) from None
    except ValueError as error:
        # The fetch's: their texts are our own and name the setting.
        raise Refused(str(error.args[0]), 2) from None


def _key_file(settings: "Settings") -> Path:
    from sift_batch.service._callers import KEY_FILE

    assert settings.service.data is not None
    return Path(settings.service.data).absolute() / KEY_FILE


def _address_reason(settings: "Settings", setting: str, number: int | None) -> str:
    host, port = settings.service.host, settings.service.port
    if setting == "metrics_port":
        host, port = settings.service.metrics_host, settings.service.metrics_port
    flag = "--" + setting.replace("_", "-")
    # Those of a name that is not known are below 0.
    reason = os.strerror(number) if number and number > 0 else "it can't be looked up"
    return f"can't listen on {host} port {port} ({reason}); choose another with {flag} or {flag[:-4]}host"


class _Stopping:
    """What signals do: the first one stops in good order, a second one at once; SIGHUP reads the callers."""

    def __init__(self, log: "EventLog") -> None:
        self._log = log
        self._service: Service | None = None
        self._since: float | None = None
        self.starting = trio.CancelScope()
        """Cancelled by a signal that comes before the service is there."""
        self.asked = trio.Event()

    def begun(self, service: "Service") -> None:
        """The service runs from now on."""
        self._service = service

    async def obey(self, signals: AsyncIterator[int]) -> None:
        """Do what signals ask for."""
        async for number in signals:
            if number == signal.SIGHUP:
                if self._service is not None:
                    self._service.callers.reload()
            else:
                self._stop(number)

    def _stop(self, number: int) -> None:
        if self._since is not None:  # it came before the handler was ours
            self._end_at_once(number, None)
        self._since = trio.current_time()
        for each in _STOPPING:
            # Not through the loop: what holds it up may be why there is a second signal.
            signal.signal(each, self._end_at_once)
        self._log.event("service.stopping", signal=signal.Signals(number).name)
        if self._service is None:
            self.starting.cancel()
        self.asked.set()

    def _end_at_once(self, number: int, _frame: FrameType | None) -> None:
        # No clean-up on purpose: what is stored is safe, and the lock on the store goes with the process.
        self._log.event("service.cut_short", signal=signal.Signals(number).name)
        os._exit(128 + number)

    def ended(self) -> None:
        """Say that everything is closed."""
        if self._since is not None:
            seconds = round(trio.current_time() - self._since, 3)
            self._log.event("service.stopped", seconds=seconds)


async def _serve(settings: "Settings", quiet: bool, as_json: bool) -> None:
    from prometheus_client import CollectorRegistry

    from sift_batch.logs import open_log, unsealed_handlers
    from sift_batch.service._open import open_service

    log = open_log()
    log.event("service.starting", single_user=settings.service.callers is None)
    if handlers := unsealed_handlers():
        log.event("log.unsealed", handlers=len(handlers))
    stopping = _Stopping(log)
    failure: Exception | None = None
    with trio.open_signal_receiver(*_STOPPING, signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stopping.obey, signals)
            try:
                with stopping.starting:
                    async with open_service(settings, registry=CollectorRegistry()) as service:
                        stopping.begun(service)
                        _tell_ready(service, settings, log, quiet=quiet, as_json=as_json)
                        await stopping.asked.wait()
            except Exception as error:
                failure = error  # raised below: out of here it would come as a group
            nursery.cancel_scope.cancel()
        if failure is None:
            stopping.ended()
    if failure is not None:
        raise failure


def _tell_ready(
    service: "Service", settings: "Settings", log: "EventLog", *, quiet: bool, as_json: bool
) -> None:
    assert service.metrics_address is not None
    (host, port), (metrics_host, metrics_port) = service.address, service.metrics_address
    api, metrics = f"http://{host}:{port}", f"http://{metrics_host}:{metrics_port}"
    line = f"listening on {api} metrics {metrics}"
    with suppress(OSError, ValueError, AttributeError):  # nobody need read it
        sys.stdout.write(json.dumps({"listening": api, "metrics": metrics}) if as_json else line)
        sys.stdout.write("\n")
        sys.stdout.flush()
    log.event("service.ready", port=port, metrics_port=metrics_port)
    if settings.service.callers is None:
        # Among lines of JSON, so it is one as well.
        Screen(quiet=quiet, as_json=True).note(
            f"the key for this service is in {_key_file(settings)}; give it as --key-file"
        )
