"""Names for the objects that upstream wrote in place.

An object with properties that stands inside a definition becomes a definition itself, named after where it stood:
`CallToolRequest.params` is `CallToolRequestParams`. Where a definition repeats a member of the base interface it
extends (`PingRequest.params` is that of `Request`), the base gives the name, so that there is one `RequestParams` and
not four. Must not live here: any other change to a schema. Called by `normalise`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from codegen.errors import UnknownSchemaForm
from codegen.names import escaped, path_of

Schema = dict[str, Any]
Names = Mapping[str, str]
"""What entries call objects that stand in place, by their path."""


@dataclass(frozen=True, slots=True)
class Site:
    """A place below a definition: `path` alternates keywords and names, as in a JSON pointer."""

    owner: str
    path: tuple[str, ...]

    @property
    def pointer(self) -> str:
        """The place as a JSON pointer into the canonical schema."""
        return "/".join(("/$defs", *map(escaped, (self.owner, *self.path))))


def hoist_objects(
    revision: str, definitions: Mapping[str, Schema], names: Names = MappingProxyType({})
) -> tuple[dict[str, Schema], dict[str, str]]:
    """Name every object with properties: as *names* say, else after where it stands.

    Returns:
        The definitions with references in place of objects, and the JSON pointer that each definition came from.

    Raises:
        UnknownSchemaForm: Two different objects would get one name.
    """
    found = dict(definitions)
    origins = {name: f"/$defs/{name}" for name in definitions}
    for depth in range(max((len(site.path) for site in _sites(definitions)), default=0), 0, -1):
        sites = [site for site in _sites(found) if len(site.path) == depth and site.owner in definitions]
        for site, name in [(site, helper_name(_base_site(site, sites, definitions), names)) for site in sites]:
            node = _at(found, site)
            if found.setdefault(name, node) != node or name in definitions:
                said = f"another object whose name would be {name}, unless a [[name]] calls it something else"
                raise UnknownSchemaForm(revision, site.pointer, said)
            origins.setdefault(name, _base_site(site, sites, definitions).pointer)
            found[site.owner] = _replaced(found[site.owner], site.path, {"$ref": f"#/$defs/{name}"})
    return found, origins


def _sites(definitions: Mapping[str, Schema]) -> list[Site]:
    return [Site(name, path) for name in sorted(definitions) for path in _paths(definitions[name]) if path]


def _paths(node: Schema, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where objects with properties stand below a node."""
    if node.get("properties"):
        yield path
    for name, child in node.get("properties", {}).items():
        yield from _paths(child, (*path, "properties", name))
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), dict):
            yield from _paths(node[keyword], (*path, keyword))
    for index, arm in enumerate(node.get("anyOf", [])):
        yield from _paths(arm, (*path, "anyOf", str(index)))


def _at(definitions: Mapping[str, Schema], site: Site) -> Schema:
    node: Any = definitions[site.owner]
    for part in site.path:
        node = node[int(part) if isinstance(node, list) else part]
    result: Schema = node
    return result


def _replaced(node: Any, path: tuple[str, ...], value: Schema) -> Any:
    if not path:
        return value
    if isinstance(node, list):
        return [_replaced(child, path[1:], value) if str(i) == path[0] else child for i, child in enumerate(node)]
    return {**node, path[0]: _replaced(node[path[0]], path[1:], value)}


def _base_site(site: Site, sites: list[Site], definitions: Mapping[str, Schema]) -> Site:
    """The site of the most general definition that the owner extends and that has the same object in the same place."""
    same = json.dumps(_at(definitions, site), sort_keys=True)
    bases = [
        other
        for other in sites
        if other.path == site.path
        and json.dumps(_at(definitions, other), sort_keys=True) == same
        and (other == site or _extends(definitions[site.owner], definitions[other.owner]))
    ]
    return min(bases, key=lambda base: (len(json.dumps(definitions[base.owner])), base.owner))


def _extends(node: Schema, base: Schema) -> bool:
    """Whether an object has all properties of another, the same or narrower."""
    own, inherited = node.get("properties", {}), base.get("properties", {})
    return bool(inherited) and all(
        name in own and child.items() <= own[name].items() for name, child in inherited.items()
    )


def helper_name(site: Site, names: Names = MappingProxyType({})) -> str:
    """The name for what stands at a site: as *names* say, else the owner's, then the way from there."""
    if (path := path_of(site.pointer)) in names:
        return names[path]
    name = site.owner
    steps = iter(site.path)
    for keyword in steps:
        if keyword == "properties":
            part = pascal(next(steps))
            # "The error object" is what JSON-RPC calls the member `error` of an error response.
            name += "Object" if name.endswith(part) else part
        elif keyword == "anyOf":
            name += f"Option{next(steps)}"
        else:
            name += {"items": "Item", "additionalProperties": "Value"}[keyword]
    return name


def pascal(name: str) -> str:
    """`inputSchema` and `_meta` as parts of a class name: `InputSchema`, `Meta`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^0-9A-Za-z]+", name))
