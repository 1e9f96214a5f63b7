"""How models read in an interpreter: the signature of a model, and what `dir` and `help` show of it.

Pydantic would show wire names, which are no Python, and some sixty names of its own. Must not live here: what a model
does (`_base`). Used by `_base` only.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, Signature
from types import FunctionType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import TypeAliasType

__all__ = ["SHOWN", "Metaclass", "Nullable", "brief", "shortcut", "shown", "spell"]

# What users of a model need of pydantic, and what there is to say of it here: pydantic's own words fill three screens.
SHOWN = {
    "model_copy": "Copy the model; `update` replaces members, by attribute, and is not checked.",
    "model_dump": "Give the JSON object as a dict, under wire names: just what was validated.",
    "model_dump_json": "Give the JSON object as text.",
    "model_json_schema": "Give the JSON Schema that says what is valid, with what each member means.",
    "model_validate": "Make a model of a JSON object as `json.loads` gives it; raises pydantic's ValidationError.",
    "model_validate_json": "Make a model of JSON text or bytes.",
}
GIVES: dict[str, Any] = {"model_dump": dict[str, Any], "model_dump_json": str, "model_json_schema": dict[str, Any]}
"""What they give, for signatures: the types of their options would take four lines each."""


class Nullable:
    """A member of a model that reads as `None` where it holds what stands for `null`."""

    def __init__(self, name: str, null: object) -> None:
        self.name = name
        self.null = null

    def __get__(self, model: Any, kind: type) -> Any:
        if model is None or self.name not in model.__dict__:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {self.name!r}")
        value = model.__dict__[self.name]
        return None if value is self.null else value

    def __set__(self, model: Any, value: Any) -> None:
        model.__dict__[self.name] = value


class _Spelled(str):
    """A type as it is spelled in a signature: without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class _Signature:
    """The signature of a class, made when somebody looks; what pydantic sets is not kept."""

    def __get__(self, model: Any, metaclass: type) -> Any:
        if model is None:
            return self
        if "model_config" not in vars(model) and not hasattr(model, "__pydantic_fields__"):
            raise AttributeError("__signature__")
        return Signature(list(_parameters(model)), return_annotation=None)

    def __set__(self, model: Any, value: Any) -> None:
        pass


if TYPE_CHECKING:
    # Type checkers make constructors of fields for this class alone, not for those derived from it.
    from pydantic._internal._model_construction import ModelMetaclass as Metaclass
else:

    class Metaclass(type(BaseModel)):
        """The class of models."""

        __signature__ = _Signature()

        def __dir__(self) -> list[str]:
            """What users of a model need of pydantic, and what they have added themselves."""
            kinds = [vars(kind) for kind in self.__mro__ if isinstance(kind, Metaclass)]
            own = {name for known in kinds for name, value in known.items() if not isinstance(value, Nullable)}
            return sorted(SHOWN.keys() | {name for name in own if not name.startswith("_")} - {"model_config"})


def brief(name: str) -> Any:
    """A method of pydantic's, the very same code, with fewer words."""
    method = vars(BaseModel)[name]
    function = method.__func__ if isinstance(method, classmethod) else method
    copied = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__annotations__ = {"return": GIVES[name]} if name in GIVES else {}
    copied.__doc__ = SHOWN[name]
    return classmethod(copied) if isinstance(method, classmethod) else copied


def shortcut(method: Any) -> Any:
    """A method in place of one of pydantic's, with its parameters and fewer words."""
    function: Any = method.__func__ if isinstance(method, classmethod) else method
    known = brief(function.__name__)
    function.__wrapped__ = known.__func__ if isinstance(known, classmethod) else known
    function.__doc__ = SHOWN[function.__name__]
    return method


def shown(value: Any) -> str:
    """A value as Python spells it; three dots if it is nested too deeply for that."""
    try:
        return repr(value)
    except RecursionError:
        return "..."


def _parameters(model: Any) -> Iterator[Parameter]:
    model.model_rebuild(raise_errors=False)
    filled = model._filled_in()
    for name, field in model.model_fields.items():
        default: Any = Parameter.empty if field.is_required() else None
        default = filled.get(field.alias or name, default)
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_Spelled(spell(field.annotation)))
    yield Parameter("extra", Parameter.VAR_KEYWORD, annotation=_Spelled("Any"))


def spell(annotation: Any) -> str:
    """A type as one would write it, without the parts that say how it is checked."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return spell(arguments[0])
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin in (Union, UnionType):
        return " | ".join(dict.fromkeys(map(spell, arguments)))
    if annotation is NoneType:
        return "None"
    if isinstance(annotation, TypeAliasType) and _is_dict(annotation.__value__):
        return spell(annotation.__value__)  # `ToolInputSchema`: what else it says is checked, but no type
    name = getattr(origin or annotation, "__name__", str(annotation))
    if isinstance(annotation, TypeAliasType) or not arguments:
        return str(name)
    return f"{name}[{', '.join(map(spell, arguments))}]"


def _is_dict(annotation: Any) -> bool:
    """Whether a type is a dict, whatever else is checked of it."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return get_origin(annotation) is dict
