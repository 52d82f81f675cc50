"""Opening a fetcher: where it may be opened, with what, and what a Ctrl-C meanwhile leaves."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from types import FrameType

import certifi
import pytest
import trio

from sift_batch.fetch import FetchConfig, _fetcher, _pool, open_fetcher
from sift_batch.fetch._fetcher import Fetcher
from sift_batch.fetch._pool import Readers


def test_under_asyncio_it_says_so_before_anything_is_opened():
    """Outside a Trio run a fetcher is not opened, and the sentence says what it runs on."""

    async def main() -> None:
        async with open_fetcher():
            pass

    with pytest.raises(RuntimeError, match="runs on Trio"):
        asyncio.run(main())


@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"\xff\x00" * 900])
async def test_authorities_that_cannot_be_loaded_are_told_at_once(content, tmp_path):
    """A `ca_file` that is not there, or has no certificates, fails when the fetcher is opened."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="ca_file") as caught:
        async with open_fetcher(FetchConfig(ca_file=str(path))):
            pass
    assert str(path) not in str(caught.value)


async def test_authorities_that_can_be_loaded_open(tmp_path):
    """A file of certificates is taken, as a text or as a path."""
    for path in (certifi.where(), tmp_path / "link.pem"):
        if path != certifi.where():
            path.symlink_to(certifi.where())
        async with open_fetcher(FetchConfig(ca_file=path)):
            pass


def _interrupt_at(line: int) -> Callable[[], bool]:
    """Raise SIGINT at the n-th line in contextlib's frames; say whether it came so far."""
    left = line

    def trace(frame: FrameType, event: str, _: object):
        nonlocal left
        if frame.f_code.co_filename != contextlib.__file__ or frame.f_code.co_name not in (
            "__aenter__",
            "__aexit__",
        ):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    return lambda: left <= 0


def test_a_ctrl_c_at_the_edge_of_the_block_leaves_nothing_open(monkeypatch):
    """Whichever of contextlib's lines a Ctrl-C strikes, the fetcher and its readers are closed after it."""
    opened: list[Fetcher | Readers] = []
    for module, kind in ((_fetcher, Fetcher), (_pool, Readers)):

        class Watched(kind):
            def __init__(self, *args) -> None:
                super().__init__(*args)
                opened.append(self)

        monkeypatch.setattr(module, kind.__name__, Watched)

    async def use() -> None:
        try:
            async with open_fetcher():
                await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
        finally:
            # Here and not after the run: Trio closes at its end what a generator has left open.
            left_open.append([type(it).__mro__[1].__name__ for it in opened if not it._closed])

    left_open: list[list[str]] = []
    interrupted = 0
    before = sys.gettrace()
    for line in range(1, 200):
        opened.clear()
        came = _interrupt_at(line)
        try:
            trio.run(use)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        assert left_open.pop() == [], f"line {line}"
        if not came():
            break
    assert interrupted > 3
