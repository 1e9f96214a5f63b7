"""What type checkers see of a client is what there is: the same calls, with the same arguments."""

from __future__ import annotations

import inspect
import typing
from importlib import import_module
from typing import Any

import pytest

import dragoman_spec
from dragoman.client.client import Client
from dragoman.client.connect import connect
from dragoman_spec.clients import Connect, SyncConnect

OF_THE_LIBRARY = {
    "open",
    "begin",
    "check",
    "declares",
    "ask",
    "called",
    "read_result",
    "validate",
}
"""What the client has for the library itself, and programs are not shown."""


def typed_client(revision: str, name: str = "Client") -> Any:
    return getattr(import_module(f"dragoman_spec.v{revision.replace('-', '_')}.client"), name)


def members(client: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(client).items() if not name.startswith("_")}


def parameters(call: Any) -> list[tuple[str, Any, Any]]:
    return [(one.name, one.kind, one.default) for one in inspect.signature(call).parameters.values()]


def overloads(of: type = Connect) -> list[Any]:
    """Python keeps overloads by the name of what they belong to; a protocol has nothing that bears it."""

    def call() -> None: ...

    call.__module__, call.__qualname__ = of.__module__, f"{of.__name__}.__call__"
    return list(typing.get_overloads(call))


def typed_calls(revision: str, name: str = "Client") -> dict[str, Any]:
    shown = members(typed_client(revision, name))
    return {name: parameters(call) for name, call in shown.items() if inspect.isfunction(call)}


def real_calls() -> dict[str, Any]:
    real = members(Client)
    return {
        name: parameters(call) for name, call in real.items() if inspect.isfunction(call) and name not in OF_THE_LIBRARY
    }


@pytest.mark.parametrize("revision", dragoman_spec.REVISIONS)
def test_the_calls_of_a_typed_client_are_those_of_the_client(revision: str) -> None:
    real = real_calls()
    shown = typed_calls(revision)
    assert shown == {name: real.get(name) for name in shown}


def test_every_call_of_the_client_is_one_of_some_revision() -> None:
    assert {name for revision in dragoman_spec.REVISIONS for name in typed_calls(revision)} == set(real_calls())


@pytest.mark.parametrize("revision", dragoman_spec.REVISIONS)
def test_a_client_without_an_event_loop_has_the_same_calls(revision: str) -> None:
    assert typed_calls(revision, "SyncClient") == typed_calls(revision)


def test_it_is_opened_in_the_same_ways() -> None:
    assert [parameters(one) for one in overloads(SyncConnect)] == [parameters(one) for one in overloads()]


def test_every_overload_takes_what_connect_takes() -> None:
    real = {name: default for name, _, default in parameters(connect)}
    for overload in overloads():
        shown = {name: default for name, _, default in parameters(overload) if name != "self"}
        assert set(shown) <= set(real)
        assert {name: real[name] for name in shown if name not in ("target", "revision")} == {
            name: default for name, default in shown.items() if name not in ("target", "revision")
        }


def test_there_is_an_overload_for_each_revision_and_for_any() -> None:
    found = [typing.get_args(typing.get_type_hints(overload)["revision"])[0] for overload in overloads()]
    assert found == [*dragoman_spec.REVISIONS, "any"]
