"""What did a process ask of its disk, in which order, and when did it know that it was done?

`strace` writes down every call that changes files; this reads it back. A write counts from where it has
returned, and a sync covers what had returned before it began: two threads may be at it at the same time.
What a disk makes of the calls when the power goes is in `crash_medium.py`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_CALLS: Final = (
    "openat,close,write,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat"
)
# What this can't read: a trace in which one of them touches a file is no trace of everything.
_UNREAD: Final = "open,creat,truncate,writev,pwritev,pwritev2,fallocate,link,linkat,symlink,symlinkat"
_LINE: Final = re.compile(rb"(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))")
_STRING: Final = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
_RESULT: Final = re.compile(rb"\) += (-?\d+)(?: |$)")


NO_STRACE: Final = "strace is not installed, is too old (5.3 is needed), or may not trace here"


@cache
def strace() -> str | None:
    """Return the program that traces, or None where there is none that works: see `NO_STRACE`."""
    program = shutil.which("strace")
    if program is None:
        return None
    # That it is there says little: a container may forbid tracing.
    options = ("-f", "-qq", "--seccomp-bpf", "-e", "trace=close", "-o", os.devnull)
    try:
        done = subprocess.run([program, *options, "true"], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else program


def record_refusals(
    command: Sequence[str | Path], files: Sequence[Path], *, call: str, error: str, when: str, trace: Path
) -> tuple[int, str]:
    """Run a command whose calls on these files are refused at times; return how many were, and its errors.

    `when` counts the calls of each thread: "3" is the third, "3..9" that and what follows, and so on. With
    no error, nothing is refused, and what is returned is how many calls there were of the busiest thread.
    """
    program = strace()
    assert program is not None
    done = subprocess.run(
        [
            *(program, "-f", "-qq", "--seccomp-bpf", "-s", "0", "-o", trace, "-e", f"trace={call}"),
            *(word for file in files for word in ("-P", file)),
            *(("-e", f"inject={call}:error={error}:when={when}") if error else ()),
            *command,
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    lines = trace.read_text().splitlines()
    if error:
        return sum("(INJECTED)" in line for line in lines), done.stderr if done.returncode else ""
    threads = [line.split()[0] for line in lines]
    return max((threads.count(thread) for thread in set(threads)), default=0), done.stderr


@dataclass(frozen=True, slots=True)
class Act:
    """One call that changed a file or made changes last. `began` is the number of acts before it began."""

    call: str
    began: int
    path: str
    file: int
    data: bytes = b""
    offset: int = 0
    other: str = ""


def record(command: Sequence[str | Path], trace: Path, environment: dict[str, str] | None = None) -> None:
    """Run a command to its end and write down what it asks of the disk."""
    program = strace()
    assert program is not None
    done = subprocess.run(
        [
            *(program, "-f", "-qq", "--seccomp-bpf", "-xx", "-s", "10000000", "-o", trace),
            *("-e", f"trace={_CALLS},{_UNREAD}", *command),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"the traced process failed: {done.stderr[-2_000:]}")


def acts(trace: Path, folder: Path) -> list[Act]:
    """Return what was done to the files below `folder`, in the order in which it was done."""
    reader = _Reader(str(folder))
    for call, began, arguments, result in _calls(trace, lambda: len(reader.acts)):
        reader.take(call, began, arguments, result)
    return reader.acts


class _Reader:
    """Knows which file each descriptor stands for."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: dict[str, int] = {}
        self._open: dict[int, tuple[str, int]] = {}
        self._files = 0
        self.acts: list[Act] = []

    def take(self, call: str, began: int, arguments: bytes, result: int) -> None:
        """Take in one call that has returned."""
        strings = [
            bytes.fromhex(found[1].decode().replace("\\x", "")) for found in _STRING.finditer(arguments)
        ]
        paths = [text.decode("utf-8", "replace") for text in strings]
        if result < 0:
            return
        if call == "openat":
            self._opened(paths[0], arguments, result, began)
        elif call in ("rename", "renameat", "renameat2"):
            self._renamed(paths[0], paths[1], began)
        elif call in ("unlink", "unlinkat"):
            self._unlinked(paths[0], began)
        elif call in _UNREAD.split(","):
            if any(path.startswith(self._folder) for path in paths):
                raise RuntimeError(f"a call that can't be read changes a file: {call}")
        else:
            self._used(call, arguments, strings, result, began)

    def _opened(self, path: str, arguments: bytes, descriptor: int, began: int) -> None:
        self._open.pop(descriptor, None)
        if not path.startswith(self._folder):
            return
        if path not in self._names:
            self._files += 1
            self._names[path] = self._files
            if b"O_CREAT" in arguments:
                self.acts.append(Act("create", began, path, self._files))
        file = self._names[path]
        self._open[descriptor] = path, file
        if b"O_TRUNC" in arguments:
            self.acts.append(Act("ftruncate", began, path, file))

    def _renamed(self, old: str, new: str, began: int) -> None:
        if old.startswith(self._folder):
            file = self._names[new] = self._names.pop(old)
            self._open = {
                descriptor: (new if found == file else path, found)
                for descriptor, (path, found) in self._open.items()
            }
            self.acts.append(Act("rename", began, old, file, other=new))

    def _unlinked(self, path: str, began: int) -> None:
        if path.startswith(self._folder):
            self.acts.append(Act("unlink", began, path, self._names.pop(path)))

    def _used(self, call: str, arguments: bytes, strings: list[bytes], result: int, began: int) -> None:
        numbers = _STRING.sub(b"", arguments).split(b")")[0].replace(b" ", b"").split(b",")
        descriptor = int(numbers[0])
        if call == "close":
            self._open.pop(descriptor, None)
        elif descriptor in self._open:
            path, file = self._open[descriptor]
            data = strings[0][:result] if strings else b""
            offset = {"pwrite64": -1, "ftruncate": 1}.get(call)
            place = 0 if offset is None else int(numbers[offset])
            self.acts.append(Act(call, began, path, file, data, place))


def _calls(trace: Path, acts_so_far: object) -> Iterator[tuple[str, int, bytes, int]]:
    """Give each call at the place where it returned, with how many acts there were when it began."""
    assert callable(acts_so_far)
    begun: dict[bytes, tuple[bytes, bytes, int]] = {}
    with trace.open("rb") as lines:
        for line in lines:
            found = _LINE.match(line)
            if found is None:
                continue
            thread, name, arguments, resumed, rest = found.groups()
            if resumed is not None:
                name, arguments, began = begun.pop(thread)
                arguments += rest
            else:
                began = acts_so_far()
            if arguments.rstrip().endswith(b"<unfinished ...>"):
                begun[thread] = name, arguments.rsplit(b"<unfinished", 1)[0], began
                continue
            result = _RESULT.search(arguments)
            if result is not None:
                yield name.decode(), began, arguments, int(result[1])
