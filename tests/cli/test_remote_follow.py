"""How long, and from where on, is a job followed whose service comes and goes? On the mock clock."""

import json
from contextlib import asynccontextmanager

import pytest
import trio

from sift_batch._client import Answer, Event, ServiceProblem, Unreachable
from sift_batch.cli.follow import AWAY_SECONDS, follow
from sift_batch.cli.job_text import checked_view
from sift_batch.cli.remote import Session

CUT = Unreachable("the service's answer broke off", transient=True)
NOBODY = Unreachable("nothing answers there", transient=True)


def view(done: int, total: int = 2) -> dict:
    """A job's view."""
    targets = {"total": total, "pending": total - done, "running": 0, "done": done, "failed": 0}
    settled = done == total
    return {"id": "j", "status": "done" if settled else "running", "settled": settled, "targets": targets}


def job(done: int, version: str = "") -> Event:
    """The event of a job."""
    return Event("job", version, view(done))


def target(idx: int) -> Event:
    """The event of a target."""
    return Event("target", "", {"idx": idx, "status": "done"})


class Service:
    """Answers each request for events with the next script, the last one again and again."""

    def __init__(self, *scripts: list, state: dict | None = None) -> None:
        self.scripts = list(scripts)
        self.asked: list[str] = []
        self.state = state

    @asynccontextmanager
    async def events(self, _path: str, *, last: str = ""):
        """Give the next script: events, seconds to wait, errors."""
        self.asked.append(last)
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        await trio.lowlevel.checkpoint()
        if script and script[0] is NOBODY:
            raise NOBODY.with_traceback(None)
        yield _Events(script)

    async def call(self, _method: str, _path: str) -> Answer:
        """Give the job."""
        await trio.lowlevel.checkpoint()
        return Answer(200, {}, json.dumps(self.state).encode())


class _Events:
    def __init__(self, script: list) -> None:
        self._steps = iter(script)

    def __aiter__(self):
        return self

    async def __anext__(self):
        for step in self._steps:
            await trio.lowlevel.checkpoint()
            if isinstance(step, Exception):
                raise step.with_traceback(None)
            if isinstance(step, Event):
                return step
            await trio.sleep(step)
        raise StopAsyncIteration


class Notes:
    """What the screen is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Take a note."""
        self.notes.append(text)


async def followed(service: Service, notes: Notes | None = None) -> tuple[dict, list]:
    """Follow a job to its end; give its view and what was handed on."""
    session = Session(service, None, notes or Notes(), as_json=False)
    told: list = []

    async def on_job(found: dict) -> None:
        told.append(found["targets"]["done"])

    async def on_target(found: dict) -> None:
        told.append(f"target {found['idx']}")

    return await follow(session, "j", on_job, on_target), told


END = Event("end", "9", view(2))


async def test_events_are_handed_on_until_the_end(autojump_clock):
    """Every change and every finished target is told, and the settled job is returned."""
    service = Service([job(0, "1"), target(0), job(1, "2"), 3_600.0, target(1), job(2), END])
    found, told = await followed(service)
    assert found["settled"]
    assert told == [0, "target 0", 1, "target 1", 2, 2]


async def test_a_stream_that_breaks_off_is_resumed(autojump_clock):
    """It is asked for from the last id on; a target that comes again is told once."""
    service = Service([job(0, "1"), target(0), job(1, "2"), CUT], [job(1), target(0), target(1), END])
    notes = Notes()
    found, told = await followed(service, notes)
    assert found["settled"]
    assert service.asked == ["", "2"]
    assert told == [0, "target 0", 1, 1, "target 1", 2]
    assert notes.notes == [
        f"the service went away; trying again for {AWAY_SECONDS:.0f} s",
        "the service answers again",
    ]


async def test_a_service_that_says_it_stops_is_waited_for(autojump_clock):
    """After `shutdown` the service is asked again, also while nobody is there."""
    shutdown = Event("shutdown", "", {})
    nobody = [[NOBODY]] * 8
    found, _ = await followed(Service([job(0, "1"), shutdown], *nobody, [job(1, "3"), END]))
    assert found["settled"]


async def test_busy_is_no_end(autojump_clock):
    """A 503 of the service is waited out; any other problem ends it."""
    busy = ServiceProblem(503, {"code": "store_unavailable"})
    assert (await followed(Service([job(0, "1"), CUT], [busy], [END])))[0]["settled"]
    with pytest.raises(ServiceProblem, match="gone"):
        await followed(Service([job(0, "1"), CUT], [ServiceProblem(410, {"code": "gone"})]))


async def test_a_stream_without_events_is_the_settled_job(autojump_clock):
    """Where nothing has changed since the last id, the job is looked at."""
    found, told = await followed(Service([job(1, "5"), CUT], [], state=view(2)))
    assert found["settled"]
    assert told == [1, 2]


@pytest.mark.parametrize(
    "script",
    [[NOBODY], [job(0, "1"), CUT], [job(0), CUT], [CUT], [], [job(0, "1"), Event("shutdown", "", {})]],
    ids=["nobody", "the same again", "no id", "nothing", "no event", "always stopping"],
)
async def test_a_service_that_does_not_come_back_is_given_up(autojump_clock, script):
    """Whoever only ever says what was said already is given up after a minute, and not asked too often."""
    service = Service([job(0, "1"), CUT], script, state=view(0))
    start = trio.current_time()
    with pytest.raises(Unreachable):
        await followed(service)
    assert AWAY_SECONDS <= trio.current_time() - start <= AWAY_SECONDS + 10
    assert len(service.asked) < 25


async def test_a_stranger_ends_it_at_once(autojump_clock):
    """What is no service of ours is not asked again."""
    stranger = Unreachable("what answers there is no sift-batch service (HTTP 200)")
    service = Service([job(0, "1"), CUT], [stranger])
    with pytest.raises(Unreachable, match="no sift-batch"):
        await followed(service)
    assert len(service.asked) == 2


async def test_streams_that_held_are_resumed_for_ever(autojump_clock):
    """A job that takes days is followed over any number of breaks, also where nothing changes for hours."""
    breaks = [[job(0, "1"), 3_600.0, CUT]] * 100
    found, _ = await followed(Service(*breaks, [END]))
    assert found["settled"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "x",
        {},
        {**view(0), "id": 3},
        {**view(0), "settled": "no"},
        {**view(0), "targets": []},
        {**view(0), "targets": {"total": 1}},
        {**view(0), "targets": {**view(0)["targets"], "done": True}},
    ],
)
def test_what_is_no_job_is_not_shown(value):
    """A job's view that lacks what every one has is a stranger's."""
    with pytest.raises(Unreachable):
        checked_view(value)
