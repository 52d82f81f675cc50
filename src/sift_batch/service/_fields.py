"""Which settings are there, of which kind is each, and what may it be?

The list is made from the frozen values that hold the settings, so that a new field of one is a new
setting at once. Nothing here knows where a value comes from. Next: `_settings`, which puts the four
sources together.
"""

import enum
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from dataclasses import fields as fields_of
from functools import cache
from typing import Final

from sift_batch import Config
from sift_batch.fetch import FetchConfig

from ._service_config import GateConfig, ServiceConfig
from ._units import duration_text, read_duration, read_size, read_whole, size_text

SECTIONS: Final[Mapping[str, type]] = {
    "engine": Config,
    "gate": GateConfig,
    "fetch": FetchConfig,
    "service": ServiceConfig,
}
"""The tables of a settings file and the frozen value that each becomes."""

_TEXT_LIMIT: Final = 4_096
_LIST_LIMIT: Final = 1_024
_LARGEST: Final = 2**62
_SIZES_BY_OTHER_NAMES: Final = frozenset({"extract_memory"})

# What a value must be, where its kind does not say it all.
_ALLOWED: Final[Mapping[str, str]] = {
    "gate.per_host": "a whole number from 1 to gate.total",
    "fetch.allow": "a list of networks such as 10.0.0.0/8, fd00::/8",
    "fetch.deny": "a list of networks such as 10.0.0.0/8, fd00::/8",
    "fetch.nat64": "a list of IPv6 networks of /96 such as 64:ff9b::/96",
    "fetch.allow_names": "a list of names such as wiki.corp, or suffixes such as .corp",
    "fetch.archive": 'an http or https URL with {url} in it, or "none"',
    "fetch.user_agent": "a text of printable ASCII",
    "service.host": "an address such as 127.0.0.1, or a host name",
    "service.metrics_host": "an address such as 127.0.0.1, or a host name",
    "service.port": "a port from 0 (a free one) to 65535",
    "service.metrics_port": "a port from 0 (a free one) to 65535",
    "service.server_name": "a list of host names such as sift.example.org",
}


class Kind(enum.Enum):
    """How a setting is written."""

    SECONDS = enum.auto()
    SIZE = enum.auto()
    COUNT = enum.auto()
    SWITCH = enum.auto()
    TEXT = enum.auto()
    TEXT_OR_NONE = enum.auto()
    LIST = enum.auto()
    PORTS = enum.auto()


