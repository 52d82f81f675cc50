"""What does `sift-batch demo` do?

Serves the built-in site, drains a batch of it as `run --out` does, and shows what came of each target.
Next: `demo_site`, then `batch`.
"""

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import trio

from ..fetch import FetchConfig
from ..fetch._extra import require_extra
from .batch import drain_batch
from .demo_site import open_site
from .escape import visible
from .lines import Sink
from .plan import Outcome, Plan, Refused
from .process import seal_process
from .run_command import has_lines, is_there, open_sink, report, store_beside
from .screen import Screen, counted
from .standard_output import write_out
from .targets import Targets

if TYPE_CHECKING:
    from rich.table import Table

_RESULTS: Final = "results.jsonl"
_PORT_FILE: Final = "port"
# Few enough that the bar moves for some seconds, enough that hosts can be seen to work side by side.
_PARALLEL: Final = 4
_COLOURS: Final = {"done": "green", "failed": "red"}


def demo_command(folder: Path, *, quiet: bool, as_json: bool) -> int:
    """Run the demo and return its exit code: 0 also when pages failed that are meant to."""
    seal_process()
    screen = Screen(quiet=quiet, as_json=as_json)
    out = folder / _RESULTS
    began = time.monotonic()
    try:
        require_extra()
        _refuse_foreign(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with open_sink(out, screen) as sink:
            outcome = trio.run(_serve_and_drain, folder, sink, screen)
        if not quiet and not as_json:
            _show(out)
        seconds = time.monotonic() - began
        report(outcome, screen, out=out, seconds=seconds, as_json=as_json, quiet=quiet, is_demo=True)
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    except ImportError as error:
        screen.error(error.msg)
        return 2
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        screen.error(f"the demo can't run here ({reason}); try another --dir")
        return 3
    if outcome.error or outcome.signal:
        return outcome.exit_code
    return 0 if outcome.written == outcome.total else 1


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder whose results are not those of a demo."""
    out = folder / _RESULTS
    store = store_beside(out)
    is_ours = store is not None and is_there(store) and is_there(folder / _PORT_FILE)
    if has_lines(out) and not is_ours:
        raise Refused(f"{out} is not from a demo; give another --dir, or remove it", 2)


async def _serve_and_drain(folder: Path, sink: Sink, screen: Screen) -> Outcome:
    # The same port again, if it is free: only then are an earlier run's targets the same targets.
    known_port = _known_port(folder)
    site, listeners = await open_site(known_port)
    failure: Exception | None = None

    def begin() -> None:
        # Not before the store is ours: another demo that runs in this folder has its own port there.
        with suppress(OSError):
            (folder / _PORT_FILE).write_text(f"{site.port}\n")
        pages = f"{len(site.targets)} pages from {counted(site.hosts, 'host')}"
        screen.note(f"fetching {pages} on this machine; try Ctrl-C")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, site.answer, listeners)
        with Targets() as targets:
            for target in site.targets:
                targets.add(target, None, None)
            plan = Plan(
                targets=targets,
                parallel=_PARALLEL,
                store=store_beside(folder / _RESULTS),
                # The site is on this machine, at whatever port was free.
                fetch=FetchConfig(allow=["127.0.0.0/8"], ports=None),
                # An earlier demo that came to its end is not carried on: there would be nothing to see.
                # Nor is one on another port, whose targets are others; its results can be had again.
                fresh=site.port != known_port or len(_views(folder / _RESULTS)) == len(targets),
            )
            try:
                outcome = await drain_batch(plan, sink, screen, on_owned=begin)
            except Exception as error:
                # Out of the nursery first: there it would be wrapped in a group.
                failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return outcome


def _known_port(folder: Path) -> int:
    try:
        port = int((folder / _PORT_FILE).read_bytes()[:6])
    except (OSError, ValueError):
        return 0
    return port if 1_024 <= port <= 65_535 else 0


def _views(out: Path) -> list[dict[str, Any]]:
    """Return the target views of an output file, as far as they are whole."""
    views: list[dict[str, Any]] = []
    try:
        for line in out.read_bytes().splitlines():
            views.append(json.loads(line))  # noqa: PERF401  # what came before a bad line is kept
    except (OSError, ValueError):
        pass
    return views


def _show(out: Path) -> None:
    """Print the table of targets."""
    from rich.console import Console

    console = Console(highlight=False)
    # Taken from the console as text: one that finds no reader ends the program with a code of its own.
    with console.capture() as drawn:
        console.print(_table(_views(out)))
    text = f"{drawn.get()}results: {visible(str(out))}\n"
    store = store_beside(out)
    if store is not None and is_there(store):
        text += f"store:   {visible(str(store))}\n"
    write_out(text)


def _without_port(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}{parts.path}"


def _table(views: list[dict[str, Any]]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("page", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("chars", justify="right", no_wrap=True)
    table.add_column("what came", overflow="fold")
    for view in views:
        meta = (view["result"] or {}).get("meta", {})
        what = view["error"] or meta.get("title") or meta.get("content_type", "")
        if meta.get("redirects"):
            what += " (after a redirect)"
        # As Text, never as markup: titles come from pages.
        table.add_row(
            str(view["idx"]),
            Text(visible(_without_port(view["url"]))),
            Text(view["status"], style=_COLOURS.get(view["status"], "")),
            f"{view['chars']:,}",
            Text(visible(what)),
        )
    return table
