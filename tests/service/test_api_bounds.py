"""What is bounded: memory for results, touches of a job, failures of an address, waits. On the mock clock."""

import math

import pytest
import trio
from api_rig import holding
from trio.testing import MockClock, wait_all_tasks_blocked

from sift_batch import Caller
from sift_batch.service._addressed import Names
from sift_batch.service._attempts import Attempts
from sift_batch.service._cursors import Cursors
from sift_batch.service._leases import Leases
from sift_batch.service._problems import Problem
from sift_batch.service._query import Query
from sift_batch.service._refusal import BodyRefused, ClientGone
from sift_batch.service._room import Room
from sift_batch.service._waiting import End, OpenRequests

ANN = Caller("ann", key_sha256="a")


def test_a_request_has_one_host() -> None:
    """None and two are both nobody's name, even if each is ours."""
    ours = (b"host", b"localhost")
    assert [Names(()).has(headers) for headers in ([], [ours], [ours, ours])] == [False, True, False]


def test_a_cursor_is_one_callers_for_one_query() -> None:
    """Another caller, another query, another key or another place: refused."""
    cursors = Cursors(b"k" * 32)
    cursor = cursors.make(ANN, "/v1/batch?status=", "7")
    assert cursors.read(ANN, "/v1/batch?status=", cursor) == "7"
    for reader, caller, query, text in (
        (cursors, Caller("bob"), "/v1/batch?status=", cursor),
        (cursors, ANN, "/v1/batch?status=done", cursor),
        (Cursors(b"x" * 32), ANN, "/v1/batch?status=", cursor),
        (cursors, ANN, "/v1/batch?status=", cursor[:-2] + "OA"),
        (cursors, ANN, "/v1/batch?status=", ""),
        (cursors, ANN, "/v1/batch?status=", "\u00e9"),
        (cursors, ANN, "/v1/batch?status=", "A" * 1000),
    ):
        with pytest.raises(Problem) as caught:
            reader.read(caller, query, text)
        assert caught.value.code == "bad_request"


def test_a_number_in_a_query_that_is_too_large_is_cut_down() -> None:
    """Nobody gets more than the most there is, and no number is read from what is none."""
    query = Query(b"a=999&b=7&c=-9&d=99", ("a", "b", "c", "d"))
    assert [query.whole("a", most=10), query.whole("b", most=10), query.whole("e", most=10)] == [10, 7, None]
    assert [query.clamped("c", most=5), query.clamped("d", most=5)] == [0, 5]
    query.check()
    for raw, value in ((b"w=" + b"9" * 5_000, 55), (b"w=-" + b"9" * 5_000, 0), (b"w=007", 7), (b"w=00", 0)):
        query = Query(raw, ("w",))
        assert query.clamped("w", most=55) == value
        query.check()
    for raw in (b"a=-1", b"a=%b2", b"a=", b"a=1_0", b"a=+1", b"a=" + b"1" * 30, b"\xff", b"a=1;b=2"):
        query = Query(raw, ("a",))
        query.whole("a", most=10)
        with pytest.raises(Problem):
            query.check()


async def test_room_is_given_in_the_order_of_asking(autojump_clock: MockClock) -> None:
    """A large request is not overtaken by small ones, and what is too large gets all there is."""
    room, order = Room(10), []

    async def use(name: str, nbytes: int, seconds: float) -> None:
        async with holding(room, nbytes):
            order.append(name)
            await trio.sleep(seconds)

    async with trio.open_nursery() as tasks:
        tasks.start_soon(use, "first", 6, 1)
        await wait_all_tasks_blocked()
        tasks.start_soon(use, "large", 99, 1)
        await wait_all_tasks_blocked()
        tasks.start_soon(use, "small", 1, 1)
    assert (order, room.free) == (["first", "large", "small"], 10)


