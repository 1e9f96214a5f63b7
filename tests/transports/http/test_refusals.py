"""What is said about those who are turned away: once in a while, with the count of the others."""

from __future__ import annotations

import pytest

from dragoman.status import StatusBoard
from dragoman.transports.http.config import FrontConfig, Limits, Patience
from dragoman.transports.http.refusals import Refusals, shorten
from dragoman.transports.http.site import Budget, Site
from tests.transports.http.stage import call, content, initialize, on_loop, serving, until, within
from tests.transports.http.wire import connect


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


@on_loop
async def test_a_front_that_ends_says_whom_it_turned_away_since_the_last_line(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in range(3):
        refusals.note("refused with 421", f"line {number}")
    refusals.close()
    assert caplog.messages == ["line 0", "refused with 421: 2 more within 60 s"]
    refusals.close()
    assert len(caplog.messages) == 2


def test_what_a_client_said_is_quoted_and_shortened() -> None:
    assert shorten("a\x1b") == r"'a\x1b'"
    assert len(shorten("x" * 10_000)) < 120


@on_loop
async def test_whoever_a_limit_turns_away_is_counted_by_its_option(caplog: pytest.LogCaptureFixture) -> None:
    limits = Limits(body_bytes=2000, sessions=1, streams=1, connections=6)
    async with serving(FrontConfig(limits=limits, patience=Patience(headers_s=0.2))) as stage:
        await stage.open()
        calling = stage.call(2)
        await stage.server.hear()
        for frame, headers in ((initialize(), {"mcp_session_id": ""}), (call(3), {}), (call(4, x="x" * 2000), {})):
            for _ in range(2):
                (await stage.post(frame, **headers)).leave()
        await until(lambda: len(stage.connections) < 3)
        late = [await connect(stage.port) for _ in range(7)]
        late[0][1].write(b"GET /nothing HTTP/1.1\r\n")
        await until(lambda: "--header-timeout" in stage.front.refusals.by_option)
        stage.server.answer(2, **content("done"))
        await within(calling)
        found = stage.front.refusals.by_option
    refused = {"--max-sessions": 2, "--max-streams": 2, "--max-body": 2}
    assert {option: found.get(option) for option in refused} == refused
    assert found["--max-connections"] >= 1
    for option in (*refused, "--max-connections", "--header-timeout"):
        assert sum(f"({option} allows for more)" in line for line in caplog.messages) == 1, option


@on_loop
async def test_where_no_option_sets_the_limit_none_is_named(caplog: pytest.LogCaptureFixture) -> None:
    config = FrontConfig()
    site = Site(None, config, Budget(config.limits.memory_bytes, config.limits.body_bytes))
    site.refusals.note("", "a connection is answered with 503: 64 are open", "--max-connections")
    site.refusals.close()
    assert caplog.messages == ["a connection is answered with 503: 64 are open"]


@on_loop
async def test_the_counts_are_in_the_status() -> None:
    async with serving(FrontConfig(limits=Limits(sessions=1)), board=StatusBoard()) as stage:
        await stage.open()
        (await stage.post(initialize(), mcp_session_id="")).leave()
        told = await (await stage.get("/readyz")).frame()
        assert told["turned_away"] == {"--max-sessions": 1}
