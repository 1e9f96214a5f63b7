"""The tasks extension under release 2.3: `python tasks_newer.py --serve [--listen]`, or a visit to a server.

The SDK has the room for an extension, and this is the least of one. The server has one tool that becomes a task and
asks in the middle of it, and one that answers at once. The visit calls `report` and `greet`, and prints what it saw as
JSON. Imports nothing of Dragoman.
"""

from __future__ import annotations

import argparse
import json
import uuid
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict
from stateless import form, said, serve_network, speak_one_era

REVISION = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
LIMIT_S = 30
WHEN = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": None}


class Created(types.Result):
    """The answer to a call that has become a task."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"


class Open(types.Result):
    """Any result of the extension."""

    model_config = ConfigDict(extra="allow")


class About(types.RequestParams):
    """What a request about a task says."""

    model_config = ConfigDict(extra="allow")
    task_id: str


# The server

answers: dict[str, Any] = {}


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
    """List both tools."""
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in ("report", "echo")]
    )


async def call_tool(context: Any, params: Any) -> Any:
    """Answer at once, or with a task, where the client takes tasks."""
    if params.name == "echo":
        return said("at once")
    declared = context.session.client_capabilities
    if TASKS not in (declared.extensions or {}):
        required = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
        raise MCPError(-32021, "Missing required client capability", required)
    task_id = uuid.uuid4().hex
    answers[task_id] = None
    return Created.model_validate({"taskId": task_id, "status": "working", **WHEN, "pollIntervalMs": 20})


async def get_task(context: Any, params: Any) -> Any:
    """Ask, until that is answered."""
    task = {"resultType": "complete", "taskId": params.task_id, **WHEN, "pollIntervalMs": 20}
    answer = answers[params.task_id]
    if answer is None:
        asked = {"who": form("Who?").model_dump(mode="json", by_alias=True, exclude_none=True)}
        return Open.model_validate({**task, "status": "input_required", "inputRequests": asked})
    text = f"Hello {answer['content']['name']}" if answer["action"] == "accept" else answer["action"]
    result = said(text).model_dump(mode="json", by_alias=True, exclude_none=True)
    return Open.model_validate({**task, "status": "completed", "result": result})


async def update_task(context: Any, params: Any) -> Any:
    """Take the answer."""
    answers[params.task_id] = params.model_extra["inputResponses"]["who"]
    return Open.model_validate({"resultType": "complete"})


async def serve(listen: bool) -> None:
    """Serve until the client closes, or for ever."""
    server: Any = Server("newer", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    server.extensions = {TASKS: {}}
    server.add_request_handler("tasks/get", About, get_task)
    server.add_request_handler("tasks/update", About, update_task)
    speak_one_era()
    if listen:
        await serve_network(server, None)
        return
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


# The client


class AboutTask(types.Request[dict[str, Any], str]):
    """A request about a task."""

    name_param: ClassVar[str | None] = "taskId"


class Tasks(ClientExtension):
    """Follows a task to its end, and notes what it saw."""

    identifier = TASKS

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Take tasks as answers to calls."""
        return [ResultClaim(result_type="task", model=Created, resolve=self.follow)]

    async def follow(self, created: Created, context: Any) -> types.CallToolResult:
        """Ask for the task until it has ended; answer what it asks."""
        task_id = (created.model_extra or {})["taskId"]
        self.seen.append("task")
        while True:
            task = await self.ask(context, "tasks/get", taskId=task_id)
            if task["status"] == "completed":
                return types.CallToolResult.model_validate(task["result"])
            if task["status"] == "input_required":
                asked = task["inputRequests"]
                self.seen += [question["params"]["message"] for question in asked.values()]
                given = {key: {"action": "accept", "content": {"name": "Ada"}} for key in asked}
                await self.ask(context, "tasks/update", taskId=task_id, inputResponses=given)
            await anyio.sleep(0.02)

    async def ask(self, context: Any, method: str, **params: Any) -> dict[str, Any]:
        """Send a request about a task."""
        answer = await context.session.send_request(AboutTask(method=method, params=params), Open)
        return dict(answer.model_extra or {})


async def visit(url: str | None, command: list[str], prefix: str) -> None:
    """Call both tools, with and without the extension, and print what came of it."""
    asked: list[str] = []

    async def on_elicitation(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Eve"})

    report: dict[str, Any] = {}
    for label, extension in (("with", Tasks()), ("without", None)):
        server = url or StdioServerParameters(command=command[0], args=command[1:])
        extensions = [extension] if extension is not None else []
        async with Client(server, mode=REVISION, elicitation_callback=on_elicitation, extensions=extensions) as client:
            with anyio.fail_after(LIMIT_S):
                tools = [f"{prefix}{name}" for name in ("report", "greet")]
                called = [(await client.call_tool(tool, {})).content[0].text for tool in tools]
        report[label] = {"called": called, "seen": extension.seen if extension is not None else None}
    print(json.dumps({**report, "asked": asked}), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--listen", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--prefix", default="", help="what a router puts before the names of tools")
    parser.add_argument("command", nargs="*")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    anyio.run(serve, chosen.listen) if chosen.serve else anyio.run(visit, chosen.url, chosen.command, chosen.prefix)
