"""What does this body ask for? Targets with their options, and how old an answer may be.

Every bad item is found and named by its place, not just the first one, and never by its value. Whether a
URL or a jq program makes sense is the fetch's to say; it is asked here, for each target that is sound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sift_batch import Caller, Options, Result, Target, TargetError

from ._problems import BadItem, Problem

MAX_URL: Final = 8_192
MAX_CHARS: Final = 10_000_000
_MAX_TEXT: Final = 8_192
MAX_AGE: Final = 10**10
_LISTED: Final = 200  # more bad items than that help nobody
_ANY_URL: Final = "https://example.org/"  # is never called: options are looked at with it
_TEXTS: Final = ("mode", "question", "pages", "grep", "jq")
_OPTIONS: Final = frozenset({*_TEXTS, "context", "recover"})


class Fetcher(Protocol):
    """What the service asks of a fetch: that of `sift_batch.fetch.open_fetcher` has it."""

    async def interactive(self, caller: Caller, target: Target, *, patience: float = 0.0) -> Result:
        """Fetch for somebody who waits."""
        ...

    async def check(self, target: Target) -> None:
        """Raise `TargetError` for a target that would be refused whatever its site says."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class BatchOrder:
    """What `POST /v1/batch` asks for."""

    targets: tuple[Target, ...]
    max_age: float | None


@dataclass(frozen=True, slots=True, repr=False)
class FetchOrder:
    """What `POST /v1/fetch` asks for."""

    target: Target
    max_chars: int | None
    as_job: Mapping[str, Any]
    """The body of `POST /v1/batch` that asks for the same."""


async def read_batch_order(body: Any, *, limit: int, fetcher: Fetcher) -> BatchOrder:
    """Return the order of a body. Raises `Problem`: `no_targets`, `too_many_targets`, `bad_request`."""
    reading = _Reading()
    fields = reading.object(body, "", {"targets", "options", "max_age"})
    listed = fields.get("targets", [])
    if not isinstance(listed, list):
        reading.bad("/targets", "type", "must be a list")
    elif not listed and isinstance(body, dict):
        # With what is wrong by now: targets under another name are none.
        raise Problem("no_targets", errors=reading.errors(), more={"limit": limit, "given": 0})
    elif len(listed) > limit:
        raise Problem(
            "too_many_targets",
            f"a job may have at most {limit:,} targets, these are {len(listed):,}",
            more={"limit": limit, "given": len(listed)},
        )
    shared = await reading.ask_options(reading.options(fields.get("options"), "/options"), fetcher)
    max_age = reading.seconds(fields.get("max_age"), "/max_age")
    items = listed if isinstance(listed, list) else []
    targets = [reading.target(item, f"/targets/{n}", shared) for n, item in enumerate(items)]
    await reading.ask(targets, fetcher)
    reading.check()
    return BatchOrder(tuple(target for target in targets if target is not None), max_age)


def read_fetch_order(body: Any) -> FetchOrder:
    """Return the order of a body; whether it makes sense is not asked. Raises `Problem` `bad_request`."""
    reading = _Reading()
    fields = reading.object(body, "", {"url", "options", "max_chars"})
    max_chars = reading.count(fields.get("max_chars"), "/max_chars")
    wanted = {name: value for name, value in fields.items() if name in ("url", "options")}
    target = reading.target(wanted, "", {}) if isinstance(body, dict) else None
    reading.check()
    assert target is not None
    return FetchOrder(target, max_chars, {"targets": [wanted]})


async def bad_options(options: Options, fetcher: Fetcher, pointer: str) -> list[BadItem]:
    """Return which of some options the fetch finds bad, each by itself; none if only together."""
    reading = _Reading()
    return [
        BadItem(f"{pointer}/{name}", error.code, error.message)
        for name, error in await reading.faults(options, fetcher)
    ]


