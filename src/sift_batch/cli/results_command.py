"""What does `sift-batch results` do? Reads a job's targets as lines and writes each once.

A stream that breaks off is read again, and what was written is passed over. Next: `follow`, for how long.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .._client import ServiceProblem, Unreachable
from .follow import Patience
from .job_text import advice_text, checked_view, ended_text, exit_code, progress_text
from .lines import Sink, json_line
from .output import trouble_with
from .plan import Refused
from .remote import Session, job_path, talk
from .remote_flags import Remote


def results_command(
    job_id: str, *, out: Path | None, status: str | None, follow: bool, remote: Remote
) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        async with _opened(session, out) as sink:
            view = checked_view(await session.get(job_path(job_id)))
            if follow:
                session.interrupted = "the job goes on; the same command again writes all its lines"
            reader = _Reader(session, job_id, sink, status=status, follow=follow)
            view = await reader.read(view)
        await _report(session, view, reader.written, out, quiet=remote.quiet)
        return exit_code(view)

    return talk(remote, work)


@asynccontextmanager
async def _opened(session: Session, out: Path | None) -> AsyncIterator[Sink | None]:
    """Give where lines go: a file that holds none yet, or None for standard output."""
    if out is None:
        yield None
        return
    from .run_command import has_lines, open_sink

    if str(out) == "-":
        raise Refused("--out is for files; leave it out to write to standard output", 2)
    if has_lines(out):
        raise Refused(f"{out} has lines already; give another --out, or remove it", 2)
    with open_sink(out, session.screen) as sink:
        yield sink


class _Reader:
    """Reads the lines of one job. `written`: how many there were."""

    def __init__(
        self, session: Session, job_id: str, sink: Sink | None, *, status: str | None, follow: bool
    ) -> None:
        self._session, self._job_id, self._sink = session, job_id, sink
        self._status, self._follow = status, follow
        self._next = 0  # all targets before it were written, or are not asked for
        self._begun = False
        self.written = 0

    async def read(self, view: dict[str, Any]) -> dict[str, Any]:
        """Write what there is, or all until the job has settled; return the job as it is then."""
        patience = Patience(self._session.screen)
        while True:
            self._session.unread = exit_code(view)
            # Only then does a stream that came to its end hold everything.
            complete = self._follow or view["settled"]
            try:
                await self._once(patience)
                view = checked_view(await self._session.get(job_path(self._job_id)))
            except (Unreachable, ServiceProblem) as error:
                await patience.pause(error)
                continue
            if complete or not view["settled"]:
                break
        if complete and self._status is None and self._next < view["targets"]["total"]:
            raise Unreachable("the service gave fewer results than the job has targets")
        return view

    async def _once(self, patience: Patience) -> None:
        query = [f"status={self._status}"] if self._status else []
        query += ["follow=1"] if self._follow else []
        path = job_path(self._job_id, f"/results{'?' if query else ''}{'&'.join(query)}")
        async with self._session.client.lines(path) as lines:
            patience.answered()
            if not self._begun:
                # Not before: a job that is not there leaves no empty file behind.
                self._begin()
            async for view in lines:
                idx = view.get("idx")
                if type(idx) is not int:
                    raise Unreachable("what answers there does not answer as this version of sift-batch does")
                if idx < self._next:
                    continue
                await self._write(json_line(view))
                self._next = idx + 1
                self.written += 1
                patience.moved_on()

    def _begin(self) -> None:
        self._begun = True
        if self._sink is not None:
            try:
                self._sink.begin()
            except OSError as error:
                raise trouble_with(error, is_terminal=False) from None

    async def _write(self, line: bytes) -> None:
        if self._sink is None:
            await self._session.output.data(line)
            return
        try:
            await self._sink.write(line)
        except OSError as error:
            raise trouble_with(error, is_terminal=self._sink.is_terminal) from None


async def _report(
    session: Session, view: dict[str, Any], written: int, out: Path | None, *, quiet: bool
) -> None:
    targets = view["targets"]
    if session.as_json:
        summary = {
            "id": view["id"],
            "status": view["status"],
            "settled": view["settled"],
            "total": targets["total"],
            "done": targets["done"],
            "failed": targets["failed"],
            "not_fetched": targets["total"] - targets["done"] - targets["failed"],
            "written": written,
            "out": None if out is None else str(out),
        }
        if out is not None:
            await session.output.value(summary)
        else:
            session.screen.summary(summary)
        return
    if view["settled"]:
        session.screen.note(ended_text(view))
        if advice := advice_text(view):
            session.screen.note(advice)
    else:
        session.screen.note(f"{progress_text(view)}; --follow waits for the rest")
