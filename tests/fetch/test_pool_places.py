"""Who gets the next free worker, without any worker."""

import random

import pytest
import trio
import trio.testing

from sift_batch.fetch._places import Places


@pytest.mark.parametrize("interactive", [True, False])
async def test_a_cancel_in_line_leaves_the_line_as_it_was(interactive):
    """Who is cancelled while waiting takes no place, and the next in line is served."""
    places = Places(1)
    await places.take()
    got = []

    async def one(name, scope):
        with scope:
            await places.take(interactive=interactive)
            got.append(name)

    async with trio.open_nursery() as nursery:
        gone = trio.CancelScope()
        for name, scope in (("gone", gone), ("patient", trio.CancelScope())):
            nursery.start_soon(one, name, scope)
            await trio.testing.wait_all_tasks_blocked()
        gone.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert (places.waiting, got) == (1, [])
        places.give_back()
    assert got == ["patient"]
    assert not places.take_nowait()
    places.give_back()
    assert places.take_nowait()


async def test_a_place_is_given_even_if_its_taker_is_cancelled_in_the_same_moment():
    """A cancel that comes with the place does not lose it: it is given back by whoever got it."""
    places = Places(1)
    await places.take()
    scope = trio.CancelScope()

    async def one():
        with scope:
            async with places.one():
                await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await trio.testing.wait_all_tasks_blocked()
        places.give_back()
        scope.cancel()
    assert places.take_nowait()


async def test_after_any_cancels_all_places_are_free(autojump_clock):
    """Taken, waited for and cancelled at random, no place is lost and none is given twice."""
    dice = random.Random(8)
    places = Places(3)
    inside = most = 0

    async def one(patience, stay, interactive):
        nonlocal inside, most
        with trio.move_on_after(patience):
            async with places.one(interactive=interactive):
                inside += 1
                most = max(most, inside)
                try:
                    await trio.sleep(stay)
                finally:
                    inside -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(300):
            nursery.start_soon(one, dice.choice([1, 2, 3, 50]), dice.choice([0, 1, 2]), dice.random() < 0.5)
            await trio.sleep(dice.choice([0, 0, 1]))
    assert (most, inside, places.waiting) == (3, 0, 0)
    assert [places.take_nowait() for _ in range(4)] == [True, True, True, False]
