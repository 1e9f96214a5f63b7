"""A server that speaks 2026-07-28 alone, under release 2.3: `python stateless.py [--record FILE] [--listen]`.

The tools have the names and schemas that `client.py` looks for, so the same tour visits it. As released the SDK serves
every revision; here whatever a client opens with goes to the code for the per-request era. Lives here: all of the
peer. Imports nothing of Dragoman.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import socket
import warnings
from typing import Any

import anyio
import mcp.server.runner as runner
import mcp_types as types
from mcp.server._streamable_http_modern import handle_modern_request
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

TEXT_URI = "file:///home/user/document.txt"
PAGES: dict[str | None, tuple[list[tuple[str, str]], str | None]] = {
    None: ([(TEXT_URI, "document.txt")], "page-2"),
    "page-2": ([("custom://unique-id-12345", "unique")], None),
}
FORM = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}

bus = InMemorySubscriptionBus()
saw: dict[str, Any] = {"calls": 0, "cancelled": 0, "levels": []}


def form(message: str) -> types.ElicitRequest:
    """Ask for a colour."""
    params = {"mode": "form", "message": message, "requestedSchema": FORM}
    return types.ElicitRequest.model_validate({"method": "elicitation/create", "params": params})


def completion(text: str) -> types.CreateMessageRequest:
    """Ask for a completion."""
    message = {"role": "user", "content": {"type": "text", "text": text}}
    params = {"messages": [message], "maxTokens": 10, "systemPrompt": "Be kind"}
    return types.CreateMessageRequest.model_validate({"method": "sampling/createMessage", "params": params})


QUESTIONS: dict[str, dict[str, list[dict[str, Any]]]] = {
    "ask_roots": {"once": [{"roots": types.ListRootsRequest()}]},
    "ask_sampling": {"text": [{"model": completion("Say hello")}]},
    "ask_user": {
        "form": [{"color": form("Which color?")}],
        "three": [{f"color{n}": form(f"Which color, number {n}?")} for n in range(3)],
        "two": [{"color": form("Which color?"), "roots": types.ListRootsRequest()}],
        "wait": [{}, {"color": form("Which color?")}],
    },
}
"""The rounds of each tool that asks, by kind: what is asked in each."""


def schema(**properties: Any) -> dict[str, Any]:
    """Give the schema of a tool's arguments."""
    return {"type": "object", "properties": properties}


TOOLS = {
    "echo": schema(say={"type": "string", "x-mcp-header": "Say"}, delay_s={"type": "number"}),
    "weather": schema(),
    "failing": schema(),
    "slow": schema(steps={"type": "integer"}),
    "logs": schema(),
    "touch": schema(uri={"type": "string"}),
    "change_lists": schema(),
    "server_saw": schema(),
    **{name: schema(kind={"type": "string", "enum": list(kinds)}) for name, kinds in QUESTIONS.items()},
}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """List the tools."""
    tools = [types.Tool(name=name, title=f"About {name}", input_schema=given) for name, given in TOOLS.items()]
    return types.ListToolsResult(tools=tools)


async def call_tool(context: Any, params: Any) -> Any:
    """Run a tool."""
    saw["calls"] += 1
    arguments = params.arguments or {}
    if params.name in QUESTIONS:
        return ask(params, QUESTIONS[params.name][arguments["kind"]])
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await RUN[params.name](context, arguments)


def ask(params: Any, rounds: list[dict[str, Any]]) -> Any:
    """Go on asking, round by round; the answers so far are in the state."""
    state = json.loads(params.request_state) if params.request_state else {"round": 0, "answers": {}}
    if params.request_state:
        given = params.input_responses or {}
        asked = rounds[state["round"] - 1]
        if given.keys() != asked.keys():
            raise MCPError(types.INVALID_PARAMS, f"expected answers to {sorted(asked)}, got {sorted(given)}")
        for key, answer in given.items():
            state["answers"][key] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    if state["round"] == len(rounds):
        return said(json.dumps(state["answers"]))
    questions = rounds[state["round"]]
    state["round"] += 1
    return types.InputRequiredResult(input_requests=questions or None, request_state=json.dumps(state))


