"""A strict MCP server, the same program under four SDK releases: `python server.py [--reject HOW] [--record FILE]`.

It speaks only the native revision of the release it runs under, offers everything that this revision has, and uses
stdio, or with `--listen` a loopback port that it prints. HOW is what it does when asked for another revision: refuse
and list its own (`listed`), refuse without a list (`bare`), or do what the release does (`never`). Lives here:
resources, prompts, completion, logging and start-up; not here: the tools (`tools.py`), release differences (`sdk.py`)
and transports (`wires.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import warnings
from typing import Any

import anyio
import sdk
import wires
from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from sdk import make, speaks
from tools import PIXEL, TEXT_URI, TOOLS, Call, Memory, audio, text

RESOURCE_NOT_FOUND = -32002
PAGES: dict[str | None, tuple[list[tuple[str, str]], str | None]] = {
    None: ([(TEXT_URI, "document.txt"), ("https://example.com/api/resource", "api")], "page-2"),
    "page-2": ([("custom://unique-id-12345", "unique")], "page-3"),
    "page-3": ([("file:///home/user/pixel.png", "pixel.png")], None),
}
"""The resource list: cursor → (URI and name of each, next cursor)."""

CONTENTS: dict[str, dict[str, str]] = {
    TEXT_URI: {"mimeType": "text/plain", "text": "Once upon a time"},
    "https://example.com/api/resource": {"mimeType": "application/json", "text": "{}"},
    "custom://unique-id-12345": {"text": "unique"},
    "file:///home/user/pixel.png": {"mimeType": "image/png", "blob": PIXEL},
}

server: Any = Server("peer", version="1.2.3", instructions="Be kind")
memory = Memory()


def handles(request: str) -> Any:
    """Register the decorated function for `types.<request>`; it takes the request's params and returns the result."""

    def register(function: Any) -> Any:
        async def handler(message: Any) -> Any:
            return types.ServerResult(await function(message.params if message is not None else None))

        server.request_handlers[getattr(types, request)] = handler
        return function

    return register


@server.list_tools()
async def list_tools() -> Any:
    """List the tools that a server of this revision can have."""
    return [make("Tool", name=tool.name, **tool.listing) for tool in TOOLS.values()]


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    """Run a tool; the SDK makes an error result of an exception."""
    context = server.request_context
    return await TOOLS[name].run(Call(arguments, context.session, context.meta, memory))


def refuse_unknown_tools() -> None:
    """Answer a JSON-RPC error for a tool that does not exist; the SDK alone would answer an error result."""
    known = server.request_handlers[types.CallToolRequest]

    async def handler(request: Any) -> Any:
        if request.params.name not in TOOLS:
            raise sdk.refuse(sdk.INVALID_PARAMS, f"Unknown tool: {request.params.name}")
        return await known(request)

    server.request_handlers[types.CallToolRequest] = handler


@handles("ListResourcesRequest")
async def list_resources(params: Any) -> Any:
    """List resources page by page. Under release 1.6.0 always the first page: it never sees the cursor (its defect)."""
    cursor = getattr(params, "cursor", None)
    if cursor not in PAGES:
        raise sdk.refuse(sdk.INVALID_PARAMS, f"Unknown cursor: {cursor}")
    entries, next_cursor = PAGES[cursor]
    listed = [
        make("Resource", uri=uri, name=name, title=f"About {name}", size=7, _meta={"example.com/n": 1})
        for uri, name in entries
    ]
    return make("ListResourcesResult", resources=listed, nextCursor=next_cursor)


@handles("ReadResourceRequest")
async def read_resource(params: Any) -> Any:
    """Read text or blob; contents carry `_meta` where the revision has it."""
    uri = str(params.uri)
    if uri not in CONTENTS:
        raise sdk.refuse(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})
    kind = "BlobResourceContents" if "blob" in CONTENTS[uri] else "TextResourceContents"
    contents = make(kind, uri=params.uri, _meta={"example.com/n": 1}, **CONTENTS[uri])
    return types.ReadResourceResult(contents=[contents])


@server.list_resource_templates()
async def list_resource_templates() -> Any:
    """List one template."""
    return [make("ResourceTemplate", name="by-city", title="By city", uriTemplate="weather://{city}")]


