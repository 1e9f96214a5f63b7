"""The server of the demonstration keeps to its revision."""

from __future__ import annotations

import sys

import pytest

from dragoman.testing import assert_conforms
from dragoman_spec import HANDSHAKE_REVISIONS


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
def test_it_breaks_no_rule(revision: str) -> None:
    assert_conforms([sys.executable, "-m", "dragoman.demo.server", revision], revision, must_speak=True)
