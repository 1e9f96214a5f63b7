"""Made-up releases: one change of the newest schema each, what it must ask, and frames that it must convert.

The changes are those that a release of the specification may bring, one kind each. `ASKED` says what a person is asked;
`FRAMES` what comes of a frame with the safe defaults, or with the entries of an overlay. Used by `test_releases.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.releases import Schema

STRING = {"type": "string"}
Change = Callable[[Schema], None]
REFUSED = "refused"


@dataclass(frozen=True)
class Frame:
    """A frame of one way over the release: what is given, and what must come out, or `REFUSED`."""

    direction: str
    given: dict[str, Any]
    expected: Any
    method: str | None = None


@dataclass(frozen=True)
class Release:
    """One made-up release."""

    name: str
    change: Change
    asks: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    overlay: str = ""
    """Entries; what they leave undecided has the safe default."""

    def __str__(self) -> str:
        return self.name


def add(definition: str, *, required: bool = False, **fields: Any) -> Change:
    """Fields more, or of another type."""

    def change(defs: Schema) -> None:
        shape = defs[definition]
        shape.setdefault("properties", {}).update(fields)
        if required:
            shape["required"] = sorted({*shape.get("required", []), *fields})

    return change


def remove(definition: str, *fields: str) -> Change:
    """Fields less."""

    def change(defs: Schema) -> None:
        shape = defs[definition]
        for name in fields:
            del shape["properties"][name]
        shape["required"] = [name for name in shape.get("required", []) if name not in fields]

    return change


def both(*changes: Change) -> Change:
    """Several changes as one."""

    def change(defs: Schema) -> None:
        for one in changes:
            one(defs)

    return change


def rename_method(old: str, new: str, definition: str, other: str) -> Change:
    """A method and its definitions under new names: `definition` and `other` are the stems."""

    def renamed(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: renamed(value) for key, value in node.items()}
        if isinstance(node, list):
            return [renamed(item) for item in node]
        if isinstance(node, str) and node.startswith(f"#/$defs/{definition}"):
            return node.replace(definition, other, 1)
        return new if node == old else node

    def change(defs: Schema) -> None:
        for name in list(defs):
            node = renamed(defs.pop(name))
            defs[name.replace(definition, other, 1) if name.startswith(definition) else name] = node

    return change


# --- frames ----------------------------------------------------------------------------------------------------------

META = {
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
}


def request(method: str, revision: str, **params: Any) -> dict[str, Any]:
    """A request that says which revision it is of."""
    meta = {**META, "io.modelcontextprotocol/protocolVersion": revision}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def result(**members: Any) -> dict[str, Any]:
    """An answer that is complete."""
    return {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", **members}}


def error(**members: Any) -> dict[str, Any]:
    """An error response; with an `id`, one that answers something."""
    return {"jsonrpc": "2.0", "error": {"code": -32603, "message": "It broke."}, **members}


def tools(*items: dict[str, Any]) -> dict[str, Any]:
    """An answer to `tools/list`."""
    named = [{"name": "t", "inputSchema": {"type": "object"}, **item} for item in items]
    return result(tools=named, ttlMs=0, cacheScope="private")


def log(**params: Any) -> dict[str, Any]:
    """A log message."""
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1, **params}}


def over(given: dict[str, Any], expected: Any, direction: str = "up", method: str | None = "tools/list") -> Frame:
    """A frame, and what it becomes."""
    return Frame(direction, given, expected, method if "method" not in given else None)


def same(given: dict[str, Any], direction: str = "up", method: str | None = "tools/list") -> Frame:
    """A frame that comes out as it is."""
    return over(given, given, direction, method)


def entry(direction: str, change: str, at: str, do: str, **more: str) -> str:
    """An entry of an overlay; *more* are further lines, as TOML spells their values."""
    lines = {"name": f'"{do}-at-{at}-{direction}"', "direction": f'"{direction}"', "change": f'"{change}"'}
    lines |= {"at": f'"{at}"', "do": f'"{do}"', "reason": '"Because."'}
    lines |= {("with" if key == "with_" else key): value for key, value in more.items()}
    return "\n[[decision]]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items()) + "\n"


def rename(what: str, old: str, new: str, at: str = "") -> str:
    """A `[[rename]]` entry."""
    place = f'at = "{at}"\n' if at else ""
    return f'\n[[rename]]\nname = "so"\nwhat = "{what}"\nold = "{old}"\nnew = "{new}"\n{place}reason = "The same under another name."\n'
