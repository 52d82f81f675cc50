"""Who gives way when the server is full, and who stays? On the mock clock; and in the service."""

import errno

import pytest
import trio
from api_rig import ANN, Fetch, serving, until
from server_rig import HEALTHY, MemoryListener, answer, read_all, read_until, running, status_of

from sift_batch.service._limits import ServerLimits
from sift_batch.service._places import EXTENSION, Places, Rank, counts

H = b" HTTP/1.1\r\nHost: x\r\n"
UNFINISHED = b"POST /refused" + H + b"Content-Length: 10\r\n\r\nabc"
STRANGER = b"GET /open" + H + b"\r\n"
CALLER = b"GET /own" + H + b"\r\n"
A = "https://a.example/"


async def app(scope, receive, send):
    """Answer without the body, or never: as nobody's request, or as a caller's."""
    if scope["raw_path"] in (b"/refused", b"/healthy"):
        await answer(send)
    else:
        counts(scope, for_somebody=False)
        if scope["raw_path"] == b"/own":
            counts(scope, for_somebody=True)
        await trio.sleep_forever()


async def closed(client) -> bool:
    """Whether the server has closed a connection, with whatever it said before."""
    with trio.move_on_after(0.01):
        await read_all(client)
        return True
    return False


async def test_the_order_in_which_they_give_way(autojump_clock) -> None:
    """First the oldest that lingers, then the longest waiting, then nobody's requests; a caller's stays."""
    listener = MemoryListener()
    limits = ServerLimits(connections=7, linger_seconds=100, head_seconds=100, idle_seconds=100)
    said = [STRANGER, CALLER, b"GET / HT", UNFINISHED, STRANGER, b"", UNFINISHED]
    async with running(app, [listener], limits=limits) as server:
        clients = []
        for data in said:
            clients.append(listener.connect())
            await clients[-1].send_all(data)
            await trio.sleep(1)
        gone = []
        for number in range(6):
            late = listener.connect()
            await late.send_all(CALLER)
            await trio.sleep(1)
            for index, client in enumerate(clients):
                if index not in gone and index not in (3, 6) and await closed(client):
                    gone.append(index)
            for index in (3, 6):  # these are half closed while they linger
                if index not in gone and server.events["connection_closed"] > len(gone):
                    gone.append(index)
                    break
            assert (len(gone), server.events["evicted"]) == (number + 1, number + 1)
        assert gone == [3, 6, 2, 5, 0, 4]
        assert server.events["refused_full"] == 0
        assert status_of(await read_all(listener.connect())) == 503
        assert server.events["refused_full"] == 1


@pytest.mark.parametrize("said", [UNFINISHED, STRANGER, b"\x00", b"GET / HT"])
async def test_a_flood_of_what_counts_for_nobody_shuts_nobody_out(autojump_clock, said: bytes) -> None:
    """With three times as many such connections as there are places, the next request is answered."""
    listener = MemoryListener()
    async with running(app, [listener], limits=ServerLimits(connections=10)) as server:
        flood = []
        for _ in range(30):
            flood.append(listener.connect())
            await flood[-1].send_all(said)
        await trio.sleep(0.1)
        client = listener.connect()
        await client.send_all(HEALTHY)
        assert status_of(await read_until(client, b"ok")) == 200
        assert server.events["refused_full"] == 0


@pytest.mark.parametrize("together", [False, True])
async def test_a_request_that_nothing_is_told_of_stays(autojump_clock, together: bool) -> None:
    """After a request of nobody, the next one on the same connection begins as one that stays."""
    listener, told = MemoryListener(), []

    async def second_stays(scope, receive, send):
        if not told:
            told.append("nobody's")
            counts(scope, for_somebody=False)
            await answer(send)
        else:
            await trio.sleep_forever()

    async with running(second_stays, [listener], limits=ServerLimits(connections=1)) as server:
        client = listener.connect()
        await client.send_all(CALLER * 2 if together else CALLER)
        await read_until(client, b"ok")
        if not together:
            await client.send_all(CALLER)
        await trio.sleep(1)
        assert status_of(await read_all(listener.connect())) == 503
        assert server.events["evicted"] == 0


