"""How does a command talk to a service, and how does it end?

Finds the service and the key, opens a client, does the command's work, and turns every way to end into
one line and an exit code; a signal ends it at once. What the work is, each command says. Next: `problems`,
`follow`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import trio

from .._client import BadServer, Client, ServiceProblem, Unreachable, open_client
from .escape import visible
from .output import Output, ReaderLeft
from .place import key_of, server_of
from .plan import Refused
from .problems import exit_code_of, is_about_target, text_of
from .process import seal_process
from .remote_flags import Remote
from .screen import Screen
from .signals import ending_signals

_NO_SUCH_ID: Final = "-"


class Session:
    """What a command works with: the client, standard output, and the screen.

    `unread` is the exit code when nobody reads the output any more; `interrupted` is said at a signal;
    `job_id` is named where advice is about a job. All are the work's to set as it goes on.
    """

    def __init__(self, client: Client, output: Output, screen: Screen, *, as_json: bool) -> None:
        self.client, self.output, self.screen, self.as_json = client, output, screen, as_json
        self.unread = 0
        self.interrupted = ""
        self.job_id = ""

    async def get(self, path: str) -> Any:
        """Return the JSON that the service answers to a GET."""
        return (await self.client.call("GET", path)).json()


Work = Callable[[Session], Awaitable[int]]


def job_path(job_id: str, rest: str = "") -> str:
    """Return the path of a job, for whatever was given as its id."""
    # What can't stand in a path is the id of no job; the service says so as of any other.
    plain = job_id.isascii() and job_id.replace("_", "").replace("-", "").isalnum() and len(job_id) <= 200
    return f"/v1/batch/{job_id if plain else _NO_SUCH_ID}{rest}"


def talk(remote: Remote, work: Work) -> int:
    """Do the work with a client of the service, and return the exit code of the command."""
    return commanded(remote, lambda screen: trio.run(talk_within, remote, screen, work))


def commanded(remote: Remote, command: Callable[[Screen], int]) -> int:
    """Run a command that may raise `Refused`, and return its exit code."""
    seal_process()
    screen = Screen(quiet=remote.quiet, as_json=remote.as_json)
    try:
        return command(screen)
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code


async def talk_within(remote: Remote, screen: Screen, work: Work) -> int:
    """Do the work with a client of the service; return the exit code. Raises `Refused`."""
    server, key = server_of(remote), key_of(remote)
    output = Output(screen.make_way)

    async def body(ending: "Ending") -> int:
        try:
            async with open_client(
                server, key, ca_file=remote.ca_file, plain_http=remote.plain_http
            ) as client:
                session = Session(client, output, screen, as_json=remote.as_json)
                ending.session = session
                return await work(session)
        except BadServer as error:
            raise Refused(with_flag(error.reason), 2) from None
        except Unreachable as error:
            raise Refused(f"{visible(server)}: {error.reason}; {_advice(error)}", 3) from None

    return await until_signal(screen, body)


class Ending:
    """How the work of a command is to end."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.code = 0
        self.refused: Refused | None = None


async def until_signal(screen: Screen, body: Callable[[Ending], Awaitable[int]]) -> int:
    """Run the body and return its exit code; a signal ends it, with 128 and its number.

    A problem of the service's becomes an error on the screen. Raises `Refused`.
    """
    ending = Ending()
    with trio.open_signal_receiver(*_signals()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_obey, signals, screen, ending, nursery.cancel_scope)
            await _guarded(screen, ending, body)
            nursery.cancel_scope.cancel()
    if ending.refused is not None:
        raise ending.refused
    return ending.code


def _signals() -> list[int]:
    import signal

    return [signal.SIGINT, *ending_signals()]


async def _obey(signals: AsyncIterator[int], screen: Screen, ending: Ending, scope: trio.CancelScope) -> None:
    async for number in signals:
        ending.code = 128 + number
        scope.cancel()
        if ending.session is not None and ending.session.interrupted:
            screen.note(ending.session.interrupted)
        return


async def _guarded(screen: Screen, ending: Ending, body: Callable[[Ending], Awaitable[int]]) -> None:
    # What is raised must not reach the nursery: it would come out in a group.
    try:
        ending.code = await body(ending)
    except Refused as refused:
        ending.refused = refused
    except ServiceProblem as problem:
        # Of a page under the name that it has where this process fetches it.
        page = {"http_status": problem.view.get("http_status")} if is_about_target(problem) else {}
        job_id = "" if ending.session is None else ending.session.job_id
        screen.error(text_of(problem, job_id), code=problem.code, status=problem.status, **page)
        ending.code = exit_code_of(problem)
    except ReaderLeft:
        ending.code = 0 if ending.session is None else ending.session.unread


def with_flag(reason: str) -> str:
    """Return why a key is not sent, with the flag that has it sent all the same."""
    if reason.startswith("over http://"):
        return f"{reason}, or pass --plain-http"
    return reason


def _advice(error: Unreachable) -> str:
    if error.transient:
        return "see that the service runs, and that --server names it"
    return "see that --server names the service"
