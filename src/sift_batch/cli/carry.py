"""What did an earlier run finish already?

Finds the `done` targets in the store that an earlier run left beside its output, and removes that
store when it is not needed any more. It fetches nothing. Next: `batch`.
"""

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from .._model.errors import StoreError, StoreVersionError
from .._model.idem import canonical_json
from .._model.lifecycle import TargetState
from .._model.values import Job, Target
from .._store.files import OwnerLock, reported
from .._store.schema import APPLICATION_ID
from .screen import counted

if TYPE_CHECKING:
    from sift_batch import Runner

_PAGE: Final = 100
_SQLITE: Final = b"SQLite format 3\0"
# Where SQLite's file format has `PRAGMA application_id`, most significant byte first.
_MARK: Final = slice(68, 72)


class Place(NamedTuple):
    """Where a result is stored."""

    job_id: str
    idx: int


class Carried:
    """The targets that are done already, by what they ask for; about 200 bytes each.

    `jobs` says how many jobs the store had, done or not; `unreadable` how many done targets are left
    out because their results can't be read.
    """

    def __init__(self, jobs: int = 0) -> None:
        self._places: dict[bytes, Place] = {}
        self.jobs = jobs
        self.unreadable = 0

    def __len__(self) -> int:
        return len(self._places)

    def find(self, target: Target) -> Place | None:
        """Return where the result of an equal target is stored."""
        return self._places.get(_key(target)) if self._places else None

    def remember(self, target: Target, place: Place) -> None:
        """Take in one finished target, unless a newer equal one is known."""
        self._places.setdefault(_key(target), place)


def _key(target: Target) -> bytes:
    return hashlib.blake2b(canonical_json([target]).encode(), digest_size=16).digest()


async def find_carried(runner: "Runner") -> Carried:
    """Read from the runner's store which targets are done, each result included.

    Only what was read once is carried over: the output is emptied next, and must be filled again.
    Raises `StoreError`.
    """
    jobs = await _all_jobs(runner)
    carried = Carried(len(jobs))
    for job in jobs:
        if job.targets_done == job.targets_failed:
            continue
        try:
            status, whole = await runner.status(job.id), True
        except StoreError:
            status, whole = await runner.status(job.id, results=False), False
        for done in status.targets if status is not None else ():
            target = Target(done.url, done.options)
            if done.status is not TargetState.DONE or carried.find(target) is not None:
                continue
            if whole or await _is_readable(runner, job.id, done.idx):
                carried.remember(target, Place(job.id, done.idx))
            else:
                carried.unreadable += 1
    return carried


async def _is_readable(runner: "Runner", job_id: str, idx: int) -> bool:
    try:
        return await runner.status(job_id, start=idx, stop=idx + 1) is not None
    except StoreError:
        return False


async def _all_jobs(runner: "Runner") -> list[Job]:
    """Return all jobs of the store, newest first."""
    jobs = page = await runner.jobs(limit=_PAGE)
    while len(page) == _PAGE:
        page = await runner.jobs(limit=_PAGE, before=page[-1].id)
        jobs = jobs + page
    return jobs


def lost_text(store: Path | None, stored: int) -> str:
    """Say why a run is refused to which none of the done results belongs."""
    kept = f"{store} keeps {counted(stored, 'done result')} of an earlier run"
    none = "and none is of a target of this run (its URLs or options differ)"
    would = f"{'it' if stored == 1 else 'they'} would be lost"
    return f"{kept}, {none}: {would}; give another --out, or pass --fresh"


def carried_text(known: int, left: int, *, stored: int) -> str:
    """Say what is carried over: `known` targets of this run, of `stored` done ones."""
    if not stored:
        return "nothing is carried over: no target was done in the earlier run; all are tried again"
    over = f"{counted(known, 'done target')} {'is' if known == 1 else 'are'} carried over from an earlier run"
    return f"{over}, {left} {'is' if left == 1 else 'are'} left; those that failed are tried again"


def _is_own(path: Path) -> bool:
    """Whether a file is a store of ours, sound or not, by its first bytes.

    To be asked while this process has no store open there: SQLite's locks end with any descriptor.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_MARK.stop)
    except OSError:
        return False
    return head.startswith(_SQLITE) and int.from_bytes(head[_MARK]) == APPLICATION_ID


def beyond_use(path: Path, error: BaseException) -> str:
    """Say why a store can't be used, and the way on: over what is damaged, but not over somebody's file."""
    reason = str(error.args[0])
    if not _is_own(path):
        return reason.replace("choose another path", "move it away, or choose another --out")
    if isinstance(error, StoreVersionError) or "damaged" in reason or "never finished" in reason:
        return f"{reason}; --fresh begins again without it"
    return reason


def discard_store(path: Path) -> None:
    """Remove the store of an earlier run, sound or damaged; any other file is left as it is.

    Raises `StoreError`, and `StoreInUseError` while another run has it.
    """
    with reported():
        if _is_own(path):
            remove_store(path)


def remove_store(path: Path) -> None:
    """Remove a store that nobody has open, with its side files. Leaves it if somebody has."""
    path = path.resolve()
    lock = OwnerLock(path)
    # Held meanwhile, so that no other run can begin on what is about to go.
    lock.acquire()
    try:
        for suffix in ("", "-wal", "-shm", "-owner"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
    finally:
        lock.release()
