"""A server's tests: one for each revision, which is skipped where the server does not speak it.

pytest examples/test_notes_server.py
"""

import sys
from pathlib import Path

import pytest

from dragoman.testing import REVISIONS, assert_conforms

SERVER = [sys.executable, str(Path(__file__).parent / "notes_server.py")]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_server_keeps_to_the_specification(revision: str) -> None:
    """A revision that the server does not speak is skipped."""
    assert_conforms(SERVER, revision)
