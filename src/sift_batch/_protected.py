"""What if a Ctrl-C strikes between a block and the generator that opens and closes for it?

The generator is protected, contextlib's own frames round it are not: a Ctrl-C in one of those would
leave a connection or a nursery open. And what if there is no Trio to run on? Nothing is opened here. Next:
`_store/sqlite.py`, `_store/reader.py` and `_open.py`, which use it.
"""

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TypeVar

import trio
from trio.lowlevel import enable_ki_protection

T_co = TypeVar("T_co", covariant=True)


class Protected(AbstractAsyncContextManager[T_co]):
    """The same context manager, entered and left as a whole: a Ctrl-C meanwhile waits for a checkpoint.

    Entered outside a Trio run (under asyncio, say) it raises `RuntimeError`.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: AbstractAsyncContextManager[T_co]) -> None:
        self._inner = inner

    @enable_ki_protection
    async def __aenter__(self) -> T_co:
        if not trio.lowlevel.in_trio_run():
            raise RuntimeError('sift_batch runs on Trio: use trio.run, or anyio.run(..., backend="trio")')
        return await self._inner.__aenter__()

    @enable_ki_protection
    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc, tb)  # noqa: ASYNC102 - the inner one closes under its own shield
