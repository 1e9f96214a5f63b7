"""The server of the demonstration keeps to its revision."""

from __future__ import annotations

import pytest

from dragoman.demo.server import make_studio
from dragoman.testing import assert_conforms
from dragoman_spec import REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_it_breaks_no_rule(revision: str) -> None:
    assert_conforms(make_studio(revision).connect, revision, must_speak=True)
