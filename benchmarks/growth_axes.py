"""What grows, and how fast may each operation get dearer with it?

Stored jobs, stored targets, the size of a result, stored bytes up to the whole budget, the targets of a job,
live jobs, and how often one series was fetched. An operation that is not named may not care at all. The
stores are filled by `growth_store.py`, and what is timed on them is in `growth_steps.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from growth_store import Filling


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One question: what grows, at which sizes, and which exponent each operation may have (0 if unnamed)."""

    name: str
    unit: str
    sizes: Sequence[int]
    quick: Sequence[int]
    may: Mapping[str, float] = field(default_factory=dict)
    groups: Sequence[str] = ("calls", "opening", "upkeep")

    def filling(self, size: int) -> Filling:
        """Return what the store of this size holds."""
        match self.name:
            case "jobs":
                return Filling(jobs=size, targets=1, result=200)
            case "targets":
                return Filling(jobs=size // 32, targets=32, result=500)
            case "result":
                return Filling(jobs=48, targets=4, result=size)
            case "bytes":
                # Jobs of 32 KiB: a few hundred bytes of each are the URLs.
                return Filling(jobs=size // 2**15, targets=8, result=2**12)
            case "series":
                return Filling(jobs=48, targets=size, result=500)
            case "fetched":
                return Filling(jobs=size, targets=1, result=200, series=1)
        raise ValueError(self.name)


# What walks over the jobs: no index on leases, since it would make every stored target dearer.
_OVER_JOBS = {"has anything lapsed?": 1.0, "evict a job": 1.0, "open": 1.0}
_BY_SIZE = {
    "store a target": 1.0,
    "poll, results": 1.0,
    "rerun": 1.0,
    "delete": 1.0,
    "evict a job": 1.0,
    "sweep a lapsed job": 1.0,
    "open": 1.0,
}
AXES = (
    Axis(
        name="jobs",
        unit="stored jobs of one target",
        sizes=(300, 1_000, 3_000, 10_000, 30_000, 100_000),
        quick=(60, 120),
        may=_OVER_JOBS,
    ),
    Axis(
        name="targets",
        unit="stored targets in jobs of 32",
        sizes=(1_024, 2_560, 6_400, 16_000, 40_000, 100_000),
        quick=(1_024, 2_048),
        may=_OVER_JOBS,
    ),
    Axis(
        name="result",
        unit="bytes of a result",
        sizes=(256, 1_024, 4_096, 16_384, 65_536, 262_144),
        quick=(256, 1_024),
        may=_BY_SIZE,
    ),
    Axis(
        name="bytes",
        unit="stored bytes in jobs of 32 KiB",
        sizes=tuple(2**power for power in range(21, 27)),
        quick=(2**20, 2**21),
        may=_OVER_JOBS,
    ),
    Axis(
        name="series",
        unit="targets of a job",
        sizes=(4, 16, 64, 256, 1_024),
        quick=(4, 8),
        may={
            **_BY_SIZE,
            "store a target": 0.0,
            "submit": 1.0,
            "submit the same again": 1.0,
            "poll, summary": 1.0,
        },
    ),
    Axis(
        name="live",
        unit="live jobs",
        sizes=(100, 300, 1_000, 3_000, 10_000),
        quick=(10, 20),
        # The caps count who is live: in the index of live jobs, but each time.
        may={"open, failing them": 1.0, "submit": 1.0},
        groups=("among_live",),
    ),
    Axis(
        name="fetched",
        unit="times that one series was fetched",
        sizes=(100, 300, 1_000, 3_000, 10_000),
        quick=(40, 80),
        groups=("fetch_anew",),
    ),
)
