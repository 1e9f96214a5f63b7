"""Made-up releases that cannot be read, and overlays that would break frames: each is refused by name."""

from __future__ import annotations

from typing import Any

from tests.codegen.releases.cases import STRING, Change, add, both, entry, remove, rename

TOOL = "/$defs/Tool/properties/x"


def x(node: Any) -> Change:
    return add("Tool", x=node)


UNREADABLE: list[tuple[str, Change, str, str]] = [
    ("if and then", x({"if": STRING, "then": STRING}), TOOL, "the keyword 'if', 'then'"),
    ("patternProperties", x({"type": "object", "patternProperties": {"^x": STRING}}), TOOL,
     "the keyword 'patternProperties'"),
    ("a type of an object that is closed", x({"type": "object", "properties": {"a": STRING}, "additionalProperties": STRING}),
     TOOL, "an object with properties whose other keys are typed"),
    ("a pattern that looks ahead", x({"type": "string", "pattern": "^(?=a)"}), TOOL, "the keyword 'pattern' with '^(?=a)'"),
    ("a pattern of letters of all scripts", x({"type": "string", "pattern": r"^\p{L}+$"}), TOOL, "the keyword 'pattern' with"),
    ("two patterns in an allOf", x({"allOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "b$"}]}),
     TOOL, "an allOf that asks for"),
    ("uniqueItems", x({"type": "array", "uniqueItems": True}), TOOL, "the keyword 'uniqueItems'"),
    ("prefixItems", x({"type": "array", "prefixItems": [STRING]}), TOOL, "the keyword 'prefixItems'"),
    ("not", x({"not": STRING}), TOOL, "the keyword 'not'"),
    ("multipleOf", x({"type": "number", "multipleOf": 2}), TOOL, "the keyword 'multipleOf'"),
    ("a keyword nobody knows", x({"type": "string", "shiny": 1}), TOOL, "the keyword 'shiny'"),
    ("a oneOf whose arms overlap", x({"oneOf": [STRING, {"type": "string", "maxLength": 3}]}), TOOL,
     "a oneOf whose arms 0 and 1 may share values"),
    ("a circle of references", lambda defs: defs.update(
        Loop={"anyOf": [{"$ref": "#/$defs/Pool"}, STRING]}, Pool={"$ref": "#/$defs/Loop"}),
     "/$defs/Loop", "a definition that refers to itself"),
    ("a reference into itself", x({"type": "array", "items": {"$ref": "#/$defs/Tool/properties/x"}}), TOOL + "/items",
     "a reference to '#/$defs/Tool/properties/x', which"),
    ("a reference to another file", x({"$ref": "other.json#/a"}), TOOL, "a reference to 'other.json#/a'"),
    ("an allOf of an object and a string", x({"allOf": [{"type": "object"}, STRING]}), TOOL + "/allOf/1",
     "an allOf of something other than open objects"),
    ("an allOf that no value is", x({"allOf": [{"type": "boolean"}, STRING]}), TOOL, "an allOf that asks for"),
    ("a schema that is a list", x([STRING]), TOOL, "[{'type': 'string'}] in place of a schema"),
    ("properties that are a list", x({"type": "object", "properties": ["a"]}), "/$defs/Tool", "a malformed schema"),
    ("required that is no list", lambda defs: defs["Tool"].update(required="name"), "/$defs/Tool", "the keyword 'required' with 'name'"),
    ("required that is no list of names", x({"type": "object", "required": [1]}), TOOL, "the keyword 'required' with [1]"),
    ("required that is no list, in an allOf", x({"allOf": [{"type": "object", "required": "a"}, {"type": "object"}]}),
     TOOL + "/allOf/0", "the keyword 'required' with 'a'"),
    ("a limit that is no number", x({"type": "number", "minimum": "0"}), TOOL, "the keyword 'minimum' with '0'"),
    ("a limit that is true", x({"type": "number", "exclusiveMinimum": True}), TOOL, "the keyword 'exclusiveMinimum' with True"),
    ("a length below nothing", x({"type": "string", "minLength": -1}), TOOL, "the keyword 'minLength' with -1"),
    ("half an item", x({"type": "array", "maxItems": 1.5}), TOOL, "the keyword 'maxItems' with 1.5"),
    ("a request that is a notification too",
     lambda defs: defs["ServerNotification"]["anyOf"].append({"$ref": "#/$defs/ListToolsRequest"}),
     "/$defs/ServerNotification", "tools/list, a request and a notification"),
    ("a method that is no constant", lambda defs: defs["ListToolsRequest"]["properties"].update(method=STRING),
     "/$defs/ListToolsRequest", "a request without a constant method"),
    ("a result that is no definition", lambda defs: defs["ListToolsResultResponse"]["properties"].update(result=STRING),
     "/$defs/ListToolsResultResponse/properties/result", "a result that is not a definition"),
]  # fmt: skip
"""Name, change, the pointer that the error has, how its words begin."""

MISRULED: list[tuple[str, Change, str, str]] = [
    ("a default of another type", add("Prompt", required=True, rank={"type": "integer"}),
     entry("up", "required", "Prompt.rank", "default", with_='{ value = "high" }'),
     '"high" is not valid at Prompt.rank'),
    ("a copy of a field that is not there", add("Prompt", required=True, label=STRING),
     entry("up", "required", "Prompt.label", "copy-of", with_='{ field = "nome" }'), "'nome' is no such field"),
    ("a copy of a field of another type", add("Prompt", required=True, label=STRING),
     entry("up", "required", "Prompt.label", "copy-of", with_='{ field = "arguments" }'), "'arguments' is list of"),
    ("a value that the target lacks", lambda defs: defs["LoggingLevel"].update(enum=["error", "info"]),
     entry("up", "narrowed", "LoggingLevel", "map-value", with_='{ to = { notice = "notes" } }'),
     '"notes" is not valid at LoggingLevel'),
    ("another value that the target lacks", lambda defs: defs["LoggingLevel"].update(enum=["error", "info"]),
     entry("up", "narrowed", "LoggingLevel", "map-value", with_='{ to = {}, otherwise = "notes" }'),
     '"notes" is not valid at LoggingLevel'),
    ("too few are cut off",
     lambda defs: defs["CompleteResult"]["properties"]["completion"]["properties"]["values"].update(maxItems=2),
     entry("up", "narrowed", "CompleteResult.completion.values", "truncate", with_="{ most = 3 }"),
     "is not valid at CompleteResult.completion.values"),
    ("a string is cut off", add("Prompt", name={"type": "string", "maxLength": 5}),
     entry("up", "narrowed", "Prompt.name", "truncate", with_="{ most = 3 }"), "`truncate` is for lists, not for string"),
    ("a default without a value", add("Prompt", required=True, rank={"type": "integer"}),
     entry("up", "required", "Prompt.rank", "default"), "`default` needs a `value` in `with`"),
    ("an argument that the action does not have", add("Prompt", required=True, rank=STRING),
     entry("up", "required", "Prompt.rank", "digest", with_='{ off = "name" }'), "digest takes of in `with`: no 'off'"),
    ("an action that does not exist", add("Prompt", required=True, rank=STRING),
     entry("up", "required", "Prompt.rank", "guess"), "`do` is copy-of or default or digest or refuse or swallow-without here, not 'guess'"),
    ("an action for objects on a value", add("Prompt", name={"type": "string", "maxLength": 5}),
     entry("up", "narrowed", "Prompt.name", "digest", with_='{ of = "name" }'), "here, not 'digest'"),
    ("an action of the way down on the way up", lambda defs: defs["ContentBlock"].update(anyOf=defs["ContentBlock"]["anyOf"][:-1]),
     entry("up", "arm-removed", "ContentBlock", "titled-enum", arm='"EmbeddedResource"'), "here, not 'titled-enum'"),
    ("a value that the source lacks", lambda defs: defs["LoggingLevel"].update(enum=["error", "info"]),
     entry("up", "narrowed", "LoggingLevel", "map-value", with_='{ to = { notes = "info" } }'),
     "'notes' in `to` is no value of LoggingLevel"),
    ("a text that is negated", both(remove("Prompt", "title"), add("Prompt", label=STRING)),
     rename("field", "title", "label", "Prompt") + "negated = true\n", "`negated` is for booleans, not for string"),
    ("a rename ruled on by a verb of another change",
     lambda defs: defs.update(PromptParameter={**defs["PromptArgument"]}) or (defs.pop("PromptArgument") and defs["Prompt"]["properties"]["arguments"].update(items={"$ref": "#/$defs/PromptParameter"})),
     entry("up", "renamed", "PromptArgument", "keep"), "`do` is apart here, not 'keep'"),
    ("another definition that is none", lambda defs: defs["ContentBlock"].update(anyOf=defs["ContentBlock"]["anyOf"][:-1]),
     entry("up", "arm-removed", "ContentBlock", "as", arm='"EmbeddedResource"', with_='{ definition = "Nothing" }'),
     "`as` takes a definition of 2027-03-01 in place of another, not 'Nothing'"),
]  # fmt: skip
"""Name, change, overlay, words of the error."""
