"""What each client must get from each server: the table, as data, with the reason for each row.

A = 2024-11-05, B = 2025-03-26, C = 2025-06-18, D = 2025-11-25. The rows of one topic cover all 16 pairs exactly once,
so nothing is left open; `test_peers.py` checks that, and runs the same rows on the four equal pairs without a proxy.
"""

from __future__ import annotations

from typing import Any, Final

from tests.peers.matching import ABSENT, REVISIONS, Has, Row, Says

ALL: Final = "ABCD"
DOCUMENT: Final = "file:///home/user/document.txt"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
AUDIO: Final = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
IMAGE: Final = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
LINK: Final = {"type": "resource_link", "uri": DOCUMENT, "name": "document", "mimeType": "text/plain"}
EMBEDDED: Final = {
    "type": "resource",
    "resource": {"uri": DOCUMENT, "mimeType": "text/plain", "text": "Once upon a time"},
}
OLDER: Final = "the older side does not name it"
NOT_THERE: Final = "the server's revision does not have it"
UNCHANGED: Final = "the same in all four revisions"


def text(value: Any) -> dict[str, Any]:
    """Return text content."""
    return {"type": "text", "text": value}


PLACEHOLDER: Final = text("[Audio content: audio/wav]")


def everywhere(topic: str, at: str, expected: Any, why: str = UNCHANGED) -> list[Row]:
    """Return the row for something that no pair changes."""
    return [Row(topic, ALL, ALL, at, expected, why)]


def both_from(revision: str, topic: str, at: str, expected: Any, why: str = OLDER) -> list[Row]:
    """Return the rows for something that arrives only where both sides are of `revision` or later."""
    new = ALL[ALL.index(revision) :]
    old = ALL[: ALL.index(revision)]
    return [
        Row(topic, new, new, at, expected, f"both revisions have it, since {REVISIONS[revision]}"),
        Row(topic, old, new, at, ABSENT, why),
        Row(topic, ALL, old, at, ABSENT, NOT_THERE),
    ]


def metadata(topic: str, at: str, expected: Any) -> list[Row]:
    """Return the rows for `_meta` where the servers' revision has it."""
    return [
        Row(topic, ALL, "CD", at, expected, "every object is open, and extensions say there what no revision names"),
        Row(topic, ALL, "AB", at, ABSENT, NOT_THERE),
    ]


SEEN: Final = "server_saw/initialize"
SESSION: Final = [
    *(
        Row("revision of the client", letter, ALL, "initialize/result/protocolVersion", revision, "answered as asked")
        for letter, revision in REVISIONS.items()
    ),
    *(
        Row(
            "revision of the server",
            ALL,
            letter,
            "server_saw/initialize/protocolVersion",
            revision,
            "it refuses others",
        )
        for letter, revision in REVISIONS.items()
    ),
    *everywhere("server's name", "initialize/result/serverInfo", {"name": "peer", "version": "1.2.3"}),
    *everywhere("instructions", "initialize/result/instructions", "Be kind"),
    *everywhere("ping from the client", "ping", {"result": {}}),
    *everywhere("ping from the server", "calls/ping_client/result/content", [text("pong")]),
    *everywhere("roots changed reaches the server", "server_saw/roots_changes", 1),
    *everywhere("nothing stray", "stray", [], "every answer has the id of a question, every line is a frame"),
    *everywhere("answers out of order", "at_once", [f"call {place}" for place in range(5)], "ids keep type and value"),
]

SERVER_CAN: Final = "initialize/result/capabilities"
CLIENT_CAN: Final = "server_saw/initialize/capabilities"
LISTED_CHANGES: Final = {"listChanged": True}
CAPABILITIES: Final = [
    *everywhere("capability tools", f"{SERVER_CAN}/tools", LISTED_CHANGES),
    *everywhere("capability prompts", f"{SERVER_CAN}/prompts", LISTED_CHANGES),
    *everywhere("capability resources", f"{SERVER_CAN}/resources", {"subscribe": True, **LISTED_CHANGES}),
    *everywhere("capability logging", f"{SERVER_CAN}/logging", {}),
    *both_from("B", "capability completions", f"{SERVER_CAN}/completions", {}),
    *everywhere("capability roots", f"{CLIENT_CAN}/roots", LISTED_CHANGES),
    Row("capability sampling", "D", "D", f"{CLIENT_CAN}/sampling", {"tools": {}}, "both have it"),
    Row(
        "capability sampling",
        "D",
        "ABC",
        f"{CLIENT_CAN}/sampling",
        {},
        "new sub-objects crash Java",
    ),
    Row("capability sampling", "ABC", ALL, f"{CLIENT_CAN}/sampling", {}, UNCHANGED),
    Row(
        "capability elicitation",
        "D",
        "D",
        f"{CLIENT_CAN}/elicitation",
        {"form": {}, "url": {}},
        "both have it",
    ),
    Row("capability elicitation", "CD", "C", f"{CLIENT_CAN}/elicitation", {}, "older form is empty"),
    Row("capability elicitation", "C", "D", f"{CLIENT_CAN}/elicitation", {}, "empty means form"),
    Row("capability elicitation", "CD", "AB", f"{CLIENT_CAN}/elicitation", ABSENT, OLDER),
    Row("capability elicitation", "AB", ALL, f"{CLIENT_CAN}/elicitation", ABSENT, "client has none"),
]

