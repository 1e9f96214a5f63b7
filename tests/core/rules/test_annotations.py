"""Which arguments are mirrored into headers, and which tools may not be offered for how they say it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.rules.annotations import (
    Invalid,
    find_mirrored,
    leave_out_invalid,
    may_mention,
    strip_invalid,
)
from dragoman.core.switch.listed_tools import ListedTools


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize("nothing", [None, True, [], "x", {}, schema(a=True, b={"type": "string"})])
def test_a_schema_without_annotations_mirrors_nothing(nothing: Any) -> None:
    assert find_mirrored(nothing) == ()


@pytest.mark.parametrize(
    "unannotated",
    [
        schema(**{"x-mcp-header": {"type": "string"}}),
        schema(a={"type": "object", "default": {"x-mcp-header": "A"}}),
        schema(a={"const": {"x-mcp-header": "A"}}),
        schema(a={"enum": [{"x-mcp-header": "A"}]}),
    ],
)
def test_the_keyword_as_a_name_or_in_a_value_is_no_annotation(unannotated: Any) -> None:
    assert find_mirrored(unannotated) == ()


INVALID = [
    schema(a={"type": "string", "x-mcp-header": ""}),
    schema(a={"type": "string", "x-mcp-header": "two words"}),
    schema(a={"type": "string", "x-mcp-header": "line\r\nfeed"}),
    schema(a={"type": "string", "x-mcp-header": "größe"}),
    schema(a={"type": "string", "x-mcp-header": "a:b"}),
    schema(a={"type": "string", "x-mcp-header": "trailing\n"}),
    schema(a={"type": "string", "x-mcp-header": 5}),
    schema(a={"type": "string", "x-mcp-header": None}),
    schema(a={"type": "number", "x-mcp-header": "A"}),
    schema(a={"type": "object", "x-mcp-header": "A"}),
    schema(a={"type": "array", "x-mcp-header": "A"}),
    schema(a={"type": ["string", "null"], "x-mcp-header": "A"}),
    schema(a={"x-mcp-header": "A"}),
    schema(a={"type": "string", "x-mcp-header": "Same"}, b={"type": "string", "x-mcp-header": "sAME"}),
    {"type": "string", "x-mcp-header": "Root"},
    schema(a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
    schema(a={"oneOf": [{"type": "string", "x-mcp-header": "A"}]}),
    schema(a={"not": {"type": "string", "x-mcp-header": "A"}}),
    {"allOf": [schema(a={"type": "string", "x-mcp-header": "A"})]},
    {"if": schema(a={"type": "string", "x-mcp-header": "A"})},
    {"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
    {"patternProperties": {"a": {"type": "string", "x-mcp-header": "A"}}},
    {"additionalProperties": {"type": "string", "x-mcp-header": "A"}},
    {"of-a-vendor": [[schema(a={"type": "string", "x-mcp-header": "A"})]]},
]


@pytest.mark.parametrize("invalid", INVALID)
def test_an_annotation_that_no_header_can_follow_is_refused(invalid: Any) -> None:
    with pytest.raises(ValueError, match="x-mcp-header"):
        find_mirrored(invalid)


def test_a_schema_of_any_depth_is_read() -> None:
    deep: dict[str, Any] = {"type": "string", "x-mcp-header": "Deep"}
    for _ in range(5000):
        deep = schema(a=deep)
    (found,) = find_mirrored(deep)
    assert len(found.path) == 5000


def test_lists_of_any_depth_are_read() -> None:
    deep: Any = schema(a={"type": "string", "x-mcp-header": "A"})
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValueError, match="below another keyword"):
        find_mirrored({"anyOf": deep})


def test_only_tools_with_invalid_annotations_are_left_out() -> None:
    good = {"name": "good", "inputSchema": schema(a={"type": "string", "x-mcp-header": "A"})}
    plain = {"name": "plain", "inputSchema": {"type": "object"}}
    bad = {"name": "bad", "inputSchema": INVALID[0]}
    result, invalid = leave_out_invalid({"tools": [good, bad, plain], "nextCursor": "2"})
    assert result == {"tools": [good, plain], "nextCursor": "2"}
    assert invalid == (Invalid("bad", "x-mcp-header of a is not a name that a header can have"),)


@pytest.mark.parametrize("whole", [{"tools": []}, {}, {"tools": 5}, {"tools": [{"name": "a"}, "odd", None]}])
def test_a_list_without_them_stays_the_same_object(whole: Any) -> None:
    result, invalid = leave_out_invalid(whole)
    assert result is whole
    assert invalid == ()


def without_annotations(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_annotations(member) for name, member in value.items() if name != "x-mcp-header"}
    return [without_annotations(member) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("invalid", INVALID)
def test_annotations_come_off_a_tool_whose_are_invalid(invalid: Any) -> None:
    good = {"name": "good", "inputSchema": schema(a={"type": "string", "x-mcp-header": "A"})}
    bad = {"name": "bad", "title": "Bad", "inputSchema": invalid}
    result, stripped = strip_invalid({"tools": [good, bad]})
    assert result == {"tools": [good, {**bad, "inputSchema": without_annotations(invalid)}]}
    assert [tool.tool for tool in stripped] == ["bad"]
    assert find_mirrored(result["tools"][1]["inputSchema"]) == ()


def test_stripping_changes_nothing_of_what_it_is_given() -> None:
    bad = {"name": "bad", "inputSchema": schema(a={"type": "number", "x-mcp-header": "A"})}
    strip_invalid({"tools": [bad]})
    assert bad["inputSchema"] == schema(a={"type": "number", "x-mcp-header": "A"})


def test_a_tool_that_nobody_can_write_is_left_out() -> None:
    deep: Any = {"x-mcp-header": ""}
    for _ in range(20_000):
        deep = [deep]
    result, stripped = strip_invalid({"tools": [{"name": "deep", "inputSchema": {"anyOf": deep}}]})
    assert result == {"tools": []}
    assert [tool.tool for tool in stripped] == ["deep"]
    while isinstance(deep, list):
        (deep,) = deep


def test_a_list_of_good_tools_stays_the_same_object() -> None:
    whole = {"tools": [{"name": "plain"}]}
    assert strip_invalid(whole) == (whole, ())


@pytest.mark.parametrize(
    ("line", "may"),
    [
        (b'{"inputSchema":{"type":"object","title":"\\u4f60"}}', False),
        (b'{"x-mcp-header":"A"}', True),
        (b'{"\\u0078-mcp-header":"A"}', True),
        (b"", True),
    ],
)
def test_a_line_shows_that_no_argument_of_its_tools_is_mirrored(line: bytes, may: bool) -> None:
    assert may_mention(line) is may


def test_a_list_whose_line_says_nothing_of_headers_is_not_looked_through() -> None:
    """Each schema would be written twice."""
    unreadable = {"type": "object", "properties": {"x": object()}}
    tools = ListedTools(sends=True, hears=True, remind=lambda after_s, then: None)
    listed = {"tools": [{"name": "a", "inputSchema": unreadable}]}
    assert tools.note(listed, b'{"tools":[]}') is listed
    assert tools.is_known("a")
