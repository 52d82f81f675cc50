"""What can be told of an error without any of its text?

Its type, if that is a class that a loaded module really has; the places it passed through; and a few
facts with closed sets of values (errno, the resolver's code, the certificate check, SQLite's name).
Never a message, an argument, a note, a local, a source line or a file name: all of these can hold a
target. No method of the error is called, so one whose `__str__` raises or lies makes no difference.
Next: `redact` and `seal`, which put the result into a line.
"""

import errno
import sys
from collections.abc import Iterator
from types import FrameType, ModuleType, TracebackType
from typing import Any, Final, TypeGuard

from .events import SQLITE_NAMES

UNKNOWN: Final = "unknown"
_CHAIN_LIMIT: Final = 10
_NODE_LIMIT: Final = 24
_PLACES_LIMIT: Final = 12
_NAME_LIMIT: Final = 120

_dict_of: Final = type.__dict__["__dict__"].__get__
_mro_of: Final = type.__dict__["__mro__"].__get__
_qualname_of: Final = type.__dict__["__qualname__"].__get__
_module_of: Final = type.__dict__["__module__"].__get__
_cause_of: Final = BaseException.__dict__["__cause__"].__get__
_context_of: Final = BaseException.__dict__["__context__"].__get__
_traceback_of: Final = BaseException.__dict__["__traceback__"].__get__
_members_of: Final = BaseExceptionGroup.__dict__["exceptions"].__get__
_errno_of: Final = OSError.__dict__["errno"].__get__
_own_of: Final = BaseException.__dict__["__dict__"].__get__

# `EAI_…` numbers differ between systems; the module that has them is only asked if it is loaded.
_RESOLVER_CODES: Final = """
EAI_AGAIN EAI_ADDRFAMILY EAI_BADFLAGS EAI_FAIL EAI_FAMILY EAI_MEMORY EAI_NODATA EAI_NONAME EAI_OVERFLOW
EAI_SERVICE EAI_SOCKTYPE EAI_SYSTEM
"""


def describe(error: BaseException) -> str:
    """Return one line on `error`, its causes and the members of a group; never any of its text.

    Such as `ConnectError[ECONNREFUSED] at app.jobs:12, app.net:80; from OSError at app.net:71`.
    At most 10 links of a chain and 24 errors in all. Never raises.
    """
    try:
        return _describe(error, {}, 0)
    except Exception:  # a description must never be the second fault
        return UNKNOWN


def _describe(error: BaseException, seen: dict[int, None], depth: int) -> str:
    if id(error) in seen or depth >= _CHAIN_LIMIT or len(seen) >= _NODE_LIMIT:
        return "..."
    seen[id(error)] = None
    text = type_name(type(error))
    if facts := ",".join(_facts(error)):
        text += f"[{facts}]"
    if where := ", ".join(_places(_traceback_of(error))):
        text += f" at {where}"
    if issubclass(type(error), BaseExceptionGroup):
        members = [_describe(member, seen, depth + 1) for member in _members_of(error)[:_NODE_LIMIT]]
        text += " {" + " | ".join(members) + "}"
    # A suppressed context is followed too: it often holds the only cause (`raise … from None`).
    below = _cause_of(error) or _context_of(error)
    if below is not None:
        text += f"; from {_describe(below, seen, depth + 1)}"
    return text


def type_name(cls: type) -> str:
    """Return the name of `cls` if it really is that attribute of that loaded module, else `unknown`.

    A class that was made under the name of a host is not to be found anywhere, so it has no name here.
    """
    module = _module_of(cls)
    qualname = _qualname_of(cls)
    if type(module) is not str or type(qualname) is not str or len(module) + len(qualname) > _NAME_LIMIT:
        return UNKNOWN
    found: object = sys.modules.get(module)
    for name in qualname.split("."):
        space = _namespace(found)
        if space is None or name not in space:
            return UNKNOWN
        found = space[name]
    if found is not cls or not qualname.isascii():
        return UNKNOWN
    return qualname if module == "builtins" else f"{module}.{qualname}"


def _namespace(thing: object) -> Any:
    if isinstance(thing, type):
        return _dict_of(thing)
    return vars(thing) if isinstance(thing, ModuleType) else None


def _facts(error: BaseException) -> Iterator[str]:
    own = _own_of(error)
    if issubclass(type(error), OSError):
        yield from _number_names(error)
    for name in ("verify_code", "error_status_hint"):
        value = own.get(name)
        if type(value) is int and 0 < value < 1_000:
            yield f"{name}={value}"
    name = own.get("sqlite_errorname")
    if type(name) is str and name in SQLITE_NAMES:
        yield name


def _number_names(error: BaseException) -> Iterator[str]:
    number = _errno_of(error)
    if type(number) is not int:
        return
    socket = sys.modules.get("socket")
    if socket is not None and issubclass(type(error), socket.gaierror):
        yield next((name for name in _RESOLVER_CODES.split() if getattr(socket, name, None) == number), "EAI")
    elif number in errno.errorcode and not type_name(type(error)).startswith("ssl."):
        yield errno.errorcode[number]


def _places(traceback: TracebackType | None) -> Iterator[str]:
    places: list[str] = []
    while traceback is not None:
        places.append(place(traceback.tb_frame, traceback.tb_lineno))
        del places[:-_PLACES_LIMIT]
        traceback = traceback.tb_next
    yield from places


def place(frame: FrameType, line: int | None) -> str:
    """Return `module:line` if the frame runs code of a loaded module, else `unknown`."""
    name = frame.f_globals.get("__name__")
    if type(name) is not str or len(name) > _NAME_LIMIT or not name.isascii():
        return UNKNOWN
    module = sys.modules.get(name)
    if not isinstance(module, ModuleType) or vars(module) is not frame.f_globals:
        return UNKNOWN
    return f"{name}:{line or 0}"


def log_call_place(code_filename: object, line: object) -> str:
    """Return the place of the log call that the logging module found at this file and line."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  the documented way to walk the stack
    while frame is not None:
        if frame.f_code.co_filename == code_filename and frame.f_lineno == line:
            return place(frame, frame.f_lineno)
        frame = frame.f_back
    return UNKNOWN


def calling_place(*skip: str) -> str:
    """Return the place of the nearest caller in no module whose name begins with one of `skip`."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  the documented way to walk the stack
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if type(name) is not str or not name.startswith(skip):
            return place(frame, frame.f_lineno)
        frame = frame.f_back
    return UNKNOWN


def current_or(exc_info: object) -> BaseException | None:
    """Return the error that a logger's `exc_info` argument means, if it means one."""
    if is_error(exc_info):
        return exc_info
    if type(exc_info) is tuple and len(exc_info) > 1:
        return exc_info[1] if is_error(exc_info[1]) else None
    return sys.exception() if type(exc_info) in (bool, int) and exc_info else None


def is_error(value: object) -> TypeGuard[BaseException]:
    """Say whether `value` is an exception, whatever its `__class__` claims."""
    return issubclass(type(value), BaseException)
