"""The types that the members of models have beyond Python's own, so that they take what JSON Schema takes.

Pure pydantic. An annotation here changes how a value is checked, never what it is: numbers keep their kind, dicts their
order. Must not live here: the models (`_base`). Used by `v*/models.py` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import is_
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, SchemaSerializer, SchemaValidator, core_schema

__all__ = ["EXACT", "NULL", "Constant", "Integer", "MayBeNull", "Number", "Opt", "OptNull", "SchemaObject"]

T = TypeVar("T")
EXACT = "dragoman_exact"


class _NotNull:
    """Takes the `None` of a field's Python type out of what is valid on the wire."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema


class _WholeNumber:
    """JSON Schema's `integer`: an int, or a float without a fraction, which stays a float."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        whole = core_schema.no_info_after_validator_function(_check_whole, core_schema.float_schema(strict=True))
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), whole],
            mode="left_to_right",
            custom_error_type="integer",
            custom_error_message="Input should be an integer",
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "integer"}


class _AnyNumber:
    """JSON Schema's `number`: an int stays an int, a float a float."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True)],
            mode="left_to_right",
            custom_error_type="number",
            custom_error_message="Input should be a number",
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "number"}


def _check_whole(value: float) -> float:
    if not value.is_integer():
        raise ValueError(value)
    return value


class Constant:
    """A number or boolean that a value has to be, kept as it came: 1.0 is 1, and `true` is not.

    Args:
        value: The number or boolean.
    """

    def __init__(self, value: float) -> None:
        self.value = value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"const": self.value}

    def _check(self, value: Any) -> Any:
        if (
            value.__class__ in _NUMBERS
            and isinstance(self.value, bool) == isinstance(value, bool)
            and value == self.value
        ):
            return value
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": str(self.value)})


_NUMBERS = frozenset({bool, int, float})

# Asked of every member whenever a model is dumped: a function of Python would take half as long again as the rest.
_IS_ABSENT = partial(is_, None)
Opt: TypeAlias = Annotated[T | None, _NotNull(), Field(exclude_if=_IS_ABSENT)]
"""An optional member: absent reads as `None`, and `null` is not valid on the wire."""


class _Null:
    """What a model holds where the wire has `null` in a member that may also be absent.

    Written, it is `null`: by its serializer, which pydantic asks wherever it does not know a value.
    """

    __pydantic_serializer__ = SchemaSerializer(
        core_schema.any_schema(serialization=core_schema.plain_serializer_function_ser_schema(lambda value: None))
    )

    def __reduce__(self) -> str:
        return "NULL"

    def __repr__(self) -> str:
        return "None"


NULL = _Null()


class MayBeNull:
    """Keeps `null` apart from absence, so that it is written again."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            lambda value: NULL if value is None else value,
            handler(source),
            serialization=core_schema.simple_ser_schema("any"),
        )


OptNull: TypeAlias = Annotated[T | None, MayBeNull(), Field(exclude_if=_IS_ABSENT)]
"""An optional member that may be `null` on the wire: it reads as `None` then, as where it is absent."""

Integer: TypeAlias = Annotated[int, _WholeNumber()]
"""A whole number of any size."""

Number: TypeAlias = Annotated[int | float, _AnyNumber()]
"""A number of either kind, kept as it came."""


class SchemaObject:
    """A JSON Schema as a plain dict: any members, but those named here are of the types named here.

    What is given is copied once and otherwise kept as it came, order included. Most values are right at first sight,
    which takes a few tests; for the others pydantic says what is wrong.

    Args:
        members: The types of the members that the protocol restricts.
        required: Which of them must be there.
    """

    def __init__(self, members: Mapping[str, Any], required: Sequence[str] = ()) -> None:
        self.members = dict(members)
        self.required = frozenset(required)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        fields = {
            name: core_schema.typed_dict_field(handler.generate_schema(kind), required=name in self.required)
            for name, kind in self.members.items()
        }
        exact = core_schema.typed_dict_schema(fields, extra_behavior="allow")
        validator = cache(lambda: SchemaValidator(exact))

        def judge(value: Any) -> Any:
            return validator().validate_python(value)

        check = _quick_check(self.members, self.required, judge) or judge
        return core_schema.no_info_plain_validator_function(check, metadata={EXACT: exact})

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema["metadata"][EXACT])


def _quick_check(
    members: Mapping[str, Any], required: frozenset[str], judge: Callable[[Any], Any]
) -> Callable[[Any], Any] | None:
    """A check that copies what is surely right, which is most, and asks *judge* about the rest.

    It runs once for each schema of a list of tools, half of what such a list costs: one function without calls, where
    every test that is not needed counts. None if the members are others than JSON Schemas have.
    """
    kinds = (Literal, str, list[str], dict[str, dict[str, Any]])
    found = {Literal if get_origin(kind) is Literal else kind: name for name, kind in members.items()}
    if len(found) < len(members) or not found.keys() <= set(kinds):
        return None
    constant, text, texts, mapping = map(found.get, kinds)
    wanted = get_args(members[constant])[0] if constant else None
    absent = None if constant in required else wanted
    if not required <= {constant} or not isinstance(wanted, str | None):
        return None

    def check(value: Any) -> Any:
        if value.__class__ is not dict or value.get(constant, absent) != wanted:
            return judge(value)
        for key in value:
            if key.__class__ is not str:
                return judge(value)
        if mapping in value:
            items = value[mapping]
            if items.__class__ is not dict:
                return judge(value)
            for key in items:
                if key.__class__ is not str or items[key].__class__ is not dict:
                    return judge(value)
        if texts in value:
            items = value[texts]
            if items.__class__ is not list:
                return judge(value)
            for item in items:
                if item.__class__ is not str:
                    return judge(value)
        if text in value and value[text].__class__ is not str:
            return judge(value)
        return value.copy()

    return check
