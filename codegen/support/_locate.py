"""From what pydantic says about bad input to one JSON pointer, what was expected there, and what was found.

*Theory of operation.* The `loc` of a pydantic error names keys and indexes, but also the union arms it tried, and a tag
may have the name of a key. So `loc` is read along the core schema it came from, where each part is a key, an index or
an arm. Of the arms of a union the one that the input fits best speaks: one that its own kind of value was given to,
then one whose constants agree, then the one with the fewest members missing or wrong. Used by `_validation` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import CoreSchema, ErrorDetails

from ._types import EXACT

Part = str | int
Node = Any  # A core schema is a union of a hundred TypedDicts; what is read here is common to many.

WORDS: dict[str, str] = {
    "bool_type": "a boolean",
    "dict_type": "an object",
    "model_attributes_type": "an object",
    "finite_number": "a finite number",
    "integer": "an integer",
    "list_type": "an array",
    "model_type": "an object",
    "none_required": "null",
    "number": "a number",
    "string_type": "a string",
    "string_unicode": "a string of whole Unicode characters",
}
FORMATS: dict[str, str] = {
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "text matching {pattern}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "too_long": "at most {max_length} items",
    "too_short": "at least {min_length} items",
}
# What a missing value should have been, by the type of its core schema.
NAMES = {
    "bool": "bool_type",
    "dict": "dict_type",
    "list": "list_type",
    "model": "model_type",
    "str": "string_type",
    "typed-dict": "model_type",
    "tagged-union": "model_type",
}
ANYTHING: Node = {"type": "any"}
# Pydantic says of a bad key that it is wrong, and then that it is a key.
KEY_MARK = "[key]"
LONGEST_QUOTE = 60
MOST_BITS = 4096


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what was expected, what was found; and whether absence would have been right.

    `arms` are the union arms on the way: how far down each union stands, and which arm was tried.
    """

    path: tuple[Part, ...]
    expected: str
    found: str
    kind: str
    arms: tuple[tuple[int, str], ...] = ()
    null_for_absent: bool = False

    @property
    def pointer(self) -> str:
        """The place as an RFC 6901 JSON pointer."""
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in self.path)


def read_errors(errors: Sequence[ErrorDetails], schema: CoreSchema, prefix: Sequence[Part] = ()) -> list[Problem]:
    """Translate pydantic's errors; *prefix* is where the validated value stands in the frame."""
    reader = _Reader(schema)
    return [reader.read(error, tuple(prefix)) for error in errors]


def choose(problems: Sequence[Problem]) -> Problem:
    """The one problem worth telling of."""
    first = problems[0]
    if not first.arms:
        return first
    depth = first.arms[0][0]
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.arms and problem.arms[0][0] == depth and problem.path[:depth] == first.path[:depth]:
            rest = Problem(problem.path, problem.expected, problem.found, problem.kind, problem.arms[1:])
            groups.setdefault(problem.arms[0][1], []).append(rest)
    fitting = [group for group in groups.values() if not any(_misfit(problem, depth) for problem in group)]
    constants = [problem for group in fitting for problem in group if _is_constant(problem, depth)]
    if fitting and len(constants) == len(fitting) and len({problem.path for problem in constants}) == 1:
        words = dict.fromkeys(problem.expected for problem in constants)
        return Problem(constants[0].path, " or ".join(words), constants[0].found, constants[0].kind)
    if fitting:
        return choose(nearest(fitting, depth))
    wanted = dict.fromkeys(problem.expected for group in groups.values() for problem in group[:1])
    return Problem(first.path[:depth], " or ".join(wanted), first.found, first.kind)


def choose_each(problems: Sequence[Problem]) -> list[Problem]:
    """The problems worth telling of, one for each place: what the arms of one union say counts as one."""
    groups: dict[tuple[Part, ...], list[Problem]] = {}
    for problem in problems:
        place = problem.path[: problem.arms[0][0]] if problem.arms else problem.path
        groups.setdefault(place, []).append(problem)
    return [one for place, group in groups.items() for one in _choose_within(group, len(place))]


def _choose_within(problems: list[Problem], depth: int) -> list[Problem]:
    """The same for what is wrong at one place; where one arm of a union is meant, all that is wrong inside of it."""
    arms: dict[str, list[Problem]] = {}
    for problem in problems:
        if problem.arms and problem.arms[0][0] == depth:
            arms.setdefault(problem.arms[0][1], []).append(problem)
    fitting = [
        group for group in arms.values() if not any(_misfit(one, depth) or _is_constant(one, depth) for one in group)
    ]
    if len(fitting) != 1:
        return [choose(problems)]
    inside = [Problem(one.path, one.expected, one.found, one.kind, one.arms[1:]) for one in fitting[0]]
    return choose_each(inside)


def _is_constant(problem: Problem, depth: int) -> bool:
    """Whether a constant of the arm itself, such as its tag, has another value."""
    return problem.kind == "literal_error" and len(problem.path) == depth + 1


def _misfit(problem: Problem, depth: int) -> bool:
    """Whether an arm is for another kind of value altogether."""
    return len(problem.path) == depth and problem.kind != "literal_error"


def nearest(groups: Sequence[list[Problem]], depth: int) -> list[Problem]:
    """Of the definitions tried at one place, *depth* parts down, the problems of the one that the input fits best."""

    def distance(group: list[Problem]) -> tuple[int, int, int]:
        constants = {problem.path for problem in group if _is_constant(problem, depth)}
        missing = {problem.path for problem in group if problem.kind == "missing" and len(problem.path) == depth + 1}
        return len(constants), len(missing), len({problem.path[: depth + 1] for problem in group})

    return min(groups, key=distance)


