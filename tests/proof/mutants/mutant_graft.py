"""How does a changed module take effect in a process that has imported it already?

The changed text is run once more beside the module, and what differs is grafted onto the functions and
constants that are in use: a function keeps its identity and gets the other code. So hundreds of changes are
tried, each in a fork, without importing anything anew. What can't be grafted (an enum, a default that was
copied elsewhere) is reported as not applied, never as applied. Next: `mutant_sweep`.
"""

import sys
import types
from typing import Any, Final

_PLAIN: Final = (bool, int, float, str, bytes, tuple, frozenset, type(None))


class NotGrafted(Exception):
    """The change would not take effect this way."""


def graft(name: str, source: str) -> None:
    """Let the module `name` behave like `source`. Raises `NotGrafted` if nothing came of it."""
    old = sys.modules[name]
    fresh = types.ModuleType(name)
    fresh.__dict__.update({key: old.__dict__[key] for key in ("__file__", "__package__", "__spec__")})
    exec(compile(source, str(old.__file__), "exec"), fresh.__dict__)
    if not sum(_graft_item(old, key, value) for key, value in list(fresh.__dict__.items())):
        raise NotGrafted


def _graft_item(old: types.ModuleType, key: str, value: Any) -> int:
    before = old.__dict__.get(key)
    if key.startswith("__") or before is value:
        return 0
    if isinstance(value, type):
        own = value.__module__ == old.__name__ and isinstance(before, type)
        return _graft_class(before, value) if own else 0
    if hasattr(value, "__code__") or hasattr(value, "__wrapped__"):
        return _graft_function(before, value)
    if type(value) in _PLAIN and repr(value) != repr(before):
        for module in list(sys.modules.values()):
            imported = getattr(module, "__name__", "").startswith("sift_batch")
            if imported and key in module.__dict__ and module.__dict__[key] is before:
                module.__dict__[key] = value
        return 1
    return 0


def _graft_class(old: Any, new: type) -> int:
    grafted = 0
    for key, value in vars(new).items():
        before = vars(old).get(key)
        if isinstance(value, property) and isinstance(before, property):
            grafted += _graft_function(before.fget, value.fget)
        elif isinstance(value, classmethod | staticmethod):
            grafted += _graft_function(getattr(before, "__func__", None), value.__func__)
        elif isinstance(value, types.FunctionType):
            grafted += _graft_function(before, value)
        elif not key.startswith("__") and type(value) in _PLAIN and repr(value) != repr(before):
            setattr(old, key, value)
            grafted += 1
    return grafted


def _graft_function(old: Any, new: Any) -> int:
    """Give `old`, and what it wraps, the code and the defaults of `new`; say how many changed."""
    grafted = 0
    while old is not None and new is not None:
        code = getattr(new, "__code__", None)
        if code is not None and isinstance(old, types.FunctionType):
            if old.__code__.co_freevars != code.co_freevars:
                raise NotGrafted
            grafted += old.__code__ != code or repr(old.__defaults__) != repr(new.__defaults__)
            old.__code__, old.__defaults__, old.__kwdefaults__ = code, new.__defaults__, new.__kwdefaults__
        old, new = getattr(old, "__wrapped__", None), getattr(new, "__wrapped__", None)
    return grafted