def said(text: str, **more: Any) -> types.CallToolResult:
    """Give a text as a result."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], **more)


async def echo(context: Any, arguments: dict[str, Any]) -> Any:
    """Repeat what was said, later."""
    await anyio.sleep(arguments.get("delay_s", 0))
    return said(f"you said {arguments['say']}")


async def weather(context: Any, arguments: dict[str, Any]) -> Any:
    """Give structured content."""
    return said('{"degrees": 21}', structured_content={"degrees": 21})


async def failing(context: Any, arguments: dict[str, Any]) -> Any:
    """Fail in the way that a model sees."""
    return said("it broke", is_error=True)


async def slow(context: Any, arguments: dict[str, Any]) -> Any:
    """Report progress, step by step."""
    try:
        for step in range(arguments["steps"]):
            await context.session.report_progress(step + 1, arguments["steps"], f"step {step + 1}")
            await anyio.sleep(0.02)
    except anyio.get_cancelled_exc_class():
        saw["cancelled"] += 1
        raise
    return said("done")


async def logs(context: Any, arguments: dict[str, Any]) -> Any:
    """Log a message of each of four levels."""
    for level in ("debug", "warning", "error", "emergency"):
        await context.session.send_log_message(level, {"at": level}, "peer")
    return said("logged")


async def touch(context: Any, arguments: dict[str, Any]) -> Any:
    """Say that a resource has changed."""
    await bus.publish(ResourceUpdated(uri=arguments["uri"]))
    return said("touched")


async def change_lists(context: Any, arguments: dict[str, Any]) -> Any:
    """Say that every list has changed."""
    for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
        await bus.publish(event)
    return said("changed")


async def server_saw(context: Any, arguments: dict[str, Any]) -> Any:
    """Tell what the server knows of its client."""
    declared = context.session.client_capabilities
    who = context.session.client_params
    told = {
        "capabilities": declared.model_dump(mode="json", by_alias=True, exclude_none=True) if declared else None,
        "client": who.client_info.name if who else None,
        "revision": context.protocol_version,
    }
    return said(json.dumps({**saw, **told}))


RUN: dict[str, Any] = {
    "echo": echo,
    "weather": weather,
    "failing": failing,
    "slow": slow,
    "logs": logs,
    "touch": touch,
    "change_lists": change_lists,
    "server_saw": server_saw,
}


async def list_resources(context: Any, params: Any) -> types.ListResourcesResult:
    """List resources page by page."""
    cursor = getattr(params, "cursor", None)
    if cursor not in PAGES:
        raise MCPError(types.INVALID_PARAMS, f"Unknown cursor: {cursor}")
    entries, following = PAGES[cursor]
    listed = [types.Resource(uri=uri, name=name, title=f"About {name}") for uri, name in entries]
    return types.ListResourcesResult(resources=listed, next_cursor=following)


async def list_templates(context: Any, params: Any) -> types.ListResourceTemplatesResult:
    """List one template."""
    template = types.ResourceTemplate(name="by-city", uri_template="weather://{city}")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context: Any, params: Any) -> Any:
    """Read the one document; a resource that is not there is a bad param in this revision."""
    if str(params.uri) != TEXT_URI:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": str(params.uri)})
    contents = types.TextResourceContents(uri=TEXT_URI, mime_type="text/plain", text="Once upon a time")
    return types.ReadResourceResult(contents=[contents])


async def list_prompts(context: Any, params: Any) -> types.ListPromptsResult:
    """List both prompts."""
    who = types.PromptArgument(name="who", required=True)
    return types.ListPromptsResult(
        prompts=[types.Prompt(name="greet", arguments=[who]), types.Prompt(name="gallery", description="It asks first")]
    )


async def get_prompt(context: Any, params: Any) -> Any:
    """Greet; the other prompt asks a question first."""
    if params.name == "gallery":
        answer = ask(params, [{"color": form("Which color?")}])
        if isinstance(answer, types.InputRequiredResult):
            return answer
        return prompt(answer.content[0].text)
    if params.name != "greet":
        raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
    return prompt(f"Hello {(params.arguments or {})['who']}")


def prompt(text: str) -> types.GetPromptResult:
    """Give a text as a prompt."""
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(messages=[message])


async def complete(context: Any, params: Any) -> types.CompleteResult:
    """Complete an argument."""
    return types.CompleteResult(completion=types.Completion(values=[f"{params.argument.value}-one"]))


async def set_level(context: Any, params: Any) -> types.EmptyResult:
    """Never called in this era; that it is there declares the capability."""
    return types.EmptyResult()


def speak_one_era() -> None:
    """Hand every client to the code for the per-request era, whatever it opens with."""

    async def serve_stream(server: Any, replayed: Any, write: Any, **options: Any) -> None:
        kept = {name: options[name] for name in ("lifespan_state", "raise_exceptions")}
        await runner._serve_modern_stream(server, replayed, write, **kept)

    async def serve_http(self: Any, scope: Any, receive: Any, send: Any) -> None:
        await handle_modern_request(
            self.app, self.security_settings, self.json_response, self._lifespan_state, scope, receive, send
        )

    runner._serve_legacy_stream = serve_stream  # type: ignore[assignment]
    StreamableHTTPSessionManager._handle_request = serve_http  # type: ignore[method-assign]


class Recording:
    """One direction of a pair of streams, noting what passes."""

    def __init__(self, stream: Any, label: str, sink: Any) -> None:
        self._stream, self._label, self._sink = stream, label, sink

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Any:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return self._note(await self._stream.__anext__())

    async def receive(self) -> Any:
        return self._note(await self._stream.receive())

    async def send(self, item: Any) -> None:
        await self._stream.send(self._note(item))

    def _note(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        if message is not None:
            frame = message.model_dump(mode="json", by_alias=True, exclude_unset=True)
            note(self._sink, {self._label: frame})
        return item


def note(sink: Any, entry: Any) -> None:
    """Write a line of the record."""
    sink.write(json.dumps(entry) + "\n")
    sink.flush()


def recording_app(app: Any, sink: Any) -> Any:
    """Note what is posted."""

    async def record(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        parts: list[bytes] = []

        async def receive_and_note() -> Any:
            message = await receive()
            if message["type"] == "http.request":
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
                    with contextlib.suppress(ValueError):
                        note(sink, {"got": json.loads(b"".join(parts)), "headers": headers})
            return message

        await app(scope, receive_and_note, send)

    return record


async def main(listen: bool, record: str | None) -> None:
    """Serve stdio until the client closes it, or whoever comes to the port."""
    server: Any = Server(
        "stateless",
        version="1.2.3",
        instructions="Be kind",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
        on_subscriptions_listen=ListenHandler(bus),
    )
    with open(record, "a", encoding="utf-8") if record else contextlib.nullcontext() as sink:
        if listen:
            await serve_network(server, sink)
            return
        async with stdio_server() as (read, write):
            if sink is not None:
                read, write = Recording(read, "got", sink), Recording(write, "sent", sink)
            await server.run(read, write, server.create_initialization_options())


async def serve_network(server: Any, sink: Any) -> None:
    """Serve `/mcp` on a free loopback port until the end; the first line on stdout is the address."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    app = server.streamable_http_app()
    config = uvicorn.Config(recording_app(app, sink) if sink is not None else app, log_level="error", lifespan="on")
    print(f"listening on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--listen", action="store_true")
    parser.add_argument("--both", action="store_true", help="speak both eras, as the release does by itself")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if not chosen.both:
        speak_one_era()
    anyio.run(main, chosen.listen, chosen.record)
