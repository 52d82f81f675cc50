"""What does a finished target look like on the outside?

One JSON object a line, in ASCII, so that no page's text reaches a terminal as a command; and the file
or pipe that takes the lines. It reads no store. Next: `batch`, which puts the lines in order.
"""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from .._model.values import TargetStatus
from .hints import hint_with_flag
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
        "hint": hint_with_flag(status.hint) or str(meta.get("hint", "")),
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

    A reader that is slow holds up this task only, and never the fetches. `target` is a descriptor, or
    the path of a file that there is not yet. `make_way` is called before lines go to a terminal.
    """

    def __init__(
        self,
        target: int | Path,
        *,
        starts_over: bool = False,
        make_way: Callable[[], None] | None = None,
    ) -> None:
        self._new = target if isinstance(target, Path) else None
        self._descriptor = -1 if isinstance(target, Path) else target
        self._starts_over = starts_over
        self._make_way = make_way
        self._thread = trio.CapacityLimiter(1)
        self.is_terminal = self._new is None and os.isatty(self._descriptor)

    @property
    def has_lines(self) -> bool:
        """Whether `begin` would throw lines of an earlier run away."""
        return self._starts_over and self._new is None and self._size() > 0

    def begin(self) -> None:
        """Make the file, or empty it; called once it is certain that no other run writes it.

        Raises `OSError`: `FileExistsError` when somebody else has made the file meanwhile.
        """
        if self._new is not None:
            # Not before: a run that is refused then leaves no empty file behind.
            self._descriptor = os.open(self._new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
            if self._size():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        elif self._starts_over and self._is_file():
            os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _is_file(self) -> bool:
        return stat.S_ISREG(os.fstat(self._descriptor).st_mode)

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size if self._is_file() else 0

    async def write(self, data: bytes) -> None:
        """Write all of `data`. Raises `OSError`; if cancelled, a part of it may be written."""
        if self.is_terminal:
            if self._make_way is not None:
                self._make_way()
            _write_all(self._descriptor, data)
        else:
            # A thread stuck on a reader that never reads must not keep the process from ending.
            await trio.to_thread.run_sync(
                _write_all, self._descriptor, data, abandon_on_cancel=True, limiter=self._thread
            )

    def sync(self) -> None:
        """Make what was written survive a power cut, where it is a file. Raises `OSError`."""
        if self._is_file():
            os.fsync(self._descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
