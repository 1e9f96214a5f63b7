"""Are recorded frames valid in their receiver's own schema? An independent judge of what crossed.

Reads the canonical schemas of `schema/` with an independent validator; knows nothing of Dragoman's models. Called by
`test_peers.py` with the records that peers make of their frames.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

SCHEMAS: Final = Path(__file__).parents[2] / "schema"
RESULTS: Final = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "ping": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "logging/setLevel": "EmptyResult",
    "sampling/createMessage": "CreateMessageResult",
    "roots/list": "ListRootsResult",
    "elicitation/create": "ElicitResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}


def complaints(record: list[dict[str, Any]], revision: str) -> Iterator[str]:
    """Yield what is wrong with each frame that the recording peer got, as `subject at pointer: message`."""
    asked: dict[Any, str] = {}
    for entry in record:
        sent, got = entry.get("sent"), entry.get("got")
        if sent is not None and "id" in sent and "method" in sent:
            asked[sent["id"]] = sent["method"]
        if got is not None:
            yield from _complaints_about(got, asked, revision)


def _complaints_about(frame: dict[str, Any], asked: dict[Any, str], revision: str) -> Iterator[str]:
    if "unreadable" in frame:
        yield f"not a frame: {frame['unreadable']}"
    elif "method" in frame:
        yield from _judge(frame, _definition_of(frame["method"], revision), revision, frame["method"])
    elif frame.get("id") not in asked:
        yield f"answer to nothing asked: {json.dumps(frame)}"
    elif "result" in frame:
        method = asked.pop(frame["id"])
        wants_input = frame["result"].get("resultType") == "input_required"
        definition = "InputRequiredResult" if wants_input else RESULTS[method]
        yield from _judge(frame["result"], definition, revision, f"result of {method}")
    else:
        method = asked.pop(frame["id"])
        envelope = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in _definitions(revision) else "JSONRPCError"
        yield from _judge(frame, envelope, revision, f"error of {method}")


def _judge(value: Any, definition: str | None, revision: str, subject: str) -> Iterator[str]:
    if definition is None:
        yield f"{subject}: {revision} has no such method"
        return
    for error in _validator(definition, revision).iter_errors(value):
        yield f"{subject} at /{'/'.join(str(key) for key in error.absolute_path)}: {error.message[:300]}"


@functools.cache
def _definitions(revision: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / revision / "schema.json").read_text("utf-8"))
    definitions: dict[str, Any] = schema["$defs"]
    return definitions


@functools.cache
def _validator(definition: str, revision: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": _definitions(revision)})


@functools.cache
def _definition_of(method: str, revision: str) -> str | None:
    for name, definition in _definitions(revision).items():
        if definition.get("properties", {}).get("method", {}).get("const") == method:
            return name
    return None
