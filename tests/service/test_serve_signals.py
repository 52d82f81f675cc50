"""What signals do to `serve` while it starts: the service manager may be quicker than the service."""

import signal
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace

import pytest
import trio

from sift_batch.cli import main, serve_command
from sift_batch.cli.serve_command import _Stopping
from sift_batch.cli.serve_signals import StoppedEarly, early_signals

ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in ALL}
    yield
    assert {number: signal.getsignal(number) for number in ALL} == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_start_is_an_end_in_good_order(number, monkeypatch, capfd) -> None:
    """A signal to stop that comes before the loop runs ends the command with 0, and nothing is written."""

    def starting(*_args: object, **_flags: object) -> int:
        signal.raise_signal(number)
        return 3

    monkeypatch.setattr(serve_command, "serve_command", starting)
    assert main(["serve", "--data", "data"]) == 0
    assert capfd.readouterr() == ("", "")


def test_a_reload_during_the_start_ends_nothing(monkeypatch) -> None:
    """SIGHUP before the loop runs leaves the start alone."""

    def starting(*_args: object, **_flags: object) -> int:
        signal.raise_signal(signal.SIGHUP)
        return 3

    monkeypatch.setattr(serve_command, "serve_command", starting)
    assert main(["serve", "--data", "data"]) == 3


def test_the_signals_are_as_they_were_afterwards() -> None:
    """Whatever ends the start, the handlers of before are back (the fixture looks)."""
    with pytest.raises(StoppedEarly), early_signals():
        signal.raise_signal(signal.SIGTERM)
    with pytest.raises(KeyError), early_signals():
        raise KeyError


async def test_a_reload_before_the_service_is_there_is_made_up_for() -> None:
    """SIGHUP while the service is being opened reads the callers once it is."""
    read: list[str] = []
    service = SimpleNamespace(callers=SimpleNamespace(reload=lambda: read.append("again")))

    async def signals() -> AsyncIterator[int]:
        yield signal.SIGHUP
        await trio.lowlevel.checkpoint()

    for asked in (False, True):
        stopping = _Stopping(log=None)  # type: ignore[arg-type]
        if asked:
            await stopping.obey(signals())
        stopping.begun(service)  # type: ignore[arg-type]
        assert read == (["again"] if asked else [])
