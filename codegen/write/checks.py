"""Types as Python expressions that say whether a value is valid: the predicates that generated steps ask before they
keep a value.

`Checks` hands out expressions and collects the functions they call, one a definition. Called by `steps`.
"""

from __future__ import annotations

from typing import assert_never

from codegen.names import snake
from codegen.read.model import Anything, Array, Literal, Object, Ref, Scalar, Spec, Type, Union

TESTS = {
    "string": "type({v}) is str",
    "boolean": "type({v}) is bool",
    "null": "{v} is None",
    "number": "type({v}) in (int, float)",
    "integer": "(type({v}) is int or (type({v}) is float and {v}.is_integer()))",
}


class Checks:
    """Predicates over one revision's types."""

    def __init__(self, spec: Spec, prefix: str) -> None:
        self.spec = spec
        self.prefix = prefix
        self.functions: dict[str, str] = {}
        self._named: dict[str, str] = {}
        """The function of each definition."""
        self._depth = 0

    def function(self, type_: Type, name: str) -> str:
        """The name of a function that takes a value and says whether the type accepts it."""
        if isinstance(type_, Ref):
            return self._definition(type_.name)
        expression = self.expression(type_, "v")
        full = self._free(name)
        self.functions[full] = expression
        return full

    def _definition(self, name: str) -> str:
        if name not in self._named:
            full = self._named[name] = self._free(name)
            self.functions[full] = self.expression(self.spec.definitions[name], "v")
        return self._named[name]

    def _free(self, name: str) -> str:
        """A name for a function; `ToolInfo` and `Tool_Info` would like to have the same."""
        full = f"{self.prefix}_is_{snake(name)}"
        while full in self.functions:
            full += "_"
        self.functions[full] = "True"  # while it is being spelled
        return full

    def expression(self, type_: Type, v: str) -> str:
        """An expression over the variable or subscript *v*."""
        match type_:
            case Anything():
                return "True"
            case Ref(name):
                return f"{self._definition(name)}({v})"
            case Scalar():
                return _scalar(type_, v)
            case Literal(values):
                return _literal(values, v)
            case Union(arms):
                return " or ".join(f"({self.expression(arm, v)})" for arm in arms) or "False"
            case Array():
                return self._array(type_, v)
            case Object():
                return self._object(type_, v)
        assert_never(type_)

    def _array(self, type_: Array, v: str) -> str:
        self._depth += 1
        item = f"i{self._depth}"
        parts = [f"type({v}) is list"]
        inner = self.expression(type_.item, item)
        if inner != "True":
            parts.append(_of_one_type(inner, item, v) or f"all({inner} for {item} in {v})")
        if type_.min_items:
            parts.append(f"len({v}) >= {type_.min_items}")
        if type_.max_items is not None:
            parts.append(f"len({v}) <= {type_.max_items}")
        self._depth -= 1
        return " and ".join(parts)

    def _object(self, type_: Object, v: str) -> str:
        parts = [f"type({v}) is dict"]
        for name, member in type_.fields.items():
            inner = self.expression(member.type, f"{v}[{name!r}]")
            if member.required:
                parts.append(f"{name!r} in {v}")
                parts += [] if inner == "True" else [f"({inner})"]
            elif inner != "True":
                parts.append(f"({name!r} not in {v} or ({inner}))")
        self._depth += 1
        key, item = f"k{self._depth}", f"i{self._depth}"
        inner = self.expression(type_.extra, item)
        if inner == "False":
            names = ", ".join(map(repr, type_.fields))
            parts.append(f"{v}.keys() <= {{{names}}}" if names else f"not {v}")
        elif inner != "True":
            known = f" if {key} not in {tuple(type_.fields)!r}" if type_.fields else ""
            quick = None if known else _of_one_type(inner, item, f"{v}.values()")
            parts.append(quick or f"all({inner} for {key}, {item} in {v}.items(){known})")
        self._depth -= 1
        return " and ".join(parts)


def _of_one_type(inner: str, item: str, values: str) -> str | None:
    """A test for values that only have to be of one type, in less than half of the time; None for any other test."""
    kind = inner.removeprefix(f"type({item}) is ")
    return f"{{{kind}}}.issuperset(map(type, {values}))" if kind.isidentifier() else None


def _literal(values: tuple[str | int | float | bool, ...], v: str) -> str:
    """A test for one of some constants, all strings or all of another type; 1 and 1.0 are the same number."""
    if isinstance(values[0], bool):
        return f"{v} is {values[0]!r}"
    kind = "is str" if isinstance(values[0], str) else "in (int, float)"
    return f"type({v}) {kind} and {v} in {values!r}"


def _scalar(type_: Scalar, v: str) -> str:
    (name,) = type_.types
    tests = [TESTS[name].format(v=v)]
    for sign, limit in ((">=", type_.minimum), ("<=", type_.maximum), (">", type_.above), ("<", type_.below)):
        tests += [] if limit is None else [f"{v} {sign} {limit!r}"]
    tests += [f"len({v}) >= {type_.min_length}"] if type_.min_length else []
    tests += [] if type_.max_length is None else [f"len({v}) <= {type_.max_length}"]
    tests += [] if type_.pattern is None else [f"re.search({type_.pattern!r}, {v}) is not None"]
    return " and ".join(tests)
