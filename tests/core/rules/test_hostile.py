"""Whatever JSON a peer sends, the bridge answers with what it promises to raise, and with nothing else."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.rules.annotations import find_mirrored, leave_out_invalid, strip_invalid
from dragoman.core.rules.asking import CallOwner, OpenQuestions
from dragoman.core.rules.capabilities import Path, declare_down, declare_up
from dragoman.core.rules.discovery import read_initialize, to_discover_result, to_initialize_result
from dragoman.core.rules.errors import answer_error
from dragoman.core.rules.headers import (
    check_arguments,
    check_collected,
    collect_headers,
    make_headers,
    select_arguments,
)
from dragoman.core.rules.inputs import AskedClient, run_rounds, wait_for_task
from dragoman.core.rules.metadata import Metadata, put_identity, read, stamp, take_identity, take_off
from dragoman.core.rules.routines import Ask, Pose, Routine
from dragoman.core.rules.state import Binding, Keeper, Seal, digest_params
from dragoman.core.rules.strategy import choose_strategy
from dragoman.core.rules.tasks import (
    leave_off_relation,
    offer_tasks,
    read_relation,
    read_support,
    take_task,
    to_older_creation,
)
from dragoman.core.rules.urls import ask_to_visit, refuse_visit
from dragoman.core.rules.verdict import judge
from dragoman.errors import ProtocolError, RemoteProtocolError
from dragoman_spec import HANDSHAKE_REVISIONS

E = "2026-07-28"
KEEPER = Keeper(Seal(b"k" * 32, b"i" * 16))
BINDING = Binding("s", "tools/call", "d")
PATHS = [Path(client, server) for client in (*HANDSHAKE_REVISIONS, E) for server in (*HANDSHAKE_REVISIONS, E)]

NAMES = st.sampled_from(
    [
        "_meta", "params", "method", "uri", "name", "arguments", "capabilities", "elicitation", "form", "url", "roots",
        "sampling", "tools", "tasks", "requests", "call", "extensions", "io.modelcontextprotocol/tasks", "resources",
        "subscribe", "listChanged", "resultType", "inputRequests", "requestState", "inputResponses", "ttlMs", "code",
        "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities", "supportedVersions",
        "io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/logLevel", "io.modelcontextprotocol/serverInfo",
        "x-mcp-header", "inputSchema", "properties", "type", "items", "data", "elicitations", "requiredCapabilities",
        "notifications", "toolsListChanged", "resourceSubscriptions", "status", "result", "error", "task", "mode",
        "message", "requestedSchema", "messages", "maxTokens", "content", "action", "execution", "annotations", "a",
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "complete", "input_required", "task", "elicitation/create", "roots/list", "sampling/createMessage", E,
        "2025-11-25", "url", "form", "working", "completed", "failed", "file:///a", "info", "string", "object",
        "tools/call", "Region", "",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-40000, 40000) | st.floats(allow_nan=False) | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=6)


@given(VALUES, OBJECTS)
def test_metadata(value: Any, holder: dict[str, Any]) -> None:
    with contextlib.suppress(RemoteProtocolError):
        read(value, [E])
    read(stamp(holder, Metadata(E, {})), [E])
    take_off(holder)
    assert take_identity(put_identity(holder, {"name": "s"}))[1] == {"name": "s"}


@given(OBJECTS, st.sampled_from(["tools/call", "resources/read", "tools/list"]), VALUES)
def test_headers(params: dict[str, Any], method: str, schema: Any) -> None:
    body = {"method": method, "params": stamp(params, Metadata(E, {}))}
    try:
        mirrored = find_mirrored(schema)
    except ValueError:
        mirrored = ()
    headers = make_headers(body, mirrored)
    check_collected(collect_headers(headers), body)
    if method == "tools/call":
        check_arguments(select_arguments(headers), body["params"].get("arguments"), mirrored)
    assert all((value.isascii() and value.isprintable()) or "\t" in value for _, value in headers)


@given(OBJECTS)
def test_lists_of_tools(result: dict[str, Any]) -> None:
    assert leave_out_invalid(strip_invalid(result)[0])[1] == ()
    offer_tasks(result)


@given(OBJECTS, st.sampled_from(PATHS))
def test_capabilities_and_introductions(capabilities: dict[str, Any], path: Path) -> None:
    declare_up(capabilities, path)
    declare_down(capabilities, path)
    to_initialize_result({"capabilities": capabilities, **capabilities}, path, "x")
    to_discover_result({"capabilities": capabilities, **capabilities}, path)
    read_initialize({"capabilities": capabilities, **capabilities}, path)


@given(VALUES)
def test_verdicts(body: Any) -> None:
    verdict = judge(body)
    assert verdict.why


@given(OBJECTS, st.sampled_from(["tools/call", "prompts/get"]), st.sampled_from(PATHS), OBJECTS)
def test_errors(error: dict[str, Any], method: str, path: Path, declared: dict[str, Any]) -> None:
    for code in (-32020, -32021, -32022, -32042, error.get("code")):
        answer_error({**error, "code": code}, method, path, declared=declared)
    refuse_visit(error)
    ask_to_visit({**error, "code": -32042}, KEEPER, BINDING, declared, 0.0, b"n" * 12)


def answer_all(routine: Routine, results: list[Any], answer: dict[str, Any]) -> None:
    """Step a routine with these results, and this answer to every question, until it ends or they do."""
    results, posed = list(results), list[str]()
    value: Any = None
    with contextlib.suppress(StopIteration, ProtocolError):
        for _ in range(20):
            wait = routine.send(value)
            posed += wait.questions if isinstance(wait, Pose) else ()
            if isinstance(wait, Pose):
                value = posed.pop(), {"result": answer}
            elif isinstance(wait, Ask) and wait.is_awaited:
                if not results:
                    return
                value = results.pop(0)
            else:
                value = None


@given(st.lists(OBJECTS, max_size=2), st.sampled_from(HANDSHAKE_REVISIONS), OBJECTS, OBJECTS)
def test_rounds_of_input(
    results: list[Any], revision: str, capabilities: dict[str, Any], answer: dict[str, Any]
) -> None:
    wanting = [{"resultType": "input_required", **result} for result in results]
    client = AskedClient(revision, capabilities)
    answer_all(run_rounds("tools/call", {"name": "a"}, client, wanting[0] if wanting else {}), wanting[1:], answer)


@given(st.lists(OBJECTS, max_size=2), OBJECTS, st.sampled_from(["working", "input_required", "completed", "failed"]))
def test_tasks(tasks: list[Any], answer: dict[str, Any], status: str) -> None:
    client = AskedClient("2025-11-25", {"elicitation": {}, "roots": {}, "sampling": {}})
    answer_all(wait_for_task("t", client), [{"status": status, **task} for task in tasks], answer)
    for task in tasks:
        to_older_creation(task), take_task(task), read_support(task), read_relation(task), leave_off_relation(task)


@given(VALUES, VALUES, st.sampled_from(HANDSHAKE_REVISIONS), OBJECTS)
def test_questions_and_answers(params: Any, answers: Any, revision: str, capabilities: dict[str, Any]) -> None:
    asking = OpenQuestions(CallOwner(BINDING, capabilities, revision))
    for method in ("elicitation/create", "roots/list", "sampling/createMessage", "ping"):
        asking.add_question(b"1", method, params if isinstance(params, dict) else None)
    for given_ in (answers, dict.fromkeys(asking.spell(), answers)):
        with contextlib.suppress(RemoteProtocolError):
            asking.take_answers(given_)
    choose_strategy("auto", "tools/call", tool=capabilities, can_park=False)


@given(VALUES)
def test_states(text: Any) -> None:
    with contextlib.suppress(RemoteProtocolError):
        KEEPER.read(text, BINDING, 0.0)
        raise AssertionError("nothing that was not written can be read")


@given(OBJECTS)
def test_digests(params: dict[str, Any]) -> None:
    assert digest_params(params) == digest_params(dict(reversed(params.items())))
