"""A server of functions: handlers by method, typed by the models of one revision; clients of every revision are served.

python examples/notes_server.py             # over stdio, as a client starts it
dragoman call add text=Milk -- python examples/notes_server.py
"""

from __future__ import annotations

from dragoman.errors import McpError
from dragoman.server import Context, Server
from dragoman_spec import v2025_06_18 as v

server = Server("notes", "1.0", revision="2025-06-18", notifies=["notifications/resources/list_changed"])
notes: dict[str, str] = {"note://1": "Bread"}

INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002
ADD = v.Tool(
    name="add",
    description="Keeps a note",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)
CONFIRMATION: dict[str, object] = {"type": "object", "properties": {"sure": {"type": "boolean"}}}


def check_cursor(params: v.PaginatedRequestParams | None) -> None:
    """Everything is on the first page."""
    if params is not None and params.cursor is not None:
        raise McpError(INVALID_PARAMS, "there is one page")


@server.on(v.ListToolsRequest)
def list_tools(params: v.PaginatedRequestParams | None, context: Context) -> v.ListToolsResult:
    """Say what can be called."""
    check_cursor(params)
    return v.ListToolsResult(tools=[ADD])


@server.on(v.CallToolRequest)
async def call(params: v.CallToolRequestParams, context: Context) -> v.CallToolResult:
    """Keep a note; a client that can ask a person is asked whether to keep one twice."""
    text = (params.arguments or {}).get("text")
    if params.name != ADD.name or not isinstance(text, str):
        raise McpError(INVALID_PARAMS, "expected the tool add, with a text")
    if text in notes.values() and "elicitation" in context.client_capabilities:
        question = {"message": f"Keep {text!r} twice?", "requestedSchema": CONFIRMATION}
        answer: v.ElicitResult = await context.ask({"method": "elicitation/create", "params": question})
        if answer.action != "accept" or not (answer.content or {}).get("sure"):
            return v.CallToolResult(content=[v.TextContent(text="Not kept.")])
    notes[f"note://{len(notes) + 1}"] = text
    server.notify("notifications/resources/list_changed")
    return v.CallToolResult(content=[v.TextContent(text=f"{len(notes)} notes.")])


@server.on(v.ListResourcesRequest)
def list_resources(params: v.PaginatedRequestParams | None, context: Context) -> v.ListResourcesResult:
    """Say which notes there are."""
    check_cursor(params)
    return v.ListResourcesResult(resources=[v.Resource(uri=uri, name=text) for uri, text in notes.items()])


@server.on(v.ReadResourceRequest)
def read(params: v.ReadResourceRequestParams, context: Context) -> v.ReadResourceResult:
    """Give a note."""
    if params.uri not in notes:
        raise McpError(RESOURCE_NOT_FOUND, f"there is no note {params.uri}")
    text = v.TextResourceContents(uri=params.uri, text=notes[params.uri])
    return v.ReadResourceResult(contents=[text])


if __name__ == "__main__":
    server.run()
