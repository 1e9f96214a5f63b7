"""Whole conversations across the eras: bridge and steps together, each frame held against its side's schema."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman_spec
from dragoman.core.rules.asking import CallOwner, OpenQuestions
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.discovery import (
    read_initialize,
    to_discover_result,
    to_initialize_params,
    to_initialize_result,
)
from dragoman.core.rules.headers import check_collected, collect_headers, make_headers
from dragoman.core.rules.inputs import AskedClient, run_rounds
from dragoman.core.rules.metadata import Metadata, put_identity, read, stamp, take_identity, take_off
from dragoman.core.rules.names import OLDER
from dragoman.core.rules.questions import Question
from dragoman.core.rules.routines import Ask, Done, Pose
from dragoman.core.rules.state import Binding, Keeper, Seal, State, digest_params
from dragoman.core.rules.verdict import Era, judge
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.core.rules.stepping import Stepped

E = "2026-07-28"
WITH_ELICITATION = [
    revision for revision in HANDSHAKE_REVISIONS if "elicitation/create" in dragoman_spec.facts(revision).asked
]
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
YES = {"action": "accept", "content": {"name": "x"}}
SERVER = {"name": "a-server", "version": "1"}
CLIENT = {"name": "a-client", "version": "2"}
CALL = {"name": "greet", "arguments": {"loud": True}, "_meta": {"progressToken": 7}}
DONE = {"content": [{"type": "text", "text": "Hello x"}]}


def request(method: str, params: Any = None, revision: str = E) -> dict[str, Any]:
    frame = {"jsonrpc": "2.0", "id": 1, "method": method}
    return valid(frame if params is None else {**frame, "params": params}, revision)


def response(result: Any, method: str, revision: str) -> dict[str, Any]:
    return valid({"jsonrpc": "2.0", "id": 1, "result": result}, revision, method)


def valid(frame: dict[str, Any], revision: str, method: str | None = None) -> dict[str, Any]:
    dragoman_spec.validate(frame, revision, method=method)
    return frame


def translated(frame: dict[str, Any], source: str, target: str, method: str | None = None) -> dict[str, Any]:
    found = dragoman_spec.translate(frame, source=source, target=target, method=method)
    assert found.frame is not None
    assert not [loss for loss in found.losses if not loss.cosmetic]
    return valid(found.frame, target, method)


@pytest.mark.parametrize("revision", WITH_ELICITATION)
def test_a_client_with_a_handshake_is_asked_three_times_by_a_per_request_server(revision: str) -> None:
    path = Path(revision, E)
    discovered = response(
        put_identity(
            {
                "resultType": "complete",
                "supportedVersions": [E],
                "capabilities": {"tools": {"listChanged": True}},
                "ttlMs": 0,
                "cacheScope": "private",
            },
            SERVER,
        ),
        "server/discover",
        E,
    )
    verdict = judge(discovered)
    assert verdict.era is Era.PER_REQUEST
    assert verdict.discovered is not None
    params = {"protocolVersion": revision, "capabilities": {"elicitation": {}}, "clientInfo": CLIENT}
    request("initialize", params, revision)
    metadata, losses = read_initialize(params, path)
    assert losses == ()
    introduced = to_initialize_result(verdict.discovered, path, "configured").result
    opened = translated(response(introduced, "initialize", OLDER), OLDER, revision, "initialize")
    assert (opened["result"]["serverInfo"], opened["result"]["protocolVersion"]) == (SERVER, revision)

    asked = translated(request("tools/call", CALL, revision), revision, E)
    sent = request("tools/call", stamp(asked["params"], metadata))
    assert read(sent["params"], [E]) == metadata
    check_collected(collect_headers(make_headers(sent)), sent)
    for number in "123":
        wanted = {
            "resultType": "input_required",
            "inputRequests": {f"q{number}": {"method": "elicitation/create", "params": FORM}},
            "requestState": number,
        }
        result = response(wanted, "tools/call", E)["result"]
        if number == "1":
            client = AskedClient(revision, params["capabilities"])
            call = Stepped(run_rounds("tools/call", sent["params"], client, result))
        posed = call.step(None if number == "1" else result)
        assert isinstance(posed, Pose)
        (question,) = posed.questions.values()
        request(question.method, question.params, revision)
        answered = response(YES, "elicitation/create", revision)
        retry = call.step((f"q{number}", answered))
        assert isinstance(retry, Ask)
        again = request("tools/call", retry.params)
        assert again["params"]["inputResponses"] == {f"q{number}": YES}
        assert again["params"]["requestState"] == number
        assert again["params"]["_meta"] == sent["params"]["_meta"]
    finished = call.step(response(put_identity({"resultType": "complete", **DONE}, SERVER), "tools/call", E)["result"])
    assert isinstance(finished, Done)
    bare, info = take_identity(finished.result)
    assert info == SERVER
    shown = translated({"jsonrpc": "2.0", "id": 1, "result": bare}, E, revision, "tools/call")
    assert shown["result"] == DONE


@pytest.mark.parametrize("revision", WITH_ELICITATION)
def test_a_per_request_client_is_asked_three_times_by_a_server_with_a_handshake(revision: str) -> None:
    path = Path(E, revision)
    metadata = Metadata(E, {"elicitation": {"form": {}}}, CLIENT)
    opening = request("initialize", to_initialize_params(metadata, path, {"name": "us", "version": "0"}), OLDER)
    opened = dragoman_spec.translate(opening, source=OLDER, target=revision).frame  # of a part, the whole is left
    assert opened is not None
    assert opened["params"]["clientInfo"] == CLIENT
    assert "elicitation" in opened["params"]["capabilities"]
    said = {"protocolVersion": revision, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": SERVER}
    initialized = translated(response(said, "initialize", revision), revision, OLDER, "initialize")
    discovered = to_discover_result(initialized["result"], path).result
    assert judge(response(discovered, "server/discover", E)).revision == dragoman_spec.LATEST

    keeper = Keeper(Seal(b"k" * 32, b"i" * 16))
    sent = request("tools/call", stamp(CALL, metadata))
    caller = CallOwner(
        Binding("s", "tools/call", digest_params(sent["params"])), read(sent["params"], [E]).capabilities, revision
    )
    questions = OpenQuestions(caller)
    passed = translated({**sent, "params": take_off(sent["params"])}, E, revision)
    assert passed["params"] == CALL
    for number in range(3):
        asked = request("elicitation/create", {**FORM, "_meta": {"progressToken": number}}, revision)
        assert isinstance(questions.add_question(b"%d" % number, asked["method"], asked["params"]), Question)
        state = keeper.write(State("park", "call", str(number)), caller.binding, number, b"n" * 12)
        parked = {"resultType": "input_required", "inputRequests": questions.spell(), "requestState": state}
        shown = response(put_identity(parked, SERVER), "tools/call", E)["result"]
        (key,) = shown["inputRequests"]
        retry = request(
            "tools/call",
            stamp({**CALL, "inputResponses": {key: YES}, "requestState": shown["requestState"]}, metadata),
        )["params"]
        binding = Binding("s", "tools/call", digest_params(retry))
        assert keeper.read(retry["requestState"], binding, number).round == str(number)
        ((question_id, _, reply),), _ = questions.take_answers(retry["inputResponses"])
        assert question_id == b"%d" % number
        response(reply, "elicitation/create", revision)
    finished = translated(response(DONE, "tools/call", revision), revision, E, "tools/call")
    valid({**finished, "result": put_identity(finished["result"], SERVER)}, E, "tools/call")
