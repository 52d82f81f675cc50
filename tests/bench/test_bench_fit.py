"""The exponent of a curve."""

import pytest
from fit import fit, slope

SIZES = (10.0, 100.0, 1_000.0, 10_000.0)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_bench_slope_of_a_power(exponent: float) -> None:
    """A cost that is a power of its size has that power as its exponent."""
    assert slope({size: 3 * size**exponent for size in SIZES}) == pytest.approx(exponent)


def test_bench_slope_looks_at_the_upper_points() -> None:
    """What a small store costs, however much, changes nothing about the exponent."""
    curve = {size: 3 * size for size in SIZES}
    assert slope(curve | {1.0: 1_000.0, 2.0: 0.001}) == pytest.approx(1.0)


def test_bench_a_constant_hides_growth_only_partly() -> None:
    """A linear cost on top of a constant that it outgrows is not taken for a flat one."""
    assert 0.6 < slope({size: 100 + size for size in SIZES}) < 1.0


def test_bench_fit_has_the_spread_of_its_rounds() -> None:
    """The exponent is the median of the rounds' exponents, and its ends are theirs."""
    found = fit({size: (size**0.9, size**1.0, size**1.3) for size in SIZES})
    assert (found.low, found.exponent, found.high) == pytest.approx((0.9, 1.0, 1.3))


def test_bench_no_slope_of_one_point() -> None:
    """One size alone has no exponent."""
    with pytest.raises(ValueError, match="two sizes"):
        slope({10.0: 1.0})
