"""Is every problem told in an agent's words, whatever the service says or does not say?"""

import json
from typing import Any

import pytest
from mcp_rig import Service, agent_of

from sift_batch._client import Unreachable
from sift_batch.mcp._steps import step_of
from sift_batch.mcp._tools import TOOLS
from sift_batch.service._codes import KINDS
from sift_batch.service._router import ROUTES
from sift_batch.service._views import step

JOB = "0123456789abcdef0123456789abcdef"
CALLS: dict[str, dict[str, Any]] = {
    "batch_submit": {"targets": ["https://a.example/"]},
    "batch_wait": {"job_id": JOB},
    "batch_targets": {"job_id": JOB},
    "batch_results": {"job_id": JOB},
    "batch_read": {"job_id": JOB, "idx": 3},
    "batch_rerun": {"job_id": JOB},
    "batch_cancel": {"job_id": JOB},
    "batch_list": {},
    "fetch": {"url": "https://a.example/"},
}


def problem(code: str, **more: Any) -> tuple[int, dict[str, Any]]:
    """A problem as the service gives it."""
    kind = KINDS[code]
    view = {
        "type": f"urn:problem-type:sift-batch:{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": kind.title,
        "code": code,
        "retryable": kind.retryable,
        "retry_after": None,
        "hint": kind.http,
        "next": None,
        "errors": [],
    }
    return kind.status, view | more


def test_the_tools_are_all_here() -> None:
    """This test knows a call of every tool."""
    assert CALLS.keys() == TOOLS.keys()


@pytest.mark.parametrize("tool", sorted(TOOLS))
async def test_every_problem_of_every_tool_is_told_in_its_words(autojump_clock: Any, tool: str) -> None:
    """Whatever code the service answers with, a tool gives that code, with the hint that is for agents."""
    service = Service()
    async with agent_of(service) as agent:
        for code, kind in KINDS.items():
            service.answer = lambda _method, _path, code=code: problem(code)  # type: ignore[misc]
            view = (await agent.tell(tool, CALLS[tool])).problem(code)
            assert (view["hint"], view["retryable"], view["detail"]) == (kind.mcp, kind.retryable, kind.title)
            assert not {"type", "title", "status"} & view.keys()


async def test_a_hint_of_its_own_is_kept(autojump_clock: Any) -> None:
    """A problem that says more than its code does keeps its own hint, and whatever it has besides."""
    service = Service()
    service.answer = lambda _method, _path: problem("connect", hint="check the port", origin="target")
    async with agent_of(service) as agent:
        view = (await agent.tell("fetch", CALLS["fetch"])).problem("connect")
        assert (view["hint"], view["origin"]) == ("check the port", "target")


async def test_a_code_that_nobody_knows_is_told_as_it_is(autojump_clock: Any) -> None:
    """A problem of a newer service comes through with its own words."""
    service = Service()
    service.answer = lambda _method, _path: (418, {"code": "teapot", "detail": "short", "hint": "and stout"})
    async with agent_of(service) as agent:
        view = (await agent.tell("batch_list")).problem("teapot")
        assert (view["detail"], view["hint"], view["next"]) == ("short", "and stout", None)


@pytest.mark.parametrize(("transient", "reason"), [(True, "nothing answers there"), (False, "no service")])
async def test_a_service_that_is_not_there_is_a_problem(
    autojump_clock: Any, transient: bool, reason: str
) -> None:
    """With no service behind them, all tools say `unreachable`, why, and whether to try again."""
    service = Service()
    service.raises = Unreachable(reason, transient=transient)
    async with agent_of(service) as agent:
        for tool, arguments in CALLS.items():
            view = (await agent.tell(tool, arguments)).problem("unreachable")
            assert (view["detail"], view["retryable"]) == (reason, transient)


