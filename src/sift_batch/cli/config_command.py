"""What do `sift-batch config show` and `check` do?

They put the settings together as `serve` does, and show them or what is wrong with them. No value of a
setting that is wrong is shown, and no secret of one that is right. Next: `config_toml`, the settings as
a file.
"""

import json
import os
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..service._caller_entries import CallersError, parse_callers
from ..service._callers import read_callers_file
from ..service._settings import SettingRow, Settings, SettingsError, SettingsProblem, load_settings
from .config_toml import settings_toml
from .escape import visible
from .plan import Refused
from .process import seal_process
from .screen import Screen, counted
from .setting_flags import allowed_settings
from .standard_output import write_out

HIDDEN: Final = "***"
"""What stands where a secret could be."""

_URLS: Final = frozenset({"fetch.archive"})
_PASSWORD: Final = re.compile(r"(?<=://)[^/?#]*@")
# All of a value that is not the place of the target's own URL.
_QUERY_VALUE: Final = re.compile(r"(?<==)(?!\{url\})[^&#]+")


def show_command(
    config: Path | None,
    flags: Mapping[str, object],
    *,
    allow: Sequence[str] = (),
    as_toml: bool = False,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Run `config show` and return its exit code."""
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    settings = _load(config, {**flags, **allowed_settings(allow)}, screen)
    if settings is None:
        return 2
    rows = [_public(row) for row in settings.rows()]
    if as_toml:
        text = settings_toml(rows)
    elif as_json:
        text = json.dumps({"settings": [_view(row) for row in rows]}) + "\n"
    else:
        text = _table(rows)
    return _written(text, screen)


def check_command(
    config: Path | None,
    flags: Mapping[str, object],
    *,
    allow: Sequence[str] = (),
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Run `config check` and return its exit code."""
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    settings = _load(config, {**flags, **allowed_settings(allow)}, screen)
    if settings is None:
        return 2
    wrong = _wrong_files(settings)
    for problem in wrong:
        _complain(problem, screen)
    if wrong:
        return 2
    given = sum(origin.source != "default" for origin in settings.origins.values())
    if not as_json:
        screen.note(f"{counted(len(settings.origins), 'setting')}, {given} of them given; all can be used")
        return 0
    return _written(json.dumps({"settings": len(settings.origins), "given": given}) + "\n", screen)


def _written(text: str, screen: Screen) -> int:
    try:
        write_out(text)
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    return 0


def _load(config: Path | None, flags: Mapping[str, object], screen: Screen) -> Settings | None:
    if config is not None and (reason := _cant_open(config)):
        _complain(SettingsProblem(str(config), f"this file can't be read ({reason}); check --config"), screen)
        return None
    try:
        return load_settings(config, os.environ, flags)
    except SettingsError as error:
        for problem in error.problems:
            _complain(problem, screen)
        return None


def _cant_open(path: Path) -> str:
    try:
        path.open("rb").close()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else "unknown reason"
    return ""


def _complain(problem: SettingsProblem, screen: Screen) -> None:
    screen.error(str(problem), place=problem.place)


def _wrong_files(settings: Settings) -> list[SettingsProblem]:
    """Look at the files that the settings name: what can't be used now would end the service's start."""
    wrong = []
    if settings.service.callers is not None:
        try:
            parse_callers(read_callers_file(Path(settings.service.callers))[0])
        except CallersError as error:
            wrong.append(_about("service.callers", settings, error.problem.text))
    if settings.fetch.ca_file is not None:
        try:
            ssl.create_default_context(cafile=settings.fetch.ca_file)
        except (OSError, ValueError):
            wrong.append(
                _about("fetch.ca_file", settings, "this file can't be read, or holds no PEM certificates")
            )
    data = settings.service.data
    if data is not None and os.path.lexists(data) and not Path(data).is_dir():
        wrong.append(_about("service.data", settings, "this is no folder"))
    return wrong


def _about(name: str, settings: Settings, text: str) -> SettingsProblem:
    return SettingsProblem(str(settings.origins[name]), f"{name}: {text}")


def _public(row: SettingRow) -> SettingRow:
    if row.name not in _URLS:
        return row
    shown = _QUERY_VALUE.sub(HIDDEN, _PASSWORD.sub(f"{HIDDEN}@", row.value))
    return replace(row, value=shown)


def _view(row: SettingRow) -> dict[str, str]:
    return {
        "name": row.name,
        "value": row.value,
        "source": row.origin.source,
        "place": row.origin.place,
    }


def _table(rows: list[SettingRow]) -> str:
    names = max(len(row.name) for row in rows)
    # One long list must not push the origins of all others to the right.
    values = min(24, max(len(row.value) for row in rows))
    lines = [f"{row.name.ljust(names)}  {row.value.ljust(values)}  {row.origin}" for row in rows]
    return "".join(f"{visible(line)}\n" for line in lines)
