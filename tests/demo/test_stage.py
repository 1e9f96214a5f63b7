"""The demonstration is the real thing: a client as others write them, the real proxy, frames that are valid where they
arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.core.commands import Side
from dragoman.demo import stage
from dragoman.demo.client import DemoClient
from dragoman.demo.crossings import Record
from dragoman.demo.server import Studio
from dragoman_spec import HANDSHAKE_REVISIONS, LATEST, load, validate

OLDEST, NEWEST = HANDSHAKE_REVISIONS[0], HANDSHAKE_REVISIONS[-1]


def test_every_pair_comes_to_the_end(any_record: Record) -> None:
    assert any_record.problem == ""


def test_every_frame_is_valid_for_the_peer_that_sees_it(any_record: Record) -> None:
    """But for what asks a server which era it is of."""
    for side, revision in ((Side.CLIENT, any_record.client_revision), (Side.SERVER, any_record.server_revision)):
        for frame, method in frames_at(any_record, side):
            if (method or frame["method"]) in load(revision).METHODS:
                validate(frame, revision, method)


def test_client_hears_the_revision_it_asked_for(record: Record) -> None:
    answer = next(
        frame for frame, method in frames_at(record, Side.CLIENT) if method == "initialize" and "result" in frame
    )
    assert answer["result"]["protocolVersion"] == record.client_revision


def test_nothing_is_lost_between_equal_revisions(record: Record) -> None:
    if record.client_revision == record.server_revision:
        assert [translated for translated in record.translations if translated.losses] == []


@pytest.mark.parametrize(("client", "server"), [(OLDEST, NEWEST), (NEWEST, OLDEST)])
def test_peers_of_different_revisions_do_not_understand_each_other_directly(client: str, server: str) -> None:
    assert directly(client, server) == (f"the client gives up: expected {client}, found {server}")


def test_peers_of_one_revision_understand_each_other_directly() -> None:
    assert directly(NEWEST, NEWEST) == ""


def test_peers_of_two_eras_do_not_understand_each_other_directly() -> None:
    assert directly(NEWEST, LATEST) == "the client gives up: initialize failed: there is no method 'initialize'"
    words = "server/discover failed: there is no method 'server/discover'"
    assert directly(LATEST, NEWEST) == f"the client gives up: {words}"


def test_client_that_waits_for_ever_is_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE_S", 0.05)
    monkeypatch.setattr(DemoClient, "converse", wait_for_ever)
    assert directly(OLDEST, NEWEST) == "the conversation did not end within 0.05 seconds"


def directly(client: str, server: str) -> str:
    return asyncio.run(stage.try_directly(client, server))


def test_conversation_that_does_not_end_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PATIENCE_S", 0.05)
    monkeypatch.setattr(DemoClient, "converse", wait_for_ever)
    assert asyncio.run(stage.perform(OLDEST, NEWEST)).problem == "the conversation did not end within 0.05 seconds"


async def wait_for_ever(client: DemoClient) -> None:
    await asyncio.Future()


def test_server_that_fails_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(studio: Studio, params: object, context: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(Studio, "call", fail)
    problem = asyncio.run(stage.perform(OLDEST, NEWEST)).problem
    assert problem == "the client gives up: tools/call failed: the server's handler failed: RuntimeError"


def frames_at(record: Record, side: Side) -> Iterator[tuple[Any, str | None]]:
    """The frames that a peer sends and gets; a response with the method that was asked for."""
    asked: dict[tuple[bool, str], str] = {}
    for line in record.lines:
        if line.side is side:
            frame = json.loads(line.data)
            if "method" in frame:
                asked[(line.sent, json.dumps(frame.get("id")))] = frame["method"]
                yield frame, None
            else:
                yield frame, asked[(not line.sent, json.dumps(frame["id"]))]
