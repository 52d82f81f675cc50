"""What does `sift-batch run` do?

Opens input and output, names every bad line, and only then starts the batch; at the end it says how it
went. Next: `intake` (the input), then `batch` (the main job).
"""

import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import trio

from .batch import drain_batch
from .fetching import check_here, check_programs, fetch_config
from .intake import Complaints, read_input
from .lines import Sink
from .plan import Outcome, Plan, Refused
from .process import seal_process
from .screen import Screen, counted
from .standard_output import write_out
from .targets import Targets

# Links in these folders stand for what is open already; a file beside them would be in the wrong place.
_DESCRIPTORS: Final = frozenset({"/dev", "/dev/fd", "/proc/self/fd"})
# The longest name that a file beside the store can have.
_LONGEST_SUFFIX: Final = "-journal"


def run_command(
    urls: Sequence[str],
    *,
    file: str | None,
    out: Path | None,
    parallel: int,
    fresh: bool,
    options: Mapping[str, Any],
    allow: Sequence[str],
    ports: str | None,
    ca_file: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run the command and return its exit code."""
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    try:
        with contextlib.ExitStack() as stack:
            config = fetch_config(allow, ports, ca_file)
            if out is not None:
                _refuse_output(out, file, fresh=fresh)
            targets = stack.enter_context(Targets())
            complaints = Complaints(screen, file, as_json=as_json)
            read_input(
                targets,
                urls,
                file,
                options,
                complaints,
                check=lambda target: check_here(target, config),
                check_all=lambda targets, complain: check_programs(targets, config, complain),
            )
            sink = stack.enter_context(open_sink(out, screen))
            plan = Plan(
                targets=targets, parallel=parallel, store=store_beside(out), fresh=fresh, fetch=config
            )
            if out is not None and plan.store is None:
                screen.note(f"{out} is no regular file, so nothing is kept to carry on from")
            began = time.monotonic()
            outcome = trio.run(drain_batch, plan, sink, screen)
            seconds = time.monotonic() - began
            report(outcome, screen, out=out, seconds=seconds, as_json=as_json, quiet=quiet)
            return outcome.exit_code
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    except ImportError as error:
        screen.error(error.msg)
        return 2


def _refuse_output(out: Path, file: str | None, *, fresh: bool) -> None:
    if str(out) == "-":
        raise Refused("--out is for files; leave it out to write to standard output", 2)
    with contextlib.suppress(OSError):
        if file is not None and out.samefile(file):
            raise Refused("--out and --file are the same file; choose another --out", 2)
    store = store_beside(out)
    if store is not None:
        _refuse_long_name(out, store)
    if not fresh and has_lines(out) and (store is None or not is_there(store)):
        raise Refused(
            f"{out} has lines already, and there is no store beside it to carry on from; give another "
            "--out, remove it, or pass --fresh to write over it",
            2,
        )


def _refuse_long_name(out: Path, store: Path) -> None:
    try:
        store.with_name(store.name + _LONGEST_SUFFIX).lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise Refused(
                f"{out}: the store beside it can't be made (its name is too long); choose a shorter --out", 3
            ) from None


def is_there(path: Path) -> bool:
    """Whether `path` is there, as far as can be seen."""
    try:
        return path.exists()
    except OSError:
        return False


def has_lines(out: Path) -> bool:
    """Whether `out` is a file that is not empty."""
    try:
        return out.is_file() and out.stat().st_size > 0
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def open_sink(out: Path | None, screen: Screen) -> Iterator[Sink]:
    """Give the sink for lines: the file, or standard output. Its `begin` makes or empties the file."""
    if out is None:
        if sys.stdout is None:
            raise Refused("standard output is closed; give --out a path", 3)
        sys.stdout.flush()
        yield Sink(sys.stdout.fileno(), make_way=screen.make_way)
        return
    sink = Sink(_open_output(out), starts_over=True, make_way=screen.make_way)
    try:
        yield sink
    finally:
        sink.close()


def _open_output(out: Path) -> int | Path:
    """Open the file if there is one; else see that there is a folder to make it in."""
    try:
        return os.open(out, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if not out.parent.is_dir():
            raise Refused(f"{out}: the folder {out.parent} does not exist; make it first", 3) from None
        if not os.access(out.parent, os.W_OK):
            raise Refused(f"{out}: nothing can be written in its folder; choose another one", 3) from None
        return out
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        raise Refused(f"{out} can't be written ({reason}); choose another --out", 3) from None
    except ValueError:
        raise Refused("--out is no path", 2) from None


def store_beside(out: Path | None) -> Path | None:
    """Return the store that belongs to an output; None unless that is, or will be, a regular file."""
    if out is None or str(out.parent.absolute()) in _DESCRIPTORS or (is_there(out) and not out.is_file()):
        return None
    return out.with_name(out.name + ".sift")


def report(
    outcome: Outcome,
    screen: Screen,
    *,
    out: Path | None,
    seconds: float,
    as_json: bool,
    quiet: bool,
    is_demo: bool = False,
) -> None:
    """Say how the batch went. The demo's failures are meant to be, so that nothing is left to do."""
    store = store_beside(out)
    kept = store if store is not None and is_there(store) else None
    if as_json:
        _report_json(outcome, screen, out=out, kept=kept, seconds=seconds, quiet=quiet)
        return
    if outcome.error:
        screen.error(outcome.error)
    counts = [f"{outcome.done} done"]
    counts += [f"{outcome.failed} failed"] if outcome.failed else []
    counts += [f"{outcome.missing} not fetched"] if outcome.missing else []
    screen.note(f"{counted(outcome.total, 'target')}: {', '.join(counts)}, in {seconds:.1f} s")
    if not is_demo:
        _name_failures(outcome, screen)
    unwritten = outcome.done + outcome.failed - outcome.written
    if outcome.signal and unwritten > 0:
        further = f"{counted(unwritten, 'further result')} {'is' if unwritten == 1 else 'are'}"
        place = "in the store" if kept else "lost; --out with a file keeps them"
        screen.note(f"lines come in input order; {further} {place}")
    left = ["fetches the rest"] if outcome.missing else []
    left += ["tries failed targets again"] if outcome.failed and not is_demo else []
    if kept and outcome.done and left:
        screen.note(f"what is done is kept in {kept}; the same command again {' and '.join(left)}")


def _name_failures(outcome: Outcome, screen: Screen) -> None:
    """Name the first few targets that failed, where a person can see them."""
    if not screen.is_terminal:
        return
    for failure in outcome.failures:
        screen.note(f"{failure.place}: {failure.code or 'failed'}: {failure.error}")
    if (further := outcome.failed - len(outcome.failures)) > 0:
        screen.note(f"\u2026 and {further} more; the lines of the output have all")


def _report_json(
    outcome: Outcome, screen: Screen, *, out: Path | None, kept: Path | None, seconds: float, quiet: bool
) -> None:
    if out is None and quiet:
        # Standard output has the lines, and standard error is to have errors only.
        if outcome.error:
            screen.error(outcome.error)
        return
    summary = {
        "total": outcome.total,
        "done": outcome.done,
        "failed": outcome.failed,
        "not_fetched": outcome.missing,
        "carried": outcome.carried,
        "seconds": round(seconds, 3),
        "out": None if out is None else str(out),
        "store": None if kept is None else str(kept),
        "error": outcome.error,
    }
    if out is None:
        screen.summary(summary)
    else:
        write_out(json.dumps(summary) + "\n")
