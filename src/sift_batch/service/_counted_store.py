"""Which steps of the store fail? A store that counts them, around the one that does the work."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from sift_batch import Store, StoreError


def counted(store: Store, failed: Callable[[str], object]) -> Store:
    """Return the same store; `failed` is called with the name of each step that raises `StoreError`."""
    return cast("Store", _Counted(store, failed))


class _Counted:
    def __init__(self, store: Store, failed: Callable[[str], object]) -> None:
        self._store, self._failed = store, failed

    def __getattr__(self, name: str) -> Any:
        # By name, so that a step that a store gets later is counted as well.
        step: Callable[..., Awaitable[Any]] = getattr(self._store, name)

        async def counting(*args: Any, **options: Any) -> Any:
            try:
                return await step(*args, **options)
            except StoreError:
                self._failed(name)
                raise

        setattr(self, name, counting)  # found at once from now on
        return counting