class Unfit(Exception):
    """A value that is not of its setting's kind."""


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: `engine.ttl` is the field `ttl` of the section `engine`."""

    section: str
    name: str
    kind: Kind
    default: object

    @property
    def full_name(self) -> str:
        """The name with its section."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """The environment variable that gives it."""
        return f"SIFT_BATCH_{self.section}_{self.name}".upper()

    @property
    def flag(self) -> str:
        """The flag that gives it, on commands that have one."""
        # One flag of `serve` gives networks and names.
        name = "allow" if self.full_name == "fetch.allow_names" else self.name
        return "--" + name.replace("_", "-")


@cache
def all_fields() -> Mapping[str, Field]:
    """Return every setting by its full name, in the order of their sections."""
    found: dict[str, Field] = {}
    for section, value in SECTIONS.items():
        hints = typing.get_type_hints(value)
        for item in fields_of(value):
            kind = _kind(item.name, hints[item.name])
            if kind is not None:
                assert item.default is not MISSING
                field = Field(section, item.name, kind, item.default)
                found[field.full_name] = field
    return types.MappingProxyType(found)


def read_value(field: Field, raw: object) -> object:
    """Return what a TOML value, a variable's text or a flag's value stands for. Raises `Unfit`.

    Only the kind is looked at; whether the number is one that the field takes is decided when the
    frozen value is made.
    """
    value = _READERS[field.kind](raw)
    return tuple(value) if isinstance(value, list) else value


def allowed(field: Field) -> str:
    """Return what a setting may be, in words for whoever gave something else."""
    if field.full_name in _ALLOWED:
        return _ALLOWED[field.full_name]
    above = "of at least 0" if accepts(field, 0) else "above 0"
    return {
        Kind.SECONDS: f"a duration {above} such as 30s, 15m or 24h",
        Kind.SIZE: f"a size {above} such as 512KiB or 64MiB",
        Kind.COUNT: f"a whole number {above}",
        Kind.SWITCH: "true or false",
        Kind.TEXT: "a text",
        Kind.TEXT_OR_NONE: 'a text, or "none"',
        Kind.LIST: "a list of texts",
        Kind.PORTS: '"any", or a list of ports from 1 to 65535',
    }[field.kind] + (", or inf" if field.kind is Kind.SECONDS and accepts(field, math.inf) else "")


def accepts(field: Field, value: object) -> bool:
    """Return whether a setting takes a value while all others have their defaults."""
    try:
        SECTIONS[field.section](**{field.name: value})
    except (TypeError, ValueError):
        return False
    return True


def value_text(field: Field, value: object) -> str:
    """Return a value as a settings file writes it, without quotation marks round a text."""
    if value is None:
        return "any" if field.kind is Kind.PORTS else "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        writers: Mapping[Kind, Callable[..., str]] = {Kind.SECONDS: duration_text, Kind.SIZE: size_text}
        return writers.get(field.kind, str)(value)
    if isinstance(value, frozenset):
        return ",".join(str(port) for port in sorted(value))
    if isinstance(value, tuple | list):
        return ",".join(value)
    return str(value)


def _kind(name: str, hint: object) -> Kind | None:
    """Return the kind of a field by its type; None for what a text can't say (functions, contexts)."""
    parts = set(typing.get_args(hint))
    if hint is int:
        return Kind.SIZE if "bytes" in name or name in _SIZES_BY_OTHER_NAMES else Kind.COUNT
    simple = {float: Kind.SECONDS, bool: Kind.SWITCH, str: Kind.TEXT}
    for kind_type, kind in simple.items():
        if hint is kind_type:
            return kind
    if hint in (Sequence[str], tuple[str, ...]):
        return Kind.LIST
    if frozenset[int] in parts:
        return Kind.PORTS
    return Kind.TEXT_OR_NONE if {str, type(None)} <= parts else None


def _number(raw: object, read: Callable[[str], float | None]) -> float:
    value = read(raw) if isinstance(raw, str) else raw
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unfit
    # A whole number without bounds can't even be compared as a float.
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise Unfit
    return value


def _switch(raw: object) -> bool:
    for value in (True, False):
        if raw is value or raw == ("true" if value else "false"):
            return value
    raise Unfit


def _text(raw: object) -> str:
    # The environment of a process can hold bytes that are no text: they come as surrogates.
    if not isinstance(raw, str) or len(raw) > _TEXT_LIMIT or not all(char.isprintable() for char in raw):
        raise Unfit
    return raw


def _text_or_none(raw: object) -> str | None:
    text = _text(raw)
    if not text:
        raise Unfit
    return None if text == "none" else text


def _list(raw: object) -> list[str]:
    if isinstance(raw, str):
        raw = raw.split(",") if raw.strip() else []
    if not isinstance(raw, list | tuple) or len(raw) > _LIST_LIMIT:
        raise Unfit
    texts = [_text(item).strip() for item in raw]
    if not all(texts):
        raise Unfit
    return texts


def _ports(raw: object) -> frozenset[int] | None:
    if raw == "any":
        return None
    items = (
        raw
        if isinstance(raw, list | tuple | set | frozenset)
        else _list(str(raw) if type(raw) is int else raw)
    )
    ports = [
        item if type(item) is int else read_whole(item) if isinstance(item, str) else None for item in items
    ]
    if not ports or len(ports) > _LIST_LIMIT or not all(ports):
        raise Unfit
    return frozenset(port for port in ports if port is not None)


_READERS: Final[Mapping[Kind, Callable[[object], object]]] = {
    Kind.SECONDS: lambda raw: _number(raw, read_duration),
    Kind.SIZE: lambda raw: _number(raw, read_size),
    Kind.COUNT: lambda raw: _number(raw, read_whole),
    Kind.SWITCH: _switch,
    Kind.TEXT: _text,
    Kind.TEXT_OR_NONE: _text_or_none,
    Kind.LIST: _list,
    Kind.PORTS: _ports,
}
