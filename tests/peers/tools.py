"""The tools that the peer server offers, one function each.

Lives here: what a tool answers, and since which revision a server can have it. Not here: the other methods
(`server.py`) and release differences (`sdk.py`). A tool returns its content, or content and structured content.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
from sdk import REVISION, McpError, ask, dump, make, speaks, tell, types

PIXEL = "iVBORw0KGgo="
SILENCE = "UklGRg=="
TEXT_URI = "file:///home/user/document.txt"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
TEXT_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


@dataclass
class Memory:
    """What this server has seen of its client; `server_saw` shows it."""

    level: str = "debug"
    subscribed: set[str] = field(default_factory=set)
    cancelled: list[str] = field(default_factory=list)
    roots_changes: int = 0


@dataclass(frozen=True)
class Call:
    """One tool call: what the client sent and where to answer."""

    arguments: dict[str, Any]
    session: Any
    meta: Any
    memory: Memory


Run = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True)
class Tool:
    """A tool with its listing in the newest vocabulary."""

    name: str
    run: Run
    listing: dict[str, Any]


TOOLS: dict[str, Tool] = {}


def tool(since: str = "2024-11-05", **listing: Any) -> Callable[[Run], Run]:
    """Offer the decorated function as a tool, if the native revision is `since` or later."""

    def register(run: Run) -> Run:
        if speaks(since):
            listing.setdefault("inputSchema", {"type": "object"})
            TOOLS[run.__name__] = Tool(run.__name__, run, listing)
        return run

    return register


def text(value: str, **more: Any) -> Any:
    """Return text content."""
    return make("TextContent", type="text", text=value, **more)


def audio(**more: Any) -> Any:
    """Return audio content."""
    return make("AudioContent", type="audio", data=SILENCE, mimeType="audio/wav", **more)


@tool(
    title="Echo, politely",
    description="Answers with its argument, after a delay",
    inputSchema={
        "$schema": DIALECT,
        "type": "object",
        "properties": {"say": {"type": "string"}, "delay_s": {"type": "number"}},
        "required": ["say"],
    },
    annotations=make("ToolAnnotations", readOnlyHint=True) if speaks("2025-03-26") else None,
    icons=[make("Icon", src="https://example.com/echo.png", sizes=["48x48"])] if speaks("2025-11-25") else None,
    _meta={"example.com/origin": "peers"},
)
async def echo(call: Call) -> Any:
    """Text with annotations, where revisions differ in what an annotation may hold."""
    await anyio.sleep(call.arguments.get("delay_s", 0))
    annotations: dict[str, Any] = {"audience": ["user"], "priority": 0.5}
    if speaks("2025-06-18"):
        # The revision has it, the SDK's class of that time does not.
        annotations["lastModified"] = "2025-06-18T00:00:00Z"
    return [text(call.arguments["say"], annotations=types.Annotations(**annotations))]


@tool(description="Answers with a picture")
async def image(call: Call) -> Any:
    """Image content is in every revision."""
    return [make("ImageContent", type="image", data=PIXEL, mimeType="image/png")]


@tool("2025-03-26", description="Answers with a sound")
async def sound(call: Call) -> Any:
    """Audio content came with 2025-03-26."""
    return [text("listen:"), audio()]


@tool(
    "2025-06-18",
    description="Answers with structured content and the same as text",
    outputSchema={
        "$schema": DIALECT,
        "type": "object",
        "properties": {"celsius": {"type": "number"}},
        "required": ["celsius"],
    },
)
async def weather(call: Call) -> Any:
    """Structured content came with 2025-06-18; a polite server repeats it as text."""
    return [text('{"celsius": 21.5}')], {"celsius": 21.5}


@tool("2025-06-18", description="Answers with structured content only", outputSchema={"type": "object"})
async def bare_structure(call: Call) -> Any:
    """A server that does not repeat structured content as text."""
    return [], {"celsius": 21.5, "sky": ["blue", None]}


@tool("2025-06-18", description="Answers with links to resources")
async def links(call: Call) -> Any:
    """Resource links came with 2025-06-18."""
    named = {"type": "resource_link", "uri": TEXT_URI, "mimeType": "text/plain"}
    return [
        make("ResourceLink", name="document", title="The document", description="Worth reading", **named),
        make("ResourceLink", name="document", **named),
    ]


@tool(description="Answers with an embedded resource")
async def embedded(call: Call) -> Any:
    """Embedded resources are in every revision."""
    inner = make("TextResourceContents", uri=TEXT_URI, mimeType="text/plain", text="Once upon a time")
    return [make("EmbeddedResource", type="resource", resource=inner)]


@tool(description="Fails")
async def failing(call: Call) -> Any:
    """An error *result*, which is not a JSON-RPC error."""
    raise RuntimeError("the tool broke")


@tool(description="Counts slowly, telling progress")
async def slow(call: Call) -> Any:
    """Progress for the token given, and notice of cancellation."""
    steps = int(call.arguments["steps"])
    token = getattr(call.meta, "progressToken", None)
    try:
        for step in range(1, steps + 1):
            await anyio.sleep(0.02)
            if token is not None:
                params = {"progressToken": token, "progress": step, "total": steps}
                if speaks("2025-03-26"):
                    params["message"] = f"step {step}"
                await tell(call.session, "notifications/progress", params)
    except anyio.get_cancelled_exc_class():
        call.memory.cancelled.append("slow")
        raise
    return [text(f"counted to {steps}")]


@tool(description="Logs one line a level, as far as the level set allows")
async def logs(call: Call) -> Any:
    """Log messages at and above the level that the client has set."""
    for level in TEXT_LEVELS[TEXT_LEVELS.index(call.memory.level) :]:
        params = {"level": level, "logger": "peer", "data": {"line": level}}
        await tell(call.session, "notifications/message", params)
    return [text("logged")]


@tool(description="Touches a resource")
async def touch(call: Call) -> Any:
    """An update notification, if the client has subscribed to the resource."""
    if call.arguments["uri"] in call.memory.subscribed:
        await tell(call.session, "notifications/resources/updated", {"uri": call.arguments["uri"]})
    return [text("touched")]


@tool(description="Announces that all lists have changed")
async def change_lists(call: Call) -> Any:
    """The three list-changed notifications of a server."""
    for kind in ("tools", "resources", "prompts"):
        await tell(call.session, f"notifications/{kind}/list_changed")
    return [text("announced")]


@tool(description="Pings the client")
async def ping_client(call: Call) -> Any:
    """A ping from the server's side."""
    await ask(call.session, "ping", None, "EmptyResult")
    return [text("pong")]


