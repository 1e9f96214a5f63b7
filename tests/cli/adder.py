"""A server with one tool, `add`: it says on stderr what it does, and on the wire how far it is (`adder.py [fails]`)."""

from __future__ import annotations

import sys

from dragoman.server import Context, Server
from dragoman_spec import v2025_06_18 as v

server = Server("adder", "1.0", revision="2025-06-18")
NUMBERS = {"a": {"type": "number"}, "b": {"type": ["integer", "null"]}, "word": {"type": "string"}}
ADD = v.Tool(name="add", input_schema={"type": "object", "properties": NUMBERS, "required": ["a", "b"]})


@server.on(v.ListToolsRequest)
def list_tools(params: v.PaginatedRequestParams | None, context: Context) -> v.ListToolsResult:
    return v.ListToolsResult(tools=[ADD])


@server.on(v.CallToolRequest)
def call(params: v.CallToolRequestParams, context: Context) -> v.CallToolResult:
    print("stderr: called", file=sys.stderr, flush=True)
    context.progress(1, total=2, message="half of it")
    given = params.arguments or {}
    return v.CallToolResult(content=[v.TextContent(text=str(sorted(given)))], is_error="fails" in sys.argv)


print("stderr: begun", file=sys.stderr, flush=True)
server.run()
