"""Which losses are cosmetic: what a person may miss, and nothing that a model or a program acts on."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import Translation, translate

ICONS = [{"src": "https://example.com/a.png"}]
TEXT = {"type": "text", "text": "hello"}
TOOL = {"name": "a", "inputSchema": {"type": "object"}}
HINTS = {"title": "A", "readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
"""What a tool without hints is taken for."""
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


def result(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": fields}


def down(frame: dict[str, Any], source: str, target: str, method: str) -> Translation:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, **frame} if "result" not in frame else frame
    return translate(request, source=source, target=target, method=method)


def tools(**fields: Any) -> dict[str, Any]:
    return result(tools=[{**TOOL, **fields}])


def form(**fields: Any) -> dict[str, Any]:
    return {"params": {**FORM, **fields}}


def sampled(content: Any, **fields: Any) -> dict[str, Any]:
    return {"params": {"maxTokens": 1, "messages": [{"role": "user", "content": content}], **fields}}


def opening(**capabilities: Any) -> dict[str, Any]:
    said = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c", "version": "1"}}
    return {"params": {**said, "capabilities": capabilities}}


CHOICE = {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}

COSMETIC = [
    ("tools/list", "2025-03-26", "2024-11-05", tools(annotations={"title": "A"})),
    ("tools/list", "2025-03-26", "2024-11-05", tools(annotations={"title": "A", "readOnlyHint": None})),
    ("tools/list", "2025-03-26", "2024-11-05", tools(annotations=HINTS)),
    ("tools/list", "2025-06-18", "2025-03-26", tools(title="A")),
    ("tools/list", "2025-06-18", "2024-11-05", tools(title="A")),
    ("tools/list", "2025-06-18", "2024-11-05", tools(title="A", annotations={"title": "B"})),
    ("tools/list", "2025-11-25", "2025-06-18", tools(icons=ICONS)),
    ("tools/list", "2025-11-25", "2024-11-05", tools(execution={"taskSupport": "forbidden"})),
    ("tools/list", "2025-11-25", "2026-07-28", tools(execution={"taskSupport": "forbidden"})),
    ("tools/list", "2026-07-28", "2024-11-05", tools(title="A", icons=ICONS)),
    ("tools/list", "2025-03-26", "2025-06-18", tools(title=5)),
    ("prompts/list", "2025-06-18", "2024-11-05", result(prompts=[{"name": "p", "title": "P"}])),
    (
        "prompts/list",
        "2025-06-18",
        "2024-11-05",
        result(prompts=[{"name": "p", "arguments": [{"name": "a", "title": "A"}]}]),
    ),
    (
        "resources/list",
        "2025-11-25",
        "2024-11-05",
        result(resources=[{"name": "r", "uri": "a:b", "title": "R", "icons": ICONS}]),
    ),
    (
        "resources/list",
        "2025-06-18",
        "2025-03-26",
        result(resources=[{"name": "r", "uri": "a:b", "annotations": {"lastModified": "2025-01-01T00:00:00Z"}}]),
    ),
    (
        "resources/read",
        "2025-06-18",
        "2025-03-26",
        result(contents=[{"uri": "a:b", "text": "", "name": "x", "title": "X"}]),
    ),
    (
        "completion/complete",
        "2025-06-18",
        "2025-03-26",
        {"params": {"ref": {"type": "ref/prompt", "name": "p", "title": "P"}, "argument": {"name": "a", "value": ""}}},
    ),
    ("elicitation/create", "2025-11-25", "2025-06-18", form(mode="form")),
    (
        "elicitation/create",
        "2025-11-25",
        "2025-06-18",
        form(
            requestedSchema={
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {},
            }
        ),
    ),
    (
        "elicitation/create",
        "2025-11-25",
        "2025-06-18",
        form(requestedSchema={"type": "object", "properties": {"a": CHOICE}}),
    ),
    ("initialize", "2025-11-25", "2025-06-18", opening(elicitation={"form": {}})),
    ("sampling/createMessage", "2025-11-25", "2025-06-18", sampled([TEXT, TEXT])),
    ("sampling/createMessage", "2025-11-25", "2025-06-18", sampled(TEXT, toolChoice={"mode": "auto"})),
    ("sampling/createMessage", "2025-11-25", "2025-06-18", result(role="assistant", model="m", content=[TEXT])),
    ("tools/list", "2026-07-28", "2025-11-25", result(tools=[], resultType="complete", ttlMs=5, cacheScope="public")),
    (
        "tools/call",
        "2026-07-28",
        "2025-11-25",
        result(
            content=[],
            resultType="complete",
            _meta={"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
        ),
    ),
]

GRAVE = [
    ("tools/list", "2025-03-26", "2024-11-05", tools(annotations={"title": "A", "destructiveHint": False})),
    ("tools/list", "2025-03-26", "2024-11-05", tools(annotations={**HINTS, "openWorldHint": False})),
    ("tools/list", "2025-06-18", "2025-03-26", tools(outputSchema={"type": "object"})),
    ("tools/list", "2025-11-25", "2025-06-18", tools(execution={"taskSupport": "optional"})),
    ("tools/list", "2025-11-25", "2025-06-18", tools(execution={"taskSupport": "required"})),
    ("tools/list", "2025-11-25", "2025-06-18", tools(execution={"taskSupport": "forbidden", "later": 1})),
    ("initialize", "2025-11-25", "2025-06-18", opening(elicitation={"form": {"later": True}})),
    ("sampling/createMessage", "2025-11-25", "2025-06-18", sampled(TEXT, toolChoice={"mode": "none"})),
    ("tools/call", "2025-06-18", "2025-03-26", result(content=[TEXT], structuredContent={"a": 1})),
    (
        "tools/call",
        "2025-03-26",
        "2024-11-05",
        result(content=[{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
    ),
    ("tools/call", "2025-06-18", "2025-03-26", result(content=[{"type": "resource_link", "name": "r", "uri": "a:b"}])),
    ("tools/call", "2025-11-25", "2025-06-18", {"params": {"name": "a", "task": {"ttl": 5}}}),
    (
        "completion/complete",
        "2025-06-18",
        "2025-03-26",
        {
            "params": {
                "ref": {"type": "ref/prompt", "name": "p"},
                "argument": {"name": "a", "value": ""},
                "context": {"arguments": {"b": "1"}},
            }
        },
    ),
    (
        "elicitation/create",
        "2025-11-25",
        "2025-06-18",
        form(requestedSchema={"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}),
    ),
    ("sampling/createMessage", "2025-11-25", "2025-06-18", result(role="assistant", model="m", content=[TEXT, TEXT])),
    ("tools/call", "2026-07-28", "2025-11-25", result(content=[], resultType="complete", structuredContent=[1])),
]


@pytest.mark.parametrize(("method", "source", "target", "frame"), COSMETIC)
def test_what_is_only_shown_is_a_cosmetic_loss(method: str, source: str, target: str, frame: dict[str, Any]) -> None:
    done = down(frame, source, target, method)
    assert done.losses
    assert [loss for loss in done.losses if not loss.cosmetic] == []
    assert (done.count_losses(cosmetic=False), done.group_losses(cosmetic=False)) == (0, [])


@pytest.mark.parametrize(("method", "source", "target", "frame"), GRAVE)
def test_what_is_acted_on_is_no_cosmetic_loss(method: str, source: str, target: str, frame: dict[str, Any]) -> None:
    done = down(frame, source, target, method)
    assert done.count_losses(cosmetic=False) >= 1
    assert [loss for loss in done.losses if loss.cosmetic] == []


@pytest.mark.parametrize(
    ("code", "data", "target"),
    [
        (-32602, {"uri": "a:b"}, "2025-11-25"),
        (-32042, {"elicitations": [{"url": "https://example.com"}]}, "2025-06-18"),
    ],
)
def test_an_error_that_says_the_same_in_other_words_is_a_cosmetic_loss(code: int, data: Any, target: str) -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "No.", "data": data}}
    source = "2026-07-28" if code == -32602 else "2025-11-25"
    (loss,) = translate(frame, source=source, target=target, method="resources/read").losses
    assert loss.cosmetic


def test_losses_are_counted_and_grouped_without_the_cosmetic_ones_before_and_after_they_are_spelled() -> None:
    frame = result(tools=[{**TOOL, "title": "A", "outputSchema": {"type": "object"}}, {**TOOL, "title": "B"}])
    done = down(frame, "2025-06-18", "2024-11-05", "tools/list")
    before = (done.count_losses(), done.count_losses(cosmetic=False), done.group_losses(cosmetic=False))
    assert len(done.losses) == 3
    after = (done.count_losses(), done.count_losses(cosmetic=False), done.group_losses(cosmetic=False))
    assert before == after
    assert before[:2] == (3, 1)
