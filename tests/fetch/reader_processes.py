"""What a test of the reader processes looks at: the system's own list of processes and open files."""

import os
from contextlib import suppress
from pathlib import Path

import trio

from sift_batch._model.values import Options
from sift_batch.fetch._document import Document

ENTRY = "misbehaving_reader"


def document(body: bytes | list[bytes]) -> Document:
    """Give a document with this body."""
    pieces = [body] if isinstance(body, bytes) else body
    return Document(body=pieces, content_type="text/plain", url="https://example.com/")


async def ask(readers, body, options=Options()):  # noqa: B008
    """Read a document, and give its text."""
    return (await readers.read(document(body), options)).content


def children(parent: int | None = None) -> set[int]:
    """Give the ids of a process's children, dead ones that nobody reaped included."""
    parent = os.getpid() if parent is None else parent
    found = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            text = (entry / "stat").read_text()
            if int(text.rpartition(")")[2].split()[1]) == parent:
                found.add(int(entry.name))
    return found


def exists(pid: int) -> bool:
    """Say whether a process runs; one that is dead and waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def open_files() -> list[str]:
    """Give what this process has open, but for the list itself."""
    found = []
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            target = str(path.readlink())
            if not target.startswith("/proc/"):
                found.append(target)
    return sorted(found)


async def until(true, seconds: float = 60.0) -> None:
    """Wait until `true()` is so."""
    with trio.fail_after(seconds):
        while not true():  # noqa: ASYNC110 - what happens in another process sets no event
            await trio.sleep(0.005)
