"""How are the tools offered? The server of the SDK with our list of tools and our calls.

Every answer is one JSON text, and the same as an object as long as both together are not too long. What
goes wrong in a call is an answer marked as an error: no exception's text goes out. Next: `_wire`.
"""

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mcp_types as types
import trio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from ..service._contain import leaves
from ._calls import Calls, Progress
from ._fit import goes_twice, text_of
from ._steps import own_problem
from ._tools import INSTRUCTIONS, TOOLS

OnError = Callable[[Exception], object]
_Context = ServerRequestContext[Any, Any]


def make_server(calls: Calls, *, on_error: OnError | None = None) -> Server[Any]:
    """Return the server. `on_error` is told of what was answered with `internal`; it must not raise."""

    async def list_tools(
        _context: _Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        await trio.lowlevel.checkpoint()
        return types.ListToolsResult(tools=listed_tools())

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in TOOLS:
            raise MCPError(
                code=types.INVALID_PARAMS, message=f"there is no such tool; there are {', '.join(TOOLS)}"
            )
        try:
            view, good = await calls.call(params.name, params.arguments or {}, _progress_of(context))
        except (Exception, BaseExceptionGroup) as error:
            for leaf in leaves(error):
                if isinstance(leaf, trio.Cancelled):
                    # Bare, as the SDK knows it: then it tells the client that the call has ended.
                    raise leaf from None
            if not isinstance(error, Exception):
                raise
            if on_error is not None:
                on_error(error)
            view, good = own_problem("internal"), False
        return _result(view, good=good)

    server = Server(
        "sift-batch",
        version=version("sift-batch"),
        title="sift-batch",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    # Its spans have the names of tools and the texts of errors: nothing of that is to leave the process.
    server.middleware = []
    return server


def listed_tools() -> list[types.Tool]:
    """Return the tools as the protocol lists them."""
    return [
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=dict(tool.schema),
            annotations=types.ToolAnnotations(
                title=tool.title,
                read_only_hint=tool.reads,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=tool.world,
            ),
        )
        for tool in TOOLS.values()
    ]


def _result(view: dict[str, Any], *, good: bool) -> types.CallToolResult:
    text = text_of(view)
    # Clients show an agent the text or the object, so each of them has everything.
    structured = json.loads(text) if goes_twice(view, text) else None
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)],
        structured_content=structured,
        is_error=not good,
    )


def _progress_of(context: _Context) -> Progress | None:
    """Return how to tell of progress, if the client asked for it."""
    meta = context.meta or {}
    if "progress_token" not in meta:
        return None

    async def tell(finished: int, total: int, word: str) -> None:
        await context.session.report_progress(finished, total, word)

    return tell