def asking(*kinds: tuple[str, str]) -> dict[str, Any]:
    """Return the input schema of a tool that asks back: its kinds of question as (name, first revision to have it)."""
    names = [name for name, since in kinds if speaks(since)]
    return {"type": "object", "properties": {"kind": {"type": "string", "enum": names}}, "required": ["kind"]}


@tool(description="Asks for the client's roots", inputSchema=asking(("all", "2024-11-05")))
async def ask_roots(call: Call) -> Any:
    """What the client has answered to roots/list, as JSON text."""
    return await _relay(call, "roots/list", None, "ListRootsResult")


@tool(
    description="Asks the client to sample",
    inputSchema=asking(
        ("text", "2024-11-05"),
        ("sing", "2024-11-05"),
        ("two_blocks", "2024-11-05"),
        ("sound", "2025-03-26"),
        ("blocks", "2025-11-25"),
        ("tools", "2025-11-25"),
    ),
)
async def ask_sampling(call: Call) -> Any:
    """What the client has answered to sampling/createMessage, as JSON text."""
    kind = call.arguments["kind"]
    contents = {
        "text": {"type": "text", "text": "hello"},
        "sing": {"type": "text", "text": "sing"},
        "two_blocks": {"type": "text", "text": "two blocks"},
        "tools": {"type": "text", "text": "add two numbers"},
        "sound": {"type": "audio", "data": SILENCE, "mimeType": "audio/wav"},
        "blocks": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    }
    params: dict[str, Any] = {
        "messages": [{"role": "user", "content": contents[kind]}],
        "maxTokens": 100,
        "systemPrompt": "Be brief",
        "temperature": 0.5,
        "stopSequences": ["END"],
        "modelPreferences": {"hints": [{"name": "small"}], "speedPriority": 1.0},
    }
    if kind == "tools":
        params["tools"] = [{"name": "add", "inputSchema": {"type": "object"}}]
    result = "CreateMessageResultWithTools" if speaks("2025-11-25") else "CreateMessageResult"
    return await _relay(call, "sampling/createMessage", params, result)


