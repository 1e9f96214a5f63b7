"""URIs in answers, as the client knows them: where two servers have one, each is known under another.

Lives here: where URIs of resources stand in results. Must not: decide what they are known as (`names`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

_LISTS: Final = ("content", "contents")
_URI: Final = "uri"


def show_uris(result: dict[str, Any], show: Callable[[str], str]) -> dict[str, Any]:
    """Give a result in which resources have the URIs that the client knows; the same object if none has another.

    Args:
        result: Of a call, a prompt or a resource.
        show: Gives what clients know a URI of its server as.
    """
    told = result
    for name in _LISTS:
        told = _put(told, name, _show_all(told.get(name), show))
    messages = told.get("messages")
    if isinstance(messages, list):
        said = [_put(one, "content", _show_all(one["content"], show)) if _has_content(one) else one for one in messages]
        told = _put(told, "messages", messages if all(map(_is, said, messages)) else said)
    return told


def _has_content(message: Any) -> bool:
    return isinstance(message, dict) and "content" in message


def _show_all(value: Any, show: Callable[[str], str]) -> Any:
    """Do it in one block of content, or in several."""
    if not isinstance(value, list):
        return _show(value, show)
    blocks = [_show(block, show) for block in value]
    return value if all(map(_is, blocks, value)) else blocks


def _show(block: Any, show: Callable[[str], str]) -> Any:
    if not isinstance(block, dict):
        return block
    uri = block.get(_URI)
    told = block
    if isinstance(uri, str) and (known := show(uri)) != uri:
        told = _put(block, _URI, known)
    inner = told.get("resource")
    return told if not isinstance(inner, dict) else _put(told, "resource", _show(inner, show))


def _put(holder: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return holder if name not in holder or holder[name] is value else {**holder, name: value}


def _is(one: object, other: object) -> bool:
    return one is other
