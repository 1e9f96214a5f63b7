"""What both clients ask of the conformance suite's servers: every tool that is listed, every resource, every prompt.

Lives here: which arguments a tool is called with. Not here: an SDK; each client has one of its own. Runs in the
environments of both; imports nothing of Dragoman.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

EXAMPLES: dict[str, Any] = {"number": 2, "integer": 2, "string": "text", "boolean": True, "array": [], "object": {}}
Call = tuple[str, dict[str, Any]]


def calls_for(tools: Sequence[tuple[str, dict[str, Any]]]) -> list[Call]:
    """Return the name and the arguments of each call: those that the suite wants to see, or one for every tool.

    Args:
        tools: Name and input schema of each that was listed.
    """
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if "toolCalls" in context:
        return [(call["name"], call["arguments"]) for call in context["toolCalls"]]
    return [(name, _arguments_for(schema, tools)) for name, schema in tools]


def _arguments_for(schema: dict[str, Any], tools: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    found = {name: EXAMPLES.get(field.get("type"), "text") for name, field in schema.get("properties", {}).items()}
    if "schema" in found:  # a tool that wants to be told what the client has read of another one
        found["schema"] = tools[0][1]
    return found


def defaults_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a form: the default of every field that has one."""
    return {name: field["default"] for name, field in schema.get("properties", {}).items() if "default" in field}
