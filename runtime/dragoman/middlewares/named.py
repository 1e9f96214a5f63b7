"""Where requests and results name tools, prompts and resources: one table for all middleware that is about names.

Lives here: reading names and giving others. Must not: decide about them (`lists`, `rename`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from dragoman.core.methods import COMPLETE, LISTEN
from dragoman.core.naming import HEARD, NAMED, PROMPT, REFERRED, RESOURCE, TOOL
from dragoman.core.unchecked import find_list, find_object

LISTS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "tools/list": (TOOL, "tools", "name"),
        "prompts/list": (PROMPT, "prompts", "name"),
        "resources/list": (RESOURCE, "resources", "uri"),
        "resources/templates/list": (RESOURCE, "resourceTemplates", "uriTemplate"),
    }
)
"""By method: what is listed, the member of the result, and the member that names each."""


def names_in(method: str, params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a request names: tool, prompt or resource, and its name.

    Args:
        method: Of the request.
        params: Of the request.
    """
    if method in NAMED:
        kind, member = NAMED[method]
        return [(kind, params[member])]
    if method == COMPLETE:  # a server may go by what is there, rather than by the type
        ref = find_object(params, "ref")
        return [(kind, ref[member]) for kind, member in REFERRED.values() if member in ref]
    return [(RESOURCE, uri) for uri in find_list(params, *HEARD)] if method == LISTEN else []


def rename_in(method: str, params: dict[str, Any], rename: Callable[[str, str], str]) -> dict[str, Any]:
    """Return the params of a request with other names.

    Args:
        method: Of the request.
        params: Of the request.
        rename: Gives the new name of a tool or prompt, by what it is and its old one.
    """
    if method in NAMED:
        kind, member = NAMED[method]
        return {**params, member: rename(kind, params[member])}
    if method == COMPLETE:
        ref = find_object(params, "ref")
        names = {member: rename(kind, ref[member]) for kind, member in REFERRED.values() if member in ref}
        return {**params, "ref": {**ref, **names}}
    return params
