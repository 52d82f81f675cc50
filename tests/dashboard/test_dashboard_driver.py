"""Does the browser's driver survive a test that fails, so that the test after it has a browser, too?"""

import gc
import os

import pytest
from chromium_rig import Chromium, page_of

pytestmark = pytest.mark.real


async def test_a_page_left_by_an_error_never_makes_the_next_one_block(chromium: Chromium) -> None:
    """After a page whose test failed, the pipes still don't block, and the next page is answered."""
    with pytest.raises(ExceptionGroup) as caught:
        async with page_of(chromium, "http://127.0.0.1:9"):
            raise ValueError
    assert caught.group_contains(ValueError)
    async with page_of(chromium, "http://127.0.0.1:9") as page:
        caught = None  # type: ignore[assignment]
        gc.collect()
        assert not os.get_blocking(chromium.from_it)
        assert not os.get_blocking(chromium.to_it)
        assert await page.run("1 + 1") == 2
    assert not os.get_blocking(chromium.from_it)
