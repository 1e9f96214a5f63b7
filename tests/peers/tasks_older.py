"""Tasks of 2025-11-25 as release 1.30 has them: `python tasks_older.py --serve [--listen]`, or a visit to a server.

The server has one tool that runs as a task only and asks in the middle of it, and one that asks during its call. The
visit calls `report` as a task, waits for its result, and prints what it saw as JSON. Imports nothing of Dragoman.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import anyio
import sdk
import wires
from mcp import ClientSession, types
from mcp.server.lowlevel import Server
from sdk import dump

LIMIT_S = 30
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}

server: Any = Server("older", version="1")


@server.list_tools()
async def list_tools() -> Any:
    """List both tools."""
    required = types.ToolExecution(taskSupport="required")
    return [
        types.Tool(name="report", inputSchema={"type": "object"}, execution=required),
        types.Tool(name="greet", inputSchema={"type": "object"}),
    ]


@server.call_tool(validate_input=False)
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    """Ask for a name, and use it."""
    context = server.request_context
    if name == "greet":
        answer = await context.session.elicit(
            message="Who?", requestedSchema=FORM, related_request_id=context.request_id
        )
        return said(answer)

    async def work(task: Any) -> Any:
        await task.update_status("about to ask")
        return said(await task.elicit(message="Who?", requestedSchema=FORM))

    context.experimental.validate_task_mode("required")
    return await context.experimental.run_task(work)


def said(answer: Any) -> Any:
    """Greet whoever was named."""
    text = f"Hello {answer.content['name']}" if answer.action == "accept" else answer.action
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def serve(listen: bool) -> None:
    """Serve until the client closes, or for ever."""
    server.experimental.enable_tasks()
    await (wires.serve_network(server) if listen else wires.serve_stdio(server))


async def visit(over: str, target: list[str], prefix: str) -> None:
    """Call the tool as a task, and print what comes of it."""
    asked: list[Any] = []

    async def on_elicitation(context: Any, params: Any) -> Any:
        asked.append(dump(params))
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with (
        wires.connect(over, target) as (read, write),
        ClientSession(read, write, elicitation_callback=on_elicitation) as session,
    ):
        with anyio.fail_after(LIMIT_S):
            opened = await session.initialize()
            listed = await session.list_tools()
            created = await session.experimental.call_tool_as_task(f"{prefix}report", {})
            task_id = created.task.taskId
            result = await session.experimental.get_task_result(task_id, types.CallToolResult)
            ended = await session.experimental.get_task(task_id)
            quick = await session.experimental.call_tool_as_task(f"{prefix}echo", {})
            at_once = await session.experimental.get_task_result(quick.task.taskId, types.CallToolResult)
    report = {
        "tasks": dump(opened.capabilities).get("tasks"),
        "support": {tool.name: dump(tool).get("execution") for tool in listed.tools},
        "created": created.task.status,
        "asked": asked,
        "result": dump(result),
        "ended": ended.status,
        "quick": quick.task.status,
        "at once": dump(at_once)["content"][0]["text"],
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--listen", action="store_true")
    parser.add_argument("--over", choices=["stdio", "http"], default="stdio")
    parser.add_argument("--prefix", default="", help="what a router puts before the names of tools")
    parser.add_argument("target", nargs="*")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.serve:
        sdk.make_server_strict("listed")
        anyio.run(serve, chosen.listen)
    else:
        sdk.make_client_strict()
        anyio.run(visit, chosen.over, chosen.target, chosen.prefix)
