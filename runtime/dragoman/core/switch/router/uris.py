"""URIs in what servers say, as the client knows them: of two servers that have one, each is known by another.

Lives here: where URIs of resources stand. Must not: decide what they are known as (`names`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dragoman.core.switch.router.names import EXTENSION_SCHEMES

_HOLDERS: Final = ("content", "contents", "messages", "_meta")
"""The members of a result in which URIs of resources stand; what a tool returns as `structuredContent` is its own."""

_DEEPEST: Final = 32

Show = Callable[[str], str]
"""Gives what clients know a URI of a server as."""


def may_name_pages(raw: bytes) -> bool:
    """Whether there may be a URI in the scheme of an extension in a text; its slashes may be escaped."""
    return b"ui:" in raw or b"skill:" in raw


def show_uris(result: dict[str, Any], show: Show) -> dict[str, Any]:
    """Return a result in which resources have the URIs that the client knows; the same object if none has another."""
    told: dict[str, Any] = {name: _show(result[name], show, name) for name in _HOLDERS if name in result}
    return result if all(result[name] is value for name, value in told.items()) else {**result, **told}


def at_most(times: int, show: Show) -> Show:
    """Return what does the same so many times, and gives URIs back as they are after that."""
    left = iter(range(times))
    return lambda uri: show(uri) if next(left, None) is not None else uri


def show_pages(entry: dict[str, Any], show: Show) -> dict[str, Any]:
    """Do it in the metadata of what is listed: a tool may name a page there (`_meta.ui.resourceUri`)."""
    meta = entry.get("_meta")
    told = _show(meta, show, "_meta")
    return entry if told is meta else {**entry, "_meta": told}


def _show(value: Any, show: Show, name: str, depth: int = 0) -> Any:
    if isinstance(value, str):
        return show(value) if name == "uri" or (name == "_meta" and value.startswith(EXTENSION_SCHEMES)) else value
    if depth > _DEEPEST or not isinstance(value, dict | list):
        return value
    if isinstance(value, list):
        items = [_show(item, show, name, depth + 1) for item in value]
        return items if any(item is not old for item, old in zip(items, value, strict=True)) else value
    # What stands anywhere in metadata is metadata; elsewhere, only what is called so.
    within = {key: _show(item, show, "_meta" if name == "_meta" else key, depth + 1) for key, item in value.items()}
    return within if any(item is not value[key] for key, item in within.items()) else value
