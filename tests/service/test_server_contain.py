"""What leaves a request, and what ends there? Cancels, errors, and what ends the program."""

import pytest
import trio
from server_rig import HEALTHY, answer, running, status_of

from sift_batch.service._contain import alone, leaves, passing

END = SystemExit(3)


async def kept_cancel() -> trio.Cancelled:
    """Return a `Cancelled` whose scope has ended."""
    kept = None
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep(1)
        except trio.Cancelled as cancelled:
            kept = cancelled
            raise
    assert kept is not None
    return kept


@pytest.mark.real
@pytest.mark.parametrize("grouped", [False, True])
async def test_a_cancel_that_was_kept_is_a_failure_like_any_other(grouped: bool) -> None:
    """An application that raises the `Cancelled` of a scope that has ended is answered for with a 500."""

    async def app(scope, receive, send):
        if scope["raw_path"] == b"/healthy":
            await answer(send)
            return
        kept = await kept_cancel()
        raise BaseExceptionGroup("", [ValueError("x"), kept]) if grouped else kept

    async with running(app) as server:
        with trio.fail_after(30):
            assert status_of(await server.talk(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")) == 500
            assert status_of(await server.talk(HEALTHY)) == 200
        assert server.events["app_failed"] == 1


@pytest.mark.real
@pytest.mark.parametrize("error", [END, ExceptionGroup("", [ValueError("x")]), KeyboardInterrupt()])
async def test_what_ends_the_program_comes_out_of_serve(error: BaseException) -> None:
    """`SystemExit` and Ctrl-C go on through the server, also beside a failure; a failure alone does not."""
    ends = not isinstance(error, Exception)

    async def app(scope, receive, send):
        raise BaseExceptionGroup("", [ValueError("x"), error])

    caught = None
    try:
        async with running(app) as server:
            with trio.fail_after(30):
                await server.talk(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    except BaseExceptionGroup as group:
        caught = group
    assert (caught is not None) == ends
    if caught is not None:
        assert [leaf for leaf in leaves(caught) if not isinstance(leaf, trio.Cancelled)] == [error]


async def test_what_passes_out_of_a_group() -> None:
    """All that passes passes as it is; beside a failure the one leaf that matters most goes on alone."""
    failure, stop = ValueError("x"), KeyboardInterrupt()
    kept = await kept_cancel()
    mixed = BaseExceptionGroup("", [failure, kept, BaseExceptionGroup("", [END])])
    closed = GeneratorExit()
    assert passing(closed) is closed
    assert passing(failure) is None
    assert passing(kept) is None
    assert passing(stop) is stop
    assert passing(mixed) is END
    with trio.CancelScope() as scope:  # noqa: ASYNC100 - asked inside of it, with nothing waited for
        scope.cancel()
        both = BaseExceptionGroup("", [kept, kept])
        assert passing(kept) is kept
        assert passing(both) is both
        assert passing(mixed) is END
        assert passing(BaseExceptionGroup("", [failure, both])) is kept


async def test_a_group_of_any_depth_is_looked_through() -> None:
    """A failure 5,000 groups deep is contained, and found."""
    error: Exception = ValueError("x")
    deep = error
    for _ in range(5_000):
        deep = ExceptionGroup("", [deep])
    assert passing(deep) is None
    assert isinstance(deep, ExceptionGroup)
    assert alone(deep) is error
