"""How does a run on Trio come out the same twice? The one place that reaches into Trio for it.

Trio shuffles the tasks that are ready at the same time, so that nobody leans on their order. A failing
seed must reproduce, though, so here that shuffle is seeded. Trio has no public way to do this.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio


@contextmanager
def deterministic(seed: int) -> Iterator[None]:
    """Make every `trio.run` inside the block schedule its tasks as `seed` says."""
    run = trio._core._run
    allowed, state = run._ALLOW_DETERMINISTIC_SCHEDULING, run._r.getstate()
    run._ALLOW_DETERMINISTIC_SCHEDULING = True
    run._r.seed(seed)
    try:
        yield
    finally:
        run._ALLOW_DETERMINISTIC_SCHEDULING = allowed
        run._r.setstate(state)
