"""What do `sift-batch db check`, `stats` and `backup` do?

They find the store that is meant, have `_store/beside.py` look at it, and say what it found: `db_tables`
has the words. Nothing here writes to a store.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from sift_batch import StoreError

from .._store.audit import Audit
from .._store.backup import BackupExistsError
from .._store.beside import back_up_store, check_store, count_store
from ..service._service_config import STORE_FILE
from ..service._settings import Settings, SettingsError, load_settings
from .db_tables import audit_text, audit_view, bytes_text, figures_text, figures_view
from .plan import Refused
from .process import seal_process
from .screen import Screen, counted
from .standard_output import write_out
from .stoppable import Progress, run_stoppable

_MEBIBYTE: Final = 2**20


def check_command(
    data: Path | None, store: Path | None, config: Path | None, *, quiet: bool, as_json: bool
) -> int:
    """Run `db check` and return its exit code."""

    def work(screen: Screen) -> int:
        path = _store_of(data, store, config, screen)
        progress = Progress()
        with _named(path):
            found: Audit = run_stoppable(
                partial(check_store, path, on_progress=progress), screen, "checking", progress
            )
        write_out(json.dumps(audit_view(path, found)) + "\n" if as_json else audit_text(path, found))
        if found.sound:
            return 0
        kinds = counted(len(found.findings), "kind")
        raise Refused(f"{path}: {kinds} of damage; stop the service and restore a backup", 3)

    return _command(work, quiet=quiet, as_json=as_json)


def stats_command(
    data: Path | None,
    store: Path | None,
    config: Path | None,
    *,
    victims: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run `db stats` and return its exit code."""

    def work(screen: Screen) -> int:
        settings = _settings(config, screen)
        path = _store_of(data, store, settings, screen)
        count = partial(
            count_store,
            path,
            now=time.time(),
            ttl=settings.engine.ttl,
            max_bytes=settings.engine.max_bytes,
            victims=victims,
        )
        with _named(path):
            found = run_stoppable(count, screen, "counting")
        write_out(json.dumps(figures_view(path, found)) + "\n" if as_json else figures_text(path, found))
        return 0

    return _command(work, quiet=quiet, as_json=as_json)


def backup_command(
    data: Path | None,
    store: Path | None,
    config: Path | None,
    destination: Path,
    *,
    force: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run `db backup` and return its exit code."""

    def work(screen: Screen) -> int:
        path = _store_of(data, store, config, screen)
        if destination.is_dir():
            raise Refused(f"{destination} is a folder; name the file to make in it", 2)
        progress = Progress(_MEBIBYTE)
        with _named(path, destination):
            made = run_stoppable(
                partial(back_up_store, path, destination, replace=force, on_progress=progress),
                screen,
                "MiB copied",
                progress,
            )
        view = {"store": str(path), "backup": str(made.path), "bytes": made.nbytes, "jobs": made.jobs}
        text = f"{destination}: {counted(made.jobs, 'job')}, {bytes_text(made.nbytes)}, checked\n"
        write_out(json.dumps(view) + "\n" if as_json else text)
        return 0

    return _command(work, quiet=quiet, as_json=as_json)


def _command(work: Callable[[Screen], int], *, quiet: bool, as_json: bool) -> int:
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    try:
        return work(screen)
    except Refused as refused:
        if refused.reason:
            screen.error(refused.reason)
        return refused.exit_code


@contextmanager
def _named(path: Path, destination: Path | None = None) -> Iterator[None]:
    """Say which store an error is about."""
    try:
        yield
    except BackupExistsError:
        taken = f"{destination}: there is a file of this name, or beside it a log of one"
        raise Refused(f"{taken}; choose another name, or pass --force to write over it", 2) from None
    except StoreError as error:
        about = path if destination is None else f"{path} to {destination}"
        raise Refused(f"{about}: {error.args[0]}", 3) from None


def _store_of(
    data: Path | None, store: Path | None, settings: Settings | Path | None, screen: Screen
) -> Path:
    """Return the path of the store that is meant."""
    if data is not None and store is not None:
        raise Refused("--data and --store both say which store is meant; give one of them", 2)
    if store is not None:
        return store
    if data is None:
        chosen = settings if isinstance(settings, Settings) else _settings(settings, screen)
        if chosen.service.data is None:
            raise Refused("which store? give --data DIR, --store FILE, or the setting service.data", 2)
        data = Path(chosen.service.data)
    if not os.path.lexists(data):
        raise Refused(f"{data}: there is no such folder; give --data the folder of a service", 3)
    return data / STORE_FILE


def _settings(config: Path | None, screen: Screen) -> Settings:
    try:
        return load_settings(config, os.environ)
    except SettingsError as error:
        for problem in error.problems:
            screen.error(str(problem))
        raise Refused("", 2) from None
