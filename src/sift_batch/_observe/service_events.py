"""What can the service say, beside the engine's events, and with which fields?

The same kind of registry as `events`: no free text, so that nothing of a request gets into a line. Of an
error it has the type, if that is a class that a loaded module really has, and the place; never its text.
Next: `log`, which sends both kinds.
"""

import logging
import sys
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Final

from .events import EVENTS, Event, Value, event, name, seconds, site, whole, word
from .exceptions import UNKNOWN, place, type_name

_CALLERS_PROBLEMS: Final = """
missing not_a_file owner mode too_large unreadable encoding toml no_callers unknown_name missing_name
bad_caller bad_name bad_class bad_keys bad_digest too_many_keys bad_workspace bad_expires bad_revoked
duplicate_name duplicate_key bad_folder unmakeable bad_key_file
"""
CALLERS_PROBLEMS: Final = frozenset(_CALLERS_PROBLEMS.split())
"""Why a callers file is not in force; anything else is `other`."""

SERVER_TROUBLE: Final = (
    "refused_full",
    "evicted",
    "accept_failed",
    "connection_failed",
    "forced_close",
)
"""What goes wrong at the server itself, and is worth a line."""

STOP_SIGNALS: Final = ("SIGINT", "SIGTERM")

_TYPE_LIMIT: Final = 120


def flag(value: object) -> Value | None:
    """Check a truth value."""
    return value if type(value) is bool else None


def error_type(value: object) -> Value | None:
    """Check the name of an exception's class, `module.Name`, which a loaded module must have."""
    if value == UNKNOWN:
        return UNKNOWN
    if type(value) is not str or not value.isascii() or len(value) > _TYPE_LIMIT:
        return None
    module, _, last = value.rpartition(".")
    found = vars(sys.modules.get(module or "builtins") or object).get(last)
    return value if isinstance(found, type) and issubclass(found, BaseException) else None


def failure(error: BaseException) -> dict[str, str]:
    """Return the fields `error` and `site` of an error: its type, and where in this package it was raised.

    The place is the innermost of ours, since a library's alone says little; else the innermost of all.
    """
    places = _places(error.__traceback__)
    ours = [item for item in places if item.startswith("sift_batch.")]
    return {
        "error": UNKNOWN if error_type(kind := type_name(type(error))) is None else kind,
        "site": (ours or places or [UNKNOWN])[-1],
    }


def _places(traceback: TracebackType | None) -> list[str]:
    places = []
    while traceback is not None:
        places.append(place(traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return places


SERVICE_EVENTS: Final[Mapping[str, Event]] = MappingProxyType(
    {
        "service.starting": event(logging.INFO, single_user=flag),
        "service.ready": event(logging.INFO, port=whole, metrics_port=whole),
        "service.stopping": event(logging.INFO, signal=word(*STOP_SIGNALS)),
        "service.stopped": event(logging.INFO, seconds=seconds),
        "service.cut_short": event(logging.WARNING, signal=word(*STOP_SIGNALS)),
        "callers.reloaded": event(logging.INFO),
        "callers.refused": event(logging.WARNING, problem=name(CALLERS_PROBLEMS), line=whole, column=whole),
        "callers.taken": event(logging.INFO, callers=whole, keys=whole),
        "request.failed": event(logging.ERROR, fleet="error site", error=error_type, site=site),
        "auth.failures": event(logging.WARNING, failures=whole, seconds=seconds),
        "server.trouble": event(logging.WARNING, kind=word(*SERVER_TROUBLE), times=whole),
        "log.unsealed": event(logging.WARNING, handlers=whole),
    }
)
"""Every event of the service."""

ALL_EVENTS: Final[Mapping[str, Event]] = MappingProxyType({**EVENTS, **SERVICE_EVENTS})
"""Every event that may be logged."""
