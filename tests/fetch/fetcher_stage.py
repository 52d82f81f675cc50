"""A fetcher whose site and whose readers stand still until a test moves them: for the mock clock."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from sift_batch import Caller, CallerClass, Gate, Options, Target, host_key
from sift_batch.fetch import FetchConfig, FetchError
from sift_batch.fetch._client import Answer
from sift_batch.fetch._document import Reading
from sift_batch.fetch._fetcher import Fetcher
from sift_batch.fetch._guard import Guard
from sift_batch.fetch._pipeline import Pipeline

FLEET = Caller("fleet")
RESTRICTED = Caller("secret", caller_class=CallerClass.RESTRICTED)


def answer(status: int = 200, body: bytes = b"the page", **headers: str) -> Answer:
    """An answer as the client gives it; header names are written with _ for -."""
    named = {name.replace("_", "-"): value.encode() for name, value in headers.items()}
    pieces = [body] if 200 <= status < 300 else []
    size = sum(map(len, pieces))
    return Answer(status, {"content-type": b"text/plain"} | named, pieces, size, size)


def failure(code: str, *, transient: bool = False) -> FetchError:
    """A failure as the guard and the client raise it."""
    error = FetchError(code, "it failed")
    error.transient = transient
    return error


Given = Answer | BaseException | Callable[[], Awaitable[Answer]]


class Site:
    """Stands in for the client. Each URL gives its answers in turn, the last one for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Given]] = defaultdict(list)
        self.asked: list[tuple[str, float]] = []
        self.seconds = 0.0
        self.now: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()

    def give(self, url: str, *answers: Given) -> None:
        """Let `url` give these answers."""
        self.answers[url] = list(answers)

    @property
    def urls(self) -> list[str]:
        """What was asked for, in order."""
        return [url for url, _ in self.asked]

    async def get(self, address, **request) -> Answer:
        """Answer as the client does."""
        self.asked.append((address.url, trio.current_time()))
        key = host_key(address.url)
        for name in (key, "all"):
            self.now[name] += 1
            self.peak[name] = max(self.peak[name], self.now[name])
        try:
            await trio.sleep(self.seconds)
            given = self.answers[address.url] or [answer(404)]
            this = given.pop(0) if len(given) > 1 else given[0]
            if isinstance(this, BaseException):
                raise this
            return this if isinstance(this, Answer) else await this()
        finally:
            for name in (key, "all"):
                self.now[name] -= 1


class Desk:
    """Stands in for the readers: the content is the body."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.documents = []
        self.interactive: list[bool] = []
        self.seconds = 0.0
        self.error: BaseException | None = None
        self.programs: list[str] = []
        self.seen: Callable[[], None] = lambda: None

    async def read(self, document, options, interactive=False) -> Reading:
        """Read as a worker does."""
        self.documents.append(document)
        self.interactive.append(interactive)
        self.seen()
        await trio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        text = b"".join(document.body).decode()
        facts = {"content_type": "text/plain", "charset": "utf-8"} | self.facts
        if not text:
            facts["code"] = "empty"
        return Reading(text, facts)

    async def warm(self) -> None:
        """Get ready, as a worker does."""
        await trio.lowlevel.checkpoint()

    async def check_jq(self, program: str) -> None:
        """Compile as a worker does."""
        await trio.lowlevel.checkpoint()
        self.programs.append(program)


class Stage:
    """The fetcher with everything round it."""

    def __init__(self, **settings) -> None:
        self.config = FetchConfig(**settings)
        self.gate, self.site, self.desk = Gate(), Site(), Desk()
        pipeline = Pipeline(self.config, self.gate, Guard(self.config), self.site, self.desk)
        self.fetch = Fetcher(pipeline)

    async def batch(self, url: str, caller: Caller = FLEET, **options):
        """Fetch in the batch class."""
        return await self.fetch(caller, Target(url, Options(**options)))

    @asynccontextmanager
    async def busy(self, url: str, slots: int = 2):
        """Hold slots of a host."""
        async with trio.open_nursery() as nursery:
            for _ in range(slots):
                await nursery.start(self._hold, url)
            yield
            nursery.cancel_scope.cancel()

    async def _hold(self, url: str, task_status) -> None:
        async with self.gate.slot(url):
            task_status.started()
            await trio.sleep_forever()
