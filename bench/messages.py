"""The messages that are measured: response frames of 2025-11-25 as a talkative server sends them, as bytes.

Only data. The sizes are those that every figure of this project is about: do not change them lightly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Message:
    """One response frame and the request that it answers."""

    title: str
    method: str
    data: bytes


def rich_tool(number: int) -> dict[str, Any]:
    """Give a tool with every kind of field that a step can touch."""
    return {
        "name": f"tool_{number}",
        "title": f"Tool number {number}",
        "description": "Does one thing and says so in a sentence that is about as long as such sentences are.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where to look."},
                "limit": {"type": "integer", "minimum": 1},
            },
            "required": ["path"],
        },
        "outputSchema": {"type": "object", "properties": {"found": {"type": "boolean"}}},
        "annotations": {"title": f"Tool {number}", "readOnlyHint": True, "openWorldHint": False},
        "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png"}],
        "_meta": {"example.com/team": "search"},
    }


def plain_tool(number: int) -> dict[str, Any]:
    """Give a tool as small servers describe theirs: nothing in it differs between revisions."""
    return {
        "name": f"tool_{number}",
        "description": "Does one thing and says so in a sentence that is about as long as such sentences are.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }


def response(result: dict[str, Any]) -> bytes:
    """Wrap a result in a response frame."""
    return orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": result})


MESSAGES = (
    Message(
        "tools/list, 100 rich tools", "tools/list", response({"tools": [rich_tool(number) for number in range(100)]})
    ),
    Message(
        "tools/list, 100 plain tools", "tools/list", response({"tools": [plain_tool(number) for number in range(100)]})
    ),
    Message("tools/call, one text", "tools/call", response({"content": [{"type": "text", "text": "42"}]})),
    Message(
        "resources/read, 3 of 1 kB",
        "resources/read",
        response(
            {
                "contents": [
                    {"uri": f"file:///notes/{number}.txt", "mimeType": "text/plain", "text": "note " * 200}
                    for number in range(3)
                ]
            }
        ),
    ),
)
