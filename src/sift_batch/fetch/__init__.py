"""What does one target give? The fetch pipeline that an application gives to the engine (extra `fetch`).

`open_fetcher` gives a fetch that is safe on hostile input: guarded addresses, caps on everything, pages
read in worker processes. `check_target` says beforehand what would be refused. `FetchConfig` has the
settings, `FetchError` the closed list of ways to fail. Next: `_fetcher`, then `_pipeline` (the main job).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._config import FetchConfig
    from ._errors import FetchError
    from ._fetcher import check_target, open_fetcher

# Where each public name lives. It is imported when it is first asked for, so that a program that wants
# one of them does not wait for the HTTP client.
_HOMES = {
    "FetchConfig": "_config",
    "FetchError": "_errors",
    "check_target": "_fetcher",
    "open_fetcher": "_fetcher",
}

__all__ = ["FetchConfig", "FetchError", "check_target", "open_fetcher"]


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
