"""Who sends this request, and whom must we stop serving?

Holds the callers of the newest file that was valid. `watch` follows the file and the clock; a version
that is not valid changes nothing. Whoever was let in before and is not any more is told of, so that the
service can end what they have under way: nothing is cancelled or closed here. Next: the routes.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from sift_batch import Caller, CallerClass

from ._caller_entries import CallersError, CallersProblem, Entry, parse_callers
from ._held_keys import HeldKey, active, held_keys, next_expiry
from ._keys import bearer_key, digest_of, matching, new_key, read_key
from ._private_file import PrivateFileError, Stamp, make_private, make_private_folder, read_private, stamp_of

SINGLE_USER: Final = "local"
"""The name of the one caller of a service without a callers file."""

KEY_FILE: Final = "key"
"""Where that caller's key is, in the data folder."""

_LARGEST_FILE: Final = 2**20
_LARGEST_KEY_FILE: Final = 1_024
_EVERY: Final = 1.0
# A file that was written a moment ago may be half of one: it is read when two looks find it the same.
_QUIET: Final = 0.25
_SHORTEST: Final = 0.01


@dataclass(frozen=True, slots=True, repr=False)
class Taken:
    """What no longer lets anyone in: callers, by name, and keys, as `Caller.key_sha256` has them.

    The jobs and streams of the callers end, and so do the streams that were opened with the keys. A
    key may go while its caller stays.
    """

    callers: frozenset[str]
    keys: frozenset[str]


_Version = tuple[tuple[HeldKey, ...], Stamp]
Reading = Callable[[], _Version]
"""Reads and parses the file."""

Aside = Callable[[Reading], Awaitable[_Version]]
"""Runs a reading where it holds nothing up."""

# A reading that nobody waits for any more may go on: it changes nothing.
_in_thread: Final = partial(trio.to_thread.run_sync, abandon_on_cancel=True, thread_name="sift-batch callers")


class Callers:
    """Everybody who may call. Made by `open_callers` or `open_single_user`.

    `find` may be called from any task; `reload`, `reloaded` and `watch` must be of one Trio run.
    """

    def __init__(
        self,
        path: Path,
        parse: Callable[[bytes], tuple[Entry, ...]],
        *,
        limit: int,
        now: Callable[[], float],
        on_reload: Callable[[CallersProblem | None], object],
        on_taken: Callable[[Taken], object],
        aside: Aside,
    ) -> None:
        self._path = path
        self._parse = parse
        self._limit = limit
        self._now = now
        self._on_reload = on_reload
        self._on_taken = on_taken
        self._aside = aside
        # A reading is under way. And: one was asked for; a new event for each that is done.
        self._reading, self._asked = trio.Lock(), trio.Event()
        # The keys of the newest valid version, and why the version behind `_stamp` is not valid (None:
        # it is). Both are replaced as a whole, by `_load`.
        self._held, stamp = self._read()
        self._problem: CallersProblem | None = None
        # `_stamp` is the version that was read last, `_seen` what the last look found. `_again`: read
        # it once more, since a write within one tick of the file system's clock leaves the same stamp.
        self._stamp: Stamp | None = stamp
        self._seen: Stamp | None = stamp
        self._again = True
        # Who is let in, as far as `on_taken` has been told; replaced by `_tell`.
        self._active = self._active_now()

    @property
    def problem(self) -> CallersProblem | None:
        """Why the file as it is now is not in force; None if it is."""
        return self._problem

    def find(self, authorization: Sequence[bytes]) -> Caller | None:
        """Return who sends a request, from the values of all its `Authorization` headers; None: nobody.

        A key that is missing, malformed, unknown, revoked or expired is all the same. Never raises.
        The class is that of the file in force: ask at each request.
        """
        key = bearer_key(authorization)
        if key is None:
            return None
        found = matching(key, self._held)
        if found is None or found.expires_at <= self._now():
            return None
        return found.caller

    def let_in(self) -> frozenset[str]:
        """Return the names of all who are let in now."""
        return self._active_now()[0]

    def reload(self) -> None:
        """Have the file read now, as on SIGHUP: `watch` does it."""
        self._asked.set()

    async def reloaded(self) -> bool:
        """Read the file now; return whether it is valid. Both callbacks come before.

        A file that can't be read, or is not valid, changes nothing; nor does a reading that is cancelled.
        """
        async with self._reading:
            self._seen = stamp_of(self._path)
            await self._load(self._seen, asked=True)
            self._again = True
            self._tell()
            return self._problem is None

    async def watch(self, *, every: float = _EVERY) -> None:
        """Follow the file and the clock until cancelled, with a look each `every` seconds.

        A changed file is in force within about that time and a quarter of a second; who expires is
        told of at that second. Files are read and parsed in a thread: a large one holds nothing up but
        this. A callback that raises ends this task.
        """
        look_at = trio.current_time() + every
        while True:
            # The clock of `expires` is not Trio's: what is slept is a guess, and `_tell` decides.
            pause = min(look_at - trio.current_time(), next_expiry(self._held, self._now()) - self._now())
            with trio.move_on_after(max(_SHORTEST, pause)):
                await self._asked.wait()
            if self._asked.is_set():
                self._asked = trio.Event()
                await self.reloaded()
            if trio.current_time() >= look_at:
                async with self._reading:
                    soon = await self._look()
                look_at = trio.current_time() + (_QUIET if soon else every)
            self._tell()

    async def _look(self) -> bool:
        """Read the file if it has changed; return whether the next look should be soon.

        A look is one `lstat` of a small local file: a thread for it would cost more than it saves.
        """
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            self._seen = stamp
            if self._again:
                self._again = False
                await self._load(stamp, asked=False)
            return False
        if stamp != self._seen:
            self._seen = stamp
            return True
        self._again = True
        await self._load(stamp, asked=True)
        return False

    async def _load(self, stamp: Stamp | None, *, asked: bool) -> None:
        """Put the file in force if it is valid. Tells of it if `asked`, or if anything is new."""
        before = self._problem
        held = self._held
        try:
            held, stamp = await self._aside(self._read)
            self._problem = None
        except CallersError as error:
            self._problem = error.problem
            # Too many open files, a disk that fails: that passes without a new version of the file.
            self._again = self._again or error.problem.code == "unreadable"
        self._stamp = stamp
        news = asked or self._problem != before or held != self._held
        self._held = held
        if news:
            # First those who are shut out: that must not wait for whatever a log line waits for.
            self._tell()
            self._on_reload(self._problem)

    def _read(self) -> _Version:
        raw, stamp = _read_file(self._path, self._limit)
        return held_keys(self._parse(raw)), stamp

    def _tell(self) -> None:
        before, self._active = self._active, self._active_now()
        callers, keys = before[0] - self._active[0], before[1] - self._active[1]
        if callers or keys:
            self._on_taken(Taken(callers, keys))

    def _active_now(self) -> tuple[frozenset[str], frozenset[str]]:
        return active(self._held, self._now())


