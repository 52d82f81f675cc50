"""What comes out of a call: errors of ours, alone, with nothing hanging on them."""

import gc
import traceback
import weakref

import pytest
import trio
from fetcher_stage import FLEET, RESTRICTED, Stage, answer, failure

from sift_batch import Options, RetryLater, Target
from sift_batch.fetch import FetchError, check_target

URL = "http://site.org/a"


class Body(list):
    """A page that can be watched."""


def chained(code: str) -> FetchError:
    """A failure of ours that was raised about a library's error, as the client raises it."""
    try:
        try:
            raise ValueError("SECRET of a library")
        except ValueError:
            raise FetchError(code, "it failed") from None
    except FetchError as error:
        return error


async def raised(call) -> BaseException:
    """Give what a call raises."""
    try:
        await call
    except (FetchError, RetryLater, trio.Cancelled) as error:
        return error  # a stale `Cancelled` that came out would end the test without a word
    raise AssertionError


def assert_alone(error: BaseException) -> None:
    """Nothing hangs on the error."""
    assert error.__context__ is None
    assert error.__cause__ is None
    held = [
        value
        for frame, _ in traceback.walk_tb(error.__traceback__)
        for value in frame.f_locals.values()
        if "sift_batch" in frame.f_code.co_filename
    ]
    assert "SECRET" not in repr([value for value in held if isinstance(value, BaseException | str | bytes)])


@pytest.mark.parametrize("caller", [FLEET, RESTRICTED])
@pytest.mark.parametrize("interactive", [False, True])
async def test_a_failure_comes_out_alone(caller, interactive, autojump_clock):
    """A failure has no cause and no context, whatever was raised on its way."""
    stage = Stage(retries=0)
    fetch = stage.fetch.interactive if interactive else stage.fetch
    stage.site.give(URL, chained("tls"))
    assert_alone(await raised(fetch(caller, Target(URL))))
    stage.site.give(URL, answer(404))
    assert_alone(await raised(fetch(caller, Target(URL, Options(recover=True)))))
    stage.site.give(URL, answer(body=b"SECRET page"))
    for error in (
        chained("extract_failed"),
        ExceptionGroup("SECRET", [chained("refused")]),
        OSError("SECRET"),
    ):
        stage.desk.error = error
        assert_alone(await raised(fetch(caller, Target(URL))))
    stage.site.give(URL, answer(429, retry_after="9"))
    assert_alone(await raised(fetch(caller, Target(URL))))
    assert_alone(await raised(fetch(caller, Target(URL))))  # held by the gate
    assert_alone(await raised(fetch(caller, Target("http://127.0.0.1/"))))
    assert_alone(await raised(stage.fetch.check(Target("http://xn--a.org/"))))
    with pytest.raises(FetchError) as caught:
        check_target(Target("http://xn--a.org/"))
    assert_alone(caught.value)


@pytest.mark.parametrize("caller", [FLEET, RESTRICTED])
async def test_who_keeps_a_failure_does_not_keep_the_page_alive(caller, autojump_clock):
    """A page that could not be read is gone while its failure is kept."""
    stage = Stage()

    async def read(document, options, interactive=False):
        try:
            raise BrokenPipeError("SECRET")
        except BrokenPipeError:
            # The hidden context has this frame, and with it the page.
            raise FetchError("extract_failed", "it failed") from None

    stage.desk.read = read
    body = Body([b"a page"])
    seen = weakref.ref(body)
    stage.site.give(URL, answer()._replace(body=body))
    kept = await raised(stage.fetch(caller, Target(URL)))
    stage.site.answers.clear()
    del body
    gc.collect()
    assert kept.code == "extract_failed"
    assert seen() is None


async def test_a_cancelled_of_nobodys_is_a_failure(autojump_clock):
    """A stored `Cancelled` that a look-up raises again fails its target, bare or in a group."""
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep(1)
        except trio.Cancelled as cancelled:
            stale = cancelled
            raise
    stage = Stage(retries=0)
    for error in (stale, BaseExceptionGroup("", [stale]), BaseExceptionGroup("", [stale, failure("dns")])):
        stage.site.give(URL, error)
        found = await raised(stage.batch(URL))
        assert isinstance(found, FetchError)
        assert found.code == ("dns" if len(getattr(error, "exceptions", ())) > 1 else "internal")


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_cancelled_of_a_scope_round_the_call_passes(grouped, autojump_clock):
    """A call that is cancelled from outside ends as cancelled, also where a nursery wraps that."""

    async def hang():
        if not grouped:
            await trio.sleep_forever()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:
            raise BaseExceptionGroup("", [cancelled, ValueError()]) from None

    stage = Stage()
    stage.site.give(URL, hang)
    with trio.move_on_after(5) as scope:
        await stage.batch(URL)
    assert scope.cancelled_caught


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
async def test_the_programs_own_end_passes_bare(end, autojump_clock):
    """A `KeyboardInterrupt` and a `SystemExit` come out as themselves, also out of a group."""
    stage = Stage()
    for error in (end(), BaseExceptionGroup("", [ValueError(), end()])):
        stage.site.give(URL, error)
        with pytest.raises(end):
            await stage.batch(URL)


async def test_an_error_that_is_no_exception_is_internal(autojump_clock):
    """What a compiled library raises outside of `Exception` fails the target like anything else."""

    class PanicError(BaseException):
        pass

    stage = Stage()
    stage.site.give(URL, PanicError("SECRET"))
    error = await raised(stage.batch(URL))
    assert error.code == "internal"
    assert_alone(error)
