"""Made-up releases that change objects, lists and unions of objects."""

from __future__ import annotations

import copy
from typing import Any

from tests.codegen.releases.cases import (
    REFUSED,
    STRING,
    Release,
    add,
    both,
    entry,
    over,
    remove,
    rename,
    request,
    result,
    same,
    tools,
)
from tests.support.releases import NEXT, Schema

OLD = "2026-07-28"
PAIR = {"type": "array", "items": STRING, "minItems": 2}


def video(defs: Schema) -> None:
    shape = copy.deepcopy(defs["AudioContent"])
    shape["properties"]["type"]["const"] = "video"
    defs["VideoContent"] = shape
    defs["ContentBlock"]["anyOf"].append({"$ref": "#/$defs/VideoContent"})


def no_audio(defs: Schema) -> None:
    arms = defs["ContentBlock"]["anyOf"]
    defs["ContentBlock"]["anyOf"] = [arm for arm in arms if arm["$ref"] != "#/$defs/AudioContent"]


def at_least_one_block(defs: Schema) -> None:
    no_audio(defs)
    defs["CallToolResult"]["properties"]["content"]["minItems"] = 1


def prompts(**fields: Any) -> dict[str, Any]:
    return result(prompts=[{"name": "p", **fields}], ttlMs=0, cacheScope="private")


def call(*content: Any) -> dict[str, Any]:
    return result(content=list(content))


AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
TEXT = {"type": "text", "text": "a"}
WORDS_OUT = {"type": "text", "text": "[AudioContent]"}


def into_annotations(defs: Schema) -> None:
    """A title goes where the annotations have one already, which takes less."""
    remove("Tool", "title")(defs)
    add("ToolAnnotations", title={"type": "string", "maxLength": 3})(defs)


def out_of_annotations(defs: Schema) -> None:
    remove("ToolAnnotations", "readOnlyHint")(defs)
    add("Tool", readOnlyHint={"type": "boolean"})(defs)


def out_of_completion(defs: Schema) -> None:
    completion = defs["CompleteResult"]["properties"]["completion"]
    add("CompleteResult", total=completion["properties"].pop("total"))(defs)


def done(**completion: Any) -> dict[str, Any]:
    return result(completion=completion)


def into_a_new_object(defs: Schema) -> None:
    remove("Prompt", "title", "description")(defs)
    add("Prompt", display={"type": "object", "properties": {"title": STRING, "description": STRING}})(defs)


def beside(defs: Schema) -> None:
    """From one object into another, which asks for more."""
    remove("ToolAnnotations", "readOnlyHint")(defs)
    effects = {"readOnlyHint": {"type": "boolean"}, "kind": STRING}
    add("Tool", effects={"type": "object", "properties": effects, "required": ["kind"]})(defs)


def move(at: str, old: list[str], new: list[str]) -> str:
    return f'\n[[move]]\nname = "so"\nat = "{at}"\nold = {old}\nnew = {new}\nreason = "The same in another place."\n'


def moved_under_another_name(defs: Schema) -> None:
    """A boolean becomes one of some strings, in another place."""
    remove("ToolAnnotations", "readOnlyHint")(defs)
    add("Tool", readOnly={"enum": ["yes", "no"], "type": "string"})(defs)


def result_in_all_of(defs: Schema) -> None:
    """A response is said to be that of the base, with a result that is narrower than the base's."""
    narrower = {"type": "object", "properties": {"result": {"$ref": "#/$defs/ListToolsResult"}}, "required": ["result"]}
    defs["ListToolsResultResponse"] = {"allOf": [{"$ref": "#/$defs/JSONRPCResultResponse"}, narrower]}
    add("Tool", cost={"type": "number"})(defs)


HINT = {"annotations": {"readOnlyHint": True}}

