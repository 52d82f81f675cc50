"""Does the store still take results? If not for long, somebody must say so: the runner offers for ever.

It ends nothing itself. Next: `batch`, which does.
"""

import math
from collections.abc import Callable, Iterable
from typing import Final

import trio

from sift_batch import Runner, StoreError

from .plan import Outcome

_LOOK_EVERY: Final = 1.0
_TROUBLE_FOR: Final = 10.0
MAKE_ROOM: Final = "make room on the disk and run it again"


async def watch_store(
    runner: Runner, live: Callable[[], Iterable[str]], outcome: Outcome, failed: Callable[[str], object]
) -> None:
    """Call `failed`, with what to do, once the store of these live jobs takes nothing any more.

    Goes on while the runner closes: what is in flight then is offered to the store until the grace is over.
    Returns when the runner has closed.
    """
    since, fetched = math.inf, -1
    while True:
        await trio.sleep(_LOOK_EVERY)
        try:
            waits = [runner.progress(job_id) for job_id in live()]
            if not any(wait is not None and wait.reason == "store" for wait in waits):
                # Between two tries nothing waits; only what was stored meanwhile says that all is well.
                since = math.inf if outcome.fetched != fetched else since
                continue
            since, fetched = min(since, trio.current_time()), outcome.fetched
            await runner.check()
        except trio.ClosedResourceError:
            return
        except StoreError as error:
            reason = str(error.args[0])
            is_full = "SQLITE_FULL" in reason
            failed(MAKE_ROOM if is_full else f"{reason}; look at the disk and run it again")
            return
        # A last free block may take what the check writes, and no result.
        if trio.current_time() - since > _TROUBLE_FOR:
            failed(MAKE_ROOM)
            return
