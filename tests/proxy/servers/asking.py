"""A server of 2025-11-25 that asks: `greet` during its call, `report`, which runs as a task only, during its task."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.server import Context, Server
from dragoman.transports.stdio import take_standard_streams

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
TOOLS = [
    {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "report", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
]
TASKS = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
WHEN = "2026-01-01T00:00:00Z"
TASK = {"taskId": "t", "status": "working", "createdAt": WHEN, "lastUpdatedAt": WHEN, "ttl": None}
RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}


async def greet(context: Context, **more: Any) -> dict[str, Any]:
    """Ask for a name."""
    question = {"message": "Who?", "requestedSchema": SCHEMA, **more}
    answer = await context.ask({"method": "elicitation/create", "params": question}, anyway=True)
    return {"content": [{"type": "text", "text": f"Hello {answer['content']['name']}"}]}


async def call(params: dict[str, Any], context: Context) -> dict[str, Any]:
    return {"task": TASK} if "task" in params else await greet(context)


server = Server("asking", "1", revision="2025-11-25", plain=True, declares=TASKS)
server.on("tools/list")(lambda params, context: {"tools": TOOLS})
server.on("tools/call")(call)
server.on("tasks/result")(lambda params, context: greet(context, _meta=RELATED))
asyncio.run(server.serve_directly(take_standard_streams()))
