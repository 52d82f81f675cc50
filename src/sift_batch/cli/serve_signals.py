"""What does a signal do to `sift-batch serve` before its loop takes signals?

Imports nothing heavy: it is in force while `serve_command` is still being imported. Next: `serve_command`.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class StoppedEarly(BaseException):
    """A signal to stop came while nothing was open yet."""


@contextmanager
def early_signals() -> Iterator[None]:
    """End the start with `StoppedEarly` at a signal to stop, and take no notice of SIGHUP.

    The callers are read after this, so there is nothing that SIGHUP could want read again; what it does by
    default would end a service that is told to reload as soon as it is started.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise StoppedEarly

    before = {number: signal.signal(number, stop) for number in STOPPING}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
