"""A revision of the handshake era that does not exist: the newest one there, with what a release may bring a proxy.

Used by `tests/codegen/test_next_facts.py`, and by `test_next_handshake.py` as one that comes after the other era. Must
not live here: changes that a person has to decide (`tests/support/next_revision.py`).
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.support.judge import canonical

NEWEST = HANDSHAKE_REVISIONS[-1]
NEXT = "2025-12-31"
BACK = "2027-01-01"
"""The same, when a handshake comes back after revisions without one."""


def write_mirror(directory: Path, revision: str = NEXT) -> Path:
    """Lay the schema out as the official repository does; return the mirror's root."""
    schema = copy.deepcopy(canonical(NEWEST))
    for change in (add_news, add_a_question, add_a_list):
        change(schema["$defs"])
    place = directory / "schema" / revision
    place.mkdir(parents=True)
    (place / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    return directory


def add_news(definitions: dict[str, Any]) -> None:
    """Servers announce new skills, if they have promised it."""
    notification = copy.deepcopy(definitions["ToolListChangedNotification"])
    notification["properties"]["method"]["const"] = "notifications/skills/list_changed"
    definitions["SkillListChangedNotification"] = notification
    definitions["ServerNotification"]["anyOf"].append({"$ref": "#/$defs/SkillListChangedNotification"})
    flags = {"type": "object", "properties": {"listChanged": {"type": "boolean"}}}
    definitions["ServerCapabilities"]["properties"]["skills"] = flags


def add_a_question(definitions: dict[str, Any]) -> None:
    """Servers ask where a person is, if the client has said that it can tell."""
    definitions["ClientCapabilities"]["properties"]["location"] = {
        "type": "object",
        "properties": {"exact": {"type": "object", "properties": {}, "additionalProperties": True}},
    }
    request = copy.deepcopy(definitions["ListRootsRequest"])
    request["properties"]["method"]["const"] = "location/get"
    definitions["LocationGetRequest"] = request
    definitions["LocationGetResult"] = {"type": "object", "properties": {"place": {"type": "string"}}}
    definitions["ServerRequest"]["anyOf"].append({"$ref": "#/$defs/LocationGetRequest"})
    definitions["ClientResult"]["anyOf"].append({"$ref": "#/$defs/LocationGetResult"})


def add_a_list(definitions: dict[str, Any]) -> None:
    """Clients list skills."""
    request = copy.deepcopy(definitions["ListPromptsRequest"])
    request["properties"]["method"]["const"] = "skills/list"
    definitions["ListSkillsRequest"] = request
    definitions["ListSkillsResult"] = copy.deepcopy(definitions["ListPromptsResult"])
    definitions["ClientRequest"]["anyOf"].append({"$ref": "#/$defs/ListSkillsRequest"})
    definitions["ServerResult"]["anyOf"].append({"$ref": "#/$defs/ListSkillsResult"})
