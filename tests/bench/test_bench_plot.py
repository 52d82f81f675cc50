"""The pictures of curves."""

import xml.etree.ElementTree as ET

import pytest
from fit import fit
from plot import Panel, Scale, short, svg, ticks

SVG = "{http://www.w3.org/2000/svg}"


def panel(name: str, *, kept: bool = True) -> Panel:
    """Return a panel of a linear cost."""
    curve = {size: (size * 0.9, size * 1.0, size * 1.2) for size in (100.0, 1_000.0, 10_000.0, 100_000.0)}
    return Panel(name, curve, fit(curve), 1.0, kept)


def picture(*panels: Panel) -> ET.Element:
    """Return a picture, parsed."""
    return ET.fromstring(svg("Cost by stored jobs", "stored jobs", "ms", panels))


def test_bench_picture_is_well_formed_and_whole() -> None:
    """A picture is XML, has every point of every panel, and a line for what is allowed."""
    root = picture(*(panel(name) for name in "abcdef"))
    dots = [each for each in root.iter(f"{SVG}circle") if each.get("class") == "dot"]
    assert len(dots) == 6 * 4 + 1  # and one in the legend
    assert sum(each.get("class") == "may" for each in root.iter(f"{SVG}line")) == 6 + 1


def test_bench_names_are_escaped() -> None:
    """What an operation is called can't break the picture."""
    texts = [each.text for each in picture(panel('a < b & "c"')).iter(f"{SVG}text")]
    assert 'a < b & "c"' in texts


def test_bench_everything_is_inside_the_picture() -> None:
    """No point and no bar lies outside its panel."""
    for line in picture(panel("a")).iter(f"{SVG}line"):
        for end in ("y1", "y2"):
            assert 0 <= float(line.attrib[end]) <= 190


def test_bench_axes_have_units() -> None:
    """Both axes say what they count."""
    texts = [each.text or "" for each in picture(panel("a")).iter(f"{SVG}text")]
    assert "stored jobs" in texts
    assert any(text.endswith(" ms") for text in texts)


def test_bench_an_exponent_that_is_too_high_stands_out() -> None:
    """A panel whose exponent is over what it may be is marked."""
    texts = picture(panel("a", kept=False)).iter(f"{SVG}text")
    assert sum(each.get("class") == "over" for each in texts) == 1


@pytest.mark.parametrize(("low", "high"), [(0.1, 1.0), (0.3, 400.0), (100, 100_000), (2e6, 7e7), (1e-3, 1e6)])
def test_bench_ticks_are_few_and_inside(low: float, high: float) -> None:
    """An axis has at least two marks, not more than five, all on it."""
    found = ticks(low, high)
    assert 2 <= len(found) <= 5
    assert all(low * 0.99 <= tick <= high * 1.01 for tick in found)


def test_bench_scale_is_logarithmic() -> None:
    """Ten times as much is always as far away."""
    scale = Scale(1.0, 1_000.0, 0.0, 300.0)
    assert [scale(value) for value in (1, 10, 100, 1_000)] == pytest.approx([0, 100, 200, 300])


def test_bench_short_numbers() -> None:
    """Numbers at an axis are short."""
    assert [short(value) for value in (0.2, 30, 30_000, 67_108_864)] == ["0.2", "30", "30k", "67.1M"]
