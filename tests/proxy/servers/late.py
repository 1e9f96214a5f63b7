"""A server with a handshake that asks about a call which it has answered: `begin` ends at once, and while somebody
calls `ask` it puts a question about what was begun. `ask` answers with what came of that. No dependencies.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def say(frame: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)


def answer(key: Any, result: Any) -> None:
    say({"id": key, "result": result})


def call(key: Any, name: str) -> None:
    if name == "ask":
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        say({"method": "notifications/message", "params": {"level": "info", "data": "about what was begun"}})
        question = {"message": "Remove what was begun?", "requestedSchema": schema}
        say({"id": "late", "method": "elicitation/create", "params": question})
        ASKED.append(key)
    else:
        answer(key, {"content": [{"type": "text", "text": "begun"}]})


ASKED: list[Any] = []
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("begin", "ask")]

for line in sys.stdin:
    frame = json.loads(line)
    match frame.get("method"):
        case "initialize":
            revision = frame["params"]["protocolVersion"]
            about = {"capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "late", "version": "1"}}
            answer(frame["id"], {"protocolVersion": revision, **about})
        case "tools/list":
            answer(frame["id"], {"tools": TOOLS})
        case "tools/call":
            call(frame["id"], frame["params"]["name"])
        case None if frame.get("id") == "late":
            came = "refused" if "error" in frame else frame["result"]["action"]
            answer(ASKED.pop(), {"content": [{"type": "text", "text": came}]})
        case str() if "id" in frame:
            say({"id": frame["id"], "error": {"code": -32601, "message": "there is no such method"}})
