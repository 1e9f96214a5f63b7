"""A revision that does not exist: the newest one, with one change of each kind that a release may bring.

Derived by editing the newest canonical schema, defects repaired, and laid out as upstream lays out its releases. Used
by `tests/codegen/test_next_revision.py`.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from dragoman_spec import LATEST
from tests.support.judge import canonical

NEXT = "2027-01-01"


def next_schema() -> dict[str, Any]:
    """The newest schema with all seven changes."""
    schema = copy.deepcopy(canonical(LATEST))
    definitions = schema["$defs"]
    for change in CHANGES:
        change(definitions)
    return schema


def write_mirror(directory: Path) -> Path:
    """Lay the schema out as the official repository does; return the mirror's root."""
    place = directory / "schema" / NEXT
    place.mkdir(parents=True)
    (place / "schema.json").write_text(json.dumps(next_schema()), encoding="utf-8")
    return directory


def add_an_optional_field(definitions: dict[str, Any]) -> None:
    definitions["Tool"]["properties"]["costHint"] = {"type": "number"}


def add_a_content_type(definitions: dict[str, Any]) -> None:
    video = copy.deepcopy(definitions["AudioContent"])
    video["properties"]["type"]["const"] = "video"
    definitions["VideoContent"] = video
    definitions["ContentBlock"]["anyOf"].append({"$ref": "#/$defs/VideoContent"})


def add_a_method(definitions: dict[str, Any]) -> None:
    request = copy.deepcopy(definitions["ListPromptsRequest"])
    request["properties"]["method"]["const"] = "skills/list"
    definitions["ListSkillsRequest"] = request
    definitions["ListSkillsResult"] = copy.deepcopy(definitions["ListPromptsResult"])
    response = copy.deepcopy(definitions["ListPromptsResultResponse"])
    response["properties"]["result"] = {"$ref": "#/$defs/ListSkillsResult"}
    definitions["ListSkillsResultResponse"] = response
    definitions["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/ListSkillsRequest"})
    definitions["ServerResult"]["anyOf"].append({"$ref": "#/$defs/ListSkillsResult"})


def remove_a_method(definitions: dict[str, Any]) -> None:
    for name in ("CompleteRequest", "CompleteRequestParams", "CompleteResult", "CompleteResultResponse"):
        del definitions[name]
    for name in ("ClientRequest", "ServerResult"):
        arms = definitions[name]["anyOf"]
        definitions[name]["anyOf"] = [arm for arm in arms if not arm["$ref"].startswith("#/$defs/Complete")]


def require_a_new_field(definitions: dict[str, Any]) -> None:
    definitions["Prompt"]["properties"]["category"] = {"type": "string"}
    definitions["Prompt"]["required"] = ["category", "name"]


def rename_a_definition(definitions: dict[str, Any]) -> None:
    definitions["PromptParameter"] = definitions.pop("PromptArgument")
    definitions["Prompt"]["properties"]["arguments"]["items"] = {"$ref": "#/$defs/PromptParameter"}


def change_an_enum(definitions: dict[str, Any]) -> None:
    levels = definitions["LoggingLevel"]["enum"]
    definitions["LoggingLevel"]["enum"] = sorted({*levels, "trace"} - {"notice"})


CHANGES = (
    add_an_optional_field,
    add_a_content_type,
    add_a_method,
    remove_a_method,
    require_a_new_field,
    rename_a_definition,
    change_an_enum,
)
