"""A server without a handshake that has what the conformance suite asks for: `python modern_server.py [stdio]`.

Without an argument it serves Streamable HTTP on a free loopback port and prints its URL. The names and texts of tools,
resources and prompts are the suite's; tools that it knows from revisions with a handshake ask here by their results.
Runs in the environment of release 2.x; imports nothing of Dragoman.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

sys.path.insert(0, str(Path(__file__).parents[1] / "peers"))

from stateless import serve_network, speak_one_era

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
KEY = secrets.token_bytes(32)

bus = InMemorySubscriptionBus()


def text(said: str) -> Any:
    return types.TextContent(type="text", text=said)


def image() -> Any:
    return types.ImageContent(type="image", data=PIXEL, mime_type="image/png")


def embedded(uri: str, mime_type: str, said: str) -> Any:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=said)
    return types.EmbeddedResource(type="resource", resource=contents)


def form(message: str, required: list[str] | None = None, **fields: Any) -> Any:
    schema = {"type": "object", "properties": fields, "required": list(fields) if required is None else required}
    params = types.ElicitRequestFormParams(mode="form", message=message, requested_schema=schema)
    return types.ElicitRequest(params=params)


def completion(prompt: str) -> Any:
    message = types.SamplingMessage(role="user", content=text(prompt))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=100))


STRING = {"type": "string"}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{place}", "title": f"{word} Option"} for place, word in enumerate(("First", "Second", "Third"), 1)
]
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
NAME = form("What is your name?", name=STRING)
CAPITAL = completion("What is the capital of France?")
ROUNDS: dict[str, list[dict[str, Any]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [{"capital_question": CAPITAL}],
    "test_input_required_result_list_roots": [{"client_roots": types.ListRootsRequest()}],
    "test_input_required_result_request_state": [{"confirm": form("Please confirm", ok={"type": "boolean"})}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": completion("Generate a greeting"), "client_roots": types.ListRootsRequest()}
    ],
    "test_input_required_result_multi_round": [
        {"step1": form("Step 1: What is your name?", name=STRING)},
        {"step2": form("Step 2: What is your favorite color?", color=STRING)},
    ],
    "test_input_required_result_tampered_state": [{"confirm": form("Please confirm", ok={"type": "boolean"})}],
    "test_input_required_result_capabilities": [{"greeting": CAPITAL}],
    "test_streaming_elicitation": [{"user_name": NAME}],
    # Those of the revisions with a handshake, asked by results.
    "test_sampling": [{"model": completion("Test prompt for sampling")}],
    "test_elicitation": [{"user": form("Please provide your information", username=STRING, email=STRING)}],
    "test_elicitation_sep1034_defaults": [{"user": form("Who are you?", [], **DEFAULTS)}],
    "test_elicitation_sep1330_enums": [{"user": form("Which?", [], **ENUMS)}],
}
"""What each tool asks, round by round."""

STATELESS = {"test_input_required_result_elicitation"}
"""Whose rounds are told by the answers alone: the suite answers before it was asked."""

SAID: dict[str, list[Any]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image()],
    "test_audio_content": [types.AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")],
    "test_embedded_resource": [
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
}
TEXTS = {"test://static-text": "This is the content of the static text resource.", "test://watched-resource": "watched"}


def seal(state: dict[str, Any]) -> str:
    """Write a state that nobody can change."""
    body = json.dumps(state)
    return f"{hmac.new(KEY, body.encode(), hashlib.sha256).hexdigest()}.{body}"


def unseal(said: str) -> dict[str, Any]:
    """Read it again."""
    mark, _, body = said.partition(".")
    if not hmac.compare_digest(mark, hmac.new(KEY, body.encode(), hashlib.sha256).hexdigest()):
        raise MCPError(types.INVALID_PARAMS, "the state was changed")
    state: dict[str, Any] = json.loads(body)
    return state


def ask(params: Any, name: str, rounds: list[dict[str, Any]]) -> Any:
    """Go on asking; give None once there is nothing left to ask."""
    given = params.input_responses or {}
    if name in STATELESS:
        state = {"round": 1 if rounds[0].keys() <= given.keys() else 0}
    else:
        state = unseal(params.request_state) if params.request_state else {"round": 0}
        if state["round"] and not rounds[state["round"] - 1].keys() <= given.keys():
            state["round"] -= 1  # what was not answered is asked again
    if state["round"] >= len(rounds):
        return None
    questions, state["round"] = rounds[state["round"]], state["round"] + 1
    state_text = None if name in STATELESS else seal(state)
    return types.InputRequiredResult(input_requests=questions, request_state=state_text)


async def call_tool(context: Any, params: Any) -> Any:
    """Run a tool."""
    name = params.name
    if name in ROUNDS:
        asked = ask(params, name, ROUNDS[name])
        return asked or types.CallToolResult(content=[text(f"state-ok {dumped(params.input_responses)}")])
    if name in SAID:
        return types.CallToolResult(content=SAID[name])
    if name not in RUN:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
    return await RUN[name](context)


def dumped(answers: Any) -> str:
    """Give answers as text."""
    found = {key: answer.model_dump(mode="json", by_alias=True, exclude_none=True) for key, answer in answers.items()}
    return json.dumps(found)


async def fail(context: Any) -> Any:
    """Fail in the way that a model sees."""
    said = [text("This tool intentionally returns an error for testing")]
    return types.CallToolResult(content=said, is_error=True)


async def progress(context: Any) -> Any:
    """Tell progress three times."""
    for step in (0, 50, 100):
        await context.session.report_progress(step, 100)
        await anyio.sleep(0.05)
    return types.CallToolResult(content=[text("Progressed")])


async def log(context: Any) -> Any:
    """Log three lines."""
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", line, "conformance")
        await anyio.sleep(0.05)
    return types.CallToolResult(content=[text("Logged three lines")])


async def need_sampling(context: Any) -> Any:
    """Insist on a capability."""
    declared = context.session.client_capabilities
    if declared is None or declared.sampling is None:
        missing = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(-32021, "This tool needs the capability sampling", missing)
    return types.CallToolResult(content=[text("It is there")])


async def change_tools(context: Any) -> Any:
    """Say that the tools have changed."""
    await bus.publish(ToolsListChanged())
    return types.CallToolResult(content=[text("changed")])


async def change_prompts(context: Any) -> Any:
    """Say that the prompts have changed."""
    await bus.publish(PromptsListChanged())
    return types.CallToolResult(content=[text("changed")])


RUN: dict[str, Any] = {
    "test_error_handling": fail,
    "test_tool_with_progress": progress,
    "test_tool_with_logging": log,
    "test_logging_tool": log,
    "test_missing_capability": need_sampling,
    "test_trigger_tool_change": change_tools,
    "test_trigger_prompt_change": change_prompts,
}
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": STRING, "city": STRING}}},
    "properties": {"name": STRING, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}
ARGUMENTS = {"test_sampling": {"prompt": STRING}, "test_elicitation": {"message": STRING}}


async def list_tools(context: Any, params: Any) -> Any:
    """List the tools."""
    tools = [
        types.Tool(
            name=name,
            description=name.replace("_", " "),
            input_schema={"type": "object", "properties": ARGUMENTS.get(name, {})},
        )
        for name in sorted({*ROUNDS, *SAID, *RUN})
    ]
    tools.append(types.Tool(name="json_schema_2020_12_tool", description="Rich", input_schema=SCHEMA))
    return types.ListToolsResult(tools=tools)


async def list_resources(context: Any, params: Any) -> Any:
    """List the resources."""
    listed = [types.Resource(uri=uri, name=uri[7:], mime_type="text/plain") for uri in TEXTS]
    listed.append(types.Resource(uri="test://static-binary", name="static-binary", mime_type="image/png"))
    return types.ListResourcesResult(resources=listed)


async def list_templates(context: Any, params: Any) -> Any:
    """List the template."""
    template = types.ResourceTemplate(name="template", uri_template="test://template/{id}/data")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context: Any, params: Any) -> Any:
    """Read a resource."""
    uri = str(params.uri)
    if uri in TEXTS:
        found: Any = types.TextResourceContents(uri=uri, mime_type="text/plain", text=TEXTS[uri])
    elif uri == "test://static-binary":
        found = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        about = uri.split("/")[3]
        data = json.dumps({"id": about, "templateTest": True, "data": f"Data for ID: {about}"})
        found = types.TextResourceContents(uri=uri, mime_type="application/json", text=data)
    else:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
    return types.ReadResourceResult(contents=[found])


PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_prompts(context: Any, params: Any) -> Any:
    """List the prompts."""
    listed = [
        types.Prompt(
            name=name,
            description=name.replace("_", " "),
            arguments=[types.PromptArgument(name=argument, required=True) for argument in arguments],
        )
        for name, arguments in PROMPTS.items()
    ]
    return types.ListPromptsResult(prompts=listed)


async def get_prompt(context: Any, params: Any) -> Any:
    """Give a prompt, or ask first."""
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            said = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            said = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            said = [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            said = [image(), text("Please analyze the image above.")]
        case "test_input_required_result_prompt":
            question = form("What context should the prompt use?", context=STRING)
            asked = ask(params, params.name, [{"user_context": question}])
            if asked is not None:
                return asked
            said = [text(f"Context: {dumped(params.input_responses)}")]
        case name:
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {name}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content) for content in said])


async def complete(context: Any, params: Any) -> Any:
    """Complete anything."""
    values = ["paris", "park", "party"]
    return types.CompleteResult(completion=types.Completion(values=values, total=150, has_more=False))


async def set_level(context: Any, params: Any) -> Any:
    """Never called in this era; that it is there declares the capability."""
    return types.EmptyResult()


async def main(on_pipes: bool) -> None:
    """Serve."""
    server: Any = Server(
        "conformance",
        version="1.0.0",
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
    if not on_pipes:
        await serve_network(server, None)
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    speak_one_era()
    anyio.run(main, sys.argv[1:] == ["stdio"])