def _nothing(_: object) -> None:
    pass


def open_callers(
    path: Path,
    *,
    now: Callable[[], float] = time.time,
    on_reload: Callable[[CallersProblem | None], object] = _nothing,
    on_taken: Callable[[Taken], object] = _nothing,
    aside: Aside = _in_thread,
) -> Callers:
    """Return the callers of a callers file.

    `now` is the wall clock, in seconds since 1970. `on_reload` is called after each later reading,
    with None if the file is in force; `on_taken` when somebody is not let in any more. Both are plain
    functions and must not raise. `aside` runs later readings: in a thread, if nothing else is said.

    Raises `CallersError` if the file can't be read or is not valid: then the service does not start.
    """
    return Callers(
        path,
        parse_callers,
        limit=_LARGEST_FILE,
        now=now,
        on_reload=on_reload,
        on_taken=on_taken,
        aside=aside,
    )


def open_single_user(
    folder: Path,
    *,
    now: Callable[[], float] = time.time,
    on_reload: Callable[[CallersProblem | None], object] = _nothing,
    on_taken: Callable[[Taken], object] = _nothing,
) -> Callers:
    """Return the one caller of a service without a callers file; its key is in `folder`.

    Makes the folder and the key if they are not there. The key's file is followed as a callers file
    is. Raises `CallersError`, about the folder or the file.
    """
    try:
        make_private_folder(folder)
        make_private(folder / KEY_FILE, new_key().encode() + b"\n")
    except PrivateFileError as error:
        code = "unmakeable" if error.code == "unreadable" else "bad_folder"
        raise CallersError(CallersProblem(code)) from None
    return Callers(
        folder / KEY_FILE,
        _parse_key,
        limit=_LARGEST_KEY_FILE,
        now=now,
        on_reload=on_reload,
        on_taken=on_taken,
        aside=_in_thread,
    )


def read_callers_file(path: Path) -> tuple[bytes, Stamp]:
    """Return what a callers file holds. Raises `CallersError` unless it is private."""
    return _read_file(path, _LARGEST_FILE)


def _read_file(path: Path, limit: int) -> tuple[bytes, Stamp]:
    try:
        return read_private(path, limit=limit)
    except PrivateFileError as error:
        raise CallersError(CallersProblem(error.code)) from None


def _parse_key(raw: bytes) -> tuple[Entry, ...]:
    key = read_key(raw)
    if key is None:
        raise CallersError(CallersProblem("bad_key_file"))
    return (Entry(name=SINGLE_USER, caller_class=CallerClass.FLEET, keys=(digest_of(key),)),)