@tool(
    "2025-06-18",
    description="Asks the user",
    inputSchema=asking(
        ("form", "2025-06-18"),
        ("titled", "2025-06-18"),
        ("multi", "2025-11-25"),
        ("url", "2025-11-25"),
        ("three", "2025-06-18"),
        ("two", "2025-06-18"),
    ),
)
async def ask_user(call: Call) -> Any:
    """What the client has answered to elicitation/create, as JSON text. Asks without a look at the capabilities."""
    kind = call.arguments["kind"]
    titled: dict[str, Any] = {"enum": ["r", "b"], "enumNames": ["Red", "Blue"]}
    if speaks("2025-11-25"):
        titled = {"oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}]}
    fields = {
        "form": {"city": {"type": "string", "title": "City"}},
        "titled": {"color": {"type": "string", **titled}},
        "multi": {"colors": {"type": "array", "items": {"type": "string", "enum": ["r", "b"]}}},
        "url": {},
        "three": {"city": {"type": "string"}},
        "two": {"city": {"type": "string"}},
    }[kind]
    params: dict[str, Any] = {"message": "Please answer"}
    if kind == "url":
        params |= {"mode": "url", "url": "https://example.com/consent", "elicitationId": "e-1"}
    else:
        params["requestedSchema"] = {"type": "object", "properties": fields, "required": list(fields)}
        if speaks("2025-11-25"):
            params["mode"] = "form"
    asked = ("elicitation/create", params, "ElicitResult")
    if kind == "three":
        answers = [json.loads((await _relay(call, *asked))[0].text) for _ in range(3)]
        return [text(json.dumps(answers))]
    return await (_relay_two(call, asked) if kind == "two" else _relay(call, *asked))


@tool("2025-11-25", description="Needs the user to visit a page first")
async def gated(call: Call) -> Any:
    """The error that asks for a URL elicitation before the call can go on."""
    from mcp.shared.exceptions import UrlElicitationRequiredError

    params = {"message": "Sign in", "url": "https://example.com/login", "elicitationId": "e-2"}
    raise UrlElicitationRequiredError([types.ElicitRequestURLParams(mode="url", **params)])


@tool(
    "2025-11-25",
    description="Can only be called as a task",
    execution=make("ToolExecution", taskSupport="required") if speaks("2025-11-25") else None,
)
async def task_only(call: Call) -> Any:
    """Never called: clients of older revisions must not even see it."""
    raise RuntimeError("called without a task")


@tool(description="Tells what this server knows of its client")
async def server_saw(call: Call) -> Any:
    """The other side's view, which a client alone cannot report."""
    memory = call.memory
    seen = {
        "revision": REVISION,
        "initialize": dump(call.session.client_params),
        "level": memory.level,
        "subscribed": sorted(memory.subscribed),
        "cancelled": memory.cancelled,
        "roots_changes": memory.roots_changes,
    }
    return [text(json.dumps(seen))]


async def _relay(call: Call, method: str, params: dict[str, Any] | None, result: str) -> Any:
    try:
        answer = dump(await ask(call.session, method, params, result))
    except McpError as error:
        answer = {"refused": dump(error.error)}
    return [text(json.dumps(answer))]


async def _relay_two(call: Call, asked: Any) -> Any:
    """Ask this and for the roots, both at once."""
    answers: dict[str, Any] = {}

    async def relay(name: str, *question: Any) -> None:
        answers[name] = json.loads((await _relay(call, *question))[0].text)

    async with anyio.create_task_group() as group:
        group.start_soon(relay, "user", *asked)
        group.start_soon(relay, "roots", "roots/list", None, "ListRootsResult")
    return [text(json.dumps(answers))]
