"""Made-up releases that change what a single value may be."""

from __future__ import annotations

from typing import Any

from tests.codegen.releases.cases import REFUSED, STRING, Release, add, entry, error, log, over, same, tools

NUMBER, INTEGER, BOOLEAN, NULL = ({"type": kind} for kind in ("number", "integer", "boolean", "null"))


def either(*arms: Any) -> Any:
    return {"anyOf": list(arms)}


def typed(old: Any, new: Any, *, required: bool = False) -> tuple[Any, Any]:
    """A field `Tool.x` of one type before and of another after."""
    return add("Tool", required=required, x=old), add("Tool", required=required, x=new)


def x(*values: Any) -> dict[str, Any]:
    """Tools, each with a field `x`; without one where a value is `...`."""
    return tools(*({} if value is ... else {"x": value} for value in values))


NARROWED = "up narrowed Tool.x"
BACK = "down narrowed Tool.x"

PAIRS: list[tuple[str, Any, Any, list[str], list[Any]]] = [
    ("a number or a string becomes a string", either(NUMBER, STRING), STRING,
     ["up arm-removed Tool.x number"],
     [over(x(5), x(...)), over(x(5.5), x(...)), same(x("a")), same(x("a"), "down")]),
    ("an integer or a string becomes a string", either(INTEGER, STRING), STRING,
     ["up arm-removed Tool.x integer"],
     [over(x(5, 5.0), x(..., ...)), same(x("5"))]),
    ("a number or a string becomes an integer or a string", either(NUMBER, STRING), either(INTEGER, STRING),
     [NARROWED],
     [same(x(5, 5.0, "a")), over(x(5.5, 5), x(..., 5)), same(x(5, "a"), "down")]),
    ("what may be null may not be", {"type": ["string", "null"]}, STRING,
     ["up arm-removed Tool.x null"],
     [over(x(None, "a"), x(..., "a")), same(x("a"), "down")]),
    ("what may be null is a union without it", either(STRING, INTEGER, NULL), either(STRING, INTEGER),
     ["up arm-removed Tool.x null"],
     [over(x(None, 1, "a"), x(..., 1, "a"))]),
    ("a boolean or a string becomes a boolean", either(BOOLEAN, STRING), BOOLEAN,
     ["up arm-removed Tool.x string"],
     [over(x(True, "a", False), x(True, ..., False))]),
    ("a number becomes an integer", NUMBER, INTEGER,
     [NARROWED], [same(x(5, 5.0, 10**30)), over(x(0.5), x(...)), same(x(5), "down")]),
    ("a string becomes a number", STRING, NUMBER,
     [NARROWED, BACK], [over(x("5"), x(...)), over(x(5), x(...), "down")]),
    ("a list of types gets shorter", {"type": ["string", "number", "boolean"]}, {"type": ["string", "boolean"]},
     ["up arm-removed Tool.x number"], [over(x(1, "a", True), x(..., "a", True))]),
    ("a list of types is ordered anew", {"type": ["string", "number", "boolean"]}, {"type": ["boolean", "number", "string"]},
     [], [same(x("a", 0.5, True)), same(x("a", 0.5, True), "down")]),
    ("any value becomes a string", {}, STRING,
     [NARROWED], [over(x({"a": 1}, None, "a"), x(..., ..., "a"))]),
    ("a minimum comes", INTEGER, {"type": "integer", "minimum": 1},
     [NARROWED], [over(x(0, 1), x(..., 1)), same(x(1), "down")]),
    ("an exclusive minimum comes", NUMBER, {"type": "number", "exclusiveMinimum": 0},
     [NARROWED], [over(x(0, 0.1, 0.0), x(..., 0.1, ...))]),
    ("an exclusive maximum falls", {"type": "number", "exclusiveMaximum": 9}, {"type": "number", "exclusiveMaximum": 8},
     [NARROWED], [over(x(8, 7.9), x(..., 7.9))]),
    ("a shortest length comes", STRING, {"type": "string", "minLength": 1},
     [NARROWED], [over(x("", "a"), x(..., "a"))]),
    ("a longest length comes", STRING, {"type": "string", "maxLength": 2},
     [NARROWED], [over(x("abc", "ab", "日本"), x(..., "ab", "日本"))]),
    ("a limit goes", {"type": "integer", "maximum": 9}, INTEGER,
     [BACK], [same(x(9)), over(x(10), x(...), "down")]),
    ("an enum gets shorter", {"enum": ["a", "b"]}, {"enum": ["a"]},
     [NARROWED], [over(x("b", "a"), x(..., "a")), same(x("a"), "down")]),
    ("a mixed enum loses its null", {"enum": ["a", 1, None]}, {"enum": ["a", 1]},
     ["up arm-removed Tool.x null"], [over(x(None, 1, "a", 1.0), x(..., 1, "a", 1.0))]),
    ("a mixed enum loses a number", {"enum": ["a", 1, 2]}, {"enum": ["a", 1]},
     [NARROWED], [over(x(2, 1), x(..., 1))]),
    ("a mixed enum becomes a string", {"enum": ["a", 1, True]}, STRING,
     ["up arm-removed Tool.x 1", "up arm-removed Tool.x True", BACK], [over(x(1, True, "a"), x(..., ..., "a"))]),
    ("a string becomes a list of strings", STRING, {"type": "array", "items": STRING},
     [NARROWED, BACK], [over(x("a"), x(...)), over(x(["a"]), x(...), "down")]),
    ("a string or a list becomes a list", either(STRING, {"type": "array", "items": STRING}), {"type": "array", "items": STRING},
     ["up arm-removed Tool.x string"], [over(x("a", ["a"]), x(..., ["a"]))]),
    ("a oneOf of strings and numbers loses one", {"oneOf": [STRING, NUMBER]}, {"oneOf": [STRING, BOOLEAN]},
     ["up arm-removed Tool.x number", "down arm-removed Tool.x boolean"],
     [over(x(5, "a"), x(..., "a")), over(x(True, "a"), x(..., "a"), "down")]),
]  # fmt: skip
"""Name, type before, type after, what is asked, frames with the safe defaults."""

