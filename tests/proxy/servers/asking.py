"""A server of 2025-11-25 that asks: `greet` during its call, `report`, which runs as a task only, during its task."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
TOOLS = [
    {"name": "greet", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "report", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
]
CAN = {"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
WHEN = "2026-01-01T00:00:00Z"
TASK = {"taskId": "t", "status": "working", "createdAt": WHEN, "lastUpdatedAt": WHEN, "ttl": None}
RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}


def say(**frame: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


def ask(key: Any, **more: Any) -> None:
    """Ask for a name; the answer is that to the request with this id."""
    params = {"message": "Who?", "requestedSchema": SCHEMA, **more}
    say(id=f"ask {json.dumps(key)}", method="elicitation/create", params=params)


def answer(frame: dict[str, Any]) -> None:
    key, params = frame["id"], frame.get("params", {})
    match frame["method"]:
        case "initialize":
            info = {"name": "asking", "version": "1"}
            say(id=key, result={"protocolVersion": "2025-11-25", "capabilities": CAN, "serverInfo": info})
        case "tools/list":
            say(id=key, result={"tools": TOOLS})
        case "tools/call" if params["name"] == "greet":
            ask(key)
        case "tools/call" if "task" in params:
            say(id=key, result={"task": TASK})
        case "tasks/result":
            ask(key, _meta=RELATED)
        case method:
            say(id=key, error={"code": -32601, "message": f"no {method}"})


def main() -> None:
    for line in sys.stdin:
        frame = json.loads(line)
        if "method" in frame and "id" in frame:
            answer(frame)
        elif "result" in frame:
            text = f"Hello {frame['result']['content']['name']}"
            say(id=json.loads(frame["id"].removeprefix("ask ")), result={"content": [{"type": "text", "text": text}]})


main()
