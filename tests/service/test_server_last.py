"""How a connection ends that was to be closed after its answer; and who watches it meanwhile."""

from typing import Any

import trio
from server_rig import answer, running

LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def test_what_a_client_sends_too_much_does_not_cost_it_the_answer() -> None:
    """Bytes behind the last request of a connection are taken before it is closed: no reset."""
    asked, go_on = trio.Event(), trio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.set()
        await go_on.wait()
        await answer(send, 200, b"whole")

    async with running(app) as server, await server.connect() as stream:
        await stream.send_all(LAST)
        await asked.wait()
        await stream.send_all(LAST)
        await trio.sleep(0.05)  # on its way through the kernel
        go_on.set()
        got = b""
        while data := await stream.receive_some(65536):
            got += data
        assert got.endswith(b"whole")
        assert server.events["app_failed"] == 0


async def test_an_application_that_asks_for_nothing_more_is_answered_without_a_watcher() -> None:
    """While an application works that never asks whether its client is there, no task waits beside it."""
    tasks: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        tasks.append(
            sum(len(nursery.child_tasks) for nursery in trio.lowlevel.current_task().child_nurseries)
        )
        await answer(send)

    async with running(app) as server:
        assert (await server.talk(LAST)).endswith(b"ok")
    assert tasks == [0]


async def test_an_application_that_asks_after_its_request_has_ended_is_told_at_once() -> None:
    """`receive` kept beyond its request says `http.disconnect`, also when the request failed."""
    kept: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        kept.append(receive)
        raise ValueError

    async with running(app) as server:
        assert b" 500 " in await server.talk(LAST)
        with trio.fail_after(5):
            assert await kept[0]() == {"type": "http.disconnect"}
            assert await kept[0]() == {"type": "http.disconnect"}
