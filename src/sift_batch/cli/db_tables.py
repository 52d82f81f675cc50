"""How is what a store holds shown? As lines for a person, and as one JSON object.

Nothing here asks a store. The keys of the objects are for programs, and stay.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .._store.audit import Audit
from .._store.figures import Figures, Victim
from .escape import visible
from .screen import counted


def bytes_text(number: float) -> str:
    """Return bytes for a person: `512 B`, `1.5 KiB`, `26.6 MiB`."""
    if number < 1_024:
        return f"{number:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        number /= 1_024
        if number < 1_024:
            return f"{number:.1f} {unit}"
    return f"{number / 1_024:.1f} TiB"


def time_text(seconds: int) -> str:
    """Return a stored time as `2030-12-31T00:00:00Z`."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def audit_view(path: Path, found: Audit) -> dict[str, Any]:
    """Return the object of `db check --json`."""
    return {
        "store": str(path),
        "sound": found.sound,
        "version": found.version,
        "journal_mode": found.journal_mode,
        "page_size": found.page_size,
        "pages": found.pages,
        "free_pages": found.free_pages,
        "jobs": found.jobs,
        "targets": found.targets,
        "findings": [
            {
                "kind": item.kind,
                "text": item.text,
                "count": item.count,
                "jobs": item.jobs,
                "notes": item.notes,
            }
            for item in found.findings
        ],
    }


def audit_text(path: Path, found: Audit) -> str:
    """Return what `db check` prints."""
    size = bytes_text(found.pages * found.page_size)
    holds = f"{counted(found.jobs, 'job')}, {counted(found.targets, 'target')}, {size}"
    lines = [f"{path}: {'sound' if found.sound else 'DAMAGED'} (version {found.version}, {holds})"]
    for item in found.findings:
        lines.append(f"  {item.kind}: {item.text} ({item.count} found)")
        lines += [f"    {note}" for note in item.notes]
        lines += [f"    job {job_id}" for job_id in item.jobs]
    return _lines(lines)


def figures_view(path: Path, found: Figures) -> dict[str, Any]:
    """Return the object of `db stats --json`."""
    return {
        "store": str(path),
        "live_jobs": found.live,
        "stored_jobs": found.jobs,
        "stored_bytes": found.nbytes,
        "max_bytes": found.max_bytes,
        "file_bytes": found.file_bytes,
        "free_bytes": found.free_bytes,
        "callers": [
            {
                "caller": item.caller,
                "live_jobs": item.live,
                "stored_jobs": item.jobs,
                "stored_bytes": item.nbytes,
                "lapsed_jobs": item.lapsed,
                "oldest_lease": None if item.oldest_lease is None else time_text(item.oldest_lease),
                "next_victims": [victim.job_id for victim in found.victims if victim.caller == item.caller],
            }
            for item in found.callers
        ],
        "next_victims": [_victim_view(victim) for victim in found.victims],
    }


def _victim_view(victim: Victim) -> dict[str, Any]:
    return {
        "id": victim.job_id,
        "caller": victim.caller,
        "bytes": victim.nbytes,
        "lease": time_text(victim.lease),
        "over_budget": victim.over,
    }


def figures_text(path: Path, found: Figures) -> str:
    """Return what `db stats` prints."""
    share = f"{bytes_text(found.nbytes)} of {bytes_text(found.max_bytes)}"
    if found.max_bytes < 2**60:
        share += f" ({100 * found.nbytes / found.max_bytes:.0f} %)"
    file = f"file {bytes_text(found.file_bytes)}, of it free {bytes_text(found.free_bytes)}"
    lines = [f"{path}: {counted(found.jobs, 'job')}, {found.live} live; {share}; {file}"]
    if found.callers:
        lines += ["", *_table(_caller_rows(found))]
    if found.victims:
        lines += ["", "next to be removed for the byte budget, first to go first:"]
        lines += _table(_victim_rows(found.victims))
    return _lines(lines)


def _caller_rows(found: Figures) -> list[list[str]]:
    rows = [["caller", "live", "stored", "lapsed", "bytes", "oldest lease", "next to go"]]
    for item in found.callers:
        going = sum(victim.caller == item.caller for victim in found.victims)
        lease = "-" if item.oldest_lease is None else time_text(item.oldest_lease)
        counts = [str(item.live), str(item.jobs), str(item.lapsed)]
        rows.append([visible(item.caller), *counts, bytes_text(item.nbytes), lease, str(going)])
    return rows


def _victim_rows(victims: tuple[Victim, ...]) -> list[list[str]]:
    rows = [["job", "caller", "bytes", "lease", ""]]
    for item in victims:
        over = "over budget" if item.over else ""
        rows.append([item.job_id, visible(item.caller), bytes_text(item.nbytes), time_text(item.lease), over])
    return rows


def _table(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _lines(lines: list[str]) -> str:
    return "".join(f"{visible(line)}\n" for line in lines)
