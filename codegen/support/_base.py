"""What the models of every revision are made of; the one module that revisions share.

Pure pydantic. A model is a JSON object of one definition: absent optional members read as `None` and are never written,
constants are filled in by the constructor, unknown members are kept, and `model_dump()` and `model_dump_json()` give
back exactly what was validated, under wire names. Nothing about any one revision lives here. Used by `v*/models.py`
only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, ValidationError
from typing_extensions import TypeAliasType

from ._json import Wrong, not_json
from ._reading import Metaclass, Nullable, brief, shortcut, shown
from ._types import NULL, MayBeNull

__all__ = ["Model", "constant", "describe"]

T = TypeVar("T")
META, META_NAME = "_meta", "meta"
# Up to 3.12 Python leaves docstrings as indented as they stand in the source.
INDENT = "    " if sys.version_info < (3, 13) else ""
Words: TypeAlias = Mapping[str, Mapping[str, Any]]
NOT_JSON = PydanticCustomError("not_json", "Input should be JSON")
LIMITS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


class _Shape(NamedTuple):
    """What the constructor of a model needs to know, by wire name where it is a name.

    `aliases` has the wire names by attribute, `attributes` the attributes by wire name where that is another one;
    `objects` has the members that are one object: the model of it, or `dict`.
    """

    aliases: dict[str, str]
    attributes: dict[str, str]
    optional: frozenset[str]
    constants: dict[str, Any]
    objects: dict[str, type[Any]]


class Model(BaseModel, metaclass=Metaclass):
    """A JSON object of one definition of one revision.

    The constructor takes Python names or wire names; `None` for an optional member means absent. `meta` is `_meta`,
    whether the definition has it or not. Validation takes wire names only.
    """

    # Deferred: a program uses few of a revision's 150 models; without their validators they import in half the time.
    # Polymorphic: where a subclass stands in for a model, its own fields are written too.
    model_config = ConfigDict(
        extra="allow",
        serialize_by_alias=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        defer_build=True,
        polymorphic_serialization=True,
        protected_namespaces=(),
        regex_engine="python-re",  # patterns are read as Python's, by `codegen.read.keywords`
    )

    if TYPE_CHECKING:
        meta: Any = None

    def __init__(self, /, **data: Any) -> None:
        shape = _shape(type(self))
        values = dict(shape.constants)
        for name, value in data.items():
            key = shape.aliases.get(name, name)
            if value is not None:
                values[key] = _given(value, shape.objects.get(key))
            elif key not in shape.optional:
                values[key] = value
        wrong = not_json(values)
        if wrong is not None and wrong[1] != "not_json":
            raise _refusal(type(self), values, *wrong)
        self.__pydantic_validator__.validate_python(values, self_instance=self)
        if wrong is not None:
            # Not JSON as it was given, such as a set where a list is asked for: what has become of it?
            given = self.model_dump()
            if (wrong := not_json(given)) is not None:
                raise _refusal(type(self), given, *wrong)

    # Tells pydantic that validation need not go through this constructor: wire data has no Python names and no
    # filled-in constants.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    if not TYPE_CHECKING:
        _nullable: ClassVar[frozenset[str]] = frozenset()

        model_json_schema = brief("model_json_schema")
        model_validate_json = brief("model_validate_json")

        @shortcut
        def model_dump(self, **options: Any) -> Any:
            return super().model_dump(**options) if options else self.__pydantic_serializer__.to_python(self)

        @shortcut
        def model_dump_json(self, **options: Any) -> Any:
            # Handing on fourteen options that are hardly ever given takes a third of the time of a small object.
            return (
                super().model_dump_json(**options) if options else self.__pydantic_serializer__.to_json(self).decode()
            )

        @classmethod
        def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
            """Let members that may be `null` read as `None`, whether they are absent or `null`."""
            names = {name for name, field in cls.model_fields.items() if MayBeNull in map(type, field.metadata)}
            for name in names - cls._nullable:
                setattr(cls, name, Nullable(name, NULL))
            cls._nullable = cls._nullable | names

        def __iter__(self) -> Iterator[tuple[str, Any]]:
            yield from ((name, None if value is NULL else value) for name, value in super().__iter__())

        @shortcut
        @classmethod
        def model_validate(cls, obj: Any, **options: Any) -> Any:
            # Handing on six options that are hardly ever given takes a seventh of the time of a small object.
            if options:
                return super().model_validate(obj, **options)
            return cls.__pydantic_validator__.validate_python(obj)

        @shortcut
        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
            if update:
                fields, attributes = type(self).model_fields, _shape(type(self)).attributes
                known = {name: META if name == META_NAME and name not in fields else name for name in update}
                update = {attributes.get(name, known[name]): value for name, value in update.items()}
                update |= {name: NULL for name in self._nullable & update.keys() if update[name] is None}
            return super().model_copy(update=update, deep=deep)

        def __getattr__(self, name: str) -> Any:
            if name == META_NAME:
                return (self.__pydantic_extra__ or {}).get(META)
            if name not in (self.__pydantic_extra__ or {}):
                _check_attribute(type(self), name)
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if name == META_NAME and name not in type(self).model_fields:
                if value is None:
                    self.__pydantic_extra__.pop(META, None)
                else:
                    self.__pydantic_extra__[META] = _given(value, dict)
            else:
                _check_attribute(type(self), name)
                super().__setattr__(name, value)
                if value is None and name in self._nullable:
                    self.__dict__[name] = NULL

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The schema of what is valid: absent members have no default, and no titles that only repeat names."""
        made = handler(schema)
        own = handler.resolve_ref_schema(made)
        own.pop("title", None)
        if cls.__doc__:
            own["description"] = cls.__doc__.partition("\n\n")[0]
        members, names = own["properties"], {name: field.alias or name for name, field in cls.model_fields.items()}
        by_alias = all(alias in members for alias in names.values())
        for name, field in cls.model_fields.items():
            member = members[names[name] if by_alias else name]
            member.pop("title", None)
            if member.get("default", ...) is None:
                del member["default"]
            for limit, keyword in LIMITS.items():
                member.pop(limit, None)  # pydantic's name for it, where the number is one of ours
                for part in field.metadata:
                    if hasattr(part, limit):
                        member[keyword] = getattr(part, limit)
        return made

    @classmethod
    def _filled_in(cls) -> dict[str, Any]:
        """What the constructor fills in where it is not given, by wire name."""
        return dict(_shape(cls).constants)

    def __repr_str__(self, join: str) -> str:
        return join.join(f"{name}={shown(value)}" for name, value in self.__repr_args__())

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What is there, by attribute; what is absent is left out."""
        fields = type(self).model_fields
        for name, value in super().__repr_args__():
            if value is not None or name not in fields or fields[name].is_required():
                yield (META_NAME if name == META else name), value


@cache
def _shape(model: type[Model]) -> _Shape:
    model.model_rebuild()
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    constants = {
        key: get_args(field.annotation)[0]
        for key, field in fields.items()
        if field.is_required() and get_origin(field.annotation) is Literal and len(get_args(field.annotation)) == 1
    }
    objects = {key: kind for key, field in fields.items() if (kind := _object_type(field.annotation))}
    aliases = {META_NAME: META} | {name: field.alias for name, field in model.model_fields.items() if field.alias}
    return _Shape(
        aliases=aliases,
        attributes={alias: name for name, alias in aliases.items() if name in model.model_fields},
        optional=frozenset(key for key, field in fields.items() if not field.is_required()),
        # Not declared in `Model`: pydantic would look at the annotation again for each of its subclasses.
        constants=constants | getattr(model, "_filled", {}),
        objects={META: dict} | objects,
    )


def _object_type(annotation: Any) -> type[Any] | None:
    """The model, or `dict`, that an annotation asks for, if it is one of these and nothing else."""
    while isinstance(annotation, TypeAliasType) or get_origin(annotation) is Annotated:
        annotation = annotation.__value__ if isinstance(annotation, TypeAliasType) else get_args(annotation)[0]
    arms = [arm for arm in get_args(annotation) if arm is not type(None)]
    if type(None) in get_args(annotation) and len(arms) == 1:
        return _object_type(arms[0])
    kind = get_origin(annotation) or annotation
    return kind if isinstance(kind, type) and (kind is dict or issubclass(kind, Model)) else None


def _check_attribute(model: type[Model], name: str) -> None:
    """Say what an attribute is called that is asked for by its name on the wire."""
    attribute = META_NAME if name == META else None if name.startswith("_") else _shape(model).attributes.get(name)
    if attribute is not None and attribute != name:
        raise AttributeError(f"{model.__name__!r} object has no attribute {name!r}: it is called {attribute!r}")


def _given(value: Any, wanted: type[Any] | None) -> Any:
    """An argument of a constructor; a model where another object is asked for becomes the JSON object that it is."""
    if isinstance(value, Model):
        return value.model_dump() if wanted is not None and not isinstance(value, wanted) else value
    return value


def _refusal(model: type[Model], value: Any, path: Sequence[str | int], kind: Wrong) -> ValidationError:
    """The error for a value of a model that is not JSON."""
    for part in path:
        value = value[part]
    error = {"type": NOT_JSON if kind == "not_json" else kind, "loc": path, "input": value}
    return ValidationError.from_exception_data(model.__name__, [cast("InitErrorDetails", error)])


def constant(value: T) -> T:
    """Declare a member that the constructor fills in although it is required on the wire.

    For type checkers this is a default, so that the constructor need not be given it; for pydantic it is none, so that
    validation asks for it.
    """
    field: T = Field()
    return field


def describe(module: str, revision: str, words: Words) -> None:
    """Give the models of a module what their fields mean: as descriptions, and as a list in the docstring.

    A `Field(description=…)` at each field would say the same and make a revision a quarter slower to import.

    Args:
        module: The module's name.
        revision: Its revision.
        words: What fields mean, by definition and wire name, those under `*` in every definition; where that changed,
            by the revision since which.
    """
    everywhere = words["*"]
    for model, kind in vars(sys.modules[module]).items():
        if not isinstance(kind, type) or not issubclass(kind, Model) or kind.__module__ != module:
            continue
        own, lines = words.get(model, everywhere), list[str]()
        for name, field in kind.model_fields.items():
            key = field.alias or name
            field.description = _said(own.get(key), revision) or _said(everywhere.get(key), revision)
            if field.description:
                lines.append(f"{INDENT}    {name}: {field.description}\n")
        if kind.__doc__:
            kind.__doc__ = f"{kind.__doc__.rstrip()}\n\n{INDENT}Attributes:\n{''.join(lines)}"


def _said(text: str | Mapping[str, str] | None, revision: str) -> str | None:
    if text is None or isinstance(text, str):
        return text
    return text.get(max((since for since in text if since <= revision), default=""))