TOOLS_D: Final = [
    "echo",
    "image",
    "sound",
    "weather",
    "bare_structure",
    "links",
    "embedded",
    "failing",
    "slow",
    "logs",
    "touch",
    "change_lists",
    "ping_client",
    "ask_roots",
    "ask_sampling",
    "ask_user",
    "gated",
    "task_only",
    "server_saw",
]
TOOLS_C: Final = [name for name in TOOLS_D if name not in ("gated", "task_only")]
TOOLS_B: Final = [name for name in TOOLS_C if name not in ("weather", "bare_structure", "links", "ask_user")]
TOOLS_A: Final = [name for name in TOOLS_B if name != "sound"]
WEATHER: Final = {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}
ECHO: Final = "tools/echo"

TOOL_LISTS: Final = [
    Row("tools offered", ALL, "A", "offered", TOOLS_A, "all of them, in the server's order"),
    Row("tools offered", ALL, "B", "offered", TOOLS_B, "all of them, in the server's order"),
    Row("tools offered", ALL, "C", "offered", TOOLS_C, "all of them, in the server's order"),
    Row("tools offered", "D", "D", "offered", TOOLS_D, "all of them, in the server's order"),
    Row(
        "tools offered",
        "ABC",
        "D",
        "offered",
        [name for name in TOOLS_D if name != "task_only"],
        "a tool that can only run as a task is hidden from those who cannot start tasks",
    ),
    *both_from("C", "tool title", f"{ECHO}/title", "Echo, politely"),
    *metadata("tool _meta", f"{ECHO}/_meta", {"example.com/origin": "peers"}),
    *both_from("D", "tool icons", f"{ECHO}/icons", [{"src": "https://example.com/echo.png", "sizes": ["48x48"]}]),
    *both_from("D", "tool execution", "tools/task_only/execution", {"taskSupport": "required"}),
    *both_from("C", "tool outputSchema", "tools/weather/outputSchema", {"$schema": DIALECT, **WEATHER}),
    *everywhere("tool description", f"{ECHO}/description", "Answers with its argument, after a delay"),
    *everywhere("tool schema dialect", f"{ECHO}/inputSchema/$schema", DIALECT, "kept inside schemas, named or not"),
    Row("tool annotations", "CD", "BCD", f"{ECHO}/annotations", {"readOnlyHint": True}, "both have it"),
    Row("tool annotations", "B", "B", f"{ECHO}/annotations", {"readOnlyHint": True}, "both have it"),
    Row(
        "tool annotations",
        "B",
        "CD",
        f"{ECHO}/annotations",
        {"readOnlyHint": True, "title": "Echo, politely"},
        "the title moves to where 2025-03-26 has one",
    ),
    Row("tool annotations", "A", "BCD", f"{ECHO}/annotations", ABSENT, OLDER),
    Row("tool annotations", ALL, "A", f"{ECHO}/annotations", ABSENT, NOT_THERE),
]

ANNOTATIONS: Final = {"audience": ["user"], "priority": 0.5}
DATED: Final = {**ANNOTATIONS, "lastModified": "2025-06-18T00:00:00Z"}
ANNOTATED: Final = "calls/echo/result/content/0/annotations"
LINKED: Final = f"[The document]({DOCUMENT})"
NO_TOOL: Final = "the server's revision does not have it, so the tool is not listed"

