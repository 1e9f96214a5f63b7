"""The registry knows the revisions, their eras and their packages, and says what it does not know."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from codegen.read.pins import read_pins
from dragoman_spec.errors import UnsupportedRevision
from dragoman_spec.revisions import HANDSHAKE_REVISIONS, LATEST, REVISIONS, era, load
from dragoman_spec.translation import translate
from tests.support.effort import UNIT


def test_revisions_come_oldest_first() -> None:
    assert list(REVISIONS) == sorted(REVISIONS)


def test_revisions_are_those_that_are_pinned() -> None:
    assert set(REVISIONS) == set(read_pins(Path(__file__).parents[2] / "schema" / "pins.toml"))


def test_latest_is_the_last() -> None:
    assert REVISIONS[-1] == LATEST


def test_handshake_revisions_are_those_that_initialize() -> None:
    assert tuple(revision for revision in REVISIONS if "initialize" in load(revision).METHODS) == HANDSHAKE_REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_package_knows_its_revision(revision: str) -> None:
    package = load(revision)
    assert isinstance(package, ModuleType)
    assert revision == package.REVISION


@pytest.mark.parametrize("unknown", ["2023-01-01", "", "draft", "../../etc"])
def test_unknown_revision_names_those_at_hand(unknown: str) -> None:
    for ask in (era, load):
        with pytest.raises(UnsupportedRevision) as caught:
            ask(unknown)
        assert (caught.value.requested, caught.value.supported) == (unknown, REVISIONS)


@pytest.mark.parametrize("revision", REVISIONS)
def test_unknown_name_of_a_package_is_an_attribute_error(revision: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchModel'"):
        load(revision).NoSuchModel  # noqa: B018


@pytest.mark.parametrize("revision", REVISIONS)
def test_package_lists_its_models(revision: str) -> None:
    package = load(revision)
    assert set(package.DEFINITIONS) <= set(dir(package))


@pytest.mark.parametrize("revision", REVISIONS)
def test_methods_name_definitions_that_exist(revision: str) -> None:
    package = load(revision)
    for method in (*package.METHODS.values(), *package.INPUT_METHODS.values()):
        for name in (method.frame, method.params, *method.results):
            assert name is None or hasattr(package, name), (method.name, name)


@pytest.mark.parametrize("revision", REVISIONS)
def test_method_goes_by_its_own_name(revision: str) -> None:
    assert {name: method.name for name, method in load(revision).METHODS.items()} == {
        n: n for n in load(revision).METHODS
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_methods_say_what_they_do(revision: str) -> None:
    package = load(revision)
    methods = (*package.METHODS.values(), *package.INPUT_METHODS.values())
    assert [method.name for method in methods if not method.summary.endswith(".")] == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_error_codes_are_constants_of_the_module(revision: str) -> None:
    methods = load(revision).methods
    assert {code: getattr(methods, name) for code, name in methods.ERROR_CODES.items()} == {
        c: c for c in methods.ERROR_CODES
    }


def test_servers_of_the_latest_ask_inside_results() -> None:
    found = {name: (method.result, method.capability) for name, method in load(LATEST).INPUT_METHODS.items()}
    assert found == {
        "elicitation/create": ("ElicitResult", "elicitation"),
        "roots/list": ("ListRootsResult", "roots"),
        "sampling/createMessage": ("CreateMessageResult", "sampling"),
    }


def test_codes_that_only_one_era_has() -> None:
    assert {revision: -32002 in load(revision).ERROR_CODES for revision in REVISIONS} == {
        revision: era(revision) == "handshake" for revision in REVISIONS
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_one_revision_imports_quickly(revision: str) -> None:
    # The target is 150 ms with pydantic on an idle machine of ours, which is 10 units of `effort`; one of three tries.
    code = f"""
import time
import dragoman_spec.revisions as r; r.load({revision!r}).Tool
spent = time.process_time()
{UNIT}
def measured():
    began = time.process_time()
    unit()
    return time.process_time() - began
print(spent / min(measured() for _ in range(3)))
"""
    command = [sys.executable, "-c", code]

    def try_it() -> float:
        return float(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)

    assert any(try_it() < 30 for _ in range(3))


NOBODYS = (-32001, *range(-32007, -32002))
"""Codes that some documents of the field name, each in its own way, and no revision has."""


def test_codes_that_no_revision_has_are_not_named() -> None:
    assert [revision for revision in REVISIONS if load(revision).ERROR_CODES.keys() & set(NOBODYS)] == []


@pytest.mark.parametrize("code", NOBODYS)
def test_a_code_that_no_revision_has_passes_as_it_came(code: int) -> None:
    frame = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "No.", "data": {"seconds": 1}}}
    pairs = [(one, other) for one in REVISIONS for other in REVISIONS]
    passed = [translate(frame, source=one, target=other, method="tools/call").frame for one, other in pairs]
    assert passed == [frame] * len(pairs)
