"""A naming gives a definition, or an object without a name, a name in Python; on the wire nothing changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from codegen.errors import CodegenError, UnusedDecision
from codegen.maintain.regen import compare_output, render, write_output
from codegen.read.load import union_names
from codegen.read.naming import name_definitions
from codegen.read.normalise import Normalised, normalise
from codegen.read.pins import Era, Pin, read_pins, sha256_hex, write_pins
from dragoman_spec import LATEST
from tests.support.profile import takes_long

ROOT = Path(__file__).resolve().parents[2]
REVISION, NEXT = "2099-01-01", "2100-01-01"
STRING = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "$defs": {
        "None": {"type": "object", "properties": {"a": STRING, "$ref": STRING}},
        "List<string>": {"type": "array", "items": STRING},
        "Call": {
            "type": "object",
            "properties": {
                "none": {"$ref": "#/$defs/None"},
                "part": {"$ref": "#/$defs/None/properties/a"},
                "const": {"type": "array", "items": {"$ref": "#/$defs/List%3Cstring%3E"}},
                "a/b": {"type": "object", "properties": {"c": STRING}},
            },
        },
    }
}


def _entry(of: str, called: str, reason: str = "Because.") -> str:
    return f"[[name]]\nof = {json.dumps(of)}\ncalled = {json.dumps(called)}\nreason = {json.dumps(reason)}\n"


def _named(folder: Path, *entries: str, later: str | None = None, schema: Any = SCHEMA) -> Normalised:
    """The schema with entries in the overlay of its revision; or, with *later* ones, of the revision after that."""
    (folder / f"{REVISION}.toml").write_text("".join(entries), encoding="utf-8")
    if later is not None:
        (folder / f"{NEXT}.toml").write_text(later, encoding="utf-8")
    revision = REVISION if later is None else NEXT
    return normalise(revision, name_definitions(schema, folder / f"{revision}.toml"))


def test_definition_is_called_as_the_entry_says(tmp_path: Path) -> None:
    made = _named(tmp_path, _entry("None", "Nothing"), _entry("List<string>", "Strings"))
    assert sorted(made.definitions) == ["Call", "CallAB", "Nothing", "Strings"]
    assert made.plain["Call"]["properties"]["none"] == {"$ref": "#/$defs/Nothing"}
    assert made.plain["Call"]["properties"]["const"]["items"] == {"$ref": "#/$defs/Strings"}
    assert made.plain["Call"]["properties"]["part"] == STRING


def test_pointer_is_that_of_the_file(tmp_path: Path) -> None:
    made = _named(tmp_path, _entry("None", "Nothing"))
    assert made.pointer("Nothing") == "/$defs/None"
    assert made.pointer("CallAB") == "/$defs/Call/properties/a~1b"


def test_object_without_a_name_is_called_as_the_entry_says(tmp_path: Path) -> None:
    assert "Options" in _named(tmp_path, _entry("Call.a/b", "Options")).helpers


def test_entry_holds_on_in_later_revisions(tmp_path: Path) -> None:
    made = _named(tmp_path, _entry("None", "Nothing"), _entry("Call.a/b", "Options"), later="")
    assert {"Nothing", "Options"} <= made.definitions.keys()


def test_entry_says_nothing_of_earlier_revisions(tmp_path: Path) -> None:
    (tmp_path / f"{NEXT}.toml").write_text(_entry("None", "Nothing"), encoding="utf-8")
    assert "None" in _named(tmp_path).definitions


def test_later_revision_may_say_something_else(tmp_path: Path) -> None:
    made = _named(tmp_path, _entry("None", "Nothing"), later=_entry("None", "Absent"))
    assert {"Nothing", "Absent"} & made.definitions.keys() == {"Absent"}


def test_earlier_entry_gives_way_to_a_definition_of_that_name(tmp_path: Path) -> None:
    schema = {"$defs": {**SCHEMA["$defs"], "Nothing": STRING, "Options": STRING}}
    entries = _entry("None", "Nothing"), _entry("Call.a/b", "Options")
    assert {"None", "CallAB"} <= _named(tmp_path, *entries, later="", schema=schema).definitions.keys()


def test_earlier_entry_may_be_of_nothing_in_a_later_revision(tmp_path: Path) -> None:
    assert "A" in _named(tmp_path, _entry("None", "Nothing"), later="", schema={"$defs": {"A": STRING}}).definitions


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (_entry("Gone", "Nothing"), "neither a definition nor an object without a name"),
        (_entry("Call.c", "Nothing"), "neither a definition nor an object without a name"),
        (_entry("None", "Call"), "another definition is called Call"),
        (_entry("None", "Nothing", ""), "expected a string for each of called, of, reason"),
        ('[[name]]\nof = "None"\ncalled = 5\nreason = "x"\n', "expected a string for each of called, of, reason"),
        ('[name]\nof = "None"\n', "written as [[name]], with two brackets"),
        ("[[name]\n", "it is not TOML"),
    ],
)
def test_entry_that_means_nothing_is_an_error(tmp_path: Path, entry: str, said: str) -> None:
    with pytest.raises(UnusedDecision) as caught:
        _named(tmp_path, entry)
    assert said in str(caught.value)


# --- a whole release ------------------------------------------------------------------------------------------------

THERE = f"""
import dragoman_spec as spec
new = spec.load({NEXT!r})
assert {{"Nothing", "Whole", "StringList"}} <= set(new.DEFINITIONS), new.DEFINITIONS
plain = {{"name": "t", "inputSchema": {{"type": "object"}}}}
wire = {{**plain, "none": {{"class": "x", "model_config": "y"}}, "names": ["a"]}}
tool = new.Tool.model_validate(wire)
assert tool.none.model_config_ == "y" and tool.model_dump() == wire
nothing = new.Nothing(class_="x", model_config_="y")
assert new.Tool(name="t", input_schema={{"type": "object"}}, none=nothing, names=["a"]) == tool
assert spec.convert(tool, to={LATEST!r}, losses=[]).model_dump() == plain
older = spec.load({LATEST!r}).Tool(name="t", input_schema={{"type": "object"}})
assert spec.convert(older, to={NEXT!r}).model_dump() == older.model_dump()
assert "schema/{NEXT}/schema.json#/$defs/None`" in new.Nothing.__doc__
"""


def _release(tree: Path) -> None:
    """The newest schema with definitions that cannot keep their names, and fields that cannot."""
    shutil.copytree(ROOT / "schema", tree / "schema")
    shutil.copytree(ROOT / "codegen" / "overlays", tree / "codegen" / "overlays")
    schema = json.loads((tree / "schema" / LATEST / "schema.json").read_text(encoding="utf-8"))
    defs = schema["$defs"]
    defs["None"] = {"type": "object", "properties": {"class": STRING, "model_config": STRING}, "required": ["class"]}
    defs["List<string>"] = {"type": "array", "items": STRING}
    defs["models"] = {"type": "integer"}
    fields = {"none": "None", "names": "List%3Cstring%3E", "whole": "models"}
    defs["Tool"]["properties"] |= {name: {"$ref": f"#/$defs/{of}"} for name, of in fields.items()}
    place = tree / "schema" / NEXT / "schema.json"
    place.parent.mkdir()
    place.write_text(json.dumps(schema), encoding="utf-8")
    pins = read_pins(tree / "schema" / "pins.toml")
    pins[NEXT] = Pin(NEXT, "per_request", "schema.json", "0" * 40, "0" * 64, sha256_hex(place.read_bytes()))
    (tree / "schema" / "pins.toml").write_text(write_pins(pins), encoding="utf-8")


@takes_long
def test_release_with_names_that_python_has_is_made_with_namings(tmp_path: Path) -> None:
    _release(tmp_path)
    with pytest.raises(CodegenError, match=r"/\$defs/List<string>: a definition that cannot be called"):
        render(tmp_path)
    entries = _entry("None", "Nothing"), _entry("List<string>", "StringList"), _entry("models", "Whole")
    (tmp_path / "codegen" / "overlays" / f"{NEXT}.toml").write_text("".join(entries), encoding="utf-8")
    output = render(tmp_path)
    write_output(tmp_path, output, compare_output(tmp_path, output))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "generated")}
    done = subprocess.run([sys.executable, "-c", THERE], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


LINE = {"2001-01-01": "handshake", "2002-01-01": "per_request", "2003-01-01": "handshake", "2004-01-01": "per_request"}


@pytest.mark.parametrize(("revision", "called"), [("2003-01-01", "None"), ("2004-01-01", "Nothing")])
def test_a_name_holds_for_the_revisions_that_come_from_its_own(tmp_path: Path, revision: str, called: str) -> None:
    """A handshake that comes back has the names of the last one, whatever came between."""
    pins = {one: Pin(one, cast(Era, era), "", "", "", "") for one, era in LINE.items()}
    overlays = tmp_path / "codegen" / "overlays"
    for folder in (overlays, tmp_path / "schema"):
        folder.mkdir(parents=True)
    (tmp_path / "schema" / "pins.toml").write_text(write_pins(pins), encoding="utf-8")
    rename = '[[rename]]\nname = "so"\nwhat = "definition"\nold = "ClientRequest"\nnew = "Asked"\nreason = "Because."\n'
    (overlays / "2002-01-01.toml").write_text(_entry("None", "Nothing") + rename, encoding="utf-8")
    made = normalise(revision, name_definitions(SCHEMA, overlays / f"{revision}.toml"))
    assert {"None": "None" in made.definitions, "Nothing": "Nothing" in made.definitions}[called]
    asked = {"None": "ClientRequest", "Nothing": "Asked"}[called]
    assert union_names(tmp_path, revision)["ClientRequest"] == asked
