"""Made-up releases that are asked about in full: arms without tags, new names with changes, values in another form."""

from __future__ import annotations

import copy
from typing import Any

from tests.codegen.releases.cases import (
    REFUSED,
    STRING,
    Change,
    Release,
    add,
    both,
    entry,
    error,
    over,
    remove,
    rename,
    rename_method,
    request,
    result,
    same,
    tools,
)
from tests.support.releases import NEXT, Schema

OLD = "2026-07-28"
BOOLEAN, INTEGER, NUMBER = ({"type": kind} for kind in ("boolean", "integer", "number"))


# --- arms without tags -----------------------------------------------------------------------------------------------


def deferred(*required: str, **fields: Any) -> Change:
    """A new thing that a tool's answer may be, behind one that requires nothing of its own."""

    def change(defs: Schema) -> None:
        made = copy.deepcopy(defs["InputRequiredResult"])
        for name in ("inputRequests", "requestState"):
            del made["properties"][name]
        made["properties"] |= fields
        made["required"] = sorted({*made["required"], *required})
        defs["DeferredResult"] = made
        defs["CallToolResultResponse"]["properties"]["result"]["anyOf"].append({"$ref": "#/$defs/DeferredResult"})

    return change


def merged(defs: Schema) -> None:
    """Two kinds of hints, told apart by nothing, become one."""
    defs["Prompt"]["properties"]["hints"] = {"type": "array", "items": {"$ref": "#/$defs/Hint"}}
    defs["Hint"] = {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a", "b"]}


def apart(defs: Schema) -> None:
    of = [{"$ref": "#/$defs/AHint"}, {"$ref": "#/$defs/BHint"}]
    defs["Prompt"]["properties"]["hints"] = {"type": "array", "items": {"anyOf": of}}
    defs["AHint"] = {"type": "object", "properties": {"a": STRING, "c": STRING}, "required": ["a"]}
    defs["BHint"] = {"type": "object", "properties": {"b": STRING, "d": STRING}, "required": ["b"]}


def prompts(**fields: Any) -> dict[str, Any]:
    return result(prompts=[{"name": "p", **fields}], ttlMs=0, cacheScope="private")


ANSWER = result(content=[])
LATER = result(ticket="t")
ASKED = ["down arm-removed tools/call.result DeferredResult and 1 more"]
BOTH = [f"up arm-removed Prompt.hints[] {name}" for name in ("AHint", "BHint")] + [
    "down arm-removed Prompt.hints[] Hint"
]

UNIONS = [
    Release("a result that is told by what it requires comes", deferred("ticket", ticket=STRING), ASKED,
            [over(LATER, REFUSED, "down", "tools/call"), same(ANSWER, "down", "tools/call")]),
    Release("a result that is told by what it may have comes", deferred(ticket=STRING), ASKED,
            [over(LATER, REFUSED, "down", "tools/call"), same(ANSWER, "down", "tools/call")]),
]  # fmt: skip

# --- new names with changes ------------------------------------------------------------------------------------------


def changed(definition: str, other: str, old: str, new: str, field: str) -> Change:
    return both(rename_method(old, new, definition, other), add(field, required=True, hint=STRING))


def notification(defs: Schema) -> None:
    """What was a request needs no answer any more."""
    shape = defs["CompleteRequest"]
    del shape["properties"]["id"]
    shape["required"].remove("id")
    arms = defs["ClientRequest"]["anyOf"]
    arms.remove({"$ref": "#/$defs/CompleteRequest"})
    defs["ClientNotification"].setdefault("anyOf", [{"$ref": "#/$defs/CancelledNotification"}])
    for name in [name for name in defs["ClientNotification"] if name != "anyOf"]:
        del defs["ClientNotification"][name]
    defs["ClientNotification"]["anyOf"].append({"$ref": "#/$defs/CompleteRequest"})


def renamed_required(defs: Schema) -> None:
    shape = defs["PromptArgument"]
    shape["properties"]["key"] = shape["properties"].pop("name")
    shape["required"] = ["key"]


PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1, "progressToken": "t"}}
ADVANCE = {**PROGRESS, "method": "notifications/advance", "params": {**PROGRESS["params"], "hint": "?"}}
CALL = request("tools/call", OLD, name="t", arguments={"a": 1})
INVOKE = request("tools/invoke", NEXT, name="t", arguments={"a": 1}, hint="?")
INVOKED = changed("CallTool", "InvokeTool", "tools/call", "tools/invoke", "InvokeToolRequestParams")
ADVANCED = changed("ProgressNotification", "AdvanceNotification", "notifications/progress", "notifications/advance",
                   "AdvanceNotificationParams")  # fmt: skip
