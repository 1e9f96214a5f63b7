"""What the models of every revision are made of; the one module that revisions share.

Pure pydantic. A model is a JSON object of one definition: absent optional members read as `None` and are never written,
constants are filled in by the constructor, unknown members are kept, and `model_dump()` and `model_dump_json()` give
back exactly what was validated, under wire names. Nothing about any one revision lives here. Used by `v*/models.py`
only.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic_core import CoreSchema, core_schema

__all__ = ["Integer", "Model", "NullKeepingModel", "Number", "NumberConstant", "Opt", "OptNull", "constant"]

T = TypeVar("T")


class _Shape(NamedTuple):
    """What the constructor of a model needs to know, by wire name where it is a name."""

    aliases: dict[str, str]
    optional: frozenset[str]
    constants: dict[str, Any]


class Model(BaseModel):
    """A JSON object of one definition of one revision.

    The constructor takes Python names or wire names; `None` for an optional member means absent. Validation takes wire
    names only.
    """

    # Deferred: a program uses few of a revision's 150 models; without their validators they import in half the time.
    model_config = ConfigDict(
        extra="allow", serialize_by_alias=True, allow_inf_nan=False, ser_json_inf_nan="constants", defer_build=True
    )

    def __init__(self, /, **data: Any) -> None:
        shape = _shape(type(self))
        values = dict(shape.constants)
        for name, value in data.items():
            key = shape.aliases.get(name, name)
            if value is not None or key not in shape.optional:
                values[key] = value
        self.__pydantic_validator__.validate_python(values, self_instance=self)

    # Tells pydantic that validation need not go through this constructor: wire data has no Python names and no
    # filled-in constants.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


class NullKeepingModel(Model):
    """A model with an optional member that may be `null` on the wire.

    Absent and `null` both read as `None`, and stay apart.
    """

    @model_serializer(mode="wrap")
    def _leave_absent(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        for name, field in type(self).model_fields.items():
            if name not in self.model_fields_set:
                key = name if info.by_alias is False else field.alias or name
                if data.get(key, ...) is None:
                    del data[key]
        return data


@cache
def _shape(model: type[Model]) -> _Shape:
    model.model_rebuild()
    fields = model.model_fields
    constants = {
        field.alias or name: get_args(field.annotation)[0]
        for name, field in fields.items()
        if field.is_required() and get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    }
    return _Shape(
        aliases={name: field.alias for name, field in fields.items() if field.alias},
        optional=frozenset(field.alias or name for name, field in fields.items() if not field.is_required()),
        constants=constants,
    )


def constant(value: T) -> T:
    """Declare a member that can have one value only: required on the wire, filled in by the constructor.

    For type checkers this is a default, so that the constructor need not be given it; for pydantic it is none, so that
    validation asks for it.
    """
    field: T = Field()
    return field


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


class _AnyNumber:
    """JSON Schema's `number`: an int stays an int, a float a float."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema(
            [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True)],
            mode="left_to_right",
            custom_error_type="number",
            custom_error_message="Input should be a number",
        )


class _AsGiven:
    """Keeps the kind of a number that equals a constant.

    -32600.0 is valid where -32600 is asked for, and stays a float.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_wrap_validator_function(
            _check_and_keep, handler(source), serialization=core_schema.simple_ser_schema("any")
        )


def _check_and_keep(value: Any, check: core_schema.ValidatorFunctionWrapHandler) -> Any:
    check(value)
    return value


def _check_whole(value: float) -> float:
    if not value.is_integer():
        raise ValueError(value)
    return value


def _is_absent(value: Any) -> bool:
    return value is None


NumberConstant: TypeAlias = Annotated[T, _AsGiven()]
"""A constant that is a number."""

Opt: TypeAlias = Annotated[T | None, _NotNull(), Field(exclude_if=_is_absent)]
"""An optional member: absent reads as `None`, and `null` is not valid on the wire."""

OptNull: TypeAlias = T | None
"""An optional member that may be `null` on the wire."""

Integer: TypeAlias = Annotated[int, _WholeNumber()]
"""A whole number of any size."""

Number: TypeAlias = Annotated[int | float, _AnyNumber()]
"""A number of either kind, kept as it came."""
