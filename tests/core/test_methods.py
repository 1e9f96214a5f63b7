"""The methods that are written by hand are methods of a revision."""

from __future__ import annotations

import pytest

import dragoman_spec
from dragoman.core import methods

KNOWN = {method for revision in dragoman_spec.REVISIONS for method in dragoman_spec.load(revision).METHODS}


def _is_of_methods(name: str, named: object) -> bool:
    return name.isupper() and isinstance(named, str | frozenset) and name != "NOTICES"


@pytest.mark.parametrize("name", [name for name, named in vars(methods).items() if _is_of_methods(name, named)])
def test_methods_are_those_of_the_specification(name: str) -> None:
    named = getattr(methods, name)
    assert {named} <= KNOWN if isinstance(named, str) else named - {None} <= KNOWN


@pytest.mark.parametrize("revision", dragoman_spec.REVISIONS)
def test_only_requests_need_an_id(revision: str) -> None:
    for method in dragoman_spec.load(revision).METHODS.values():
        assert methods.needs_id(method.name) is (method.kind == "request")
    assert not methods.needs_id("vendor/do")
