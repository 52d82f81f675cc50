"""What does `sift-batch submit` do? Makes one job of its input, and gives it to a service.

Whether a target can be fetched is the service's to say; what it says is told by the line it is about.
Next: `intake` (the input), then `begun`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import trio

from .._client import ServiceProblem
from .._model.values import NO_OPTIONS, Options
from .begun import tell_begun
from .intake import Complaints, read_input
from .job_text import advice_text, checked_view
from .place import key_of, server_of
from .plan import Refused
from .remote import Session, commanded, talk_within
from .remote_flags import Remote
from .screen import Screen, counted
from .targets import Targets

_ASK_FIRST: Final = 100
"""More targets than that are not sent before the service was asked how many it takes."""

_POINTER: Final = re.compile(r"/targets/(\d{1,9})(?:/(url|options)(?:/(\w+))?)?", re.ASCII)
_FORMAL: Final = frozenset({"type", "too_long", "length", "missing"})
_NOTHING: Final = "nothing was submitted"
_DEFAULTS: Final = asdict(NO_OPTIONS)


def submit_command(
    urls: Sequence[str],
    *,
    file: str | None,
    options: Mapping[str, Any],
    max_age: float | None,
    wait: bool,
    remote: Remote,
) -> int:
    """Run the command and return its exit code."""

    def command(screen: Screen) -> int:
        # Before a long input is read for nothing.
        server_of(remote)
        key_of(remote)
        complaints = Complaints(screen, file, as_json=remote.as_json)
        with Targets() as targets:
            read_input(
                targets,
                urls,
                file,
                options,
                complaints,
                check=lambda _: None,
                check_all=lambda *_: 0,
                nothing=_NOTHING,
            )
            submission = _Submission(targets, complaints, max_age=max_age, wait=wait)
            return trio.run(talk_within, remote, screen, submission.work)

    return commanded(remote, command)


class _Submission:
    def __init__(
        self, targets: Targets, complaints: Complaints, *, max_age: float | None, wait: bool
    ) -> None:
        self._targets, self._complaints = targets, complaints
        self._max_age, self._wait = max_age, wait

    async def work(self, session: Session) -> int:
        if len(self._targets) > _ASK_FIRST:
            await self._check_count(session)
        body = self._body(session.screen)
        session.interrupted = "the job may be submitted already; `sift-batch list` shows it, if it is"
        try:
            answer = await session.client.call("POST", "/v1/batch", body)
        except ServiceProblem as problem:
            if problem.code != "bad_request":
                raise
            raise self._refused(problem) from None
        view = checked_view(answer.json())
        session.interrupted = ""
        note = ""
        if answer.status == 200:
            advice = advice_text(view) if view["settled"] and not self._wait else ""
            note = f"an equal job is there already; {advice or 'this is its id'}"
        return await tell_begun(session, view, note, wait=self._wait)

    async def _check_count(self, session: Session) -> None:
        limits = await session.get("/v1/limits")
        limit = limits.get("targets_per_job") if isinstance(limits, dict) else None
        given = len(self._targets)
        if isinstance(limit, int) and given > limit:
            said = f"a job may have at most {limit:,} targets, these are {given:,}"
            raise ServiceProblem(422, {"code": "too_many_targets", "detail": said})

    def _body(self, screen: Screen) -> dict[str, Any]:
        listed: list[dict[str, Any]] = []
        has_extra = False
        for item in self._targets:
            own = _given(item.target.options)
            listed.append({"url": item.target.url} | ({"options": own} if own else {}))
            has_extra = has_extra or item.extra is not None
        if has_extra:
            screen.note('other keys of a line than "url" and "options" are not sent, and not given back')
        return {"targets": listed} | ({} if self._max_age is None else {"max_age": self._max_age})

    def _refused(self, problem: ServiceProblem) -> Refused:
        """Tell what is wrong with each target by its line, and return what ends the command."""
        errors = problem.view.get("errors")
        found = [item for item in errors if isinstance(item, dict)] if isinstance(errors, list) else []
        by_place: dict[int, list[str]] = {}
        others: list[str] = []
        for item in found:
            match = _POINTER.fullmatch(str(item.get("pointer")))
            if match is None:
                others.append(f"{str(item.get('pointer')).lstrip('/')} {item.get('detail')}")
            else:
                by_place.setdefault(int(match[1]), []).append(_reason(match, item))
        for target in self._targets if by_place else ():
            for reason in by_place.get(target.idx, ()):
                if target.line is None:
                    self._complaints.add("argument", target.idx + 1, reason)
                else:
                    self._complaints.add("line", target.line, reason)
        self._complaints.finish()
        if by_place and not others:
            return Refused(f"{counted(len(by_place), 'bad input')}; {_NOTHING}", 2)
        return Refused(f"{'; '.join(others) or problem.detail}; {_NOTHING}", 2)


def _given(options: Options) -> dict[str, Any]:
    return {name: value for name, value in asdict(options).items() if value != _DEFAULTS[name]}


def _reason(match: re.Match[str], item: Mapping[str, Any]) -> str:
    detail = str(item.get("detail"))
    if item.get("code") not in _FORMAL:
        return detail
    return f'"{match[3]}" {detail}' if match[3] else f"the URL {detail}" if match[2] == "url" else detail
