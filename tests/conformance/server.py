"""A server made with a released SDK that has what the conformance suite asks for: `python server.py [stdio]`.

Without an argument it serves Streamable HTTP on a free loopback port and prints its URL. The names and texts of tools,
resources and prompts are the suite's. Runs in the environment of the newest peer; imports nothing of Dragoman.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import McpError
from mcp.shared.message import ServerMessageMetadata

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Events(EventStore):
    """Every event of every stream, in order, for clients that resume."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    async def store_event(self, stream_id: str, message: Any) -> str:
        """Keep an event; its id is its place."""
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        """Send what came on the same stream after the event with this id."""
        from mcp.server.streamable_http import EventMessage

        place = int(last_event_id)
        stream_id = self.events[place - 1][0]
        for number, (other_id, message) in enumerate(self.events[place:], place + 1):
            if other_id == stream_id and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream_id


app = FastMCP(
    "conformance",
    event_store=Events(),
    retry_interval=500,
    transport_security=TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=["127.0.0.1:*", "localhost:*"],
        allowed_origins=["http://127.0.0.1:*", "http://localhost:*"],
    ),
)
server: Any = app._mcp_server


def image() -> Any:
    """Return an image."""
    return types.ImageContent(type="image", data=PIXEL, mimeType="image/png")


def embedded(uri: str, mime_type: str, text: str) -> Any:
    """Return an embedded resource."""
    contents = types.TextResourceContents(uri=uri, mimeType=mime_type, text=text)  # type: ignore[arg-type]
    return types.EmbeddedResource(type="resource", resource=contents)


@app.tool()
def test_simple_text() -> str:
    """Answer with one text."""
    return "This is a simple text response for testing."


@app.tool(structured_output=False)
def test_image_content() -> Any:
    """Answer with an image."""
    return [image()]


@app.tool(structured_output=False)
def test_audio_content() -> Any:
    """Answer with a sound."""
    return [types.AudioContent(type="audio", data=SILENCE, mimeType="audio/wav")]


@app.tool(structured_output=False)
def test_embedded_resource() -> Any:
    """Answer with an embedded resource."""
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@app.tool(structured_output=False)
def test_multiple_content_types() -> Any:
    """Answer with three kinds of content."""
    text = types.TextContent(type="text", text="Multiple content types test:")
    mixed = embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [text, image(), mixed]


@app.tool()
async def test_tool_with_logging(ctx: Context[Any, Any, Any]) -> str:
    """Log three lines."""
    await ctx.info("Tool execution started")
    await anyio.sleep(0.05)
    await ctx.info("Tool processing data")
    await anyio.sleep(0.05)
    await ctx.info("Tool execution completed")
    return "Logged three lines"


@app.tool()
def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@app.tool()
async def test_tool_with_progress(ctx: Context[Any, Any, Any]) -> str:
    """Tell progress three times."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        await anyio.sleep(0.05)
    return "Progressed"


@app.tool()
async def test_sampling(prompt: str, ctx: Context[Any, Any, Any]) -> str:
    """Ask the client to sample."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {answer.content}"


async def ask_user(ctx: Context[Any, Any, Any], message: str, fields: dict[str, Any], required: list[str]) -> str:
    """Ask the user to fill in a form, and say what came."""
    schema = {"type": "object", "properties": fields, "required": required}
    answer = await ctx.session.elicit(message, schema, related_request_id=ctx.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


@app.tool()
async def test_elicitation(message: str, ctx: Context[Any, Any, Any]) -> str:
    """Ask the user who they are."""
    user = {"type": "string", "description": "User's response"}
    email = {"type": "string", "description": "User's email address"}
    return "User response: " + await ask_user(ctx, message, {"username": user, "email": email}, ["username", "email"])


@app.tool()
async def test_elicitation_sep1034_defaults(ctx: Context[Any, Any, Any]) -> str:
    """Ask with a default for each type of field."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return "Elicitation completed: " + await ask_user(ctx, "Who are you?", fields, [])


@app.tool()
async def test_elicitation_sep1330_enums(ctx: Context[Any, Any, Any]) -> str:
    """Ask with each kind of choice."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{number}", "title": f"{word} Option"}
        for number, word in enumerate(("First", "Second", "Third"), 1)
    ]
    names = ["Option One", "Option Two", "Option Three"]
    fields = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return "Elicitation completed: " + await ask_user(ctx, "Which?", fields, [])


async def ask_name(ctx: Context[Any, Any, Any], message: str = "What is your name?", field: str = "name") -> str:
    """Ask the user for one thing."""
    return await ask_user(ctx, message, {field: {"type": "string"}}, [field])


@app.tool()
async def test_input_required_result_elicitation(ctx: Context[Any, Any, Any]) -> str:
    """Ask the user: what a server without a handshake does by a result."""
    return await ask_name(ctx)


@app.tool()
async def test_streaming_elicitation(ctx: Context[Any, Any, Any]) -> str:
    """Ask the user on the stream of the call."""
    return await ask_name(ctx)


@app.tool()
async def test_input_required_result_sampling(ctx: Context[Any, Any, Any]) -> str:
    """Ask the client's model."""
    return str(await test_sampling("What is the capital of France?", ctx))