bare = tools({})
del bare["result"]["tools"][0]["inputSchema"]

SCALARS = [
    Release(
        "a level goes, and a person says which one it becomes",
        lambda defs: defs["LoggingLevel"].update(enum=[v for v in defs["LoggingLevel"]["enum"] if v != "notice"]),
        ["up narrowed LoggingLevel"],
        [over(log(level="notice"), log(level="info")), same(log(level="info")), same(log(level="info"), "down")],
        entry("up", "narrowed", "LoggingLevel", "map-value", with_='{ to = { notice = "info" } }'),
    ),
    Release(
        "a required value goes, and there is nothing to say instead",
        lambda defs: defs["LoggingLevel"].update(enum=["error"]),
        ["up narrowed LoggingLevel"],
        [over(log(level="notice"), REFUSED), same(log(level="error"))],
    ),
    Release(
        "progress is an integer",
        lambda defs: defs["ProgressNotificationParams"]["properties"].update(progress={"type": "integer"}),
        ["up narrowed ProgressNotificationParams.progress"],
    ),
    Release(
        "a request id is a string",
        lambda defs: defs.update(RequestId={"type": "string"}),
        ["up arm-removed RequestId integer"],
        [over(error(id=1), REFUSED), same(error(id="a")), same(error()), same(error(id="a"), "down")],
    ),
    Release(
        "a request id is an integer",
        lambda defs: defs.update(RequestId={"type": "integer"}),
        ["up arm-removed RequestId string"],
        [over(error(id="a"), REFUSED), same(error(id=1)), same(error()), same(error(id=1), "down")],
    ),
    Release(
        "a request id is a string, and a person says which",
        lambda defs: defs.update(RequestId={"type": "string"}),
        ["up arm-removed RequestId integer"],
        [over(error(id=1), error(id="?")), over({**tools({}), "id": 1}, {**tools({}), "id": "?"})],
        entry("up", "arm-removed", "RequestId", "map-value", arm='"integer"', with_='{ to = {}, otherwise = "?" }'),
    ),
    Release(
        "an error response must have an id",
        lambda defs: defs["JSONRPCErrorResponse"].update(required=["error", "id", "jsonrpc"]),
        ["up required JSONRPCErrorResponse.id"],
        [over(error(), REFUSED), same(error(id=1)), same(error(id="a"), "down")],
    ),
    Release(
        "the message of an error may be short only",
        add("Error", message={"type": "string", "maxLength": 4}),
        ["up narrowed Error.message and 3 more"],
        [over(error(), REFUSED)],
    ),
    Release(
        "a progress token may be fractional",
        lambda defs: defs.update(ProgressToken={"type": ["string", "number"]}),
        ["down narrowed ProgressToken"],
    ),
    Release(
        "a field that is required may be absent",
        lambda defs: defs["Tool"].update(required=["name"]),
        [],
        [over(bare, tools({}), "down")],
    ),
]
