"""How does an application test itself against the engine? With what is here, on Trio's mock clock.

Fakes that say what they were told to say (`ScriptedFetch`, `WallClock`, `FaultyStore`), a clock that
knows of threads (`ThreadAutojumpClock`), and the suites that say whether a store or a fetch of your own
may be given to a runner (`check_store`, `check_fetch`). No test framework is needed or imported.
"""

from ._check_fetch import FETCH_RULES, FetchCase, check_fetch
from ._check_store import STORE_RULES, check_store
from ._faulty_store import FaultyStore
from ._scripted_fetch import Call, ScriptedFetch
from ._thread_autojump import ThreadAutojumpClock
from ._wall_clock import WallClock

__all__ = [
    "FETCH_RULES",
    "STORE_RULES",
    "Call",
    "FaultyStore",
    "FetchCase",
    "ScriptedFetch",
    "ThreadAutojumpClock",
    "WallClock",
    "check_fetch",
    "check_store",
]
