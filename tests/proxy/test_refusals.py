"""What does not cross: frames with no counterpart, losses that the user refuses, requests a client cannot serve."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import dragoman_spec
from dragoman.core.translate import OnLoss
from dragoman_spec import HANDSHAKE_REVISIONS, Loss, Translation, Untranslatable
from tests.proxy.conversation import (
    an_error,
    client,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    result,
    server,
)

A, B, C, D = HANDSHAKE_REVISIONS
RICH = {"name": "t", "title": "T", "inputSchema": {"type": "object"}, "icons": [{"src": "data:,x"}]}
PLAIN = {"name": "t", "inputSchema": {"type": "object"}}


def test_a_client_request_that_the_server_lacks_is_answered_with_the_refusal() -> None:
    hold(
        [
            *opening(D, A),
            client(request("x", "tasks/get", taskId="t")),
            expect_to_client(an_error("x", -32601, "tasks/get")),
        ]
    )


def test_a_server_request_that_the_client_lacks_is_answered_with_the_refusal() -> None:
    hold(
        [
            *opening(A, D, ["roots"]),
            server(request(1, "elicitation/create", message="?", requestedSchema={})),
            expect_to_server(an_error(1, -32601, "elicitation/create")),
        ]
    )


def test_a_server_request_without_the_capability_is_kept_from_the_client() -> None:
    hold(
        [
            *opening(A, D),
            server(request(1, "roots/list")),
            expect_to_server(an_error(1, -32601, "did not declare", "roots")),
        ]
    )


def test_a_private_server_request_is_kept_from_the_client() -> None:
    hold(
        [
            *opening(A, D),
            server(request(1, "acme/dance")),
            expect_to_server(an_error(1, -32601, "2024-11-05", "acme/dance")),
        ]
    )


def test_a_private_server_request_reaches_a_client_with_experimental_capabilities() -> None:
    steps = opening(A, D)
    hello = {"protocolVersion": A, "capabilities": {"experimental": {"acme": {}}}, "clientInfo": {"name": "c"}}
    steps[0] = client(request(0, "initialize", **{**hello, "clientInfo": {"name": "c", "version": "1"}}))
    hold([*steps, server(request(1, "acme/dance")), expect_to_client(request(1, "acme/dance"))])


def test_equal_peers_are_not_stood_between() -> None:
    hold([*opening(A, A), server(request(1, "acme/dance")), expect_to_client(request(1, "acme/dance"))])


def test_a_notification_that_the_client_lacks_vanishes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    status = notification("notifications/elicitation/complete", elicitationId="1")
    proxy = hold([*opening(A, D), server(status)])
    assert proxy.counters.swallowed == 1
    assert "notifications/elicitation/complete" in caplog.text


def test_losses_are_logged_on_one_line_a_frame_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman.translate")
    proxy = hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": [RICH, RICH]})),
            expect_to_client(result(1, {"tools": [PLAIN, PLAIN]})),
        ]
    )
    lines = [record.getMessage() for record in caplog.records if "tools/list" in record.getMessage()]
    assert len(lines) == 1
    assert "2025-11-25 to 2024-11-05" in lines[0]
    assert "dropped /result/tools/*/icons x 2 (38 B)" in lines[0]
    assert (proxy.counters.lossy, proxy.counters.losses) == (1, 4)


def test_losses_can_be_counted_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    proxy = hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": [RICH]})),
            expect_to_client(result(1, {"tools": [PLAIN]})),
        ],
        on_loss=OnLoss.SILENT,
    )
    assert "tools/list" not in caplog.text
    assert proxy.counters.losses == 2


TITLED = {**PLAIN, "title": "Add", "icons": [{"src": "https://example.com/a.png"}], "annotations": {"title": "Add"}}


def listing(*tools: dict[str, Any], answer: Any, on_loss: OnLoss) -> None:
    """A client of 2024-11-05 lists the tools of a server of 2025-11-25."""
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": list(tools)})),
            expect_to_client(answer),
        ],
        on_loss=on_loss,
    )


def test_titles_and_icons_alone_are_no_reason_to_refuse_a_list() -> None:
    listing(TITLED, answer=result(1, {"tools": [PLAIN]}), on_loss=OnLoss.REFUSE)


def test_a_title_is_a_reason_to_refuse_a_list_where_every_loss_is() -> None:
    listing(TITLED, answer=an_error(1, -32603, "/result/tools/0/title"), on_loss=OnLoss.REFUSE_ALL)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"outputSchema": {"type": "object"}}, "outputSchema"),
        ({"annotations": {"title": "Add", "readOnlyHint": True}}, "annotations"),
    ],
)
def test_what_changes_the_meaning_of_a_tool_refuses_the_list(more: dict[str, Any], named: str) -> None:
    listing(TITLED, {**TITLED, **more}, answer=an_error(1, -32603, f"/result/tools/1/{named}"), on_loss=OnLoss.REFUSE)


def test_a_refusal_names_none_of_the_losses_that_are_no_reason_for_it(caplog: pytest.LogCaptureFixture) -> None:
    tool = {**TITLED, "outputSchema": {"type": "object"}}
    listing(tool, answer=an_error(1, -32603, "would lose 1 value(s)", "/outputSchema"), on_loss=OnLoss.REFUSE)
    assert "title" not in caplog.text


def test_a_lossy_response_can_be_refused_naming_the_losses() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": [RICH]})),
            expect_to_client(an_error(1, -32603, "/result/tools/0/title", "'losses'", "'kind': 'dropped'")),
        ],
        on_loss=OnLoss.REFUSE_ALL,
    )


def test_a_lossy_request_can_be_refused_naming_the_losses() -> None:
    call = request(1, "completion/complete", ref={"type": "ref/prompt", "name": "p", "title": "P"}, argument={})
    call["params"]["context"] = {"arguments": {"a": "1"}}
    hold(
        [*opening(D, A), client(call), expect_to_client(an_error(1, -32603, "/params/context", "2024-11-05"))],
        on_loss=OnLoss.REFUSE,
    )


def test_a_lossy_notification_that_is_refused_vanishes() -> None:
    lossy = notification("notifications/progress", progressToken=1, progress=1, message="half")
    proxy = hold([*opening(A, D), server(lossy)], on_loss=OnLoss.REFUSE)
    assert proxy.counters.refused == 1


def test_initialize_is_never_refused_for_the_capabilities_it_leaves_out(caplog: pytest.LogCaptureFixture) -> None:
    hold(opening(A, D, server_has=["tools", "completions"]), on_loss=OnLoss.REFUSE)
    assert "completions" in caplog.text


def test_bad_params_on_the_way_are_the_senders_fault() -> None:
    bad = request(1, "sampling/createMessage", messages="none", maxTokens=1)
    hold([*opening(A, D, ["sampling"]), server(bad), expect_to_server(lambda frame: frame["error"]["code"] == -32602)])


def test_a_result_that_cannot_be_translated_becomes_an_error() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(result(1, {"tools": "none"})),
            expect_to_client(an_error(1, -32603, "tools")),
        ]
    )


class Moody:
    """A translator that does to each method what its name says, and to the handshake what has to be done."""

    identity = False

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target

    def touches(self, kind: str, method: str | None) -> bool:
        return str(method).startswith("moody/") or method == "initialize"

    def translate(self, frame: Any, method: str | None = None) -> Translation:
        if method == "initialize":
            return dragoman_spec.translator(self.source, self.target).translate(frame, method)
        match str(method).removeprefix("moody/"), "method" in frame:
            case "crash", _:
                raise ZeroDivisionError("ouch")
            case "swallow", _:
                return Translation(None, (Loss("", "swallowed", 9),))
            case ("refuse", _) | ("refuse-result", False):
                raise Untranslatable("it is not done", code=-32099, extra={"hint": "ask nicely"})
            case "odd", _:
                return Translation({**frame, "params": {1, 2}})
        return Translation(frame)


def test_a_defect_of_a_translation_does_not_end_the_session() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "moody/crash")),
            expect_to_client(an_error(1, -32603, "ZeroDivisionError")),
            client(notification("moody/crash")),
            client(request(2, "moody/fine")),
            expect_to_server(request(2, "moody/fine")),
        ],
        Moody,
    )


def test_a_translation_that_cannot_be_written_is_refused() -> None:
    hold([*opening(A, D), client(request(1, "moody/odd")), expect_to_client(an_error(1, -32603, "TypeError"))], Moody)


def test_a_touched_frame_that_is_not_json_is_answered_as_such() -> None:
    hold(
        [
            *opening(A, D),
            client(b'{"jsonrpc":"2.0","id":1,"method":"moody/fine","params":{"x" 1}}\n'),
            expect_to_client(an_error(1, -32700, "not JSON")),
        ],
        Moody,
    )


def test_a_swallowed_request_is_still_answered() -> None:
    hold([*opening(A, D), client(request(1, "moody/swallow")), expect_to_client(an_error(1, -32601))], Moody)


def test_a_refused_response_is_an_error_to_who_asked() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "moody/refuse-result")),
            expect_to_server(request(1, "moody/refuse-result")),
            server(result(1, {})),
            expect_to_client(an_error(1, -32099, "not done", "ask nicely")),
        ],
        Moody,
    )


def test_a_response_that_has_no_counterpart_is_an_error_to_who_asked() -> None:
    class NoResults(Moody):
        def touches(self, kind: str, method: str | None) -> bool:
            return method == "initialize" or (kind == "result" and method == "private/ask")

        def translate(self, frame: Any, method: str | None = None) -> Translation:
            return super().translate(frame, method) if method == "initialize" else Translation(None)

    hold(
        [
            *opening(A, D),
            client(request(1, "private/ask")),
            expect_to_server(request(1, "private/ask")),
            server(result(1, {})),
            expect_to_client(an_error(1, -32603, "no counterpart")),
        ],
        NoResults,
    )


def test_the_table_of_touched_methods_does_not_grow_for_ever() -> None:
    steps = opening(A, D)
    for number in range(1100):
        frame = notification(f"notifications/private-{number}")
        steps += [client(frame), expect_to_server(frame)]
    hold(steps)


def test_a_refused_error_without_id_vanishes() -> None:
    class NoErrors(Moody):
        def touches(self, kind: str, method: str | None) -> bool:
            return method == "initialize" or kind == "error"

        def translate(self, frame: Any, method: str | None = None) -> Translation:
            if method == "initialize":
                return super().translate(frame, method)
            raise Untranslatable("no")

    proxy = hold([*opening(A, D), server(b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}\n')], NoErrors)
    assert proxy.counters.refused == 1
