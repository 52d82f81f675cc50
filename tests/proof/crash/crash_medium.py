"""What is on the disk after the power went? A disk that remembers what it was asked to make last.

What was synced is there. What was not may be there or not, in any combination, down to single sectors of
512 bytes; so may names in a folder that was not synced, in their order, since file systems journal them, or
in any combination, which is harsher than any of them. Which of it is there is a `Fate`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from random import Random
from typing import Final, Literal

from crash_trace import Act

SECTOR: Final = 512
_NAMES: Final = frozenset({"create", "rename", "unlink"})
Kept = Literal["none", "all", "some", "first"]


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of that which was not synced: of data, and of names."""

    data: Kept
    names: Kept

    def __str__(self) -> str:
        return f"{self.data} of the data, {self.names} of the names"


NOTHING: Final = Fate("none", "none")
EVERYTHING: Final = Fate("all", "all")
FATES: Final = (
    NOTHING,
    Fate("none", "all"),
    Fate("some", "all"),
    Fate("first", "first"),
    Fate("all", "none"),
    Fate("some", "some"),
    EVERYTHING,
)


@dataclass(slots=True)
class _File:
    """One file: what lasts of it, and the acts that do not last yet, each with its place in the trace."""

    lasting: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, Act]] = field(default_factory=list)


class Medium:
    """A disk to which acts are done one after another, and whose power may be cut between any two."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._lasting_names: dict[str, int] = {}
        self._pending_names: list[tuple[int, Act]] = []
        self._done = 0

    def do(self, act: Act) -> None:
        """Do one act."""
        if act.call in _NAMES:
            self._files.setdefault(act.file, _File())
            self._pending_names.append((self._done, act))
        elif act.call in ("fsync", "fdatasync"):
            self._sync(act)
        else:
            self._files.setdefault(act.file, _File()).pending.append((self._done, act))
        self._done += 1

    def _sync(self, act: Act) -> None:
        file = self._files.get(act.file)
        if file is not None:
            for _, covered in _covered(file.pending, act.began):
                _apply(file.lasting, covered)
            file.pending = [item for item in file.pending if item[0] >= act.began]
            return
        # A folder: the names in it last from here on.
        inside = [item for item in _covered(self._pending_names, act.began) if _is_in(act.path, item[1])]
        for item in inside:
            _rename(self._lasting_names, item[1])
            self._pending_names.remove(item)

    @property
    def unsynced(self) -> int:
        """How many acts a power cut might undo."""
        return len(self._pending_names) + sum(len(file.pending) for file in self._files.values())

    def after_cut(self, fate: Fate, random: Random) -> dict[str, bytes]:
        """Return the files that are there once the power is back."""
        names = dict(self._lasting_names)
        for act in _chosen([act for _, act in self._pending_names], fate.names, random):
            _rename(names, act)
        images: dict[int, bytes] = {}
        for number in set(names.values()):
            file = self._files.get(number, _File())
            image = bytearray(file.lasting)
            pending = [act for _, act in file.pending]
            if fate.data == "some":
                for piece in _chosen(list(_sectors(pending)), "some", random):
                    _apply(image, piece)
            else:
                for act in _chosen(pending, fate.data, random):
                    _apply(image, act)
            images[number] = bytes(image)
        return {path: images[number] for path, number in names.items()}


def _covered(pending: Sequence[tuple[int, Act]], began: int) -> list[tuple[int, Act]]:
    return [item for item in pending if item[0] < began]


def _is_in(folder: str, act: Act) -> bool:
    return str(PurePath(act.path).parent) == folder.rstrip("/")


def _chosen(acts: list[Act], kept: Kept, random: Random) -> list[Act]:
    if kept == "all":
        return acts
    if kept == "none":
        return []
    if kept == "first":
        return acts[: random.randrange(len(acts) + 1)]
    share = random.random()
    return [act for act in acts if random.random() < share]


def _sectors(acts: list[Act]) -> Iterator[Act]:
    """Cut each write where a sector ends: a disk writes one whole or not at all."""
    for act in acts:
        if act.call == "ftruncate":
            yield act
            continue
        begin = 0
        while begin < len(act.data):
            end = min(len(act.data), begin + SECTOR - (act.offset + begin) % SECTOR)
            yield Act(act.call, act.began, act.path, act.file, act.data[begin:end], act.offset + begin)
            begin = end


def _apply(image: bytearray, act: Act) -> None:
    if act.call == "ftruncate":
        image[act.offset :] = bytes(max(0, act.offset - len(image)))
        return
    # `write` appends here: it is used for histories only.
    offset = len(image) if act.call == "write" else act.offset
    if offset > len(image):
        image.extend(bytes(offset - len(image)))
    image[offset : offset + len(act.data)] = act.data


def _rename(names: dict[str, int], act: Act) -> None:
    names.pop(act.path, None)
    if act.call == "create":
        names[act.path] = act.file
    elif act.call == "rename":
        names[act.other] = act.file
