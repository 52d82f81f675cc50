"""What does a tool do? A request or two to the service, and one answer, good or bad.

Jobs are here: submitted, waited for, run again, cancelled. Next: `_reading`, for what has to fit; then
`_serve`, which speaks the protocol.
"""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio

from .._client import Answer, Client, ServiceProblem, Unreachable
from ._arguments import BadArguments, View, read_arguments
from ._fit import fitting_problem
from ._reading import Reading, budget_of
from ._steps import JOBS, Refused, bad_arguments_view, job_answer, job_path, problem_view, unreachable_view
from ._tools import TOOLS

Progress = Callable[[int, int, str], Awaitable[None]]
"""Told how many targets are finished, of how many, and a word about it."""

_WAIT: Final = 25
_FOR_THE_ANSWER: Final = 10.0


class Calls:
    """The tools, over one client. Any number of calls may go at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        reading = Reading(client)
        self._tools: Mapping[str, Callable[[View], Awaitable[View]]] = {
            "batch_submit": self._submit,
            "batch_targets": reading.targets,
            "batch_results": reading.results,
            "batch_read": reading.read,
            "batch_rerun": self._rerun,
            "batch_cancel": self._cancel,
            "batch_list": reading.jobs,
            "fetch": reading.fetch,
        }

    async def call(
        self, tool: str, given: Mapping[str, Any], progress: Progress | None = None
    ) -> tuple[View, bool]:
        """Return the answer of one of `TOOLS`, and whether it went well: a problem is an answer, too.

        If cancelled, nothing is taken back: a job goes on, and what a submit asked for may have begun. A
        `fetch` ends.
        """
        arguments: View = {}
        try:
            arguments = read_arguments(TOOLS[tool].schema, given)
            if tool == "batch_wait":
                return await self._wait(arguments, progress), True
            return await self._tools[tool](arguments), True
        except BadArguments as bad:
            view = bad_arguments_view(bad)
        except Refused as refused:
            view = refused.view
        except ServiceProblem as problem:
            view = problem_view(problem, _targets_of(arguments))
        except Unreachable as error:
            view = unreachable_view(error)
        return fitting_problem(view, budget_of(arguments)), False

    async def _submit(self, arguments: View) -> View:
        return self._job_of(await self._client.call("POST", JOBS, arguments))

    async def _rerun(self, arguments: View) -> View:
        return self._job_of(await self._client.call("POST", job_path(arguments, "rerun")))

    async def _cancel(self, arguments: View) -> View:
        return self._job_of(await self._client.call("POST", job_path(arguments, "cancel")))

    async def _wait(self, arguments: View, progress: Progress | None) -> View:
        path, seconds = job_path(arguments), arguments.get("seconds", _WAIT)
        if progress is None:
            return self._job_of(await self._look(path, seconds))
        deadline = trio.current_time() + seconds
        answer, told = await self._look(path, 0), -1
        while True:
            view = answer.json()
            told = await _tell(view, told, progress)
            left = math.floor(deadline - trio.current_time())
            if view["settled"] or left < 1:
                return self._job_of(answer)
            news = await self._look(path, left, answer.headers.get("etag", ""))
            answer = answer if news.status == 304 else news

    async def _look(self, path: str, seconds: int, etag: str = "") -> Answer:
        """Look at a job when it has settled, or changed from `etag`; after `seconds` at the latest."""
        query = f"?wait={seconds}&until=change" if etag else f"?wait={seconds}"
        headers = {"if-none-match": etag} if etag else {}
        limit = seconds + _FOR_THE_ANSWER
        return await self._client.call("GET", path + query, headers=headers, seconds=limit)

    def _job_of(self, answer: Answer) -> View:
        view = answer.json()
        replayed = {"replayed": True} if answer.headers.get("idempotent-replayed") == "true" else {}
        return job_answer(view, **replayed)


async def _tell(view: View, told: int, progress: Progress) -> int:
    """Tell of targets that finished since; what is told grows from one time to the next."""
    targets = view["targets"]
    finished: int = targets["done"] + targets["failed"]
    if finished > told:
        failed = f", {targets['failed']} failed" if targets["failed"] else ""
        word = f"{finished} of {targets['total']} targets are finished{failed}"
        await progress(finished, targets["total"], word)
    return max(finished, told)


def _targets_of(arguments: View) -> list[Any] | None:
    """The targets of a call to submit, or of a fetch that could be submitted."""
    if "url" in arguments:
        return [{name: arguments[name] for name in ("url", "options") if name in arguments}]
    return None
