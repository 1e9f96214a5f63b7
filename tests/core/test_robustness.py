"""Whatever either side sends, the session goes on: no exception, whole lines out, every request answered in the end."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman_spec
from dragoman.core.commands import Side
from dragoman.core.edges.lifecycle import FrontState as State
from dragoman.core.exact_json import decode
from tests.proxy.conversation import READY, initialize, initialized
from tests.support.profile import hypothesis_settings
from tests.support.wired import Sent, Wired

A, B, C, D = dragoman_spec.HANDSHAKE_REVISIONS
METHODS = sorted({method for revision in (A, D) for method in dragoman_spec.load(revision).METHODS})

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.sampled_from([0.5, 1e300, "", "text", "é", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "type", "content", "tools", "title", "params", "id", "_meta"]), inner)
    ),
    max_leaves=6,
)
frames = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "2.0", "1.0", 2]),
        "id": st.integers(0, 3) | st.sampled_from(["1", None, True, 1.0, [], "x"]),
        "method": st.sampled_from(METHODS) | st.sampled_from(["initialized", "x", 7, "server/discover"]),
        "params": values,
        "result": values,
        "error": values | st.just({"code": -32602, "message": "Unsupported protocol version"}),
    },
)
lines = st.one_of(
    frames.map(lambda frame: json.dumps(frame).encode() + b"\n"),
    st.lists(frames, max_size=3).map(lambda batch: json.dumps(batch).encode() + b"\n"),
    st.sampled_from(
        [b"\n", b"\xff\n", b"{\n", b"half a ", b"\r\n", b"[" * 3000 + b"\n", b'{"jsonrpc":"2.0","id":NaN}\n']
    ),
    st.sampled_from([initialize(A), initialized(D), READY]).map(lambda frame: json.dumps(frame).encode() + b"\n"),
)
keys = st.integers(0, 5) | st.sampled_from(["0", "1"])
talk = st.lists(st.tuples(st.sampled_from(Side), lines), max_size=12)


def check(commands: list[Any]) -> None:
    for command in commands:
        if isinstance(command, Sent):
            assert command.data.endswith(b"\n")


@pytest.mark.parametrize("revisions", [None, (A, D), (D, A), (B, A), (B, B), (C, C)])
@hypothesis_settings(60, 3000)
@given(said=talk)
def test_nothing_that_is_said_breaks_a_session(
    revisions: tuple[str, str] | None, said: list[tuple[Side, bytes]]
) -> None:
    session = Wired()
    if revisions is not None:
        opening = [(Side.CLIENT, initialize(revisions[0])), (Side.SERVER, initialized(revisions[1]))]
        for side, frame in [*opening, (Side.CLIENT, READY)]:
            session.receive(side, json.dumps(frame).encode() + b"\n")
        assert session.state is State.READY
    for side, data in said:
        check(session.receive(side, data))
    check(session.close(Side.SERVER, "gone"))
    check(session.close(Side.CLIENT, "gone"))
    check(session.expire())
    check(session.stop("over"))
    assert not session.waiting(Side.CLIENT)


@pytest.mark.parametrize("revisions", [(A, D), (D, A), (B, A), (B, B), (C, C)])
@hypothesis_settings(60, 3000)
@given(asked=st.lists(keys, max_size=9, unique_by=lambda key: (type(key), key)))
def test_every_request_is_answered_once(revisions: tuple[str, str], asked: list[Any]) -> None:
    session = Wired()
    opening = [(Side.CLIENT, initialize(revisions[0])), (Side.SERVER, initialized(revisions[1]))]
    for side, frame in [*opening, (Side.CLIENT, READY)]:
        session.receive(side, json.dumps(frame).encode() + b"\n")
    heard: Counter[Any] = Counter()
    for number, key in enumerate(asked):
        frame = {"jsonrpc": "2.0", "id": key, "method": METHODS[(number * 7) % len(METHODS)], "params": {}}
        if frame["method"] != "initialize":
            heard.update(answered(session.receive(Side.CLIENT, json.dumps(frame).encode() + b"\n")))
        else:
            heard[(type(key), key)] += 1
        if number % 2:
            answer = {"jsonrpc": "2.0", "id": key, "result": {}}
            heard.update(answered(session.receive(Side.SERVER, json.dumps(answer).encode() + b"\n")))
    heard.update(answered(session.close(Side.SERVER, "gone")))
    answers = {(type(key), key): heard[(type(key), key)] for key in asked}
    assert set(answers.values()) <= {1}, answers


def answered(commands: list[Any]) -> list[tuple[type, Any]]:
    lines = [command.data for command in commands if isinstance(command, Sent) and command.side is Side.CLIENT]
    frames = [decode(line) for data in lines for line in data.splitlines()]
    return [(type(frame["id"]), frame["id"]) for frame in frames if "method" not in frame]
