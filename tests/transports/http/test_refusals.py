"""What is said about those who are turned away: once in a while, with the count of the others."""

from __future__ import annotations

import pytest

from dragoman.transports.http.refusals import Refusals, shorten
from tests.transports.http.stage import on_loop, until


@on_loop
async def test_a_reason_is_written_once_in_a_while_and_the_others_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals(quiet_s=0.1)
    for number in range(5):
        refusals.note("refused with 421", f"line {number}")
    refusals.note("refused with 403", "another reason")
    assert caplog.messages == ["line 0", "another reason"]
    await until(lambda: len(caplog.messages) == 3)
    assert caplog.messages[2] == "refused with 421: 4 more within 0.1 s"
    refusals.note("refused with 421", "spoken of again")
    assert caplog.messages[3] == "spoken of again"


def test_what_a_client_said_is_quoted_and_shortened() -> None:
    assert shorten("a\x1b") == r"'a\x1b'"
    assert len(shorten("x" * 10_000)) < 120
