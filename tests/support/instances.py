"""Random JSON values that are valid for a definition, and mutants of them that may not be.

Built from the normalised, fixed schema, for Hypothesis (`instances`: shrinks) and for plain seeded loops
(`random_instance`: fast). One generator serves both: it asks a *chooser* for a number below n, and number 0 is always
the simplest choice. What is made has vendor keys, empty values, null where it is allowed, integers beyond 64 bits,
floats, whole floats where integers are asked for, and text from many alphabets. Must not live here: judging
(`judge`). Used by the exactness tests and the laws.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from codegen.read.normalise import Normalised, Schema, read_normalised

ROOT = Path(__file__).resolve().parents[2]
DEPTH = 5

Chooser = Callable[[int], int]
"""Returns a number from 0 to n-1; 0 is the simplest choice."""

TEXTS = (
    *("", "a", "text", "https://example.com/a?b=c#d", "file:///home/user/document.txt", "2025-06-18", "aGVsbG8="),
    *('quote " backslash \\ slash /', "line\nbreak\ttab", "naïve café", "日本語", "😀 \U0001f468\u200d\U0001f469"),
    *("\u2028\u2029", "\x00\x1f", "~0~1", "image/png", "null", "true", "0", "1", "-0", "NaN", " ", "x" * 300),
)
INTEGERS = (0, 1, -1, 7, 100, -32601, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30)
WHOLE_FLOATS = (0.0, 1.0, -1.0, 100.0, 1e16, 1e22, -0.0)
FLOATS = (0.5, 0.1, -0.25, 1.5, 3.141592653589793, 1e-7, 5e-324, 1.7976931348623157e308, 0.30000000000000004)
SIMPLE = (None, True, False, 0, 1, 1.0, 0.5, -(10**30), "", "text", "日本語")
VENDOR_KEYS = ("x-vendor", "vendor.example/key", "_private", "", "ключ", "a/b~c", "model_config", "x" * 40)


@cache
def read_schema(revision: str) -> Normalised:
    """The normalised schema of a revision, fixes applied."""
    return read_normalised(ROOT, revision)


def instances(revision: str, definition: str, *, extras: bool = True, depth: int = DEPTH) -> st.SearchStrategy[Any]:
    """A strategy for values of a definition.

    Args:
        revision: A revision.
        definition: One of its definitions, a hoisted helper included.
        extras: Whether open objects get vendor keys.
        depth: How many objects may stand in one another before only what is required is made.
    """

    @st.composite
    def build(draw: st.DrawFn) -> Any:
        maker = _Maker(read_schema(revision), lambda n: draw(st.integers(0, n - 1)), extras)
        return maker.definition(definition, depth)

    return build()


def random_instance(
    rng: random.Random, revision: str, definition: str, *, extras: bool = True, depth: int = DEPTH
) -> Any:
    """One value of a definition; the same seed gives the same value."""
    return _Maker(read_schema(revision), rng.randrange, extras).definition(definition, depth)


def mutants(rng: random.Random, instance: Any, count: int) -> Iterator[Any]:
    """Copies of a value, each with one thing changed: a key less, another type, another constant, one more item, null.

    Most are invalid for the definition the value was made for; which ones, a judge must say.
    """
    places = list(_places(instance))
    for _ in range(count):
        yield _mutated(instance, rng.choice(places), rng)


def random_frame(rng: random.Random, revision: str, definition: str) -> dict[str, Any]:
    """A request or notification, with the envelope that the older schemas leave to the base interface."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", **random_instance(rng, revision, definition)}
    if definition.endswith("Request"):
        frame.setdefault("id", random_instance(rng, revision, "RequestId"))
    return frame


def make(schema: Normalised, definition: str, rng: random.Random, *, extras: bool = True, depth: int = DEPTH) -> Any:
    """One value of a definition of any schema in normal form."""
    return _Maker(schema, rng.randrange, extras).definition(definition, depth)


