"""The codes of JSON-RPC that are written by hand are those of every revision that names them."""

from __future__ import annotations

import pytest

import dragoman_spec
from dragoman.core import codes

NAMES = [name for name, code in vars(codes).items() if isinstance(code, int) and name != "CONNECTION_CLOSED"]


@pytest.mark.parametrize("revision", dragoman_spec.REVISIONS)
def test_codes_are_those_of_the_specification(revision: str) -> None:
    named = {name: code for code, name in dragoman_spec.load(revision).ERROR_CODES.items()}
    assert {name: named[name] for name in NAMES} == {name: getattr(codes, name) for name in NAMES}
