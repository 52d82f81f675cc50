"""What gets dearer as the store grows, and how fast? Measured curves, and the exponent of each.

What grows, and what each operation may cost then, is in `growth_axes.py`. At each size a
store is filled once; then, round by round, everything is timed on a copy of each, so that a machine that
slows down slows all sizes alike.
On tmpfs and without syncs: a disk's sync would be a constant that hides what grows.

    python benchmarks/growth.py                    # all axes
    python benchmarks/growth.py jobs bytes         # some
    python benchmarks/growth.py --write            # also writes the table and the plots of README.md
    python benchmarks/growth.py --quick            # small stores, to see that it works

An exponent that is allowed is what the operation has to do: a job's look-up by its id is as dear in a
big store as in a small one (0), reading results costs by the bytes of them (1). The exponent counts as
kept up to 0.15 more: a tree gets deeper, a cache smaller, and no machine is quiet.
"""

import argparse
import json
import shutil
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import growth_steps
import measure
import plot
import readme
from fit import Fit, fit
from growth_axes import AXES, Axis
from growth_store import Filling, fill
from measure import Number

ROUNDS, FEWER = 3, 2
TOLERANCE = 0.15
PLOTS = Path(__file__).with_name("plots")


Curve = dict[float, list[float]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One operation on one axis: milliseconds by size, one number for each round."""

    axis: Axis
    operation: str
    curve: Curve

    @property
    def may(self) -> float:
        """The exponent that is allowed."""
        return self.axis.may.get(self.operation, 0.0)

    @property
    def fit(self) -> Fit:
        """The exponent that was measured."""
        return fit(self.curve)

    @property
    def kept(self) -> bool:
        """Whether it grows no faster than it may."""
        return self.fit.exponent <= self.may + TOLERANCE

    def at(self, size: float) -> float:
        """Return the milliseconds at one size."""
        return statistics.median(self.curve[size])


def once(
    path: str, groups: Sequence[str], filling: Sequence[int], known: list[list[str]]
) -> dict[str, float]:
    """Time everything on one store; in a process of its own."""
    ids = [(job_id, caller) for job_id, caller in known]
    store, what = Path(path), Filling(*filling)
    by_group = {
        "calls": lambda: growth_steps.calls(store, what, ids),
        "opening": lambda: growth_steps.opening(store, ids),
        "upkeep": lambda: growth_steps.upkeep(store),
        "fetch_anew": lambda: growth_steps.fetch_anew(store, what),
        "among_live": lambda: growth_steps.among_live(store, what.jobs),
    }
    return {name: taken for group in groups for name, taken in by_group[group]().items()}


def measure_axis(axis: Axis, sizes: Sequence[int], rounds: int) -> list[Measured]:
    """Fill a store of each size, then time each of them in turn, round by round."""
    curves: defaultdict[str, Curve] = defaultdict(lambda: defaultdict(list))
    live = axis.groups == ("among_live",)
    with measure.folder(tmpfs=True) as where:
        fillings = {size: Filling(size, 1, 0) if live else axis.filling(size) for size in sizes}
        stores = {size: where / str(size) for size in sizes}
        known = {size: [] if live else fill(stores[size], fillings[size]) for size in sizes}
        for _ in range(rounds):
            for size in sizes:
                copy = where / "copy"
                if not live:
                    shutil.copy(stores[size], copy)
                taken = measure.in_child(
                    __file__,
                    "once",
                    path=str(copy),
                    groups=axis.groups,
                    filling=fillings[size],
                    known=known[size],
                )
                for name, milliseconds in taken.items():
                    curves[name][size].append(milliseconds)
                for left in where.glob("copy*"):
                    left.unlink()
    return [Measured(axis, name, dict(curve)) for name, curve in curves.items()]


def table(measured: Sequence[Measured]) -> str:
    """Return the exponents as a table, an axis after the other."""
    lines = [
        "| by | operation | smallest | largest | exponent | of single rounds | allowed | |",
        "|" + "---|" * 8,
    ]
    for one in measured:
        sizes, found = sorted(one.curve), one.fit
        cells = [
            f"{one.axis.unit}, {sizes[0]:,} to {sizes[-1]:,}",
            one.operation,
            f"{one.at(sizes[0]):.3g} ms",
            f"{one.at(sizes[-1]):.3g} ms",
            f"{found.exponent:.2f}",
            f"{found.low:.2f} to {found.high:.2f}",
            f"{one.may:g}",
            "yes" if one.kept else "**no**",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def matrix(measured: Sequence[Measured]) -> str:
    """Return the exponents with operations as rows and axes as columns."""
    axes = list(dict.fromkeys(one.axis.name for one in measured))
    by_place = {(one.operation, one.axis.name): one for one in measured}
    units = {one.axis.name: f"{one.axis.unit}, {_ends(one)}" for one in measured}
    lines = [f"| operation | {' | '.join(units[axis] for axis in axes)} |", "|" + "---|" * (len(axes) + 1)]
    for operation in dict.fromkeys(one.operation for one in measured):
        cells = [_cell(by_place.get((operation, axis))) for axis in axes]
        lines.append(f"| {operation} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ends(one: Measured) -> str:
    sizes = sorted(one.curve)
    return f"{plot.short(sizes[0])} to {plot.short(sizes[-1])}"


def _cell(one: Measured | None) -> str:
    if one is None:
        return ""
    found = f"{one.fit.exponent:.2f} ({one.fit.low:.2f} to {one.fit.high:.2f})"
    may = f", may be {one.may:g}" if one.may else ""
    return f"{found}{may}" if one.kept else f"**{found}**{may}"


def numbers(measured: Sequence[Measured]) -> Iterator[Number]:
    """Return how far the worst exponent of an axis is above what it may be."""
    worst = max(measured, key=lambda one: one.fit.exponent - one.may)
    yield Number(
        name=f"growth by {worst.axis.unit}, the worst: {worst.operation}",
        values=[found - worst.may for found in worst.fit.rounds],
        unit="above the allowed exponent",
        at_most=TOLERANCE,
    )


def draw(measured: Sequence[Measured], into: Path) -> list[Path]:
    """Write one picture for each axis."""
    files = []
    for axis in dict.fromkeys(one.axis.name for one in measured):
        ones = [one for one in measured if one.axis.name == axis]
        panels = [plot.Panel(one.operation, one.curve, one.fit, one.may, one.kept) for one in ones]
        into.mkdir(exist_ok=True)
        file = into / f"growth_{axis}.svg"
        file.write_text(plot.svg(f"Cost by {ones[0].axis.unit}", ones[0].axis.unit, "ms", panels))
        files.append(file)
    return files


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("axes", nargs="*", choices=[[], *(axis.name for axis in AXES)], metavar="AXIS")
    parser.add_argument("--quick", action="store_true", help="small stores, one round")
    parser.add_argument("--rounds", type=int, help=f"instead of {ROUNDS} ({FEWER} with --json)")
    parser.add_argument("--json", action="store_true", help="one line for each axis: its worst")
    parser.add_argument("--write", action="store_true", help="write README.md's table and the plots")
    parser.add_argument("--plots", type=Path, help="write the plots into this folder")
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    if not arguments.json:
        print(measure.machine(), f"command: {measure.command()}", sep="\n", flush=True)
    asked = arguments.rounds or (FEWER if arguments.json else ROUNDS)
    measured: list[Measured] = []
    for axis in AXES:
        if arguments.axes and axis.name not in arguments.axes:
            continue
        sizes, rounds = (axis.quick, 1) if arguments.quick else (axis.sizes, asked)
        found = measure_axis(axis, sizes, rounds)
        measured += found
        if arguments.json:
            for number in numbers(found):
                print(json.dumps(asdict(number)), flush=True)
        else:
            print(f"\n{table(found)}", flush=True)
    if arguments.write:
        readme.write("growth", f"{readme.heading()}\n\n{matrix(measured)}")
    if arguments.write or arguments.plots:
        draw(measured, arguments.plots or PLOTS)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        measure.run(lambda: iter(()), {"once": once})
    else:
        main()
