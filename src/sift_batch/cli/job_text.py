"""How does a job look to a person? Its view, as the service gives it, in words.

Everything that is shown here was said by the service, so it is escaped where it is printed. Next: `follow`.
"""

from collections.abc import Mapping
from typing import Any, Final

from .._client import Unreachable
from .screen import counted

View = Mapping[str, Any]
_IN_VAIN: Final = "a rerun won't help"
COUNTS: Final = ("total", "pending", "running", "done", "failed")
_WAITS: Final = {
    "queue": "waiting for its turn",
    "gate": "waiting for the gate",
    "host": "waiting for a busy host",
    "retry_after": "waiting as long as a host asked",
    "store": "waiting for the service's disk",
}


def checked_view(value: Any) -> dict[str, Any]:
    """Return a job's view. Raises `Unreachable` for what no service of ours would say."""
    if isinstance(value, dict) and isinstance(value.get("targets"), dict):
        texts = all(isinstance(value.get(name), str) for name in ("id", "status"))
        counts = all(type(value["targets"].get(name)) is int for name in COUNTS)
        if texts and counts and isinstance(value.get("settled"), bool):
            return value
    raise Unreachable("what answers there does not answer as this version of sift-batch does")


def exit_code(view: View) -> int:
    """Return 0 unless the job has settled and a target of it failed or was not fetched."""
    targets = view["targets"]
    return 1 if view["settled"] and targets["done"] < targets["total"] else 0


def seconds_text(seconds: float) -> str:
    """Return a duration as people say it: 40 s, 5 min, 2 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h"


def doing_text(view: View) -> str:
    """Return what a live job does now: fetches in flight, time left, reason for waiting."""
    parts = [f"{view['targets']['running']} in flight"] if view["targets"]["running"] else []
    if not view["settled"]:
        eta = view.get("eta_seconds")
        if isinstance(eta, int | float) and eta >= 0:
            parts.append(f"about {seconds_text(eta)} left")
        waiting = view.get("waiting")
        if isinstance(waiting, dict):
            reason = str(waiting.get("reason"))
            parts.append(_WAITS.get(reason, f"waiting: {reason}"))
    return ", ".join(parts)


def progress_text(view: View) -> str:
    """Return how far a job is, in one line."""
    targets = view["targets"]
    finished = targets["done"] + targets["failed"]
    text = f"{view['status']}: {finished} of {targets['total']} finished"
    text += f", {targets['failed']} failed" if targets["failed"] else ""
    doing = doing_text(view)
    return f"{text}, {doing}" if doing else text


def ended_text(view: View) -> str:
    """Return how a job ended: its targets. Of one that was cancelled just now a fetch may be in flight."""
    targets = view["targets"]
    counts = [f"{targets['done']} done"]
    counts += [f"{targets['failed']} failed"] if targets["failed"] else []
    in_flight = 0 if view["settled"] else targets["running"]
    counts += [f"{in_flight} in flight is being finished"] if in_flight else []
    missing = targets["total"] - targets["done"] - targets["failed"] - in_flight
    counts += [f"{missing} not fetched"] if missing else []
    return f"{view['status']}: {counted(targets['total'], 'target')}: {', '.join(counts)}"


def advice_text(view: View) -> str:
    """Return what to do about a settled job that is not all done; "" if it is."""
    if not exit_code(view):
        return ""
    failed = view["targets"]["failed"]
    # The service has looked at each; in words of our own, since what answers may say anything.
    if failed and _IN_VAIN in str(view.get("hint")):
        return f"{failed} failed, {'not' if failed == 1 else 'none of them'} retryable: {_IN_VAIN}"
    why = {
        "restart": "the service was restarted meanwhile; ",
        "timeout": "the job took longer than a job may; ",
    }.get(str(view.get("error")), "")
    return f"{why}`sift-batch rerun {view['id']}` fetches what is missing"


def status_lines(view: View) -> list[str]:
    """Return all that there is to say of a job, one thing a line."""
    targets = view["targets"]
    parts = [f"{targets[name]} {name}" for name in COUNTS[1:] if targets[name]]
    rows = [("status", str(view["status"])), ("targets", f"{targets['total']}: {', '.join(parts)}")]
    if not view["settled"]:
        rows.append(("now", doing_text(view)))
    for name in ("created", "started", "finished", "expires"):
        rows.append((name, view.get(f"{name}_at") or ""))  # noqa: PERF401  # as the others are
    stored = view.get("stored_bytes")
    rows.append(("stored", f"{stored:,} bytes" if isinstance(stored, int) and stored else ""))
    rows.append(("rerun of", view.get("rerun_of") or ""))
    rows.append(("next", advice_text(view)))
    return [f"job       {view['id']}", *(f"{name:<9} {value}" for name, value in rows if value)]


def target_text(view: View) -> str:
    """Return how a finished target ended, by its place and never by its URL."""
    text = f"target {view.get('idx')}: {view.get('status')}"
    if view.get("status") == "failed":
        return f"{text}: {view.get('code') or 'failed'}: {view.get('error')}"
    chars = view.get("chars")
    return f"{text}, {chars:,} characters" if isinstance(chars, int) else text