def describe(value: Any) -> str:
    """A JSON value in a few words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > MOST_BITS:
            return "a very long number"
        case int() | float():
            return f"the number {_short(repr(value))}"
        case str():
            return f"the string {_short(repr(value))}"
        case list():
            return "an array" if value else "an empty array"
        case dict():
            return "an object" if value else "an empty object"
    return f"a Python {type(value).__name__}"


def describe_member(value: Any, name: str) -> str:
    """A member of a JSON object in a few words."""
    return describe(value[name]) if isinstance(value, dict) and name in value else "nothing"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


class _Reader:
    """Reads `loc` along one core schema."""

    def __init__(self, schema: CoreSchema) -> None:
        self.schema: Node = schema
        self.definitions: dict[str, Node] = {}
        if self.schema["type"] == "definitions":
            self.definitions = {definition["ref"]: definition for definition in self.schema["definitions"]}

    def read(self, error: ErrorDetails, prefix: tuple[Part, ...]) -> Problem:
        walk = _Walk(self)
        walk.along(self.schema, list(error["loc"]))
        kind, context, value = error["type"], error.get("ctx", {}), error["input"]
        path = (*prefix, *walk.path)
        arms = tuple((depth + len(prefix), arm) for depth, arm in walk.arms)
        if kind in ("union_tag_invalid", "union_tag_not_found"):
            tag = context["discriminator"].strip("'")
            return Problem((*path, tag), _either(walk.tags), describe_member(value, tag), "literal_error", arms)
        if kind == "missing":
            return Problem(path, walk.wanted, "nothing", kind, arms)
        expected = WORDS.get(kind) or FORMATS.get(kind, error["msg"]).format(**context)
        return Problem(path, expected, describe(value), kind, arms, walk.optional and value is None)

    def name(self, node: Node) -> str:
        """What values of a node are called."""
        node = self.resolve(node)
        match node["type"]:
            case "literal":
                return _either([repr(value) for value in node["expected"]])
            case "union" if "custom_error_type" not in node:
                arms = [choice[0] if isinstance(choice, tuple) else choice for choice in node["choices"]]
                return _either(list(dict.fromkeys(self.name(arm) for arm in arms)))
        return WORDS.get(node.get("custom_error_type") or NAMES.get(node["type"], ""), "a value")

    def resolve(self, node: Node) -> Node:
        """Look through everything that is not itself a kind of JSON value."""
        while True:
            if EXACT in node.get("metadata", {}):
                node = node["metadata"][EXACT]
            elif node["type"] == "definition-ref":
                node = self.definitions[node["schema_ref"]]
            elif node["type"] != "model" and "schema" in node:
                node = node["schema"]
            else:
                return node


class _Walk:
    """One way down a core schema: the keys and indexes passed, and the union arms taken."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.path: list[Part] = []
        self.arms: list[tuple[int, str]] = []
        self.tags: list[str] = []
        self.optional = False
        self.wanted = ""

    def along(self, node: Node, loc: list[Part]) -> None:
        """Follow *loc* from *node* to its end."""
        node = self.reader.resolve(node)
        if not loc:
            self.tags = [repr(tag) for tag in node.get("choices", {})] if node["type"] == "tagged-union" else []
            self.wanted = self.reader.name(node)
            return
        part, rest = loc[0], [] if loc[1:] == [KEY_MARK] else loc[1:]
        match node["type"]:
            case "union":
                self.arms.append((len(self.path), str(part)))
                self.along(self._arm(node, str(part)), rest)
            case "tagged-union":
                self.along(node["choices"][part], rest)
            case "model":
                self._member(node["schema"], part, rest)
            case "typed-dict":
                self._step(node["fields"].get(part, {}).get("schema", ANYTHING), part, rest)
                self.optional = self.optional or (not rest and not node["fields"].get(part, {}).get("required", True))
            case "list":
                self._step(node.get("items_schema", ANYTHING), part, rest)
            case "dict":
                self._step(node.get("values_schema", ANYTHING), part, rest)
            case _:
                self.path += loc

    def _step(self, node: Node, part: Part, rest: list[Part]) -> None:
        self.path.append(part)
        self.optional = False
        self.along(node, rest)

    def _member(self, node: Node, part: Part, rest: list[Part]) -> None:
        fields = self.reader.resolve(node)["fields"]
        by_wire_name: dict[Part, Node] = {
            field.get("validation_alias", name): field["schema"] for name, field in fields.items()
        }
        schema: Node = by_wire_name.get(part, ANYTHING)
        self._step(schema, part, rest)
        self.optional = self.optional or (not rest and schema["type"] == "default")

    def _arm(self, union: Node, label: str) -> Node:
        """The arm that pydantic calls by a label: a model's name, or a type with its arguments in brackets."""
        for choice in union["choices"]:
            node = self.reader.resolve(choice[0] if isinstance(choice, tuple) else choice)
            name = node["cls"].__name__ if node["type"] == "model" else node["type"]
            if label == name or label.startswith((f"{name}[", f"constrained-{name}")):
                return node
        return ANYTHING


def _either(words: Sequence[str]) -> str:
    return " or ".join(words) or "a value"
