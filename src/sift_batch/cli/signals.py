"""Which signals end the command?

Asked by `main`, for the time in which input is read, and by `batch`, which stops in good order.
"""

import signal


def ending_signals() -> list[signal.Signals]:
    """Return SIGTERM, and SIGHUP where there is one, unless it is ignored: under nohup it stays so."""
    numbers = [signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return numbers
