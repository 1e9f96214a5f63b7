"""What requests name: tools, prompts and resources, for whoever has a rule for them or routes by them.

Lives here: where names stand, and refusing a request that one peer may read otherwise than another. Must not: decide
about names. Called before middleware (`around`) and before a router chooses (`switch.catalogue`).

A server in JavaScript runs the tool `x` for the name `["x"]`, and a rule about `x` does not see it; one in Go runs it
for `{"name": "y", "Name": "x"}`. So what stands where a name belongs is a string, as every schema says, and stands
there in one spelling, or nobody is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.codes import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import Frame, Refusal, decoded
from dragoman.core.methods import CALL_TOOL, COMPLETE, LISTEN
from dragoman.core.repeats import TWO_FRAMES, read_widely, repeats_name
from dragoman.core.unchecked import find, find_object

TOOL: Final = "tool"
PROMPT: Final = "prompt"
RESOURCE: Final = "resource"

NAMED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        CALL_TOOL: (TOOL, "name"),
        "prompts/get": (PROMPT, "name"),
        "resources/read": (RESOURCE, "uri"),
        "resources/subscribe": (RESOURCE, "uri"),
        "resources/unsubscribe": (RESOURCE, "uri"),
    }
)
"""By method: what a request names, and the member of its params that does."""

REFERRED: Final[Mapping[object, tuple[str, str]]] = MappingProxyType(
    {"ref/prompt": (PROMPT, "name"), "ref/resource": (RESOURCE, "uri")}
)
"""The same for what is completed, by the type of its reference."""

NAMING: Final = frozenset({*NAMED, COMPLETE, LISTEN})
"""Requests that name something."""

HEARD: Final = ("notifications", "resourceSubscriptions")
"""Where the URIs stand of which a client wants to hear."""


def read_named(frame: Frame) -> Frame | Refusal:
    """Return a request, decoded if it names something; a refusal where two peers may read two requests in it."""
    method = frame.method or ""
    if "\0" in method or repeats_name(frame.raw):
        return Refusal(INVALID_REQUEST, TWO_FRAMES, {})
    if method not in NAMING:
        return frame
    try:
        frame = decoded(frame)
    except ValueError as error:
        return Refusal(PARSE_ERROR, str(error), {"method": method})
    fault = _find_fault(method, find_object(frame.body, "params"))
    return frame if fault is None else Refusal(INVALID_PARAMS, f"expected params.{fault}", {"method": method})


def _find_fault(method: str, params: Mapping[str, Any]) -> str | None:
    if method in NAMED:
        kind, member = NAMED[method]
        return None if _is_name(kind, _find_once(params, member)) else f"{member} to be a string"
    if method == LISTEN:
        heard, resources = HEARD
        wanted = _find_once(params, heard)
        uris = _find_once(wanted, resources)
        if (wanted, uris) != (find(params, heard), find(params, *HEARD)):
            return f"{'.'.join(HEARD)} to be there once"
        is_fit = uris is None or (isinstance(uris, list) and all(isinstance(uri, str) for uri in uris))
        return None if is_fit else f"{'.'.join(HEARD)} to be an array of strings"
    ref = _find_once(params, "ref")
    named = _find_once(ref, "type")
    if not isinstance(named, str) or named not in REFERRED:
        return f"ref.type to be {' or '.join(map(str, REFERRED))}"
    for given, (kind, member) in REFERRED.items():  # one that its type does not need is a name, too
        if (given == named or _spellings(ref, member)) and not _is_name(kind, _find_once(ref, member)):
            return f"ref.{member} to be a string"
    return None


def _find_once(holder: Any, member: str) -> Any:
    """Return a member of an object; None where another one reads the same to some servers."""
    return find(holder, member) if len(_spellings(holder, member)) == 1 else None


def _spellings(holder: Any, member: str) -> list[str]:
    return [name for name in find_object(holder) if read_widely(name) == member.casefold()]


def _is_name(kind: str, value: object) -> bool:
    """Whether it can be a name: some servers end one at a NUL; URIs are looked at where there is a rule for them."""
    return isinstance(value, str) and (kind == RESOURCE or "\0" not in value)
