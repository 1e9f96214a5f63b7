"""A revision that does not exist: the newest one, in which names have changed. Beside `next_revision`, which has the
other changes that a release may bring.

Used by `tests/codegen/test_next_renames.py`, whose conversations are in `tests/codegen/renamed_cases.py`.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

from dragoman_spec import LATEST
from tests.support.judge import canonical

NEXT = "2027-06-01"
METHODS = {
    "CompleteRequest": "completion/suggest",
    "GetPromptRequest": "prompts/render",
    "CallToolRequest": "tools/run",
    "SubscriptionsListenRequest": "subscriptions/open",
    "ToolListChangedNotification": "notifications/tools/changed",
    "LoggingMessageNotification": "notifications/log",
}
"""The new name of a method, by the definition of its frame."""

DECIDED = """\
[[rename]]
name = "so"
what = "field"
old = "logging"
new = "logs"
at = "ServerCapabilities"
reason = "The same capability under a new name."

[[error]]
name = "say-the-new-code"
direction = "up"
codes = [-32022, -32022]
do = "replace-code"
with = { code = -32032 }
reason = "The same error under a new code."

[[error]]
name = "say-the-old-code"
direction = "down"
codes = [-32032, -32032]
do = "replace-code"
with = { code = -32022 }
reason = "The same error under its old code."

[[gone]]
http_status = -32022
reason = "The code is another one."

[[http_status]]
code = -32032
status = 400
reason = "As the code before it."
"""
RENAME = """
[[rename]]
name = "so"
what = "method"
old = "{old}"
new = "{new}"
reason = "The same method under a new name."
"""


def write_release(directory: Path) -> str:
    """Lay the schema out as the official repository does; return the overlay of the step to it."""
    schema = copy.deepcopy(canonical(LATEST))
    definitions = schema["$defs"]
    overlay = DECIDED
    for frame, new in METHODS.items():
        method = definitions[frame]["properties"]["method"]
        overlay += RENAME.format(old=method["const"], new=new)
        method["const"] = new
    capabilities = definitions["ServerCapabilities"]["properties"]
    capabilities["logs"] = capabilities.pop("logging")
    result = definitions["CallToolResult"]
    result["properties"]["form"] = {"type": "string", "const": "blocks"}
    result["required"] = sorted([*result["required"], "form"])
    error = definitions["UnsupportedProtocolVersionError"]["properties"]["error"]
    error["allOf"][1]["properties"]["code"]["const"] = -32032
    place = directory / "schema" / NEXT
    place.mkdir(parents=True)
    (place / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    return overlay
