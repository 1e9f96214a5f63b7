"""The schema as types: what `load` reads a canonical schema into, and what `diff` and `derive` compare.

A `Type` is one of the small frozen classes below. Objects are open unless they say otherwise: a key that
`fields` does not name is of type `extra`. Nothing here reads files or decides anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from codegen.names import unescaped

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON value."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of one of the JSON types named (`string`, `integer`, `number`, `boolean`, `null`), within limits.

    What a schema says is one type; a list of them is a union.
    """

    types: frozenset[str]
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    min_length: int = 0
    max_length: int | None = None
    pattern: str | None = None
    """A regular expression of Python's that finds something in each value."""


@dataclass(frozen=True, slots=True)
class Literal:
    """One of the strings listed, or one other constant; a `const` is a list of one."""

    values: tuple[str | int | float | bool, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """A list whose items are of one type."""

    item: Type
    max_items: int | None = None
    min_items: int = 0


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of an object."""

    type: Type
    required: bool = False


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object: named fields, and a type for every other key."""

    fields: Mapping[str, Field] = field(default_factory=dict)
    extra: Type = Anything()
    says_open: bool = False
    """Whether the schema says itself that other keys may be there: what they mean is then known, only not listed."""
    lists_none: bool = field(default=False, compare=False)
    """Whether the schema says nothing but that it is an object: any key may be meant, and none is listed."""

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.fields)), self.extra))


@dataclass(frozen=True, slots=True)
class Union:
    """A value that is valid when one arm accepts it."""

    arms: tuple[Type, ...]


NEVER = Union(())
"""No value at all: what the other keys of a closed object may hold."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A definition, by name."""

    name: str


Type: TypeAlias = "Anything | Scalar | Literal | Array | Object | Union | Ref"


@dataclass(frozen=True, slots=True)
class Method:
    """A wire method: who may send it and what its frames carry.

    `request` is the definition of the request or notification; `results` the definitions its result can be, the usual
    one first.
    """

    name: str
    kind: str
    senders: frozenset[str]
    request: str
    results: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    """The unions that name it, by what they are for: `ClientRequest` and so on, whatever they are called."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One revision's schema: its definitions as types, and the methods that its unions of requests name."""

    revision: str
    definitions: Mapping[str, Type]
    methods: Mapping[str, Method]
    unions: Mapping[str, str] = field(default_factory=dict)
    """The definitions that say which methods there are, by what they are for (`ClientRequest` and so on)."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """Objects that stand in place, by the name that models give them (`CallToolRequestParams`): their JSON pointers."""
    written: Callable[[str], str] = field(default=str, compare=False)
    """Where in the file stands what a pointer through the types leads to, as `Places.written` says."""

    def at(self, pointer: str) -> Type:
        """The type that a pointer like `/$defs/CallToolRequest/properties/params` leads to.

        Raises:
            LookupError: It leads nowhere.
        """
        _, _, name, *path = map(unescaped, pointer.split("/"))
        type_ = self.definitions[name]
        steps = iter(path)
        for keyword in steps:
            resolved = self.resolve(type_)
            match resolved, keyword:
                case Object(), "properties":
                    type_ = resolved.fields[next(steps)].type
                case Object(), "additionalProperties":
                    type_ = resolved.extra
                case Array(), "items":
                    type_ = resolved.item
                case Union(), "anyOf":
                    type_ = resolved.arms[int(next(steps))]
                case _:
                    raise LookupError(f"{pointer}: no {keyword} there")
        return type_

    def way_to(self, union: Type, arm: Type) -> str:
        """The parts of a pointer from a union to one of its arms, as `arms` gives them; none from a type to itself."""
        resolved = self.resolve(union)
        if union is arm or not isinstance(resolved, Union):
            return ""
        for index, inner in enumerate(resolved.arms):
            if any(found is arm for found in self.arms(inner)):
                return f"/anyOf/{index}{self.way_to(inner, arm)}"
        return ""

    def resolve(self, type_: Type) -> Type:
        """Follow references until something that is not one."""
        while isinstance(type_, Ref):
            type_ = self.definitions[type_.name]
        return type_

    def arms(self, type_: Type) -> Iterator[Type]:
        """The arms of a union, nested unions flattened; any other type is its own single arm. References are kept."""
        resolved = self.resolve(type_)
        if not isinstance(resolved, Union):
            yield type_
            return
        for arm in resolved.arms:
            yield from self.arms(arm)

    def takes_null(self, type_: Type) -> bool:
        """Whether `null` is a value of a type."""
        kind = self.resolve(type_)
        if isinstance(kind, Union):
            return any(self.takes_null(arm) for arm in kind.arms)
        return isinstance(kind, Anything) or (isinstance(kind, Scalar) and "null" in kind.types)

    def tag(self, type_: Type) -> tuple[str, str] | None:
        """The first required field with a single constant string: `("type", "audio")`, `("method", "ping")`."""
        resolved = self.resolve(type_)
        if isinstance(resolved, Object):
            for name, member in resolved.fields.items():
                if member.required and isinstance(member.type, Literal) and len(member.type.values) == 1:
                    value = member.type.values[0]
                    if isinstance(value, str) and name != "jsonrpc":
                        return name, value
        return None

    def tags(self, type_: Type, key: str) -> tuple[str, ...]:
        """The constant strings that a required field allows: `("integer", "number")` for a `NumberSchema`'s `type`."""
        resolved = self.resolve(type_)
        member = resolved.fields.get(key) if isinstance(resolved, Object) else None
        if member is None or not member.required or not isinstance(member.type, Literal):
            return ()
        return tuple(value for value in member.type.values if isinstance(value, str))