async def test_who_leaves_the_line_takes_no_room(autojump_clock: MockClock) -> None:
    """A wait for room that is cancelled holds nothing and blocks nobody."""
    room = Room(10)
    async with holding(room, 10):
        with trio.move_on_after(1) as scope:
            async with holding(room, 5):
                raise AssertionError("there is no room")
        assert scope.cancelled_caught
    async with holding(room, 10):
        assert room.free == 0
    assert room.free == 10


async def test_a_job_is_touched_once_a_second(autojump_clock: MockClock) -> None:
    """Each caller's job on its own, and nothing is kept of those that nobody reads any more."""
    touched: list[tuple[str, str]] = []

    class Runner:
        async def touch(self, job_id: str, *, caller: Caller) -> None:
            touched.append((caller.name, job_id))

    leases = Leases(Runner())  # type: ignore[arg-type]
    for _ in range(3):
        await leases.touch(ANN, "x")
    await leases.touch(Caller("bob"), "x")
    assert touched == [("ann", "x"), ("bob", "x")]
    await trio.sleep(0.9)
    await leases.touch(ANN, "y")
    await leases.touch(ANN, "x")
    await trio.sleep(0.2)
    await leases.touch(ANN, "x")
    assert touched[2:] == [("ann", "y"), ("ann", "x")]
    assert set(leases._touched) == {("ann", "y"), ("ann", "x")}


async def test_failures_are_counted_by_address_and_minute(autojump_clock: MockClock) -> None:
    """Another address has a count of its own, a new minute begins at none, and the table has an end."""
    attempts = Attempts(2)
    assert [attempts.failed("a"), attempts.failed("a"), attempts.failed("b")] == [None, None, None]
    await trio.sleep(20)
    assert attempts.failed("a") == pytest.approx(40)
    await trio.sleep(40)
    assert attempts.failed("a") is None
    for n in range(20_000):
        attempts.failed(str(n))
    assert len(attempts._failures) <= 10_001


async def never() -> None:
    """News that does not come."""
    await trio.sleep_forever()


async def quiet() -> dict[str, str]:
    """A client that neither sends nor leaves."""
    await trio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize("end", list(End))
async def test_a_wait_ends_for_each_reason(autojump_clock: MockClock, end: End) -> None:
    """Time, stop and revocation end a wait, say which it was, and cancel what was waited for."""
    opened = OpenRequests()
    with opened.enter(ANN, quiet) as request:
        async with trio.open_nursery() as tasks:

            async def tell() -> None:
                await trio.sleep(1)
                if end is End.STOPPING:
                    opened.stop()
                elif end is End.REVOKED:
                    opened.revoke(callers=frozenset({"ann"}), keys=frozenset())

            tasks.start_soon(tell)
            assert await request.wait(never, seconds=5) is end
        assert trio.current_time() == (5 if end is End.TIME else 1)
        if end is not End.TIME:
            assert await request.wait(never) is end
    with opened.enter(ANN, quiet) as later:
        assert later.end is (End.STOPPING if end is End.STOPPING else None)


async def test_a_wait_raises_what_its_news_raise_and_nothing_wrapped(autojump_clock: MockClock) -> None:
    """An error comes out as itself, a client that leaves as `ClientGone`, a refused body with its status."""

    async def broken() -> None:
        raise KeyError("mine")

    async def leaving() -> dict[str, str]:
        await trio.sleep(1)
        return {"type": "http.disconnect"}

    async def refused() -> dict[str, str]:
        raise BodyRefused(413)

    opened = OpenRequests()
    with opened.enter(ANN, quiet) as request, pytest.raises(KeyError, match="mine"):
        await request.wait(broken)
    for receive, error in ((leaving, ClientGone), (refused, BodyRefused)):
        with opened.enter(ANN, receive) as request, pytest.raises(error):
            await request.wait(never, seconds=math.inf)
    with trio.move_on_after(1) as scope, opened.enter(ANN, quiet) as request:
        await request.wait(never)
    assert scope.cancelled_caught
    assert opened._open == set()
