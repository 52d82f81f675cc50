"""What would a leak look like? A few to plant, so that it can be seen that they are found."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio

Leak = Callable[[], object]
Planted = tuple[Leak, Callable[[], object]]


def _a_list_that_grows() -> Planted:
    kept: list[bytes] = []
    return lambda: kept.append(b"x" * 200_000), kept.clear


def _a_descriptor_left_open() -> Planted:
    kept: list[Any] = []

    def uproot() -> None:
        for file in kept:
            file.close()

    return lambda: kept.append(Path(__file__).open()), uproot


def _a_thread_left() -> Planted:
    over = threading.Event()
    return lambda: threading.Thread(target=over.wait, daemon=True).start(), over.set


def _a_logger_a_life() -> Planted:
    names: list[str] = []

    def plant() -> None:
        names.append(f"sift_batch.job.{len(names)}")
        logging.getLogger(names[-1])

    def uproot() -> None:
        for name in ("sift_batch.job", *names):
            logging.Logger.manager.loggerDict.pop(name, None)

    return plant, uproot


def _a_task_left() -> Planted:
    return lambda: trio.lowlevel.spawn_system_task(trio.sleep_forever), lambda: None


LEAKS: Final[dict[str, Callable[[], Planted]]] = {
    "list": _a_list_that_grows,
    "descriptor": _a_descriptor_left_open,
    "thread": _a_thread_left,
    "logger": _a_logger_a_life,
    "task": _a_task_left,
}
"""Each plants a leak at every call of the first function, and takes all of it back by the second."""