SAID: Final = '{"celsius": 21.5}'
TOOL_CALLS: Final = [
    *everywhere("text", "calls/echo/result/content/0/text", "hello"),
    Row(
        "text annotations",
        "CD",
        "CD",
        ANNOTATED,
        {**ANNOTATIONS, "lastModified": "2025-06-18T00:00:00Z"},
        "both have it",
    ),
    Row("text annotations", "AB", "CD", ANNOTATED, ANNOTATIONS, "lastModified came with 2025-06-18"),
    Row("text annotations", ALL, "AB", ANNOTATED, ANNOTATIONS, UNCHANGED),
    *everywhere("image", "calls/image/result/content", [IMAGE]),
    Row("audio", "BCD", "BCD", "calls/sound/result/content", [text("listen:"), AUDIO], "both have it"),
    Row("audio", "A", "BCD", "calls/sound/result/content", [text("listen:"), PLACEHOLDER], "becomes text"),
    Row("audio", ALL, "A", "calls/sound/result", ABSENT, NO_TOOL),
    Row(
        "structure as text",
        ALL,
        "CD",
        "calls/weather/result/content",
        [text('{"celsius": 21.5}')],
        "as the server said",
    ),
    Row("structure as text", ALL, "AB", "calls/weather/result", ABSENT, NO_TOOL),
    *both_from("C", "structure", "calls/weather/result/structuredContent", {"celsius": 21.5}),
    Row(
        "structure without text",
        "CD",
        "CD",
        "calls/bare_structure/result",
        Has({"content": [], "structuredContent": {"celsius": 21.5, "sky": ["blue", None]}}),
        "both have it",
    ),
    Row(
        "structure without text",
        "AB",
        "CD",
        "calls/bare_structure/result",
        Has({"content": [text('{"celsius":21.5,"sky":["blue",null]}')], "structuredContent": ABSENT}),
        "with no content at all, its compact JSON goes in as text",
    ),
    Row("structure without text", ALL, "AB", "calls/bare_structure/result", ABSENT, NO_TOOL),
    Row(
        "resource links",
        "CD",
        "CD",
        "calls/links/result/content",
        [{**LINK, "title": "The document", "description": "Worth reading"}, LINK],
        "both have it",
    ),
    Row(
        "resource links",
        "AB",
        "CD",
        "calls/links/result/content",
        [text(f"{LINKED}\nWorth reading"), text(f"[document]({DOCUMENT})")],
        "resource links become text: [title or name](uri) and the description",
    ),
    Row("resource links", ALL, "AB", "calls/links/result", ABSENT, NO_TOOL),
    Row("link description", "CD", "CD", "calls/links/result/content/0/description", "Worth reading", "both have it"),
    Row("link description", "AB", "CD", "calls/links/result/content/0/text", Says("Worth reading"), "kept in the text"),
    Row("link description", ALL, "AB", "calls/links/result", ABSENT, NO_TOOL),
    *everywhere("embedded resource", "calls/embedded/result/content", [EMBEDDED]),
    *everywhere("error result", "calls/failing/result", {"content": [text("the tool broke")], "isError": True}),
    *everywhere("unknown tool", "calls/nonexistent/error/code", -32602),
    *everywhere("unknown tool's name", "calls/nonexistent/error/message", "Unknown tool: nonexistent"),
    Row(
        "URL needed",
        "D",
        "D",
        "calls/gated/error",
        Has({"code": -32042, "data": Has({"elicitations": [Has({"url": "https://example.com/login"})]})}),
        "both have it",
    ),
    Row(
        "URL needed",
        "ABC",
        "D",
        "calls/gated/error",
        Has({"code": -32042, "message": Says("https://example.com/login")}),
        "the code is kept and the user of an older client finds the URL in the message",
    ),
    Row("URL needed", ALL, "ABC", "calls/gated/error", ABSENT, NO_TOOL),
]

RESOURCE: Final = "pages/0/result/resources/0"
READ: Final = "reads/{}/result/contents/0"


def named(topic: str, place: str, name: str) -> list[Row]:
    """Return the rows of the rule `resource-contents-name` for one URI."""
    at = f"{READ.format(place)}/name"
    return [
        Row(topic, "CD", "AB", at, name, "rule resource-contents-name"),
        Row(topic, "CD", "CD", at, ABSENT, "the server did not send one"),
        Row(topic, "AB", ALL, at, ABSENT, OLDER),
    ]


