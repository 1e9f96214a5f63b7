"""The pytest helper: passes, fails with what is wrong, and skips what a server does not speak."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.testing import assert_conforms
from tests.check.peer import Peer
from tests.server.rooms import make

ROOT = Path(__file__).parents[2]


def test_the_example_passes_in_every_revision() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/test_notes_server.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "5 passed" in done.stdout, done.stdout + done.stderr


def test_what_is_broken_is_said() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_conforms(lambda: Peer("2025-06-18", "ping").connect(), "2025-06-18", timeout_s=0.2)
    assert str(caught.value).splitlines()[:3] == [
        "the server breaks rules of 2025-06-18:",
        "  MUST   ping: `ping` is answered with an empty result.",
        "         the answer to ping at /result: expected an empty result, found the members pong",
    ]


def test_rules_can_be_ignored_and_recommendations_counted() -> None:
    def connect() -> object:
        return Peer("2025-06-18", "ping").connect()

    assert_conforms(connect, "2025-06-18", ignore=["ping"], timeout_s=0.2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there are no rules pong"):
        assert_conforms(connect, "2025-06-18", ignore=["pong"])  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="SHOULD tool-hints"):
        assert_conforms(lambda: Peer("2025-06-18", "tool-hints").connect(), "2025-06-18", is_strict=True, timeout_s=0.2)


def test_a_revision_that_is_not_spoken_is_skipped_unless_it_must_be() -> None:
    server = make("2025-06-18")
    with pytest.raises(pytest.skip.Exception, match="does not speak 2024-11-05"):
        assert_conforms(server, "2024-11-05", timeout_s=0.2)
    with pytest.raises(AssertionError, match="does not speak 2024-11-05"):
        assert_conforms(server, "2024-11-05", must_speak=True, timeout_s=0.2)


def test_a_check_that_is_cut_short_fails() -> None:
    def connect() -> object:
        return Peer("2025-06-18", "answered").connect()

    with pytest.raises(AssertionError, match="the check is not done after 0"):
        assert_conforms(connect, "2025-06-18", timeout_s=1, overall_timeout_s=0.05)  # type: ignore[arg-type]
