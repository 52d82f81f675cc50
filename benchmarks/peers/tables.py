"""How are the runs of the peers shown? As tables, medians with the ends of what single runs gave."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from work import Peer

Run = dict[str, Any]


class Row(NamedTuple):
    """All runs of a peer with one setting."""

    peer: str
    setting: str
    runs: list[Run]

    def median(self, key: str) -> float | None:
        """Return the median of what was measured, if it was."""
        values = [one[key] for one in self.runs if one.get(key) is not None]
        return statistics.median(values) if values else None


def work(rows: Sequence[Row]) -> str:
    """Return the table of one comparison, the fastest first."""
    head = (
        "| peer | setting | x the floor's targets/s | targets/s | CPU ms a target | x the floor's CPU "
        "| syncs a target | submit of 32, ms | status of 32, ms | memory, MiB | runs |"
    )
    lines = [head, "|" + "---|" * 11]
    for row in sorted(rows, key=lambda row: -(row.median("rate ratio") or 0.0)):
        server = row.median("server")
        cells = [
            row.peer,
            row.setting,
            _with_ends(row, "rate ratio"),
            _number(row.median("rate")),
            _number((row.median("cpu") or 0.0) * 1_000),
            _with_ends(row, "cpu ratio"),
            _number(row.median("syncs")),
            _number(row.median("submit")),
            _number(row.median("look")),
            _number(row.median("resident")) + ("" if server is None else f" + {_number(server)}"),
            str(len(row.runs)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def cold(rows: Sequence[Row]) -> str:
    """Return the table of cold starts, the quickest first."""
    lines = ["| peer | setting | seconds | memory, MiB |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda row: row.median("cold") or 0.0):
        cells = [row.peer, row.setting, _with_ends(row, "cold"), _number(row.median("resident"))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def peers(all_peers: Iterable[Peer]) -> str:
    """Return which settings each peer was run with, and what it does not do that others do."""
    lines = ["| peer | settings | what to know |", "|---|---|---|"]
    for peer in all_peers:
        settings = "; ".join(f"{setting.name}: {setting.how}" for setting in peer.settings)
        most = f"; {peer.most} targets at most" if peer.most else ""
        lines.append(f"| {peer.name} | {settings} | {peer.lacks}{most} |")
    return "\n".join(lines)


def _with_ends(row: Row, key: str) -> str:
    values = [one[key] for one in row.runs]
    ends = f" ({_number(min(values))} to {_number(max(values))})" if len(values) > 1 else ""
    return f"{_number(row.median(key))}{ends}"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