@server.subscribe_resource()
async def subscribe(uri: Any) -> None:
    """Remember the subscription."""
    memory.subscribed.add(str(uri))


@server.unsubscribe_resource()
async def unsubscribe(uri: Any) -> None:
    """Forget the subscription."""
    memory.subscribed.discard(str(uri))


@server.list_prompts()
async def list_prompts() -> Any:
    """List the prompts; only a server that can ask the user has the one that does."""
    who = make("PromptArgument", name="who", title="Whom", description="Whom to greet", required=True)
    return [
        make("Prompt", name="greet", title="Greeting", description="Greets", arguments=[who]),
        make("Prompt", name="gallery", description="Shows every content type"),
        *([make("Prompt", name="survey", description="Asks first")] if speaks("2025-06-18") else []),
    ]


@server.get_prompt()
async def get_prompt(name: str, arguments: dict[str, str] | None) -> Any:
    """Return a greeting, one message for each content type of the revision, or what the user answered."""
    if name == "greet":
        return _prompt([text(f"Hello {(arguments or {})['who']}")])
    if name == "survey" and speaks("2025-06-18"):
        schema = {"type": "object", "properties": {"color": {"type": "string"}}}
        params = {"message": "Which?", "requestedSchema": schema}
        answer = await sdk.ask(server.request_context.session, "elicitation/create", params, "ElicitResult")
        return _prompt([text(json.dumps(sdk.dump(answer)))])
    if name != "gallery":
        raise sdk.refuse(sdk.INVALID_PARAMS, f"Unknown prompt: {name}")
    inner = make("TextResourceContents", uri=TEXT_URI, mimeType="text/plain", text="Once upon a time")
    contents = [
        make("ImageContent", type="image", data=PIXEL, mimeType="image/png"),
        make("EmbeddedResource", type="resource", resource=inner),
    ]
    if speaks("2025-03-26"):
        contents.append(audio())
    if speaks("2025-06-18"):
        contents.append(make("ResourceLink", type="resource_link", name="document", title="The document", uri=TEXT_URI))
    return _prompt(contents)


@handles("CompleteRequest")
async def complete(params: Any) -> Any:
    """Complete the argument; with a context that has reached this server, tell what was in it."""
    values = [f"{params.argument.value}-one", f"{params.argument.value}-two"]
    context = getattr(params, "context", None)
    if context is not None:
        values.append(f"context {sdk.dump(context)['arguments']}")
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), hasMore=False))


@server.set_logging_level()
async def set_level(level: str) -> None:
    """Remember the level that the client wants."""
    memory.level = level


async def roots_changed(_: Any) -> None:
    """Count the client's announcements."""
    memory.roots_changes += 1


def capabilities() -> Any:
    """Return what the handlers above amount to, with what the SDK does not find out by itself."""
    found = server.get_capabilities(NotificationOptions(True, True, True), {})
    found.resources.subscribe = True
    if speaks("2025-03-26"):
        # Release 1.9.4 does not know the capability that its own revision has.
        extra = {"completions": {}}
        found = types.ServerCapabilities(**{**found.model_dump(exclude_none=True), **extra})
    return found


def _prompt(contents: list[Any]) -> Any:
    messages = [types.PromptMessage(role="user", content=content) for content in contents]
    return types.GetPromptResult(description="A prompt", messages=messages)


async def main(listen: bool, record: str | None) -> None:
    """Serve stdio until the client closes it, or whoever comes to the port."""
    options = server.create_initialization_options()
    options.capabilities = capabilities()
    with open(record, "a", encoding="utf-8") if record else contextlib.nullcontext() as sink:
        run = server.run

        async def run_recorded(read: Any, write: Any, *_: Any, **more: Any) -> None:
            # Every transport of every release comes through here, each with options of its own.
            async with sdk.recorded((read, write), sink) as streams:
                await run(*streams, options, **more)

        server.run = run_recorded
        await (wires.serve_network(server) if listen else wires.serve_stdio(server))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reject", choices=["listed", "bare", "never"], default="listed")
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--listen", action="store_true")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.reject != "never":
        sdk.make_server_strict(chosen.reject)
    refuse_unknown_tools()
    server.notification_handlers[types.RootsListChangedNotification] = roots_changed
    anyio.run(main, chosen.listen, chosen.record)
