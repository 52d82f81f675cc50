"""The benchmarks of the fetch pipeline measure what they say: their pages are what they are called."""

import io
from functools import partial

import hostile_stall
import pypdf
import pytest
import reading
import trio
from typical import told, typical_page


def test_bench_typical_pages_differ_in_their_story() -> None:
    """A typical page is a page of 80 KB, and its story is told on no other."""
    first, second = typical_page(1), typical_page(2)
    assert 60_000 < len(first) < 100_000
    assert told(1) in first
    assert told(1) not in second


@pytest.mark.slow
def test_bench_reading_compares_with_the_bare_extractor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both readers read the same pages, and both took some time for it."""
    monkeypatch.setattr(reading, "IN_PROCESS", 2)
    found = reading.in_process()
    assert set(found) == {"bare", "ours"}
    assert all(seconds > 0 for seconds in found.values())


@pytest.mark.slow
def test_bench_hostile_pages_are_what_they_are_called() -> None:
    """Each page that is named has an outcome, fits the limit on the wire, and is whole."""
    bodies = hostile_stall.bodies()
    assert set(bodies) == set(hostile_stall.OUTCOMES) - {"drip", "endless headers"}
    for name, (_, body) in bodies.items():
        assert len(body) <= 10 * 2**20, name
    assert len(bodies["gzip bomb"][1]) < 2**21
    (page,) = pypdf.PdfReader(io.BytesIO(bodies["pdf bomb"][1])).pages
    assert len(bodies["pdf bomb"][1]) < 2**20
    assert page["/Contents"].get_object()["/Filter"] == "/FlateDecode"


async def test_bench_a_stall_is_seen_and_whose_it_is() -> None:
    """Work that keeps the loop for itself makes the tick late, and its step long; a sleep does neither."""

    async def held() -> None:
        await trio.lowlevel.checkpoint()
        sum(range(3_000_000))
        await trio.lowlevel.checkpoint()

    late, step = await hostile_stall._worst_while(held)
    assert late > 0.01
    assert step > 0.01
    _, step = await hostile_stall._worst_while(partial(trio.sleep, 0.05))
    assert step < 0.01
