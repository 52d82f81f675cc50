"""A service for schemathesis: the real one with two callers, real checks, and scripted pages.

Usage: `python schemathesis_program.py FOLDER`, with a folder of its own. It prints its port, and ends when
its standard input does. The pages are made up from the URL, so that each code of a target comes up.
"""

import sys
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from sift_batch import Caller, Result, RetryLater, Target, TargetError
from sift_batch.fetch import open_fetcher
from sift_batch.fetch._errors import CODES, FetchError
from sift_batch.service._keys import digest_of, digest_text
from sift_batch.service._open import open_service
from sift_batch.service._settings import load_settings

KEYS = {"ann": "siftb_" + "annann" * 8, "bob": "siftb_" + "bobbob" * 8}
_FAILURES = tuple(code for code in CODES if code not in ("bad_option", "internal", "busy"))
_SETTINGS = {
    "service.port": "0",
    "service.metrics_port": "0",
    "service.auth_failures_per_minute": "1000000",
    "engine.jobs_per_caller": "1000",
    "engine.jobs_total": "1000",
    "engine.workers": "8",
    "engine.workers_limit": "16",
    "engine.shutdown_grace": "1s",
    "engine.retry_wait": "10ms",
}


class Pages:
    """Answers from the URL alone; what may be asked for is checked by the real fetcher."""

    def __init__(self, fetcher: Any) -> None:
        self._fetcher = fetcher

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Give a page, or fail, always in the same way for a URL."""
        await trio.lowlevel.checkpoint()
        number = zlib.crc32(target.url.encode("utf-8", "replace"))
        if number % 4 == 0:
            code = _FAILURES[number // 4 % len(_FAILURES)]
            raise FetchError(code, "this page fails", reason="special_address" if code == "refused" else "")
        if number % 50 == 1:
            raise TargetError("odd", code="unheard_of", status=500)
        content = "".join(f"# Part {part}\n\nA paragraph of it.\n\n" for part in range(number % 9))
        meta = {"url": target.url, "http_status": 200, "chars": len(content), "title": "A page"}
        return Result(content, meta if content else {**meta, "code": "empty", "hint": "nothing is on it"})

    async def interactive(self, caller: Caller, target: Target, *, patience: float = 0.0) -> Result:
        """As in a batch; at times there is no room."""
        number = zlib.crc32(target.url.encode("utf-8", "replace"))
        if number % 31 == 2:
            raise RetryLater(retry_after=1.5, reason="gate" if number % 2 else "retry_after")
        return await self(caller, target)

    async def check(self, target: Target) -> None:
        """Refuse what the real one refuses."""
        await self._fetcher.check(target)


@asynccontextmanager
async def _open_pages(config: Any, *, gate: Any) -> AsyncIterator[Pages]:
    async with open_fetcher(config, gate=gate) as fetcher:
        yield Pages(fetcher)


def write_callers(path: Path) -> None:
    """Write a callers file for the two."""
    path.touch(0o600)
    path.write_text(
        "".join(
            f'[[caller]]\nname = "{name}"\nclass = "{"fleet" if name == "ann" else "restricted"}"\n'
            f'keys = ["{digest_text(digest_of(key.encode()))}"]\n'
            for name, key in KEYS.items()
        )
    )


async def _serve(folder: Path) -> None:
    callers = folder / "callers.toml"
    write_callers(callers)
    flags = {"service.data": str(folder / "data"), "service.callers": str(callers), **_SETTINGS}
    async with open_service(load_settings(None, {}, flags), fetcher=_open_pages) as service:
        print(service.port, flush=True)
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    trio.run(_serve, Path(sys.argv[1]))
