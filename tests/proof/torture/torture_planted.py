"""Would torture see a fault if there was one? Faults to plant in the engine, and who must see each.

Each is a text of the source and what stands in its place while it is planted (`breakages.py`). Some can
be seen by one kind of torture alone: that is why there are three.
"""

from types import ModuleType
from typing import Final, NamedTuple

from sift_batch._engine import attempt, drain, intake, ledger, upkeep
from sift_batch._gate import gate
from sift_batch._store import bridge


class Planted(NamedTuple):
    """One fault; `seen_by` is a kind of torture, `plan` one round that shows it."""

    name: str
    module: ModuleType
    old: str
    new: str
    seen_by: str
    plan: str


PLANTED: Final = (
    Planted(
        "a foreign error of the store passes",
        ledger,
        'raise StoreError(f"the store could not do this step ({type(exc).__name__})") from exc',
        "raise",
        "store",
        "memory store@30=foreign",
    ),
    Planted(
        "a step is offered again once only",
        ledger,
        "delay = min(2 * delay, _LAST_DELAY)",
        "raise",
        "compound",
        "memory store@14=refused store@18=refused",
    ),
    Planted(
        "a refused sweep ends the upkeep",
        upkeep,
        "except StoreError as exc:\n            self._ledger.trouble",
        "except LookupError as exc:\n            self._ledger.trouble",
        "store",
        "memory store@4=refused",
    ),
    Planted(
        "what is no Exception passes through an attempt",
        attempt,
        "except BaseException as exc:  # noqa: ASYNC103 - `contain` raises what must pass\n"
        "        return _weigh_error",
        "except Exception as exc:\n        return _weigh_error",
        "fetch",
        "memory fetch@1=panic",
    ),
    Planted(
        "a group is judged by its first error",
        attempt,
        "return next((leaf for leaf in others if isinstance(leaf, TargetError)), others[0])",
        "return others[0]",
        "fetch",
        "memory fetch@1=group",
    ),
    Planted(
        "a fetch that keeps its result past its time has none",
        attempt,
        "if result is _NOTHING:",
        "if result is _NOTHING or scope.cancel_called:",
        "fetch",
        "memory fetch@1=stubborn",
    ),
    Planted(
        "a cancellation hides a step that is done",
        bridge,
        "await trio.lowlevel.cancel_shielded_checkpoint()",
        "await trio.lowlevel.checkpoint()",
        "cancel",
        "memory strike:submit@1",
    ),
    Planted(
        "a cancelled submit is remembered",
        intake,
        "self._roster.forget(live)\n        if isinstance(exc, StoreError):",
        "if isinstance(exc, StoreError):\n            self._roster.forget(live)",
        "compound",
        "memory store@2=slow strike:submit@5",
    ),
    Planted(
        "a cancelled wait at the gate keeps its place",
        gate,
        "        except BaseException:\n            self._leave(claim)\n            raise",
        "        except RetryLater:\n            self._leave(claim)\n            raise",
        "cancel",
        "memory strike:visit@8",
    ),
    Planted(
        "a target starts after the closing has begun",
        drain,
        "if live.stopped is None and not self._shop.closing.begun:",
        "if live.stopped is None:",
        "quiet",
        "memory",
    ),
)

ALONE: Final = (
    "a foreign error of the store passes",
    "what is no Exception passes through an attempt",
    "a cancelled wait at the gate keeps its place",
    "a step is offered again once only",
)
"""Each is seen by one kind alone: by a failing call, a failing fetch, a strike, by two faults in a row."""