class _Maker:
    """Makes values of schema nodes, asking the chooser at every turn."""

    def __init__(self, schema: Normalised, choose: Chooser, extras: bool) -> None:
        self.schema = schema
        self.heights = _heights(schema)
        self.choose = choose
        self.extras = extras

    def definition(self, name: str, depth: int) -> Any:
        return self.make(self.schema.definitions[name], depth)

    def make(self, node: Schema, depth: int) -> Any:
        if "$ref" in node:
            return self.definition(node["$ref"].rpartition("/")[2], depth)
        if "anyOf" in node:
            least = _node_height(node, self.heights)
            arms = [arm for arm in node["anyOf"] if depth > 0 or _node_height(arm, self.heights) == least]
            return self.make(self.pick(arms), depth)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.pick(node["enum"])
        return MAKERS[node.get("type", "anything")](self, node, depth)

    def pick(self, choices: Any) -> Any:
        return choices[self.choose(len(choices))]

    def string(self, node: Schema, depth: int) -> str:
        shortest, longest = node.get("minLength", 0), node.get("maxLength", 1000)
        return str(self.pick([text for text in TEXTS if shortest <= len(text) <= longest]))

    def number(self, node: Schema, depth: int) -> int | float:
        pool: tuple[int | float, ...] = INTEGERS + WHOLE_FLOATS
        if node["type"] == "number":
            pool += FLOATS
        bounds = [node[bound] for bound in ("minimum", "maximum") if bound in node]
        low, high = node.get("minimum", -(10**40)), node.get("maximum", 10**400)
        result: int | float = self.pick([value for value in (*bounds, *pool) if low <= value <= high])
        return result

    def boolean(self, node: Schema, depth: int) -> bool:
        return bool(self.choose(2))

    def null(self, node: Schema, depth: int) -> None:
        return None

    def array(self, node: Schema, depth: int) -> list[Any]:
        least, most = node.get("minItems", 0), node.get("maxItems", 1000)
        counts = [count for count in (least, least + 1, least + 2, least + 3, node.get("maxItems", 0)) if count <= most]
        count = self.pick(counts) if depth > 0 else least
        return [self.make(node["items"], depth - 1) for _ in range(count)]

    def object(self, node: Schema, depth: int) -> dict[str, Any]:
        properties, required = node.get("properties", {}), node.get("required", [])
        result = {}
        for name, child in properties.items():
            if name in required or (depth > 0 and self.choose(2)):
                result[name] = self.make(child, depth - 1)
        value = node.get("additionalProperties", {})
        names = [name for name in (*VENDOR_KEYS, *_python_names(properties)) if name not in properties]
        wanted = (
            self.pick((0, 0, 0, 1, 2) if properties else (0, 1, 2, 3))
            if (self.extras or not properties) and depth > 0 and value is not False
            else 0
        )
        for _ in range(wanted):
            result[self.pick(names)] = self.make(value, depth - 1)
        return result

    def anything(self, node: Schema, depth: int) -> Any:
        kind = self.choose(4) if depth > 0 else 0
        if kind == 1:
            return [self.anything(node, depth - 1) for _ in range(self.choose(3))]
        if kind == 2:
            return {self.pick(TEXTS): self.anything(node, depth - 1) for _ in range(self.choose(3))}
        return self.pick(SIMPLE)


MAKERS: Mapping[str, Callable[[_Maker, Schema, int], Any]] = {
    "anything": _Maker.anything,
    "array": _Maker.array,
    "boolean": _Maker.boolean,
    "integer": _Maker.number,
    "null": _Maker.null,
    "number": _Maker.number,
    "object": _Maker.object,
    "string": _Maker.string,
}


def _python_names(properties: Mapping[str, Schema]) -> list[str]:
    """Attribute names of members whose wire name is another: on the wire they are keys like any unknown one."""
    return [name for name in ("mime_type", "input_schema", "meta", "progress_token") if properties]


_KNOWN: dict[int, tuple[Normalised, Mapping[str, int]]] = {}
"""Heights by the identity of a schema, which is kept so that the identity stays its own."""


def _heights(schema: Normalised) -> Mapping[str, int]:
    if id(schema) not in _KNOWN:
        _KNOWN[id(schema)] = schema, _heights_of(schema)
    return _KNOWN[id(schema)][1]


def _heights_of(schema: Normalised) -> Mapping[str, int]:
    """How many objects must at least stand in one another in a value of each definition: the least fixed point."""
    heights = dict.fromkeys(schema.definitions, 0)
    for _ in schema.definitions:
        changed = {name: _node_height(node, heights) for name, node in schema.definitions.items()}
        if changed == heights:
            break
        heights = changed
    return heights


def _node_height(node: Schema, heights: Mapping[str, int]) -> int:
    if "$ref" in node:
        return heights[node["$ref"].rpartition("/")[2]]
    if "anyOf" in node:
        return min(_node_height(arm, heights) for arm in node["anyOf"])
    required = [node["properties"][name] for name in node.get("required", [])]
    return 1 + max((_node_height(child, heights) for child in required), default=0)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _places(child, (*path, key))


def _mutated(instance: Any, path: tuple[Any, ...], rng: random.Random) -> Any:
    if not path:
        return _changed(instance, rng)
    result = copy.deepcopy(instance)
    parent = result
    for key in path[:-1]:
        parent = parent[key]
    if rng.random() < 0.3:
        del parent[path[-1]]
    else:
        parent[path[-1]] = _changed(parent[path[-1]], rng)
    return result


def _changed(value: Any, rng: random.Random) -> Any:
    """Another value, close to the old one more often than not."""
    options: list[Any] = [None, [value], {"x": value}, rng.choice(SIMPLE), rng.choice(INTEGERS), rng.choice(FLOATS)]
    match value:
        case bool():
            options += [int(value), str(value).lower()]
        case int() | float():
            options += [value + 0.5, float(value), -value, str(value), bool(value)]
        case str():
            options += [value + "x", value.upper(), value[1:], [value]]
        case list():
            options += [[*value, rng.choice(SIMPLE)], {str(i): item for i, item in enumerate(value)}, value * 60]
        case dict():
            options += [list(value.values()), {**value, "type": "unknown"}, dict(list(value.items())[1:]), str(value)]
    return rng.choice(options)
