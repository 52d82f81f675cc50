"""What does a finished target look like on the outside?

One JSON object a line, in ASCII, so that no page's text reaches a terminal as a command; and the file
or pipe that takes the lines. It reads no store. Next: `batch`, which puts the lines in order.
"""

import json
import os
import stat
from typing import Any

import trio

from .._model.values import TargetStatus
from .targets import Item


def target_view(item: Item, status: TargetStatus) -> dict[str, Any]:
    """Return the public view of a finished target, with its place and its line in the input."""
    result = status.result
    meta = {} if result is None else dict(result.meta)
    view: dict[str, Any] = {
        "idx": item.idx,
        "url": status.url,
        "status": status.status.value,
        "chars": status.chars,
        "result": None if result is None else {"content": result.content, "meta": meta},
        "error": status.error,
        # Of a target that is done, a note says more than an error could: `truncated`, for instance.
        "code": status.code or str(meta.get("code", "")),
        "hint": status.hint or str(meta.get("hint", "")),
        "retryable": status.retryable,
        "http_status": status.http_status,
    }
    if item.line is not None:
        view["line"] = item.line
    if item.extra is not None:
        view["input"] = item.extra
    return view


def json_line(view: dict[str, Any]) -> bytes:
    """Return one line of JSON in ASCII, without a control character in it."""
    return json.dumps(view, separators=(",", ":")).encode() + b"\n"


class Sink:
    """Where lines go: a file, a pipe or a terminal, written past Python's own buffers.

    A reader that is slow holds up this task only, and never the fetches.
    """

    def __init__(self, descriptor: int, *, starts_over: bool = False) -> None:
        self._descriptor = descriptor
        self._starts_over = starts_over
        self._thread = trio.CapacityLimiter(1)
        self.is_terminal = os.isatty(descriptor)

    def begin(self) -> None:
        """Empty a file of an earlier run; called once it is certain that no other run writes it."""
        if self._starts_over and stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.ftruncate(self._descriptor, 0)

    async def write(self, data: bytes) -> None:
        """Write all of `data`. Raises `OSError`; if cancelled, a part of it may be written."""
        if self.is_terminal:
            _write_all(self._descriptor, data)
        else:
            # A thread stuck on a reader that never reads must not keep the process from ending.
            await trio.to_thread.run_sync(
                _write_all, self._descriptor, data, abandon_on_cancel=True, limiter=self._thread
            )

    def sync(self) -> None:
        """Make what was written survive a power cut, where it is a file. Raises `OSError`."""
        if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            os.fsync(self._descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