SHAPES = [
    Release("the newest bytes under a new date", lambda defs: None, [], [
        same(tools({"title": "T"})),
        over(request("tools/list", OLD), request("tools/list", NEXT)),
        over(request("tools/list", NEXT), request("tools/list", OLD), "down"),
        same(call(AUDIO), method="tools/call"),
    ]),
    Release("annotations of the schema change", both(
        add("Tool", name={"type": "string", "deprecated": True, "$comment": "x", "examples": ["a"], "title": "Name"}),
        add("Prompt", name={"type": "string", "readOnly": True, "format": "uri", "default": "x"}),
    ), [], [same(tools({}))]),
    Release("an optional field comes", add("Tool", cost={"type": "number"}), [], [
        same(tools({})), over(tools({"cost": 0.5}), tools({}), "down"), over(tools({"cost": "much"}), tools({})),
    ]),
    Release("an optional field goes", remove("Tool", "icons"), [], [over(tools({"icons": []}), tools({}))]),
    Release("a field goes and one of its type comes", both(remove("Tool", "title"), add("Tool", label=STRING)),
            ["up renamed Tool.title"], [over(tools({"title": "T"}), tools({}))]),
    Release("a field has a new name", both(remove("Tool", "title"), add("Tool", label=STRING)),
            ["up renamed Tool.title"],
            [over(tools({"title": "T"}), tools({"label": "T"})), over(tools({"label": "T"}), tools({"title": "T"}), "down")],
            rename("field", "title", "label", "Tool")),
    Release("a field of a definition goes where one of its type comes",
            both(remove("Tool", "annotations"), add("Tool", hints={"$ref": "#/$defs/ToolAnnotations"})),
            ["up renamed Tool.annotations"]),
    Release("a required string comes", add("Prompt", required=True, category=STRING), ["up required Prompt.category"],
            [over(prompts(), REFUSED, method="prompts/list"),
             over(prompts(category="c"), prompts(), "down", "prompts/list")]),
    Release("a required string comes, and a person says which", add("Prompt", required=True, category=STRING),
            ["up required Prompt.category"], [over(prompts(), prompts(category="general"), method="prompts/list")],
            entry("up", "required", "Prompt.category", "default", with_='{ value = "general" }')),
    Release("a required copy of a field that goes",
            both(remove("Prompt", "title"), add("Prompt", required=True, label=STRING)),
            ["up renamed Prompt.title", "up required Prompt.label"],
            [over(prompts(), prompts(label="p"), method="prompts/list"),
             over(prompts(title="T"), prompts(label="p"), method="prompts/list")],
            entry("up", "required", "Prompt.label", "copy-of", with_='{ field = "name" }')
            + entry("up", "renamed", "Prompt.title", "apart")),
    Release("a list of at least two", both(add("Tool", tags={"type": "array", "items": STRING, "minItems": 2})), [],
            [same(tools({})), over(tools({"tags": ["a", "b"]}), tools({}), "down"), over(tools({"tags": ["a"]}), tools({}))]),
    Release("a list must have something in it",
            lambda defs: defs["CompleteResult"]["properties"]["completion"]["properties"]["values"].update(minItems=1),
            ["up narrowed CompleteResult.completion.values"],
            [over(result(completion={"values": []}), REFUSED, method="completion/complete"),
             same(result(completion={"values": ["a"]}), method="completion/complete")]),
    Release("a string becomes an object that it may stand in", add("Prompt", description={
        "type": "object", "properties": {"text": {"type": "string", "maxLength": 3}}, "required": ["text"]}),
            ["up narrowed Prompt.description", "down narrowed Prompt.description"],
            [over(prompts(description="abc"), prompts(description={"text": "abc"}), method="prompts/list"),
             over(prompts(description="abcd"), REFUSED, method="prompts/list")],
            entry("up", "narrowed", "Prompt.description", "wrap-unless-valid", with_='{ key = "text" }')),
    Release("a list must have something in it, and a person says why",
            lambda defs: defs["CompleteResult"]["properties"]["completion"]["properties"]["values"].update(minItems=1),
            ["up narrowed CompleteResult.completion.values"],
            [over(result(completion={"values": []}), REFUSED, method="completion/complete"),
             same(result(completion={"values": ["a"]}), method="completion/complete")],
            entry("up", "narrowed", "CompleteResult.completion.values", "refuse", with_='{ reason = "Nothing fits." }')),
    Release("a list may be longer no more",
            lambda defs: defs["CompleteResult"]["properties"]["completion"]["properties"]["values"].update(maxItems=2),
            ["up narrowed CompleteResult.completion.values"],
            [over(result(completion={"values": ["a", "b", "c"]}), result(completion={"values": ["a", "b"]}),
                  method="completion/complete")],
            entry("up", "narrowed", "CompleteResult.completion.values", "truncate", with_="{ most = 2 }")),
    Release("a content type goes", no_audio, ["up arm-removed ContentBlock AudioContent"],
            [over(call(AUDIO, TEXT), call(WORDS_OUT, TEXT), method="tools/call")]),
    Release("a content type goes, and a person leaves it out", no_audio, ["up arm-removed ContentBlock AudioContent"],
            [over(call(AUDIO, TEXT), call(TEXT), method="tools/call")],
            entry("up", "arm-removed", "ContentBlock", "drop-item", arm='"AudioContent"')),
    Release("a content type goes where something must be left", at_least_one_block,
            ["up arm-removed ContentBlock AudioContent", "up narrowed CallToolResult.content"],
            [over(call(AUDIO), REFUSED, method="tools/call"), over(call(AUDIO, TEXT), call(TEXT), method="tools/call"),
             over(call(), REFUSED, method="tools/call")],
            entry("up", "arm-removed", "ContentBlock", "drop-item", arm='"AudioContent"')),
    Release("a content type comes", video, ["down arm-removed ContentBlock VideoContent"],
            [over(call({**AUDIO, "type": "video"}), call({"type": "text", "text": "[VideoContent]"}), "down", "tools/call")]),
    Release("a definition has a new name", lambda defs: defs.update(
        PromptParameter=defs.pop("PromptArgument"),
        Prompt={**defs["Prompt"], "properties": {
            **defs["Prompt"]["properties"],
            "arguments": {"type": "array", "items": {"$ref": "#/$defs/PromptParameter"}},
        }},
    ), ["up renamed PromptArgument"], [same(prompts(arguments=[{"name": "a"}]), method="prompts/list")]),
    Release("an object of strings comes", add("Tool", labels={"type": "object", "additionalProperties": STRING}), [],
            [over(tools({"labels": {"a": "b"}}), tools({}), "down"), same(tools({"labels": {"a": "b"}})),
             over(tools({"labels": {"a": 1}}), tools({}))]),
    Release("a required object comes", add("Tool", required=True, limits={
        "type": "object", "properties": {"kind": {"const": "none"}, "note": STRING}, "required": ["kind"]}), [],
            [over(tools({}), tools({"limits": {"kind": "none"}})), over(tools({"limits": {"kind": "none"}}), tools({}), "down")]),
    Release("an optional object becomes required", lambda defs: defs["Tool"].update(
        required=sorted({*defs["Tool"]["required"], "annotations"})), ["up required Tool.annotations"],
            [over(tools({}), tools({"annotations": {}})),
             same(tools({"annotations": {"readOnlyHint": True}}))]),
    Release("an optional object becomes required, and a person says what is in it", lambda defs: defs["Tool"].update(
        required=sorted({*defs["Tool"]["required"], "annotations"})), ["up required Tool.annotations"],
            [over(tools({}), tools({"annotations": {"title": "?"}}))],
            entry("up", "required", "Tool.annotations", "default", with_='{ value = { title = "?" } }')),
    Release("an optional string becomes a required object", lambda defs: (
        add("Tool", required=True, title={"type": "object", "properties": {"text": STRING}})(defs)),
            ["up narrowed Tool.title", "up required Tool.title", "down narrowed Tool.title"],
            [over(tools({"title": "T"}), REFUSED), over(tools({}), REFUSED)]),
    Release("a field comes out of an object, and nobody says so", out_of_annotations,
            ["up moved Tool.annotations.readOnlyHint"], [over(tools(HINT), tools({"annotations": {}}))]),
    Release("a field comes out of an object", out_of_annotations, ["up moved Tool.annotations.readOnlyHint"],
            [over(tools(HINT), tools({"readOnlyHint": True})), over(tools({"readOnlyHint": True}), tools(HINT), "down"),
             same(tools({"annotations": {"openWorldHint": True}})),
             over(tools({"annotations": {"openWorldHint": True, "readOnlyHint": True}}),
                  tools({"annotations": {"openWorldHint": True}, "readOnlyHint": True})),
             over(tools({"annotations": {"title": "T"}, "readOnlyHint": True}),
                  tools({"annotations": {"title": "T", "readOnlyHint": True}}), "down"),
             over(tools({**HINT, "readOnlyHint": False}), tools({"readOnlyHint": False}))],
            move("Tool", ["annotations", "readOnlyHint"], ["readOnlyHint"])),
    Release("fields go into an object that is new", into_a_new_object,
            ["up moved Prompt.description", "up moved Prompt.title"],
            [over(prompts(title="T", description="D"), prompts(display={"title": "T", "description": "D"}),
                  method="prompts/list"),
             over(prompts(display={"title": "T"}), prompts(title="T"), "down", "prompts/list"),
             same(prompts(), method="prompts/list")],
            move("Prompt", ["title"], ["display", "title"]) + move("Prompt", ["description"], ["display", "description"])),
    Release("a field goes into an object that has one of its name and takes less", into_annotations,
            ["up narrowed ToolAnnotations.title"],
            [over(tools({"title": "T"}), tools({}))]),
    Release("a field comes out of an object that must be there", out_of_completion,
            ["up moved CompleteResult.completion.total"],
            [over(done(values=[], total=3), {**done(values=[]), "result": {**done(values=[])["result"], "total": 3}},
                  method="completion/complete")],
            move("CompleteResult", ["completion", "total"], ["total"])),
    Release("a field goes into an object that asks for more", beside,
            ["up moved Tool.annotations.readOnlyHint"],
            [over(tools(HINT), REFUSED), same(tools({})),
             over(tools({"effects": {"kind": "k", "readOnlyHint": True}}), tools(HINT), "down")],
            move("Tool", ["annotations", "readOnlyHint"], ["effects", "readOnlyHint"])),
    Release("values of other keys have a type", lambda defs: defs["MetaObject"].update(additionalProperties=STRING),
            ["up narrowed MetaObject{}"],
            [over(tools({"_meta": {"a": None, "b": 1, "c": "x"}}), tools({"_meta": {"c": "x"}})),
             same(tools({"_meta": {"c": "x"}}), "down")]),
    Release("the envelope of answers asks for more", add("JSONRPCResultResponse", required=True, via=STRING),
            ["up required JSONRPCResultResponse.via"],
            [over(tools({}), {**tools({}), "via": "?"}), over({**tools({}), "via": "x"}, tools({}), "down")],
            entry("up", "required", "JSONRPCResultResponse.via", "default", with_='{ value = "?" }')),
    Release("a field goes and one of another type comes", both(remove("Tool", "title"), add("Tool", rank={"type": "integer"})),
            ["up renamed Tool.title"], [over(tools({"title": "T"}), tools({}))]),
    Release("a field has a new name and another type", both(remove("Tool", "title"), add("Tool", label={
        "type": "string", "maxLength": 3})), ["up renamed Tool.title"],
            [over(tools({"title": "T"}), tools({"label": "T"})), over(tools({"title": "Title"}), tools({})),
             over(tools({"label": "T"}), tools({"title": "T"}), "down")],
            rename("field", "title", "label", "Tool")),
    Release("a field moves and gets another name", moved_under_another_name,
            ["up moved Tool.annotations.readOnlyHint"],
            [over(tools(HINT), tools({"readOnly": "yes"}))],
            move("Tool", ["annotations", "readOnlyHint"], ["readOnly"])
            + entry("up", "narrowed", "Tool.readOnly", "map-value", with_='{ to = {}, otherwise = "yes" }')),
    Release("a number has a new name and another unit", both(remove("Annotations", "priority"), add(
        "Annotations", priorityPercent={"type": "integer", "maximum": 100})), ["up renamed Annotations.priority"],
            [over(call({**TEXT, "annotations": {"priority": 1}}), call({**TEXT, "annotations": {"priorityPercent": 100}}),
                  method="tools/call"),
             over(call({**TEXT, "annotations": {"priority": 0.5}}), call({**TEXT, "annotations": {"priorityPercent": 50.0}}),
                  method="tools/call"),
             over(call({**TEXT, "annotations": {"priorityPercent": 100}}), call({**TEXT, "annotations": {"priority": 1}}),
                  "down", "tools/call"),
             over(call({**TEXT, "annotations": {"priorityPercent": 50}}), call({**TEXT, "annotations": {"priority": 0.5}}),
                  "down", "tools/call")],
            rename("field", "priority", "priorityPercent", "Annotations") + "factor = 100\n"),
    Release("one value becomes a list", add("Prompt", title={"type": "array", "items": STRING}),
            ["up narrowed Prompt.title", "down narrowed Prompt.title"],
            [over(prompts(title="T"), prompts(title=["T"]), method="prompts/list"),
             over(prompts(title=["T", "U"]), prompts(title="T"), "down", "prompts/list"),
             over(prompts(title=[]), prompts(), "down", "prompts/list")],
            entry("up", "narrowed", "Prompt.title", "as-list") + entry("down", "narrowed", "Prompt.title", "first-item")),
    Release("a text becomes a list of its parts", add("Prompt", title={"type": "array", "items": STRING}),
            ["up narrowed Prompt.title", "down narrowed Prompt.title"],
            [over(prompts(title="a b"), prompts(title=["a", "b"]), method="prompts/list"),
             over(prompts(title=["a", "b"]), prompts(title="a b"), "down", "prompts/list")],
            entry("up", "narrowed", "Prompt.title", "split-text", with_='{ separator = " " }')
            + entry("down", "narrowed", "Prompt.title", "join-text", with_='{ separator = " " }')),
    Release("an object is closed", lambda defs: defs["ToolAnnotations"].update(additionalProperties=False),
            ["up narrowed ToolAnnotations{}"],
            [over(tools({"annotations": {"readOnlyHint": True, "x": 1}}), tools({"annotations": {"readOnlyHint": True}})),
             same(tools({"annotations": {"readOnlyHint": True}}), "down")]),
    Release("a closed object comes, and has a name in it", add("Tool", limits={
        "type": "object", "properties": {"a": STRING}, "additionalProperties": False}), [],
            [same(tools({"limits": {"a": "b"}})), over(tools({"limits": {"c": "b"}}), tools({}))]),
    Release("a closed object in an allOf", add("Tool", limits={"allOf": [
        {"type": "object", "properties": {"a": STRING, "b": STRING}, "propertyNames": {"type": "string"}},
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": False}]}), [],
            [same(tools({"limits": {"a": "b"}})), over(tools({"limits": {"b": "b"}}), tools({}))]),
    Release("limits in an allOf", add("Tool", size={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "allOf": [{"type": "number", "minimum": 0}, {"type": "integer", "maximum": 5}, {"minimum": 1, "type": "number"}]}), [],
            [same(tools({"size": 1})), over(tools({"size": 0}), tools({})), over(tools({"size": 6}), tools({})),
             over(tools({"size": 1.5}), tools({}))]),
    Release("an allOf of a scalar", add("Tool", size={"allOf": [STRING]}), [],
            [same(tools({"size": "a"})), over(tools({"size": 1}), tools({}))]),
    Release("a result in an allOf", result_in_all_of, [],
            [over(tools({"cost": 0.5}), tools({}), "down")]),
    Release("a reference into a definition", add("Prompt", hint={"$ref": "#/$defs/Tool/properties/annotations"}), [],
            [over(prompts(hint={"readOnlyHint": True}), prompts(), "down", "prompts/list")]),
]  # fmt: skip
