"""Made-up releases in which the `error` of an error response may be something else than one object."""

from __future__ import annotations

from typing import Any

from tests.codegen.releases.cases import REFUSED, STRING, Change, Release, entry, error, over, same
from tests.support.releases import Schema

LIST = {"type": "array", "items": {"$ref": "#/$defs/Error"}}
MANY = [{"code": -32603, "message": "It broke."}, {"code": -32000, "message": "That, too."}]
TO_ONE = entry("down", "arm-removed", "JSONRPCErrorResponse.error", "drop-item", arm='"list of Error"')
RECODE = """
[[error]]
name = "answer-as-internal"
direction = "down"
codes = [-32603, -32603]
do = "replace-code"
with = { code = -32099 }
reason = "Because."
"""


def or_(kind: Any) -> Change:
    """The error of a response is what it was, or of another kind."""

    def change(defs: Schema) -> None:
        members = defs["JSONRPCErrorResponse"]["properties"]
        members["error"] = {"anyOf": [members["error"], kind]}

    return change


RECODED = error(id=1)
RECODED["error"] = {"code": -32099, "message": "It broke.", "data": {"original": {"code": -32603}}}

ERRORS = [
    Release("errors may be a list", or_(LIST), ["down arm-removed JSONRPCErrorResponse.error list of Error"],
            [over(error(id=1, error=MANY), REFUSED, "down"), same(error(id=1), "down"), same(error(id=1))]),
    Release("errors may be a list, and codes change", or_(LIST),
            ["down arm-removed JSONRPCErrorResponse.error list of Error"],
            [over(error(id=1, error=MANY), REFUSED, "down"), over(error(id=1), RECODED, "down")], TO_ONE + RECODE),
    Release("errors may be a string", or_(STRING), ["down arm-removed JSONRPCErrorResponse.error string"],
            [over(error(id=1, error="It broke."), REFUSED, "down"), same(error(id=1), "down")]),
    Release("errors may be null", or_({"type": "null"}), ["down arm-removed JSONRPCErrorResponse.error null"],
            [over(error(id=1, error=None), REFUSED, "down"), same(error(), "down")]),
]  # fmt: skip
