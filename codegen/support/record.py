"""Frozen dataclasses with slots, whose methods are made when they are first used. Imports no pydantic.

`dataclasses` writes and compiles seven functions for each class, which takes a third of a millisecond, and most are
never called: who starts a program waits for it. A record is a dataclass to type checkers, `dataclasses.fields` and
`dataclasses.replace`. It has no `__post_init__`, no base with fields, and no fields by keyword alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import field

    from typing_extensions import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def record(cls: type[T]) -> type[T]:
        """Make a class a record."""

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def quick_record(cls: type[T]) -> type[T]:
        """Make a class a record of which many are made: that none is changed, only type checkers see to."""

else:

    def record(cls: type[Any]) -> type[Any]:
        """Make a class a record."""
        return _make(cls, {"__setattr__": _refuse, "__delattr__": _refuse})

    def quick_record(cls: type[Any]) -> type[Any]:
        """Make a class a record of which many are made: that none is changed, only type checkers see to."""
        return _make(cls, {})


class _Late:
    """Stands for a method of a class until it is first looked up.

    Args:
        given: What the fields have for a default, as the class says it.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, _: type[Any] | None = None) -> Any:
        if self._name == "__init__":
            self._owner.__init__ = _write_init(self._owner, self._given)
        else:
            self._adopt()
        return getattr(self._owner if instance is None else instance, self._name)

    def _adopt(self) -> None:
        """Take over what `dataclasses` makes for such a class."""
        from dataclasses import dataclass

        owner = self._owner
        about = {"__annotations__": owner.__annotations__, "__module__": owner.__module__, "__doc__": "", **self._given}
        for name, made in vars(dataclass(frozen=True)(type(owner.__name__, (), about))).items():
            if name != "__init__" and isinstance(vars(owner).get(name), _Late):
                setattr(owner, name, made)


def _make(cls: type[Any], more: Mapping[str, Any]) -> type[Any]:
    names = tuple(cls.__annotations__)
    body = {name: value for name, value in vars(cls).items() if name not in {"__dict__", "__weakref__", *names}}
    given = {name: value for name, value in vars(cls).items() if name in names}
    late = ("__init__", "__repr__", "__eq__", "__hash__", "__dataclass_fields__")
    methods = {name: _Late(given) for name in late if name not in body}
    slots = {"__slots__": names, "__match_args__": names}
    return type(cls.__name__, cls.__bases__, {"__reduce__": _reduce, **body, **slots, **methods, **more})


def _write_init(owner: type[Any], given: Mapping[str, Any]) -> Any:
    heads, lines = ["self"], []
    scope: dict[str, Any] = {}
    for name in owner.__match_args__:
        value, default = name, given.get(name, scope)
        if hasattr(default, "default_factory"):
            from dataclasses import MISSING

            if callable(default.default_factory):
                value, default = f"_{name}() if {name} is _{name} else {name}", default.default_factory
            else:
                default = scope if default.default is MISSING else default.default
        scope[f"_{name}"], scope[f"_set_{name}"] = default, vars(owner)[name].__set__
        heads.append(name if default is scope else f"{name}=_{name}")
        lines.append(f"_set_{name}(self, {value})" if "__setattr__" in vars(owner) else f"self.{name} = {value}")
    exec("def __init__(" + ", ".join(heads) + "):\n " + "\n ".join(lines or ["pass"]), scope)
    return scope["__init__"]


def _refuse(self: object, name: str, *_: object) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _reduce(self: Any) -> tuple[Any, ...]:
    return type(self), tuple(getattr(self, name) for name in self.__match_args__)