COMPLETE = request(
    "completion/complete", OLD, ref={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": ""}
)


def hint(definition: str) -> str:
    return entry("up", "required", f"{definition}.hint", "default", with_='{ value = "?" }')


NAMES = [
    Release("a method has another name and asks for more, and nobody says so", INVOKED, ["up renamed tools/call"],
            [over(CALL, REFUSED)]),
    Release("a method has another name and asks for more", INVOKED, ["up renamed tools/call"],
            [over(CALL, INVOKE), over(INVOKE, CALL, "down")],
            rename("method", "tools/call", "tools/invoke") + hint("CallToolRequestParams")),
    Release("a notification has another name and asks for more, and nobody says so", ADVANCED,
            ["up renamed notifications/progress"], [over(PROGRESS, None)]),
    Release("a notification has another name and asks for more", ADVANCED, ["up renamed notifications/progress"],
            [over(PROGRESS, ADVANCE), over(ADVANCE, PROGRESS, "down")],
            rename("method", "notifications/progress", "notifications/advance") + hint("ProgressNotificationParams")),
    Release("a request becomes a notification", notification,
            ["up kind-changed completion/complete", "down required CompleteRequest.id"], [over(COMPLETE, REFUSED)]),
    Release("a required field has another name, and nobody says so", renamed_required, ["up renamed PromptArgument.name"],
            [over(prompts(arguments=[{"name": "a"}]), REFUSED, method="prompts/list")]),
    Release("a required field has another name", renamed_required, ["up renamed PromptArgument.name"],
            [over(prompts(arguments=[{"name": "a"}]), prompts(arguments=[{"key": "a"}]), method="prompts/list"),
             over(prompts(arguments=[{"key": "a"}]), prompts(arguments=[{"name": "a"}]), "down", "prompts/list")],
            rename("field", "name", "key", "PromptArgument")),
]  # fmt: skip

# --- codes -----------------------------------------------------------------------------------------------------------


def moved_code(defs: Schema) -> None:
    (_, part) = defs["HeaderMismatchError"]["properties"]["error"]["allOf"]
    part["properties"]["code"]["const"] = -32120


def recode(direction: str, old: int, new: int) -> str:
    return (
        f'\n[[error]]\nname = "move-{direction}"\ndirection = "{direction}"\ncodes = [{old}, {old}]\n'
        f'do = "replace-code"\nwith = {{ code = {new} }}\nreason = "The same error."\n'
    )


def mismatch(code: int, **data: Any) -> dict[str, Any]:
    return error(id=1, error={"code": code, "message": "No.", **data})


CODES = [f"{direction} code-changed HeaderMismatchError.error.code" for direction in ("up", "down")]
FROM = {"data": {"original": {"code": -32020}}}
MOVED = [
    Release("the code of an error is another one, and nobody says so", moved_code, CODES, [same(mismatch(-32020))]),
    Release("the code of an error is another one", moved_code, CODES,
            [over(mismatch(-32020), mismatch(-32120, **FROM)), same(mismatch(-32603))],
            recode("up", -32020, -32120) + recode("down", -32120, -32020)),
]  # fmt: skip

# --- values in another form ------------------------------------------------------------------------------------------

STATUS = {"type": "string", "enum": ["failed", "done"]}


def status(defs: Schema) -> None:
    """A boolean becomes one of two words."""
    shape = defs["CallToolResult"]["properties"]
    del shape["isError"]
    shape["status"] = STATUS


def called(**fields: Any) -> dict[str, Any]:
    return result(content=[], **fields)


STATUS_OF = rename("field", "isError", "status", "CallToolResult")
STATUS_OF += entry("up", "narrowed", "CallToolResult.isError", "map-value",
                   with_='{ to = { true = "failed", false = "done" } }')  # fmt: skip
STATUS_OF += entry("down", "narrowed", "CallToolResult.status", "map-value",
                   with_="{ to = { failed = true, done = false } }")  # fmt: skip


def typed(name: str, old: Any, new: Any, frames: list[Any], up: str, down: str, with_: str = "{}") -> Release:
    """A field of annotations that there is already (`lastModified`, `priority`) in another type."""
    kinds = [f"{direction} narrowed Annotations.{name}" for direction in ("up", "down")]
    ruled = entry("up", "narrowed", f"Annotations.{name}", up, with_=with_)
    ruled += entry("down", "narrowed", f"Annotations.{name}", down, with_=with_)
    return Release(f"{name} is {new} for {old}", add("Annotations", **{name: new}), kinds, frames, ruled)


def noted(**annotations: Any) -> dict[str, Any]:
    return called_with({"type": "text", "text": "a", "annotations": annotations})


def called_with(block: Any) -> dict[str, Any]:
    return result(content=[block])


def up(given: Any, expected: Any) -> Any:
    return over(given, expected, method="tools/call")


def down(given: Any, expected: Any) -> Any:
    return over(given, expected, "down", "tools/call")


MOMENT, SECONDS = "2026-07-28T12:30:15Z", 1785241815
NULLABLE = {"anyOf": [STRING, {"type": "null"}]}
OPPOSITE = both(remove("ToolAnnotations", "readOnlyHint"), add("ToolAnnotations", writesHint=BOOLEAN))

FORMS = [
    Release("a boolean becomes a word", status, ["up renamed CallToolResult.isError"],
            [up(called(isError=True), called(status="failed")), up(called(isError=False), called(status="done")),
             down(called(status="failed"), called(isError=True)), up(called(), called())], STATUS_OF),
    Release("a boolean has another name, which says the opposite", OPPOSITE,
            ["up renamed ToolAnnotations.readOnlyHint"],
            [over(tools({"annotations": {"readOnlyHint": True}}), tools({"annotations": {"writesHint": False}})),
             over(tools({"annotations": {"writesHint": True}}), tools({"annotations": {"readOnlyHint": False}}), "down")],
            rename("field", "readOnlyHint", "writesHint", "ToolAnnotations") + "negated = true\n"),
    typed("priority", "a number", STRING,
          [up(noted(priority=0.5), noted(priority="0.5")), up(noted(priority=1.0), noted(priority="1")),
           down(noted(priority="0.5"), noted(priority=0.5)), down(noted(priority="high"), noted()),
           down(noted(priority="7"), noted())], "to-text", "to-number"),
    typed("lastModified", "a date", INTEGER,
          [up(noted(lastModified=MOMENT), noted(lastModified=SECONDS)),
           up(noted(lastModified="2026-07-28T14:30:15.75+02:00"), noted(lastModified=SECONDS)),
           up(noted(lastModified="yesterday"), noted()), up(noted(lastModified="2026-02-30T00:00:00Z"), noted()),
           down(noted(lastModified=SECONDS), noted(lastModified=MOMENT)),
           down(noted(lastModified=10**30), noted())], "to-seconds", "to-date"),
    Release("a required field may be null", add("Prompt", required=True, owner=NULLABLE), ["up required Prompt.owner"],
            [over(prompts(), prompts(owner=None), method="prompts/list"),
             over(prompts(owner=None), prompts(), "down", "prompts/list")]),
    Release("a name has to be like a pattern", add("Prompt", title={"type": "string", "pattern": r"^[a-z]\w*$"}),
            ["up narrowed Prompt.title"],
            [over(prompts(title="Oh no"), prompts(), method="prompts/list"),
             over(prompts(title="aé"), prompts(), method="prompts/list"),
             over(prompts(title="a\n"), prompts(), method="prompts/list"),
             same(prompts(title="ab_1"), method="prompts/list"), same(prompts(title="ab"), "down", "prompts/list")]),
    Release("a name has a keyword that tools read", add("Prompt", title={"type": "string", "x-shiny": 1}), [],
            [same(prompts(title="T"), method="prompts/list")]),
]  # fmt: skip

TOLD = [*UNIONS, *NAMES, *MOVED, *FORMS]
MERGED = (apart, merged, BOTH)
"""What one release has, what the next makes of it, and what is asked."""
