"""What does one target give? **The main job of a fetch**, from the target to its `Result`.

    parse      our grammar and the guard's rules; the options checked
    get        hop by hop through the gate (`_hops`), by the site's robots.txt on request (`_robots`)
    judge      is the answer a page at all? (`_reply`)
    read       a worker process turns it into text (`_pool`); its slot is free by then
    recover    the newest copy of a dead page, on request (`_archive`)
    tell       the facts, in their order (`_meta`)

No page is decoded or parsed here. Next: `_hops`, one level down.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

from .._gate.gate import Gate
from .._gate.hosts import host_key
from .._model.errors import RetryLater
from .._model.values import Options, Result, Target
from ._address import Address
from ._archive import archived_at, check_template, is_dead, lookup_url, may_be_called, page_url
from ._config import FetchConfig
from ._document import Document
from ._errors import FetchError, refused
from ._guard import Guard
from ._hops import NO_RULES, Hops, Page, Rules, Trip
from ._meta import header_text, make_meta
from ._options import check_options
from ._reply import judge
from ._robots import Robots
from ._room import Room

if TYPE_CHECKING:
    from ._client import Client
    from ._pool import Readers, ReaderStatistics

_LONGEST_TYPE: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Found:
    """A page that was got and read: its content, and the facts of it and of the way to it."""

    content: str
    facts: Mapping[str, Any]

    @property
    def empty(self) -> bool:
        """Whether there was nothing to read."""
        return self.facts.get("code") == "empty"


class Pipeline:
    """Everything that a fetch needs. Shared by all calls; keeps nothing of a target.

    Raises `ValueError` for an `archive` that no look-up could be sent to.
    """

    def __init__(
        self,
        config: FetchConfig,
        gate: Gate,
        guard: Guard,
        client: "Client",
        readers: "Readers",
        restricted_readers: "Readers | None" = None,
    ) -> None:
        self.config = config
        self._guard = guard
        self._readers = readers
        # A page that took its worker over could see the pages after it: not those of the other class.
        self._restricted_readers = restricted_readers or readers
        check_template(config.archive)
        self._archive_is_open = may_be_called(config.archive, guard)
        self._hops = Hops(config, gate, guard, client)
        # The bytes of pages that wait for their reader or are being read; taken by their `Trip`.
        self._room = Room()
        self._rules: Rules = Robots(config, self._hops) if config.robots else NO_RULES

    def reader_statistics(self) -> "ReaderStatistics":
        """Return how the worker processes do, those for restricted callers left out."""
        return self._readers.statistics()

    async def check(self, target: Target) -> None:
        """Raise `FetchError` for a target that is refused whatever its site says."""
        self._guard.parse(target.url)
        check_options(target.options)
        if target.options.jq:
            await self._readers.check_jq(target.options.jq)

    async def fetch(self, trip: Trip, target: Target) -> Result:
        """Return what the target gives. Raises `FetchError`, or `RetryLater` when there is no room."""
        try:
            address = self._guard.parse(target.url)
            check_options(target.options)
            found = await self._find(trip, address, target.options)
        except FetchError as exc:
            failure = exc
        else:
            assert trip.began is not None  # what was read was fetched
            facts = {
                "fetched_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(trip.began_at)),
                "elapsed_seconds": round(trio.current_time() - trip.began, 3),
                "tries": trip.tries if trip.tries > 1 else None,
            }
            return Result(found.content, make_meta(found.facts, facts))
        finally:
            self._room.give_back(trip)
        raise _for_caller(failure, trip)

    async def _find(self, trip: Trip, address: Address, options: Options) -> _Found:
        """Return the page or, if that is dead and a copy is wanted, its copy."""
        try:
            found = await self._get(trip, address, options)
        except FetchError as failure:
            if not is_dead(failure):
                raise
            copy = await self._recover(trip, address, options, failure.code)  # noqa: ASYNC120 - then it is moot
            if copy is None:
                failure.hint = failure.hint or self._hint(trip, failure, options)
                raise
            return copy
        # A page without a link is no dead page.
        if not found.empty or options.mode == "links":
            return found
        return await self._recover(trip, address, options, "empty") or found

    async def _get(self, trip: Trip, address: Address, options: Options) -> _Found:
        limit = self.config.redirects
        await self._readers_for(trip).warm()  # it gets ready while the page is on its way
        page = await self._hops.follow(
            trip, address, first=True, redirects=limit, rules=self._rules, room=self._room
        )
        judge(page.answer.status)
        return await self._read(trip, page, page.address.url, options)

    async def _read(self, trip: Trip, page: Page, base: str, options: Options) -> _Found:
        """Have a page read by a worker; links are resolved against `base`."""
        answer = page.answer
        kind = answer.headers.get("content-type", b"")[:_LONGEST_TYPE].decode("latin-1")
        with trip.deadline.stopped():
            document = Document(body=answer.body, content_type=kind, url=base)
            try:
                reading = await self._readers_for(trip).read(document, options, interactive=not trip.batch)
            finally:
                self._room.give_back(trip)
        facts: dict[str, Any] = {
            **reading.facts,  # those of a document alone: `_frames` lets no other pass
            "chars": len(reading.content),
            "url": page.address.url,
            "http_status": answer.status,
            "bytes_wire": answer.wire,
            "bytes_decoded": answer.decoded,
            "redirects": page.passed,
            "etag": header_text(answer.headers, "etag"),
            "last_modified": header_text(answer.headers, "last-modified"),
        }
        return _Found(reading.content, facts)

    def _readers_for(self, trip: Trip) -> "Readers":
        return self._restricted_readers if trip.restricted else self._readers

    def _archive_for(self, trip: Trip) -> str | None:
        """Return where the caller may look for copies, None for nowhere."""
        return None if trip.restricted and not self.config.recover_restricted else self.config.archive

    def _hint(self, trip: Trip, failure: FetchError, options: Options) -> str:
        """Return what can be done about a dead page."""
        if failure.code not in ("page_not_found", "page_gone"):
            return ""
        if self._archive_for(trip) is None:
            return "check the address"
        if not self._archive_is_open:
            return "check the address; an operator should see to it that `archive` may be called"
        if options.recover:
            return "no copy of it was found in the archive"
        return "check the address, or let the option recover look for a copy in an archive"

    async def _recover(self, trip: Trip, address: Address, options: Options, code: str) -> _Found | None:
        """Return the newest copy of a dead page; None if none is wanted, allowed or to be had.

        Whatever goes wrong on the way is no news: the page's own failure is what its owner must hear of.
        """
        template = self._archive_for(trip)
        if template is None or not options.recover:
            return None
        original = {"http_status": trip.status, "code": code}
        try:
            place = self._guard.parse(lookup_url(template, address.url))
            page = await self._hops.follow(
                trip,
                place,
                first=False,
                redirects=self.config.redirects,
                room=self._room,
                home=host_key(place.url),  # what is elsewhere is no copy of the archive's
            )
            judge(page.answer.status)
            copy = await self._read(trip, page, page_url(page.address.url, address.url), options)
        except (FetchError, RetryLater):
            return None
        facts = {
            "recovered": True,
            "archived_at": archived_at(page.answer.headers, page.address.url),
            "original": {name: value for name, value in original.items() if value is not None},
        }
        if copy.empty and options.mode != "links":
            return None
        return _Found(copy.content, {**copy.facts, **facts})


def _for_caller(failure: FetchError, trip: Trip) -> FetchError:
    """Return the failure as its owner may see it: how to lift a refusal is not for restricted callers."""
    if failure.code != "refused" or not trip.restricted:
        return failure
    return refused(failure.reason, failure.message, hint=failure.reason)
