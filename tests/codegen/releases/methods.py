"""Made-up releases that change methods and the unions that name them."""

from __future__ import annotations

import copy
from typing import Any

from tests.codegen.releases.cases import REFUSED, Release, add, both, over, rename, rename_method, request
from tests.support.releases import NEXT, Schema

OLD = "2026-07-28"


def without(method: str, stem: str) -> Release:
    """A method less, with its definitions."""

    def change(defs: Schema) -> None:
        for name in [name for name in defs if name.startswith(stem)]:
            del defs[name]
        for node in defs.values():
            if "anyOf" in node:
                node["anyOf"] = [a for a in node["anyOf"] if not a.get("$ref", "").startswith(f"#/$defs/{stem}")]

    given = request(method, OLD, ref={"type": "ref/prompt", "name": "p"}, argument={"name": "a", "value": "b"})
    return Release(f"{method} goes", change, [], [over(given, REFUSED)])


def a_method_more(defs: Schema) -> None:
    made = copy.deepcopy(defs["ListToolsRequest"])
    made["properties"]["method"]["const"] = "skills/list"
    defs["ListSkillsRequest"] = made
    result = copy.deepcopy(defs["ListPromptsResult"])
    result["properties"]["skills"] = result["properties"].pop("prompts")
    result["required"] = ["skills" if name == "prompts" else name for name in result["required"]]
    defs["ListSkillsResult"] = result
    defs["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/ListSkillsRequest"})


def renamed_union(old: str, new: str) -> Release:
    def change(defs: Schema) -> None:
        defs[new] = defs.pop(old)

    return Release(f"{old} has another name", change, [f"up methods-gone {old}"], [], rename("definition", old, new))


def gone_union(old: str) -> Release:
    return Release(f"{old} is gone", lambda defs: defs.pop(old) and None, [f"up methods-gone {old}"])


VERSION, REVISION = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/revision"


def renamed_revision(defs: Schema) -> None:
    shape = defs["RequestMetaObject"]
    shape["properties"][REVISION] = shape["properties"].pop(VERSION)
    shape["required"] = sorted(REVISION if name == VERSION else name for name in shape["required"])


def renamed_key(frame: dict[str, Any]) -> dict[str, Any]:
    meta = {REVISION if key == VERSION else key: value for key, value in frame["params"]["_meta"].items()}
    return {**frame, "params": {**frame["params"], "_meta": meta}}


def asks_for_progress(defs: Schema) -> None:
    arms = defs["ServerNotification"]["anyOf"]
    arms.remove({"$ref": "#/$defs/ProgressNotification"})
    defs["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/ProgressNotification"})


PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1, "progressToken": "t"}}
INVOKED = rename_method("tools/call", "tools/invoke", "CallTool", "InvokeTool")
CALL = request("tools/call", OLD, name="t", arguments={"a": 1})
INVOKE = {**request("tools/invoke", NEXT, name="t", arguments={"a": 1})}

METHODS = [
    without("completion/complete", "Complete"),
    Release("the name of the revision has a new key", renamed_revision, [f"up renamed RequestMetaObject.{VERSION}"],
            [over(request("tools/list", OLD), renamed_key(request("tools/list", NEXT))),
             over(renamed_key(request("tools/list", NEXT)), request("tools/list", OLD), "down")],
            rename("field", VERSION, REVISION, "RequestMetaObject")),
    Release("a method comes", a_method_more, [], [over(request("skills/list", NEXT), REFUSED, "down")]),
    renamed_union("ClientRequest", "ClientMessage"),
    renamed_union("ServerNotification", "ServerNotice"),
    gone_union("ClientNotification"),
    Release("a method has another name, and nobody says so", INVOKED, ["up renamed tools/call"], [over(CALL, REFUSED)]),
    Release("a method has another name", INVOKED, ["up renamed tools/call"],
            [over(CALL, INVOKE), over(INVOKE, CALL, "down")],
            rename("method", "tools/call", "tools/invoke")),
    Release("a method has another name and one field more",
            both(INVOKED, add("InvokeToolRequestParams", hint={"type": "string"})),
            ["up renamed tools/call"], [over({**INVOKE, "params": {**INVOKE["params"], "hint": "x"}}, CALL, "down")],
            rename("method", "tools/call", "tools/invoke")),
    Release("a notification becomes a request", asks_for_progress,
            ["up required ProgressNotification.id", "up kind-changed notifications/progress"],
            [over(PROGRESS, None), over({**PROGRESS, "id": 1}, REFUSED, "down")]),
    Release("a notification has another name",
            rename_method("notifications/progress", "notifications/advance", "ProgressNotification", "AdvanceNotification"),
            ["up renamed notifications/progress"],
            [over(PROGRESS, {**PROGRESS, "method": "notifications/advance"})],
            rename("method", "notifications/progress", "notifications/advance")),
]  # fmt: skip
