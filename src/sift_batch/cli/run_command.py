"""What does `sift-batch run` do?

Opens input and output, names every bad line, and only then starts the batch; at the end it says how it
went. Next: `targets` (the input), then `batch` (the main job).
"""

import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click
import trio

import sift_batch

from .batch import cant_write, drain_batch
from .lines import Sink
from .plan import Outcome, Plan
from .screen import Screen
from .targets import Targets, read_targets


class Refused(Exception):
    """The command can't start. `reason` is one line; nothing was fetched."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code


def seal_process() -> None:
    """Keep targets out of whatever this process may say of itself.

    Only errors are logged: the progress of a batch, and trouble with its store, are shown by `Screen`.
    """
    logging.getLogger("sift_batch").setLevel(logging.ERROR)
    sift_batch.seal_logging()


def run_command(
    urls: Sequence[str],
    *,
    file: str | None,
    out: Path | None,
    parallel: int,
    fresh: bool,
    options: Mapping[str, Any],
    quiet: bool,
    as_json: bool,
) -> int:
    """Run the command and return its exit code."""
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    try:
        with contextlib.ExitStack() as stack:
            targets = stack.enter_context(Targets())
            _read(targets, urls, file, options, screen)
            _refuse_same_file(file, out)
            sink = stack.enter_context(open_sink(out))
            plan = Plan(targets=targets, parallel=parallel, store=store_beside(out), fresh=fresh)
            began = time.monotonic()
            outcome = trio.run(drain_batch, plan, sink, screen)
            report(outcome, screen, out=out, seconds=time.monotonic() - began, as_json=as_json)
            return outcome.exit_code
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    except ImportError as error:
        screen.error(f"{error.msg}")
        return 2


def _read(
    targets: Targets, urls: Sequence[str], file: str | None, options: Mapping[str, Any], screen: Screen
) -> None:
    name = "standard input" if file == "-" else file

    def complain(kind: str, number: int, reason: str) -> None:
        if kind == "line":
            screen.error(f"{name}, line {number}: {reason}", line=number)
        else:
            screen.error(f"URL argument {number}: {reason}", argument=number)

    try:
        with _open_input(file) as stream:
            bad = read_targets(targets, urls, stream, options, complain)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        raise Refused(f"the input can't be read ({reason}); check the path of --file", 2) from None
    if bad:
        raise Refused(f"{bad} bad input{'' if bad == 1 else 's'}; nothing was fetched", 2)
    if not targets:
        raise Refused("there is nothing to fetch; give URLs, or --file with at least one", 2)


@contextlib.contextmanager
def _open_input(file: str | None) -> Iterator[IO[bytes] | None]:
    if file is None:
        yield None
    elif file == "-":
        if sys.stdin is None:
            raise Refused("standard input is closed; give --file a path", 2)
        yield sys.stdin.buffer
    else:
        try:
            stream = Path(file).open("rb")  # noqa: SIM115  # closed two lines down
        except ValueError:
            raise Refused("--file is no path", 2) from None
        with stream:
            yield stream


@contextlib.contextmanager
def open_sink(out: Path | None) -> Iterator[Sink]:
    """Give the sink for lines: the file, or standard output. An existing file is not emptied yet."""
    if out is None:
        if sys.stdout is None:
            raise Refused("standard output is closed; give --out a path", 3)
        sys.stdout.flush()
        yield Sink(sys.stdout.fileno())
        return
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise Refused(cant_write(error), 3) from None
    except ValueError:
        raise Refused("--out is no path", 2) from None
    try:
        yield Sink(descriptor, starts_over=True)
    finally:
        os.close(descriptor)


def store_beside(out: Path | None) -> Path | None:
    """Return the store that belongs to an output file."""
    return None if out is None else out.with_name(out.name + ".sift")


def _refuse_same_file(file: str | None, out: Path | None) -> None:
    if file is None or out is None:
        return
    with contextlib.suppress(OSError):
        if out.samefile(file):
            raise Refused("--out and --file are the same file; choose another --out", 2)


def report(
    outcome: Outcome,
    screen: Screen,
    *,
    out: Path | None,
    seconds: float,
    as_json: bool,
    is_demo: bool = False,
) -> None:
    """Say how the batch went. The demo's failures are meant to be, so that nothing is left to do."""
    done = outcome.carried + outcome.fetched - outcome.failed
    missing = max(0, outcome.total - done - outcome.failed)
    store = store_beside(out)
    kept = store is not None and store.exists()
    if as_json:
        summary = {
            "total": outcome.total,
            "done": done,
            "failed": outcome.failed,
            "not_fetched": missing,
            "carried": outcome.carried,
            "seconds": round(seconds, 3),
            "out": None if out is None else str(out),
            "store": str(store) if kept else None,
            "error": outcome.error,
        }
        # Standard output has the lines when there is no file for them.
        click.echo(json.dumps(summary), err=out is None)
        return
    if outcome.error:
        screen.error(outcome.error)
    counts = [f"{done} done"]
    counts += [f"{outcome.failed} failed"] if outcome.failed else []
    counts += [f"{missing} not fetched"] if missing else []
    screen.note(f"{outcome.total} targets: {', '.join(counts)}, in {seconds:.1f} s")
    if kept and done and (missing or not is_demo):
        screen.note(f"what is done is kept in {store}; the same command again fetches the rest")
