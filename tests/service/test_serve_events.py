"""What the service says in its log: registered events with nothing of a request, and counts."""

import sys
from pathlib import Path
from typing import Any

import pytest
import trio

import sift_batch
from sift_batch import StoreError
from sift_batch._observe import lines
from sift_batch._observe.events import EVENTS, allow_list
from sift_batch._observe.service_events import ALL_EVENTS, CALLERS_PROBLEMS
from sift_batch.logs import SERVER_TROUBLE, SERVICE_EVENTS, failure, held_back, open_log
from sift_batch.service._caller_entries import TEXTS, CallersProblem
from sift_batch.service._callers import Taken
from sift_batch.service._events import SERVER_EVENTS
from sift_batch.service._events_log import ServiceLog
from sift_batch.service._health import Health

CANARY = "https://zephyr.example/quill?tok"


class Kept:
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def _keep(self, event: str, **fields: Any) -> None:
        self.lines.append({"event": event, **fields})

    debug = info = warning = error = _keep


def kept() -> tuple[ServiceLog, list[dict[str, Any]]]:
    """Return the service's log, and the lines that it writes."""
    logger = Kept()
    return ServiceLog(open_log(logger)), logger.lines


def raised(error: Exception) -> Exception:
    """Return an error with the traceback of one that was raised."""
    try:
        raise error
    except Exception as caught:
        return caught


def scope(path: str) -> Any:
    """Return what the server tells of a request."""
    return {"method": "POST", "raw_path": path.encode()}


@pytest.mark.parametrize("name", SERVICE_EVENTS)
def test_no_event_takes_text(name: str) -> None:
    """Whatever a field is given, a line has words of closed sets, numbers and places in the code alone."""
    spec = SERVICE_EVENTS[name]
    for value in (CANARY, "zephyr", CANARY.encode(), {CANARY: CANARY}, ValueError(CANARY), -1, True, 2**70):
        fields = allow_list(spec, dict.fromkeys(spec.fields, value))
        assert fields is not None
        assert "zephyr" not in repr(fields)


@pytest.mark.parametrize("name", SERVICE_EVENTS)
def test_every_event_is_used(name: str) -> None:
    """No event is registered that nothing in the package ever logs."""
    package = Path(sift_batch.__file__).parent
    sources = [path for path in package.rglob("*.py") if path.name != "service_events.py"]
    assert any(f'"{name}"' in path.read_text(encoding="utf-8") for path in sources)


def test_the_closed_sets_are_those_of_the_service() -> None:
    """Problems of callers and troubles of the server have the names that they have there."""
    assert frozenset(TEXTS) == CALLERS_PROBLEMS
    assert set(SERVER_TROUBLE) < set(SERVER_EVENTS)
    assert not EVENTS.keys() & SERVICE_EVENTS.keys()
    assert ALL_EVENTS.keys() == EVENTS.keys() | SERVICE_EVENTS.keys()


def test_an_error_is_told_by_type_and_place() -> None:
    """The innermost place in this package; a class that no module has is unknown."""
    with pytest.raises(ValueError, match="must be") as caught:
        sift_batch.Config(ttl=-1)
    told = failure(caught.value)
    assert told["error"] == "ValueError"
    assert told["site"].startswith("sift_batch._model.config:")
    forged = type("zephyr", (Exception,), {"__module__": "quill"})
    assert failure(raised(forged(CANARY)))["error"] == "unknown"
    assert failure(raised(trio.ClosedResourceError(CANARY)))["error"] == "trio.ClosedResourceError"
    assert failure(ValueError(CANARY)) == {"error": "ValueError", "site": "unknown"}
    assert "quill" not in sys.modules


def test_a_failed_request_says_less_of_a_restricted_caller() -> None:
    """Type and place for a fleet caller; that it failed for a restricted one; of its fetch nothing at all."""
    log, told = kept()
    error = raised(LookupError(CANARY))
    log.failed(error, scope("/v1/fetch"), restricted=False)
    assert told == [{"event": "request.failed", "error": "LookupError", "site": told[0]["site"]}]
    told.clear()
    log.failed(error, scope("/v1/batch"), restricted=True)
    assert told == [{"event": "request.failed"}]
    told.clear()
    log.failed(error, scope("/v1/fetch"), restricted=True)
    assert told == []


def test_callers_are_told_by_numbers_and_places() -> None:
    """A file that is wrong by line and column as far as they are known; who is shut out by count."""
    log, told = kept()
    log.reloaded(None)
    log.reloaded(CallersProblem("toml", 3, 7))
    log.reloaded(CallersProblem("mode"))
    log.taken(Taken(frozenset({"zephyr"}), frozenset({"quill", "march"})))
    assert told == [
        {"event": "callers.reloaded"},
        {"event": "callers.refused", "problem": "toml", "line": 3, "column": 7},
        {"event": "callers.refused", "problem": "mode"},
        {"event": "callers.taken", "callers": 1, "keys": 2},
    ]


async def test_what_may_be_many_is_counted(autojump_clock: trio.testing.MockClock) -> None:
    """Wrong keys and trouble of the server are one line a minute, and one at the end; quiet ones none."""
    log, told = kept()
    async with trio.open_nursery() as tasks:
        tasks.start_soon(log.watch)
        await trio.sleep(30)
        for _ in range(1_000):
            log.stranger()
            log.server("refused_full")
            log.server("disconnected")
        await trio.sleep(31)
        assert told == [
            {"event": "auth.failures", "failures": 1_000, "seconds": 60.0},
            {"event": "server.trouble", "kind": "refused_full", "times": 1_000},
        ]
        await trio.sleep(600)
        assert len(told) == 2
        log.stranger()
        tasks.cancel_scope.cancel()
    assert told[2:] == [{"event": "auth.failures", "failures": 1, "seconds": told[-1]["seconds"]}]


def test_a_line_that_is_held_back_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that looks like it holds an address."""
    monkeypatch.setattr(lines.tripwire, "raising", False)
    before = held_back()
    assert "zephyr" not in lines.finished_line("info", {"event": CANARY})
    assert held_back() == before + 1


class Store:
    """A runner that says whether its store works."""

    def __init__(self) -> None:
        self.works = True

    async def check(self) -> None:
        """Write and read back."""
        await trio.lowlevel.checkpoint()
        if not self.works:
            raise StoreError("out of order")


async def test_it_is_not_ready_while_the_store_is_out_of_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By a look of its own, or since a request found it so; and it is ready again by itself."""
    store = Store()
    health = Health(store)  # type: ignore[arg-type]
    assert await health.is_ready()
    health.trouble()
    assert not await health.is_ready()
    await trio.sleep(4)
    assert await health.is_ready()
    store.works = False
    await trio.sleep(2)
    assert not await health.is_ready()
    store.works = True
    await trio.sleep(2)
    assert await health.is_ready()
    health.stop()
    assert not await health.is_ready()
