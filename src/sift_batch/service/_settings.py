"""Which settings are in force, and who said so?

Defaults, then a TOML file, then the environment, then flags: the later one wins. A name that nobody
knows is refused with the nearest known one, a bad value with its place and what it may be. No error
shows a value. Next: `_server` and the wiring, which use what is in force.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal, cast

from sift_batch import Config
from sift_batch.fetch import FetchConfig

from ._fields import SECTIONS, Field, Unfit, all_fields, allowed, read_value, value_text
from ._service_config import CALLERS_NEEDED, GateConfig, ServiceConfig, is_host
from ._toml import TomlError, nearest, place_of, read_toml, similar

PREFIX: Final = "SIFT_BATCH_"
_NO_SETTINGS: Final = frozenset({"SIFT_BATCH_SERVER", "SIFT_BATCH_KEY"})
"""Variables of the command line: which service, and with which key."""

_LARGEST_FILE: Final = 65_536
_LINE: Final = re.compile(r", line (\d{1,9})(?:, column \d+)?\Z")
# Shorter than a key: one that was pasted in the place of a name is not shown.
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,50}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting's value came from. `place`: the file and line, the variable or the flag."""

    source: Literal["default", "file", "environment", "flag"]
    place: str = ""

    def __str__(self) -> str:
        return self.place or "default"


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """One thing that is wrong: `place` says where it was given, `text` what is allowed; no value."""

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class SettingsError(ValueError):
    """Settings that can't be used. `problems` has everything that is wrong, one line each in the text."""

    def __init__(self, problems: Iterable[SettingsProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One line of `config show`: `engine.ttl`, `24h`, and where that came from."""

    name: str
    value: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings in force. `origins` has where each came from, by its full name."""

    engine: Config
    gate: GateConfig
    fetch: FetchConfig
    service: ServiceConfig
    origins: Mapping[str, Origin]

    def rows(self) -> list[SettingRow]:
        """Return all settings for a person to read, by section, with their origins. None is a secret."""
        return [
            SettingRow(name, value_text(field, self._value(field)), self.origins[name])
            for name, field in all_fields().items()
        ]

    def fetch_kept(self) -> FetchConfig:
        """The fetch's settings, with the engine's limit on a result if that is lower.

        What is too long is cut by the fetch then, which knows its blocks and says how much there was.
        """
        most = min(self.fetch.result_max_bytes, self.engine.result_max_bytes)
        return replace(self.fetch, result_max_bytes=most)

    def _value(self, field: Field) -> object:
        return getattr(getattr(self, field.section), field.name)


@dataclass(frozen=True, slots=True)
class _Given:
    value: object
    origin: Origin


def load_settings(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Return the settings of a file, an environment and flags, over the defaults.

    `flags` has values by full name (`service.port`), as texts or as what they stand for; one that is
    None, or an empty tuple, was not given. Raises `SettingsError` with everything that is wrong.
    """
    problems: list[SettingsProblem] = []
    given: dict[str, _Given] = {}
    for source in (
        _from_file(path, problems) if path is not None else {},
        _from_environment(environ or {}, problems),
        _from_flags(flags or {}),
    ):
        # What can't be read is an error even where a later source has a value of its own.
        given |= _read(source, problems)
    made = {section: _make(section, given, problems) for section in SECTIONS}
    if problems:
        raise SettingsError(sorted(problems, key=_line_of))
    default = Origin("default")
    return Settings(
        engine=cast("Config", made["engine"]),
        gate=cast("GateConfig", made["gate"]),
        fetch=cast("FetchConfig", made["fetch"]),
        service=cast("ServiceConfig", made["service"]),
        origins={name: given[name].origin if name in given else default for name in all_fields()},
    )


def _from_file(path: Path, problems: list[SettingsProblem]) -> dict[str, _Given]:
    place = str(path) if str(path).isprintable() else "settings file"
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError):
        problems.append(SettingsProblem(place, "this file can't be read"))
        return {}
    if len(raw) > _LARGEST_FILE:
        problems.append(SettingsProblem(place, f"this file has more than {_LARGEST_FILE:,} bytes"))
        return {}
    try:
        text, tables = read_toml(raw)
    except TomlError as error:
        what = "must be UTF-8" if error.code == "encoding" else "this is not valid TOML"
        problems.append(SettingsProblem(_on_line(place, *error.place), what))
        return {}
    given: dict[str, _Given] = {}
    for section, table in tables.items():
        where = _on_line(place, place_of(text, [section]).line)
        if section not in SECTIONS:
            what = f"there is no table {_shown(section)}; {_table_meant(section)}"
            problems.append(SettingsProblem(where, what))
        elif not isinstance(table, dict):
            problems.append(SettingsProblem(where, f"{section} must be a table: [{section}]"))
        else:
            for name, value in table.items():
                where = _on_line(place, place_of(text, [section, name]).line)
                if f"{section}.{name}" in all_fields():
                    given[f"{section}.{name}"] = _Given(value, Origin("file", where))
                else:
                    problems.append(SettingsProblem(where, _unknown(section, name)))
    return given


def _from_environment(environ: Mapping[str, str], problems: list[SettingsProblem]) -> dict[str, _Given]:
    known = {field.variable: name for name, field in all_fields().items()}
    given: dict[str, _Given] = {}
    for variable in sorted(environ):
        if variable in known:
            given[known[variable]] = _Given(environ[variable], Origin("environment", variable))
        elif variable.startswith(PREFIX) and variable not in _NO_SETTINGS:
            near = nearest(variable, {name.lower() for name in (*known, *_NO_SETTINGS)}).upper()
            place = _shown(variable, f"an environment variable with {PREFIX}")
            problems.append(SettingsProblem(place, f"there is no such setting; did you mean {near}?"))
    return given


def _from_flags(flags: Mapping[str, object]) -> dict[str, _Given]:
    return {
        name: _Given(value, Origin("flag", all_fields()[name].flag))
        for name, value in flags.items()
        if value is not None and value != ()
    }


def _read(source: Mapping[str, _Given], problems: list[SettingsProblem]) -> dict[str, _Given]:
    """Return what the values of one source stand for, and complain about those that can't be read."""
    read: dict[str, _Given] = {}
    for name, item in source.items():
        field = all_fields()[name]
        try:
            read[name] = _Given(read_value(field, item.value), item.origin)
        except Unfit:
            problems.append(_unfit(field, item.origin))
    return read


def _make(section: str, given: Mapping[str, _Given], problems: list[SettingsProblem]) -> object:
    """Return the frozen value of a section; complain about each field that it does not take."""
    fields = {field.name: field for field in all_fields().values() if field.section == section}
    values = {
        name: given[field.full_name].value for name, field in fields.items() if field.full_name in given
    }
    while True:
        try:
            return SECTIONS[section](**values)
        except (TypeError, ValueError) as error:
            # The texts of these errors hold the value; the name of the field is all that is taken.
            message = error.args[0] if error.args else ""
            name = message.split(" ", 1)[0] if isinstance(message, str) else ""
        if name not in values:
            # Nothing that was given is to blame by name: say so about the section, and stop.
            problems.append(SettingsProblem(f"[{section}]", "these settings do not go together"))
            return None
        item = given[fields[name].full_name]
        problems.append(_unfit(fields[name], item.origin, item.value))
        del values[name]


def _unfit(field: Field, origin: Origin, value: object = None) -> SettingsProblem:
    what = f"must be {allowed(field)}"
    if field.full_name == "service.host" and isinstance(value, str) and is_host(value):
        what = CALLERS_NEEDED
    return SettingsProblem(origin.place, f"{field.full_name} {what}")


def _table_meant(name: str) -> str:
    near = similar(name, SECTIONS)
    found = _elsewhere(name) or (f"[{near}]" if near else None)
    return f"did you mean {found}?" if found else f"the tables are {', '.join(f'[{it}]' for it in SECTIONS)}"


def _unknown(section: str, name: str) -> str:
    names = [field.name for field in all_fields().values() if field.section == section]
    near = _elsewhere(name) or f"{section}.{nearest(name, names)}"
    return f"there is no setting {_shown(name)} in [{section}]; did you mean {near}?"


def _elsewhere(name: str) -> str | None:
    """Return the full name of a setting that was given in the wrong table."""
    return next((field.full_name for field in all_fields().values() if field.name == name), None)


def _line_of(problem: SettingsProblem) -> int:
    """Return the file's line of a problem, for an order in which it can be read; what has none goes last."""
    found = _LINE.search(problem.place)
    return sys.maxsize if found is None else int(found[1])


def _on_line(place: str, line: int | None = None, column: int | None = None) -> str:
    place += "" if line is None else f", line {line}"
    return place + ("" if column is None else f", column {column}")


def _shown(name: str, instead: str = "of this name") -> str:
    """Return a name that was given, if it looks like one."""
    return name if _NAME.fullmatch(name) else instead