@app.tool()
async def test_input_required_result_capabilities(ctx: Context[Any, Any, Any]) -> str:
    """Ask what a client can be asked."""
    return str(await test_sampling("What is the capital of France?", ctx))


@app.tool()
async def test_missing_capability(ctx: Context[Any, Any, Any]) -> str:
    """Ask what some clients cannot be asked."""
    return str(await test_sampling("What is the capital of France?", ctx))


@app.tool()
async def test_input_required_result_list_roots(ctx: Context[Any, Any, Any]) -> str:
    """Ask for the roots."""
    request = types.ServerRequest(types.ListRootsRequest())
    metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
    found = await ctx.session.send_request(request, types.ListRootsResult, metadata=metadata)
    return f"{len(found.roots)} roots"


@app.tool()
async def test_input_required_result_request_state(ctx: Context[Any, Any, Any]) -> str:
    """Ask; the state is the call itself."""
    return "state-ok " + await ask_user(ctx, "Please confirm", {"ok": {"type": "boolean"}}, ["ok"])


@app.tool()
async def test_input_required_result_tampered_state(ctx: Context[Any, Any, Any]) -> str:
    """Ask, under a state that somebody else will change."""
    return await ask_user(ctx, "Please confirm", {"ok": {"type": "boolean"}}, ["ok"])


@app.tool()
async def test_input_required_result_multi_round(ctx: Context[Any, Any, Any]) -> str:
    """Ask twice."""
    name = await ask_name(ctx, "Step 1: What is your name?")
    return name + await ask_name(ctx, "Step 2: What is your favorite color?", "color")


@app.tool()
async def test_input_required_result_multiple_inputs(ctx: Context[Any, Any, Any]) -> str:
    """Ask three things at once."""
    async with anyio.create_task_group() as group:
        group.start_soon(ask_name, ctx)
        group.start_soon(test_input_required_result_sampling, ctx)
        group.start_soon(test_input_required_result_list_roots, ctx)
    return "Answered"


@app.prompt()
async def test_input_required_result_prompt() -> str:
    """Ask what it is to be about."""
    return "Context: " + await ask_name(app.get_context(), "What context should the prompt use?", "context")


@app.tool()
async def test_logging_tool(ctx: Context[Any, Any, Any]) -> str:
    """Log a line."""
    await ctx.info("A line")
    return "Logged"


@app.tool()
async def test_reconnection(ctx: Context[Any, Any, Any]) -> str:
    """Close the call's stream and answer on the one that resumes it."""
    await ctx.close_sse_stream()
    await anyio.sleep(0.2)
    return "Reconnection test completed successfully"


@app.tool()
def json_schema_2020_12_tool(name: str = "") -> str:
    """Tool with JSON Schema 2020-12 features."""
    return name


app._tool_manager._tools["json_schema_2020_12_tool"].parameters = {
    "$schema": DIALECT,
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


@app.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return b"\x89PNG\r\n\x1a\n"


@app.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """Something to subscribe to."""
    return "watched"


@app.resource("test://template/{id}/data", mime_type="application/json")
def by_id(id: str) -> str:
    """Data of one id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@app.prompt()
def test_simple_prompt() -> str:
    """One message."""
    return "This is a simple prompt for testing."


@app.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Both arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> Any:  # noqa: N803
    """A resource, and a text about it."""
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    about = types.TextContent(type="text", text="Please process the embedded resource above.")
    return [{"role": "user", "content": resource}, {"role": "user", "content": about}]


@app.prompt()
def test_prompt_with_image() -> Any:
    """An image, and a text about it."""
    about = types.TextContent(type="text", text="Please analyze the image above.")
    return [{"role": "user", "content": image()}, {"role": "user", "content": about}]


@app.completion()
async def complete(ref: Any, argument: Any, context: Any) -> Any:
    """Complete anything."""
    return types.Completion(values=["paris", "park", "party"], total=150, hasMore=False)


@server.set_logging_level()
async def set_level(level: str) -> None:
    """Take any level; lines are sent regardless."""


@server.subscribe_resource()
async def subscribe(uri: Any) -> None:
    """Take any subscription."""


@server.unsubscribe_resource()
async def unsubscribe(uri: Any) -> None:
    """Forget any subscription."""


def refuse_unknown_resources() -> None:
    """Answer with the code of the specification where the SDK has its own."""
    known = server.request_handlers[types.ReadResourceRequest]

    async def read(request: Any) -> Any:
        uri = str(request.params.uri)
        if not uri.startswith(("test://static-", "test://watched-", "test://template/")):
            raise McpError(types.ErrorData(code=-32002, message="Resource not found", data={"uri": uri}))
        return await known(request)

    server.request_handlers[types.ReadResourceRequest] = read


def listen() -> None:
    """Serve Streamable HTTP on a free port, and print the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    uvicorn.Server(uvicorn.Config(app.streamable_http_app(), log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    refuse_unknown_resources()
    if sys.argv[1:] == ["stdio"]:
        app.run("stdio")
    else:
        listen()