RESOURCES: Final = [
    *everywhere("resource", f"{RESOURCE}/uri", DOCUMENT),
    *everywhere("resource name", f"{RESOURCE}/name", "document.txt"),
    *everywhere("resource size", f"{RESOURCE}/size", 7),
    *both_from("C", "resource title", f"{RESOURCE}/title", "About document.txt"),
    *metadata("resource _meta", f"{RESOURCE}/_meta", {"example.com/n": 1}),
    *everywhere("cursor", "pages/0/result/nextCursor", "page-2"),
    Row("second page", ALL, "BCD", "pages/1/result/resources/0/uri", "custom://unique-id-12345", UNCHANGED),
    Row("second page", ALL, "A", "pages/1/result/resources/0/uri", DOCUMENT, "1.6.0 servers do not read the cursor"),
    Row("last page", ALL, "BCD", "pages/2/result", Has({"nextCursor": ABSENT}), UNCHANGED),
    Row("last page", ALL, "A", "pages/2/result", Has({"nextCursor": "page-2"}), "1.6.0 servers do not read the cursor"),
    *everywhere("template", "templates/result/resourceTemplates/0/uriTemplate", "weather://{city}"),
    *both_from("C", "template title", "templates/result/resourceTemplates/0/title", "By city"),
    *everywhere("text contents", f"{READ.format('document')}/text", "Once upon a time"),
    *everywhere("contents type", f"{READ.format('document')}/mimeType", "text/plain"),
    *everywhere("contents without type", f"{READ.format('unique')}/mimeType", ABSENT),
    *everywhere("blob contents", f"{READ.format('pixel')}/blob", "iVBORw0KGgo="),
    *metadata("contents _meta", f"{READ.format('document')}/_meta", {"example.com/n": 1}),
    *named("name of a file", "document", "document.txt"),
    *named("name of a URL with a path", "api", "resource"),
    *named("name of another URI", "unique", "custom://unique-id-12345"),
    *named("name of a blob", "pixel", "pixel.png"),
    *everywhere("unknown resource", "reads/nowhere/error", Has({"code": -32002, "data": {"uri": "file:///nowhere"}})),
    *everywhere("subscribe", "watch/subscribe", {"result": {}}),
    *everywhere("unsubscribe", "watch/unsubscribe", {"result": {}}),
    *everywhere("no update before subscribing", "watch/before", []),
    *everywhere(
        "update when subscribed",
        "watch/during",
        [Has({"method": "notifications/resources/updated", "params": {"uri": DOCUMENT}})],
    ),
    *everywhere("no update after unsubscribing", "watch/after", []),
    *everywhere(
        "lists changed", "lists", [f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")]
    ),
]

GALLERY: Final = "prompts/gallery/result/messages"
PROMPTS: Final = [
    *everywhere("prompt", "prompts/list/result/prompts/0/name", "greet"),
    *both_from("C", "prompt title", "prompts/list/result/prompts/0/title", "Greeting"),
    *everywhere(
        "prompt arguments",
        "prompts/list/result/prompts/0/arguments",
        [{"name": "who", "description": "Whom to greet", "required": True}],
    ),
    *everywhere("prompt text", "prompts/greet/result/messages", [{"role": "user", "content": text("Hello Ada")}]),
    *everywhere("prompt image", f"{GALLERY}/0/content", IMAGE),
    *everywhere("prompt resource", f"{GALLERY}/1/content", EMBEDDED),
    Row("prompt audio", "BCD", "BCD", f"{GALLERY}/2/content", AUDIO, "both have it"),
    Row(
        "prompt audio",
        "A",
        "BCD",
        f"{GALLERY}/2/content",
        PLACEHOLDER,
        "becomes text",
    ),
    Row("prompt audio", ALL, "A", f"{GALLERY}/2", ABSENT, NOT_THERE),
    Row(
        "prompt link",
        "CD",
        "CD",
        f"{GALLERY}/3/content",
        Has({"type": "resource_link", "uri": DOCUMENT, "title": "The document"}),
        "both have it",
    ),
    Row("prompt link", "AB", "CD", f"{GALLERY}/3/content", text(LINKED), "links become text"),
    Row("prompt link", ALL, "AB", f"{GALLERY}/3", ABSENT, NOT_THERE),
    *everywhere("unknown prompt", "prompts/nonexistent/error/code", -32602),
    *everywhere("template completion", "complete/template/result/completion/values", ["P-one", "P-two"]),
    Row(
        "prompt completion",
        "CD",
        "CD",
        "complete/prompt/result/completion/values",
        ["A-one", "A-two", "context {'mood': 'good'}"],
        "both have the context",
    ),
    Row(
        "prompt completion",
        "AB",
        "CD",
        "complete/prompt/result/completion/values",
        ["A-one", "A-two"],
        "the client's revision has no context",
    ),
    Row(
        "prompt completion",
        ALL,
        "AB",
        "complete/prompt/result/completion/values",
        ["A-one", "A-two"],
        "the server's revision has no context, so none reaches it",
    ),
]
OFFERS: Final = (*SESSION, *CAPABILITIES, *TOOL_LISTS, *TOOL_CALLS, *RESOURCES, *PROMPTS)
"""What the server offers; what it asks, tells and loses by cancellation is in `expectations_back.py`."""
