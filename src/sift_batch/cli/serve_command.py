"""What does `sift-batch serve` do?

Seals the process, reads the settings, runs the service until a signal, and says in one line why it can't
start. What the service is made of is `service/_open`'s business.
"""

import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import trio

import sift_batch

from .plan import Refused
from .screen import Screen
from .serve_descriptors import raise_descriptor_limit
from .serve_signals import STOPPING
from .service_start import close_ways_out, folder_refused, service_settings, without_extra
from .setting_flags import allowed_settings

if TYPE_CHECKING:
    from sift_batch.logs import EventLog
    from sift_batch.service._open import Service
    from sift_batch.service._service_config import ServiceConfig
    from sift_batch.service._settings import Settings

_OF_THE_MACHINE: Final = frozenset({"unmakeable", "unreadable"})
"""Problems with the callers that are no mistake in their file."""


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
        close_ways_out()
        settings = service_settings(config, {**flags, **allowed_settings(allow)}, screen)
        raise_descriptor_limit(settings)
        _run(settings, quiet=quiet, as_json=as_json)
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    return 0


def _run(settings: "Settings", *, quiet: bool, as_json: bool) -> None:
    try:
        # Here, so that a bad flag is told at once.
        from sift_batch.service._caller_entries import CallersError
        from sift_batch.service._listening import AddressError
        from sift_batch.service._private_file import PrivateFileError
    except ImportError as error:
        raise without_extra() from error
    data = settings.service.data
    try:
        trio.run(_serve, settings, quiet, as_json)
    except ImportError as error:
        raise without_extra() from error
    except CallersError as error:
        code = 3 if error.problem.code in _OF_THE_MACHINE else 2
        raise Refused(
            f"{settings.service.callers or _key_file(settings)}: {error.problem.text}", code
        ) from None
    except PrivateFileError as error:
        raise folder_refused(data, error.code) from None
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
        self._reload = False  # asked for before the service was there
        self.starting = trio.CancelScope()
        """Cancelled by a signal that comes before the service is there."""
        self.asked = trio.Event()

    def begun(self, service: "Service") -> None:
        """The service runs from now on."""
        self._service = service
        if self._reload:
            service.callers.reload()

    async def obey(self, signals: AsyncIterator[int]) -> None:
        """Do what signals ask for."""
        async for number in signals:
            if number == signal.SIGHUP:
                self._reload = True
                if self._service is not None:
                    self._service.callers.reload()
            else:
                self._stop(number)

    def _stop(self, number: int) -> None:
        if self._since is not None:  # it came before the handler was ours
            self._end_at_once(number, None)
        self._since = trio.current_time()
        for each in STOPPING:
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
    # Before what takes its time to import: a signal that comes meanwhile is obeyed right after.
    with trio.open_signal_receiver(*STOPPING, signal.SIGHUP) as signals:
        await _serve_until(signals, settings, quiet, as_json)


async def _serve_until(signals: AsyncIterator[int], settings: "Settings", quiet: bool, as_json: bool) -> None:
    from prometheus_client import CollectorRegistry

    from sift_batch.logs import open_log, unsealed_handlers
    from sift_batch.service._open import open_service

    log = open_log()
    log.event("service.starting", single_user=settings.service.callers is None)
    if handlers := unsealed_handlers():
        log.event("log.unsealed", handlers=len(handlers))
    stopping = _Stopping(log)
    failure: Exception | None = None
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
    if failure is not None:
        raise failure
    stopping.ended()


def _tell_ready(
    service: "Service", settings: "Settings", log: "EventLog", *, quiet: bool, as_json: bool
) -> None:
    assert service.metrics_address is not None
    # Among lines of JSON, so they are such lines as well; and before that which says that all is ready.
    notes = Screen(quiet=quiet, as_json=True)
    if settings.service.callers is None:
        notes.note(f"the key for this service is in {_key_file(settings)}; give it as --key-file")
    if note := _name_note(settings.service):
        notes.note(note)
    (host, port), (metrics_host, metrics_port) = service.address, service.metrics_address
    api, metrics = f"http://{host}:{port}", f"http://{metrics_host}:{metrics_port}"
    line = f"listening on {api} metrics {metrics}"
    with suppress(OSError, ValueError, AttributeError):  # nobody need read it
        sys.stdout.write(json.dumps({"listening": api, "metrics": metrics}) if as_json else line)
        sys.stdout.write("\n")
        sys.stdout.flush()
    log.event("service.ready", port=port, metrics_port=metrics_port)


def _name_note(service: "ServiceConfig") -> str:
    """Return what to say of a service on a network that has been given no name; "" for any other."""
    from sift_batch.service._service_config import is_loopback

    if service.server_name or is_loopback(service.host):
        return ""
    # Every address of the machine is none that a client could call.
    anywhere = not service.host.strip("0.:")
    names = "a loopback address" if anywhere else f"{service.host} or a loopback address"
    return (
        f"clients reach this service as {names} alone, and get 421 for any other name or address; "
        "give those that they use with --server-name NAME"
    )
