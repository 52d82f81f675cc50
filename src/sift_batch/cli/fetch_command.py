"""What does `sift-batch fetch` do? Has one page fetched, by a service or in this process, and prints it."""

from collections.abc import Mapping, Sequence
from typing import Any

import trio

from .._client import Unreachable
from .._model.errors import RetryLater
from .._model.values import Caller, Options, Target
from .escape import visible_text
from .output import Output
from .plan import Refused
from .problems import BAD_INPUT
from .remote import Session, commanded, talk, until_signal
from .remote_flags import Remote
from .screen import Screen
from .targets import argument_text, reason_of


def fetch_command(
    url: str, options: Mapping[str, Any], *, allow: Sequence[str], ports: str | None, remote: Remote
) -> int:
    """Run the command and return its exit code."""
    url = argument_text(url)
    if remote.server is not None:
        return talk(remote, lambda session: _by_service(session, url, options))

    def command(screen: Screen) -> int:
        from .fetching import fetch_config

        target = Target(url, Options(**options))
        try:
            config = fetch_config(allow, ports, remote.ca_file)
            return trio.run(until_signal, screen, lambda _: _here(screen, target, config, remote.as_json))
        except ImportError as error:
            raise Refused(error.msg, 2) from None

    return commanded(remote, command)


async def _by_service(session: Session, url: str, options: Mapping[str, Any]) -> int:
    answer = await session.client.call("POST", "/v1/fetch", {"url": url, "options": dict(options)})
    view = answer.json()
    if not (
        isinstance(view, dict) and isinstance(view.get("content"), str) and isinstance(view.get("meta"), dict)
    ):
        raise Unreachable("what answers there does not answer as this version of sift-batch does")
    await _print(session.output, session.screen, view["content"], view["meta"], session.as_json)
    return 0


async def _here(screen: Screen, target: Target, config: Any, as_json: bool) -> int:
    from ..fetch import FetchError, open_fetcher

    output = Output(screen.make_way)
    async with open_fetcher(config) as fetch:
        try:
            await fetch.check(target)
            result = await fetch.interactive(Caller("cli"), target)
        except FetchError as error:
            screen.error(f"{error.code}: {reason_of(error)}", code=error.code, http_status=error.status)
            return 2 if error.code in BAD_INPUT else 1
        except RetryLater as busy:
            after = f" in {busy.retry_after:.0f} s" if busy.retry_after else " later"
            screen.error(f"busy: the site asks for patience; try again{after}", code="busy")
            return 1
    await _print(output, screen, result.content, dict(result.meta), as_json)
    return 0


async def _print(
    output: Output, screen: Screen, content: str, meta: Mapping[str, Any], as_json: bool
) -> None:
    if as_json:
        await output.value({"content": content, "meta": meta})
        return
    if content:
        await output.text(visible_text(content if content.endswith("\n") else f"{content}\n"))
    if meta.get("code"):
        hint = meta.get("hint")
        screen.note(f"{meta['code']}: {hint}" if hint else str(meta["code"]))
