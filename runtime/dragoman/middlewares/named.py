"""Where requests and results name tools, prompts and resources: one table for all middleware that is about names.

Lives here: reading names and giving others. Must not: decide about them (`lists`, `rename`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.methods import LISTEN
from dragoman.core.unchecked import find

TOOL: Final = "tool"
PROMPT: Final = "prompt"
RESOURCE: Final = "resource"

LISTS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "tools/list": (TOOL, "tools", "name"),
        "prompts/list": (PROMPT, "prompts", "name"),
        "resources/list": (RESOURCE, "resources", "uri"),
        "resources/templates/list": (RESOURCE, "resourceTemplates", "uriTemplate"),
    }
)
"""By method: what is listed, the member of the result, and the member that names each."""

NAMED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "tools/call": (TOOL, "name"),
        "prompts/get": (PROMPT, "name"),
        "resources/read": (RESOURCE, "uri"),
        "resources/subscribe": (RESOURCE, "uri"),
        "resources/unsubscribe": (RESOURCE, "uri"),
    }
)
"""By method: what a request names, and the member of its params that does."""

_REFERRED: Final = MappingProxyType({"ref/prompt": (PROMPT, "name"), "ref/resource": (RESOURCE, "uri")})
_HEARD: Final = ("notifications", "resourceSubscriptions")


def names_in(method: str, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a request names: tool, prompt or resource, and its name.

    Args:
        method: Of the request.
        params: Of the request.
    """
    if method in NAMED:
        kind, member = NAMED[method]
        return [(kind, str(params.get(member)))]
    if method == "completion/complete":
        ref = params.get("ref")
        if not isinstance(ref, dict) or ref.get("type") not in _REFERRED:
            return []
        kind, member = _REFERRED[ref["type"]]
        return [(kind, str(ref.get(member)))]
    if method == LISTEN:
        uris = find(params, _HEARD[0], _HEARD[1])
        return [(RESOURCE, str(uri)) for uri in uris] if isinstance(uris, list) else []
    return []


def rename_in(method: str, params: dict[str, Any], rename: Callable[[str, str], str]) -> dict[str, Any]:
    """Return the params of a request with other names.

    Args:
        method: Of the request.
        params: Of the request.
        rename: Gives the new name of a tool or prompt, by what it is and its old one.
    """
    if method in NAMED:
        kind, member = NAMED[method]
        return {**params, member: rename(kind, str(params.get(member)))}
    ref = params.get("ref")
    if method == "completion/complete" and isinstance(ref, dict) and ref.get("type") in _REFERRED:
        kind, member = _REFERRED[ref["type"]]
        return {**params, "ref": {**ref, member: rename(kind, str(ref.get(member)))}}
    return params