async def test_one_gives_way_once(autojump_clock) -> None:
    """A connection that is on its way out makes no room for a second one, whatever it says of itself."""
    listener = MemoryListener()

    async def slow_to_go(scope, receive, send):
        counts(scope, for_somebody=scope["raw_path"] == b"/own")
        try:
            await trio.sleep_forever()
        finally:
            counts(scope, for_somebody=False)
            with trio.CancelScope(shield=True):
                await trio.sleep(1)

    async with running(slow_to_go, [listener], limits=ServerLimits(connections=1)) as server:
        for data in (STRANGER, CALLER):
            client = listener.connect()
            await client.send_all(data)
            await trio.sleep(0.1)
        assert server.events["evicted"] == 1
        assert status_of(await read_all(listener.connect())) == 503
        assert server.events["evicted"] == 1


class _Few(MemoryListener):
    """Has no descriptor for a connection while two are open."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = 0

    async def accept(self):
        """Fail as often as is left."""
        if self.failing:
            self.failing -= 1
            await trio.lowlevel.checkpoint()
            raise OSError(errno.EMFILE, "sesame")
        return await super().accept()


async def test_without_descriptors_the_longest_waiting_gives_way(autojump_clock) -> None:
    """A process that can open no more closes what waits, though there are fewer than the cap."""
    listener = _Few()
    limits = ServerLimits(connections=100, head_seconds=100, idle_seconds=100)
    async with running(app, [listener], limits=limits) as server:
        first, second = listener.connect(), listener.connect()
        await first.send_all(b"GET")
        await second.send_all(CALLER)
        await trio.sleep(1)
        listener.failing = 3
        late = listener.connect()  # taken by the accept that waits; the next ones fail
        await late.send_all(HEALTHY)
        await trio.sleep(1)
        assert await closed(first)
        assert not await closed(second)
        assert server.events["accept_failed"] == 3
        client = listener.connect()
        await client.send_all(HEALTHY)
        assert status_of(await read_until(client, b"ok")) == 200


def test_one_that_gives_way_stands_once() -> None:
    """Whatever a connection does, it may end for its last reason alone, and for none once it goes on."""
    places: Places[str] = Places()
    for rank in (*Rank, Rank.LINGERS, Rank.WAITS):
        places.stand("a", rank)
    places.stand("b", Rank.WAITS)
    assert [list(places.of(rank)) for rank in Rank] == [[], ["a", "b"], []]
    assert places.first() == "a"
    places.leave("a")
    places.leave("b")
    assert places.first() is None


@pytest.mark.real
async def test_a_full_service_keeps_its_callers_waits() -> None:
    """A caller's wait stays when one without a key sends no end of its body, and the next is answered."""
    async with (
        serving(Fetch(hang=[A])) as api,
        running(api.app, lifespan=True, limits=ServerLimits(connections=2, linger_seconds=60)) as full,
    ):
        job_id = await api.submitted(A)
        api.ann.port = api.bob.port = api.nobody.port = full.port
        async with await full.connect() as wait, await full.connect() as stranger:
            await wait.send_all(api.ann.head("GET", f"/v1/batch/{job_id}?wait=50", b"", {}))
            await until(lambda: api.app._shared.open._counts == {"ann": 1})
            body = {"Content-Length": "10", "Content-Type": "application/json"}
            await stranger.send_all(api.nobody.head("POST", "/v1/batch", b"", body))
            await read_until(stranger, b" 401 ")
            with trio.fail_after(30):
                assert (await api.bob.get("/v1/batch")).status == 200
            assert full.events["refused_full"] == 0
            assert full.events["evicted"] == 1
            api.fetch.release()
            assert b" 200 " in await read_until(wait, b"\r\n")


@pytest.mark.real
@pytest.mark.parametrize(
    ("path", "key", "told"),
    [
        ("/openapi.json", ANN, [False]),
        ("/healthz", None, [False]),
        ("/v1/batch", None, [False]),
        ("/v1/batch", "siftb_x", [False]),
        ("/v1/nothing", ANN, [False]),
        ("/v1/batch", ANN, [False, True]),
    ],
)
async def test_the_service_says_whose_requests_count(path: str, key: str | None, told: list[bool]) -> None:
    """A request counts once it is held open for a caller, and no other does."""
    heard: list[bool] = []
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1"),
            *([(b"authorization", f"Bearer {key}".encode())] if key else []),
        ],
        "client": ("127.0.0.1", 1),
        "extensions": {EXTENSION: heard.append},
    }

    async def receive():
        await trio.sleep_forever()

    async def send(message):
        await trio.lowlevel.checkpoint()

    async with serving() as api:
        await api.app(scope, receive, send)
    assert heard == told
