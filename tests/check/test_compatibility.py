"""What breaks clients when a server changes: what it takes less of, and what it says more of."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.check.compatibility import compare_offers
from tests.support.commands import dragoman

PATIENCE_S = 60


def told(before: Any, now: Any) -> list[tuple[str, str, str]]:
    return [(change.effect.value, change.pointer, change.text) for change in compare_offers(before, now)]


def tool(**schema: Any) -> dict[str, Any]:
    return {"tools": [{"name": "a", "inputSchema": {"type": "object", **schema}}]}


def gives(**schema: Any) -> dict[str, Any]:
    about = {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", **schema}}
    return {"tools": [about]}


def of(**properties: Any) -> dict[str, Any]:
    return {"properties": properties}


TEXT, NUMBER, INTEGER = {"type": "string"}, {"type": "number"}, {"type": "integer"}
ONE, TWO = {"enum": ["x"]}, {"enum": ["x", "y"]}

BREAKS: list[tuple[Any, Any, str]] = [
    ({"tools": [{"name": "a"}]}, {"tools": []}, ""),
    (tool(), tool(required=["x"]), "/inputSchema/required"),
    (tool(**of(x=TEXT)), tool(**of(x=NUMBER)), "/inputSchema/properties/x/type"),
    (tool(**of(x=NUMBER)), tool(**of(x=INTEGER)), "/inputSchema/properties/x/type"),
    (tool(**of(x={})), tool(**of(x=TEXT)), "/inputSchema/properties/x/type"),
    (tool(**of(x=TWO)), tool(**of(x=ONE)), "/inputSchema/properties/x/enum"),
    (tool(**of(x=TEXT)), tool(**of(x={**TEXT, "maxLength": 5})), "/inputSchema/properties/x/maxLength"),
    (tool(), tool(additionalProperties=False), "/inputSchema/additionalProperties"),
    (tool(**of(x=TEXT)), tool(additionalProperties=False), "/inputSchema/properties/x"),
    (gives(required=["x"]), gives(), "/outputSchema/required"),
    (gives(**of(x=ONE)), gives(**of(x=TWO)), "/outputSchema/properties/x/enum"),
    (gives(**of(x=INTEGER)), gives(**of(x=NUMBER)), "/outputSchema/properties/x/type"),
    (gives(), tool(), "/outputSchema"),
    (
        tool(**of(x={"$ref": "#/$defs/T"}), **{"$defs": {"T": TEXT}}),
        tool(**of(x={"$ref": "#/$defs/T"}), **{"$defs": {"T": NUMBER}}),
        "/inputSchema/properties/x/type",
    ),
    (
        {"prompts": [{"name": "p", "arguments": []}]},
        {"prompts": [{"name": "p", "arguments": [{"name": "x", "required": True}]}]},
        "/arguments/x",
    ),
]
"""Before, now, and where it breaks; the other way round nothing breaks there."""


@pytest.mark.parametrize(("before", "now", "pointer"), BREAKS)
def test_a_change_breaks_clients_in_one_direction(before: Any, now: Any, pointer: str) -> None:
    assert "breaking" in [effect for effect, where, _ in told(before, now) if where == pointer]


@pytest.mark.parametrize(
    ("before", "now", "pointer"), [row for row in BREAKS if row[2] and "properties/x/type" not in row[2]]
)
def test_the_same_change_backwards_does_not(before: Any, now: Any, pointer: str) -> None:
    assert "breaking" not in [effect for effect, where, _ in told(now, before) if where == pointer]


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (tool(), tool()),
        (tool(), tool(**of(x=TEXT))),
        ({"tools": []}, tool()),
        (tool(**of(x=INTEGER)), tool(**of(x=NUMBER))),
        (gives(), gives(required=["x"])),
        (gives(**of(x=TWO)), gives(**of(x=ONE))),
        (tool(**of(x={"type": ["string", "null"]})), tool(**of(x={"type": ["null", "string"]}))),
    ],
)
def test_what_clients_can_live_with_is_safe(before: Any, now: Any) -> None:
    assert {effect for effect, _, _ in told(before, now)} <= {"safe"}


def test_a_tool_that_does_not_only_read_any_more_is_risky() -> None:
    def hinted(**hints: Any) -> dict[str, Any]:
        return {"tools": [{"name": "a", "inputSchema": {}, "annotations": hints}]}

    assert told(hinted(readOnlyHint=True), hinted())[0][:2] == ("risky", "/annotations/readOnlyHint")


def test_the_worst_comes_first() -> None:
    before = {"tools": [{"name": "gone"}, {"name": "a", "inputSchema": {"pattern": "x"}}]}
    now = {"tools": [{"name": "a", "inputSchema": {"pattern": "y"}}, {"name": "new"}]}
    assert [effect for effect, _, _ in told(before, now)] == ["breaking", "risky", "safe"]


def test_a_schema_that_refers_to_itself_has_an_end() -> None:
    loop = tool(**of(x={"$ref": "#"}))
    assert told(loop, tool(**of(x={"$ref": "#"}), title="t")) == []


SERVER = """\
import json, sys
properties = json.loads(sys.argv[1])
for line in sys.stdin:
    frame = json.loads(line)
    answer = {"error": {"code": -32601, "message": "no such method"}}
    if frame["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
    elif frame["method"] == "tools/list":
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        answer = {"result": {"tools": [{"name": "a", "inputSchema": schema}]}}
    if "id" in frame:
        print(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **answer}), flush=True)
"""


def run(folder: Path, properties: Any, *options: str) -> tuple[int, str, str]:
    (folder / "server.py").write_text(SERVER)
    server = [sys.executable, str(folder / "server.py"), json.dumps(properties)]
    done = dragoman(*options, "--", *server)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_a_server_is_held_against_what_it_offered(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    baseline.write_text(run(tmp_path, {"x": TEXT}, "list", "--json")[1])
    against = ("check", "--against", str(baseline))
    assert run(tmp_path, {"x": TEXT}, *against)[:2] == (0, f"nothing has changed since {baseline}\n")
    code, out, _ = run(tmp_path, {"x": TEXT, "y": TEXT}, *against)
    assert code == 1
    assert out.splitlines()[0] == "breaking  tool a at /inputSchema/required: y is required"
    code, out, _ = run(tmp_path, {"x": TEXT, "y": TEXT}, *against, "--error-format", "github")
    assert (code, out.splitlines()[0]) == (
        1,
        "::error title=breaking change::tool a at /inputSchema/required: y is required",
    )
    code, out, _ = run(tmp_path, {"x": TEXT, "y": TEXT}, *against, "--error-format", "json")
    assert json.loads(out)[0]["effect"] == "breaking"


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", '{"tools":7}'])
def test_a_file_that_is_no_list_is_explained(text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    code, _, err = run(tmp_path, {}, "check", "--against", str(tmp_path / "file"))
    assert code == 2
    assert "expected what `dragoman list --json` prints" in " ".join(err.split())