async def test_nothing_of_an_error_of_ours_goes_out(autojump_clock: Any) -> None:
    """An answer that makes no sense is `internal`: no text of an exception, and the operator is told."""
    errors: list[Exception] = []
    service = Service()
    async with agent_of(service, errors) as agent:
        service.raises = ValueError("secret https://secret.example/")
        told = await agent.tell("batch_list")
        assert told.problem("internal")["hint"] == KINDS["internal"].mcp
        assert "secret" not in told.text
        service.raises = ExceptionGroup("secret", [ValueError("secret")])
        told = await agent.tell("batch_list")
        assert told.problem("internal")
        assert "secret" not in told.text
        service.raises = None
        for view in ([], {"items": 5}, {"id": 1}, "text", None):
            service.answer = lambda _method, _path, view=view: (200, view)  # type: ignore[misc]
            for tool, arguments in CALLS.items():
                assert (await agent.tell(tool, arguments)).view["code"] in ("internal", "unreachable")
    assert type(errors[0]) is ValueError


async def test_each_tool_makes_these_requests(autojump_clock: Any) -> None:
    """Every path that a tool asks for is one of the service's, with its method."""
    service = Service()
    async with agent_of(service, []) as agent:
        for tool, arguments in CALLS.items():
            await agent.tell(tool, arguments)
    assert [request[0] + " " + request[1].partition("?")[0] for request in service.asked] == [
        "POST /v1/batch",
        f"GET /v1/batch/{JOB}",
        f"GET /v1/batch/{JOB}/targets",
        f"GET /v1/batch/{JOB}/results",
        f"GET /v1/batch/{JOB}/targets/3",
        f"POST /v1/batch/{JOB}/rerun",
        f"POST /v1/batch/{JOB}/cancel",
        "GET /v1/batch",
        "POST /v1/fetch",
    ]
    assert json.loads(service.bodies[0]) == CALLS["batch_submit"]


STEPS = [
    (step("GET", "/v1/batch"), "batch_list", {}),
    (step("GET", f"/v1/batch/{JOB}"), "batch_wait", {"job_id": JOB}),
    (step("GET", f"/v1/batch/{JOB}?wait=25&until=change"), "batch_wait", {"job_id": JOB}),
    (step("GET", f"/v1/batch/{JOB}/targets"), "batch_targets", {"job_id": JOB}),
    (step("GET", f"/v1/batch/{JOB}/results"), "batch_results", {"job_id": JOB}),
    (
        step("GET", f"/v1/batch/{JOB}/targets/7?offset=0&max_chars=900"),
        "batch_read",
        {"job_id": JOB, "idx": 7, "offset": 0, "max_chars": 900},
    ),
    (step("POST", f"/v1/batch/{JOB}/rerun"), "batch_rerun", {"job_id": JOB}),
    (step("POST", f"/v1/batch/{JOB}/cancel"), "batch_cancel", {"job_id": JOB}),
    (step("POST", "/v1/batch"), "batch_submit", {"targets": ["x"]}),
]


@pytest.mark.parametrize(("given", "tool", "arguments"), STEPS)
def test_a_step_of_the_api_is_a_tool_with_arguments(given: Any, tool: str, arguments: Any) -> None:
    """Whatever the service may name as the next request, an agent gets the tool that does it."""
    assert step_of(given, ["x"]) == {"tool": tool, "arguments": arguments}
    known = TOOLS[tool].schema
    assert arguments.keys() <= known["properties"].keys()
    assert set(known["required"]) <= arguments.keys()


@pytest.mark.parametrize(
    "given",
    [
        None,
        5,
        {},
        {"method": "GET"},
        {"method": "GET", "path": 7},
        step("DELETE", f"/v1/batch/{JOB}"),
        step("GET", "/x"),
    ],
)
def test_a_step_that_no_tool_does_is_none(given: Any) -> None:
    """A step that makes no sense here is left out, and breaks nothing."""
    assert step_of(given, ["x"]) is None


def test_every_route_but_these_has_a_tool() -> None:
    """Only deleting, events and limits have no tool: an agent needs none of them."""
    without = set()
    for parts, methods in ROUTES.items():
        path = "/" + "/".join({"*": "0"}.get(part, part) for part in parts)
        without |= {f"{method} {path}" for method in methods if step_of(step(method, path), ["x"]) is None}
    assert without == {"DELETE /v1/batch/0", "GET /v1/batch/0/events", "POST /v1/fetch", "GET /v1/limits"}