class _Reading:
    """Gathers what is wrong while a body is read."""

    def __init__(self) -> None:
        self._errors: list[BadItem] = []
        # What the fetch said of options, None where they are sound.
        self._looked_at: dict[Options, TargetError | None] = {}

    def bad(self, pointer: str, code: str, detail: str) -> None:
        self._errors.append(BadItem(pointer, code, detail))

    def object(self, value: Any, pointer: str, known: set[str] | frozenset[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.bad(pointer, "type", "must be an object")
            return {}
        for name in value:
            if len(self._errors) >= _LISTED:
                break
            if name not in known:
                self.bad(_place(pointer, name), "unknown_field", f"the fields are {', '.join(sorted(known))}")
        return value

    def seconds(self, value: Any, pointer: str) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.bad(pointer, "type", "must be a number of seconds")
        elif not 0 <= value <= MAX_AGE:
            self.bad(pointer, "range", f"must be from 0 to {MAX_AGE:,}")
        else:
            return value
        return None

    def count(self, value: Any, pointer: str) -> int | None:
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON has one kind of number: 1.0 is a whole one
        if type(value) is not int:
            self.bad(pointer, "type", "must be a whole number")
        elif not 1 <= value <= MAX_CHARS:
            self.bad(pointer, "range", f"must be from 1 to {MAX_CHARS:,}")
        else:
            return value
        return None

    def options(self, value: Any, pointer: str) -> dict[str, Any]:
        """Return the sound ones of the options that were given; null is none."""
        if value is None:
            return {}
        sound: dict[str, Any] = {}
        for name, item in self.object(value, pointer, _OPTIONS).items():
            bad = self._bad_option(name, item)
            if bad is not None:
                self.bad(f"{pointer}/{name}", *bad)
            elif name in _OPTIONS:
                # Two spellings of one thing: kept as one, so that equal jobs are equal.
                sound[name] = "" if (name, item) == ("mode", "markdown") else item
        return sound

    def _bad_option(self, name: str, item: Any) -> tuple[str, str] | None:
        if name in _TEXTS:
            if not isinstance(item, str):
                return "type", "must be a text"
            if len(item) > _MAX_TEXT:
                return "too_long", f"must have at most {_MAX_TEXT:,} characters"
        elif name in _OPTIONS and type(item) is not bool and not (name == "context" and item is None):
            return "type", "must be true or false"
        return None

    def target(self, value: Any, pointer: str, shared: Mapping[str, Any]) -> Target | None:
        """Return a target, None if it is not sound; `shared` fills in what its own options leave out."""
        before = len(self._errors)
        fields = self.object({"url": value} if isinstance(value, str) else value, pointer, {"url", "options"})
        url = fields.get("url")
        if isinstance(url, str) and not 0 < len(url) <= MAX_URL:
            self.bad(f"{pointer}/url", "length", f"must have from 1 to {MAX_URL:,} characters")
        elif not isinstance(url, str) and isinstance(value, dict):
            self.bad(f"{pointer}/url", "type" if "url" in fields else "missing", "must be a URL as a text")
        own = self.options(fields.get("options"), f"{pointer}/options")
        if len(self._errors) > before or not isinstance(url, str):
            return None
        return Target(url, Options(**{**shared, **own}))

    async def ask_options(self, options: dict[str, Any], fetcher: Fetcher) -> dict[str, Any]:
        """Return those of a job's options that the fetch finds sound, each by itself."""
        # Together they are looked at for each target, whose own ones may win over them.
        sound = dict(options)
        texts = {name: options[name] for name in _TEXTS if options.get(name)}
        for name, error in await self.faults(Options(**texts), fetcher):
            self.bad(f"/options/{name}", error.code, _said(error))
            del sound[name]
        return sound

    async def faults(self, options: Options, fetcher: Fetcher) -> list[tuple[str, TargetError]]:
        """Return the options that the fetch finds bad, each by itself, with what it says of them."""
        found: list[tuple[str, TargetError]] = []
        for name in _TEXTS:
            if getattr(options, name):
                try:
                    await self._look(Options(**{name: getattr(options, name)}), fetcher)
                except TargetError as error:
                    found.append((name, error))
        return found

    async def ask(self, targets: list[Target | None], fetcher: Fetcher) -> None:
        """Let the fetch look at each sound target: at its URL, and at its options."""
        for n, target in enumerate(targets):
            if target is None or len(self._errors) >= _LISTED:
                continue
            try:
                await fetcher.check(Target(target.url))
            except TargetError as error:
                about = "options" if error.code == "bad_option" else "url"
                self.bad(f"/targets/{n}/{about}", error.code, _said(error))
            try:
                await self._look(target.options, fetcher)
            except TargetError as error:
                # Each bad one by its own name, unless it is their combination that does not fit.
                faults = await self.faults(target.options, fetcher)
                for name, fault in faults or [("", error)]:
                    self.bad(f"/targets/{n}/options/{name}".rstrip("/"), fault.code, _said(fault))

    async def _look(self, options: Options, fetcher: Fetcher) -> None:
        """Let the fetch look at options, once for all who have them: a jq program costs a process."""
        if options not in self._looked_at:
            try:
                await fetcher.check(Target(_ANY_URL, options))
                self._looked_at[options] = None
            except TargetError as error:
                self._looked_at[options] = error
        found = self._looked_at[options]
        if found is not None:
            raise found.with_traceback(None)

    def errors(self) -> list[BadItem]:
        """Return what is wrong by now, as far as it is told."""
        return self._errors[:_LISTED]

    def check(self) -> None:
        """Raise `Problem` with all that is wrong."""
        if self._errors:
            raise Problem("bad_request", errors=self.errors())


def _said(error: TargetError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _place(pointer: str, name: str) -> str:
    """Return the pointer of a field that nobody knows; a name that is no plain word stays out of it."""
    return f"{pointer}/{name if len(name) <= 50 and name.isascii() and name.isidentifier() else '?'}"
