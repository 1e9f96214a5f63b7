"""`list` and `call` show and read what a schema takes, whatever a server has put there."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import reduce
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.cli.progress import ProgressLine
from dragoman.cli.values import name_type, read_value, signature, types_of
from tests.support.effort import effort

LONGEST_S = 60
TEXT: dict[str, Any] = {"type": "string"}

SERVER = """
import json, sys
tool = {"name": "t", "inputSchema": json.loads(sys.argv[1])}
for line in sys.stdin:
    frame = json.loads(line)
    answer = {"error": {"code": -32601, "message": "no"}}
    if frame["method"] == "initialize":
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}}}
    elif frame["method"] == "tools/list":
        answer = {"result": {"tools": [tool]}}
    elif frame["method"] == "tools/call":
        answer = {"result": {"content": [{"type": "text", "text": json.dumps(frame["params"]["arguments"])}]}}
    if "id" in frame:
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **answer}), flush=True)
"""


def nested(levels: int, *kinds: str) -> dict[str, Any]:
    return reduce(lambda inner, _: {"type": list(kinds), "items": inner}, range(levels), TEXT)


def dragoman(verb: str, *words: str, schema: dict[str, Any]) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "dragoman", verb, *words, "--", sys.executable, "-c", SERVER, json.dumps(schema)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    return done.returncode, done.stdout, done.stderr


def test_what_is_nested_deeply_is_shown_to_some_depth() -> None:
    shown = name_type(nested(480, "array"))
    assert shown == 8 * "list[" + "any" + 8 * "]"
    arms = reduce(lambda inner, _: {"anyOf": [inner, {"type": "integer"}]}, range(480), TEXT)
    assert (types_of(arms) >= {"integer", "string"}, len(name_type(arms)) < 200) == (True, True)


def test_a_kind_that_is_named_twice_is_named_once_and_takes_no_more_time() -> None:
    twice = nested(18, "array", "array")
    assert name_type(twice) == name_type(nested(18, "array"))
    assert effort(lambda: name_type(twice)) < 2


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        *(({"type": kind}, "any") for kind in (5, None, [[1]], {}, [], [5, None], "date")),
        ({"type": ["array", 5, "null"], "items": TEXT}, "list[str] | None"),
        ({"anyOf": []}, "any"),
        ({"anyOf": [{"type": 5}, 7, {"type": [{}]}]}, "any"),
        ({"anyOf": [{"const": number} for number in range(9)]}, "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | …"),
        ({"enum": [1, 1, 1, 1, 1, 2]}, "1 | 2"),
        ({"$ref": 300 * "x"}, 199 * "x" + "…"),
        ({"const": 300 * "x"}, '"' + 198 * "x" + "…"),
    ],
)
def test_what_says_nothing_or_too_much_is_shown_all_the_same(schema: dict[str, Any], shown: str) -> None:
    assert name_type(schema) == shown
    assert read_value("[", schema) == "["


def test_a_kind_that_nobody_knows_may_be_anything() -> None:
    assert [read_value("3", {"type": kind}) for kind in (5, [[1]], "date", ["string", 5])] == [3, 3, 3, "3"]


def test_very_many_arguments_are_not_all_shown() -> None:
    many = {f"a{number}": TEXT for number in range(1000)}
    shown = signature("t", {"properties": many, "required": ["a999", 5, [1], None]})
    assert shown.startswith("t(a999: str, a0?: str, ")
    assert shown.endswith("a62?: str, …)")


@pytest.mark.parametrize("odd", [nested(480, "array", "null"), {"type": [[1]]}, {"const": 10**400}])
def test_a_server_with_odd_schemas_is_listed_and_called(odd: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"a": odd}, "required": ["a", 5, [1]]}
    code, listed, said = dragoman("list", schema=schema)
    assert (code, "t(a: " in listed, said) == (0, True, "")
    code, found, said = dragoman("call", "t", "a=[1]", schema=schema)
    assert (code, json.loads(found), said) == (0, {"a": [1]}, "")


@pytest.mark.parametrize("words", ["a=" + 100_000 * "[", "--arguments=" + 100_000 * "["])
def test_what_is_typed_may_be_nested_deeply(words: str) -> None:
    code, _, said = dragoman("call", "t", words, schema={"properties": {"a": {"type": "array"}}})
    assert (code, "Traceback" in said) == (2, False)


@pytest.mark.parametrize(
    ("progress", "total", "shown"), [(10**400, 1, "1e+400 of 1"), (0.5, 10**400, "0.5 of 1e+400"), (3, None, "3")]
)
def test_progress_may_be_any_number(
    progress: float, total: float | None, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"progress": progress, "total": total}
    ProgressLine(True).tell(SimpleNamespace(model_dump=lambda: said))
    assert capsys.readouterr().err.endswith(shown)
