"""The settings of a runner, in one frozen value that is checked when it is made."""

import math
from dataclasses import dataclass, fields
from typing import Final

_COUNTS: Final = (
    "targets_per_job",
    "jobs_per_caller",
    "jobs_total",
    "workers",
    "workers_limit",
    "max_bytes",
    "result_max_bytes",
)
_LARGEST: Final = 2**62  # fits a column, a float and every sum of it with a time
_MAY_BE_ZERO: Final = frozenset({"retry_for", "shutdown_grace"})
_MAY_BE_INFINITE: Final = frozenset({"ttl", "retry_for", "target_timeout", "job_timeout", "shutdown_grace"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a runner may do. Times are seconds, sizes bytes.

    `ttl`: how long a job stays readable after its last sign of interest. `targets_per_job`,
    `jobs_per_caller`, `jobs_total`: caps of a submit. `workers`: jobs that drain at the same time,
    at most `workers_limit`. `max_bytes`: budget for stored jobs. `retry_wait`: first wait after a
    busy answer without a time, doubled each time up to 60 s; `retry_for`: how long one target may be
    busy in all (waits for the gate are not counted). `target_timeout`: for one call of the fetch;
    `job_timeout`: from a job's start. `result_max_bytes`: for a result's content in UTF-8, and for
    its meta. `shutdown_grace`: for fetches in flight when the runner closes. `sweep_every`: between
    two sweeps.

    Raises `ValueError` (`TypeError` for what is no number), naming the field.
    """

    ttl: float = 86_400.0
    targets_per_job: int = 32
    jobs_per_caller: int = 1
    jobs_total: int = 8
    workers: int = 1
    workers_limit: int = 2
    max_bytes: int = 64 * 2**20
    retry_wait: float = 2.0
    retry_for: float = 600.0
    target_timeout: float = 300.0
    job_timeout: float = 14_400.0
    result_max_bytes: int = 256 * 2**10
    shutdown_grace: float = 30.0
    sweep_every: float = 60.0

    def __post_init__(self) -> None:
        for item in fields(self):
            check_number(
                item.name,
                getattr(self, item.name),
                whole=item.name in _COUNTS,
                zero=item.name in _MAY_BE_ZERO,
                infinite=item.name in _MAY_BE_INFINITE,
            )


def check_index(name: str, value: object) -> None:
    """Raise unless `value` is a whole number of at least 0: a place in a series, or its end."""
    if type(value) is not int:
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, not {value}")


def check_number(
    name: str, value: object, *, whole: bool, zero: bool = False, infinite: bool = False
) -> None:
    """Raise unless `value` is a number above 0 (or 0, or infinite, where that is allowed)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}")
    if whole and not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number, not {value!r}")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise ValueError(f"{name} must be at most {_LARGEST:,}")
    if math.isnan(value) or (math.isinf(value) and not (infinite and value > 0)):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    if value < 0 or (value == 0 and not zero):
        raise ValueError(f"{name} must be {'at least' if zero else 'above'} 0, not {value!r}")
