"""Lines that are no frames, from either side: counted, logged on one line, answered where the protocol says so."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    an_error,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    opening,
    request,
    result,
    server,
)

A, B, C, D = HANDSHAKE_REVISIONS
PAIRS = [(A, D), (C, C)]

NOT_JSON = [
    b"hello\n",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"na\n',
    b'{"jsonrpc":"2.0","id":1\n',
    b"\x00\x00\n",
    b'{"jsonrpc":"2.0","id":1,"method":"x\xff"}\n',
    b'{"jsonrpc":"2.0","method":"x","id":NaN}\n',
    b'{"jsonrpc":"2.0","method":"x","id":1e999}\n',
    b"[" * 100_000 + b"\n",
    b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x","id":"\xc3\xa9"}\n',
]
NOT_FRAMES = [
    b"7\n",
    b'"text"\n',
    b"null\n",
    b"true\n",
    b"1.5\n",
    b"{}\n",
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n',
    b'{"jsonrpc":2.0,"id":1,"method":"ping"}\n',
    b'{"id":1,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1}\n',
    b'{"jsonrpc":"2.0","id":1,"method":7}\n',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n',
    b'{"jsonrpc":"2.0","params":[1],"id":1,"method":"ping"}\n',
]
BAD_RESPONSES = [
    b'{"jsonrpc":"2.0","result":{}}\n',
    b'{"jsonrpc":"2.0","id":null,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":[],"error":{"code":1,"message":"x"}}\n',
    b'{"result":{},"error":{},"id":77,"jsonrpc":"2.0","more":1}\n',
]


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
@pytest.mark.parametrize(("line", "code"), [(x, -32700) for x in NOT_JSON] + [(x, -32600) for x in NOT_FRAMES])
def test_a_malformed_line_of_the_client_is_answered(
    client_revision: str, server_revision: str, line: bytes, code: int
) -> None:
    def answered(frame: Any) -> bool:
        return frame["error"]["code"] == code and frame["id"] in (None, 1)

    proxy = hold(
        [
            *opening(client_revision, server_revision),
            client(line),
            expect_to_client(answered),
            client(request(2, "ping")),
            expect_to_server(request(2, "ping")),
        ]
    )
    assert proxy.counters.malformed == 1


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
@pytest.mark.parametrize("line", NOT_JSON + NOT_FRAMES + BAD_RESPONSES)
def test_a_malformed_line_of_the_server_is_dropped(client_revision: str, server_revision: str, line: bytes) -> None:
    proxy = hold(
        [
            *opening(client_revision, server_revision),
            server(line),
            server(request(2, "ping")),
            expect_to_client(request(2, "ping")),
        ]
    )
    assert proxy.counters.malformed == 1


@pytest.mark.parametrize("line", BAD_RESPONSES)
def test_a_malformed_response_of_the_client_is_not_answered(line: bytes) -> None:
    proxy = hold([*opening(A, D), client(line)])
    assert proxy.counters.malformed == 1


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"   \t \n", b"\n\n\n"])
def test_empty_lines_are_nothing(line: bytes) -> None:
    proxy = hold([*opening(A, D), client(line), server(line)])
    assert proxy.counters.malformed == 0


def test_a_banner_on_stdout_does_not_reach_the_client() -> None:
    hold([server(b"Starting server v1.2 ...\n"), server(b"=====\n"), *opening(A, A)])


def test_lines_may_end_in_crlf_and_come_in_pieces() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n'
    hold([*opening(A, D), *(client(line[i : i + 1]) for i in range(len(line))), expect_to_server(line)])


def test_who_waits_for_a_garbled_response_is_told() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(b'{"jsonrpc":"2.0","id":1,"error":"no"}\n'),
            expect_to_client(lambda frame: frame["id"] == 1 and "error" in frame),
        ]
    )


def test_who_waits_for_a_response_that_is_both_is_told() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(b'{"result":{},"id":1,"jsonrpc":"2.0","error":{}, "x":1}\n'),
            expect_to_client(an_error(1, -32603, "both")),
            server(result(1, {})),
        ]
    )


def asked(revision: str, line: bytes, told: Any) -> None:
    """Somebody waits for an answer, and hears of this one."""
    for ours, theirs in ((revision, D), (D, D)):
        hold(
            [
                *opening(ours, theirs),
                client(request(1, "tools/list")),
                expect_to_server(request(1, "tools/list")),
                server(line),
                expect_to_client(told),
            ]
        )


NOT_RESPONSES = [
    b'{"jsonrpc":"2.0","id":1}\n',
    b'{"id":1,"jsonrpc":"2.0","results":{}}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}\n',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"},"result":{}}\n',
    b'{"result":{},"error":{"code":1,"message":"m"},"jsonrpc":"2.0","id":1}\n',
    b'{"jsonrpc":"2.0","id":1,"result":null}\n',
    b'{"jsonrpc":"2.0","id":1,"error":null}\n',
    b'{"jsonrpc":"2.0","id":1,"error":"no"}\n',
]


CALLS = [
    b'{"jsonrpc":"2.0","id":1,"result":{},"method":"ping","params":{}}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{},"m\\u0065thod":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{},"Method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"result":{}}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","error":{"code":1,"message":"m"}}\n',
    b'{"method":"ping","jsonrpc":"2.0","id":1,"result":{}}\n',
]
"""Clients take them for requests, and wait for an answer for ever."""


@pytest.mark.parametrize("line", CALLS)
def test_who_waits_for_an_answer_that_is_a_call_too_is_told(line: bytes) -> None:
    asked(A, line, an_error(1, -32603, "expected one kind of frame"))


def test_an_answer_has_the_id_of_its_request_as_it_was_written() -> None:
    line = b'{"jsonrpc":"2.0","id":1.0,"result":{"tools":[]}}\n'
    asked(A, line, lambda frame: repr(frame["id"]) == "1" and frame["result"] == {"tools": []})


@pytest.mark.parametrize("line", NOT_RESPONSES)
def test_who_waits_for_what_is_not_a_response_is_told(line: bytes) -> None:
    asked(A, line, an_error(1, -32603, "is not a response"))


@pytest.mark.parametrize("client_revision", [A, C, D])
def test_who_waits_for_an_answer_in_an_array_is_told_where_there_are_none(client_revision: str) -> None:
    line = b'[{"jsonrpc":"2.0","id":[1],"result":{}},7,{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]\n'
    asked(client_revision, line, an_error(1, -32603, "expected one JSON-RPC object"))


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (b'{"message":"no disk"}', -32603, "no disk"),
        (b'{"code":"E1","message":"no disk","data":7}', -32603, "no disk"),
        (b'{"code":null,"message":"no disk"}', -32603, "no disk"),
        (b'{"code":true,"message":"no disk"}', -32603, "no disk"),
        (b'{"code":1.5,"message":"no disk"}', -32603, "no disk"),
        (b'{"code":-32602.0,"message":"no disk"}', -32602, "no disk"),
        (b'{"code":-32601}', -32601, "an error without a message"),
        (b'{"code":5,"message":["no"]}', 5, "an error without a message"),
        (b"{}", -32603, "an error without a message"),
    ],
)
def test_an_error_has_a_code_and_a_message(error: bytes, code: int, words: str) -> None:
    """SDKs do not read one without, and whoever asked would wait."""
    asked(A, b'{"jsonrpc":"2.0","id":1,"error":%b}\n' % error, an_error(1, code, words))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":null}\n', result(1, {"tools": []})),
        (b'{"jsonrpc":"2.0","id":1,"error":null,"result":{"tools":[]}}\n', result(1, {"tools": []})),
        (b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5,"message":"m"}}\n', error(1, 5, "m")),
    ],
)
def test_a_member_that_is_null_is_none(line: bytes, told: Any) -> None:
    asked(A, line, told)


def test_a_client_that_says_what_may_be_anything_is_answered_unless_it_was_asked() -> None:
    hold(
        [
            *opening(D, D, client_has=["roots"]),
            server(request(7, "roots/list")),
            expect_to_client(request(7, "roots/list")),
            client({"jsonrpc": "2.0", "id": 7}),
            expect_to_server(an_error(7, -32603, "the client answered with something that is not a response")),
            client({"jsonrpc": "2.0", "id": 7}),
            expect_to_client(an_error(7, -32600, "expected a method, a result or an error")),
        ]
    )


def test_a_malformed_request_under_an_id_in_use_does_not_end_the_first() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            client(b'{"jsonrpc":"1.0","id":1,"method":"ping"}\n'),
            expect_to_client(an_error(None, -32600, "jsonrpc")),
            server(result(1, {"tools": []})),
            expect_to_client(result(1, {"tools": []})),
        ]
    )


def test_a_line_over_the_limit_is_refused_and_the_next_one_read() -> None:
    long = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":"' + b"x" * 5000 + b'"}}\n'
    hold(
        [
            *opening(A, D),
            client(long),
            expect_to_client(an_error(1, -32600, "larger than the limit of 2000 bytes")),
            client(request(2, "ping")),
            expect_to_server(request(2, "ping")),
        ],
        limit_bytes=2000,
    )


def test_who_waits_for_a_response_over_the_limit_is_told() -> None:
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[' + b" " * 5000 + b"]}}\n"),
            expect_to_client(an_error(1, -32603, "larger than the limit")),
        ],
        limit_bytes=2000,
    )


def test_a_line_over_the_limit_that_says_nothing_is_counted() -> None:
    proxy = hold([*opening(A, D), server(b"x" * 5000 + b"\n")], limit_bytes=2000)
    assert proxy.counters.malformed == 1


HARD_VALUES = ["18446744073709551616", "-9223372036854775809", "1" * 400, '"\\ud800"', '"\\u0000"', "1.0", "100"]


@pytest.mark.parametrize("value", HARD_VALUES)
def test_values_that_are_hard_to_hold_survive_translation(value: str) -> None:
    tool = f'{{"name":"t","inputSchema":{{"type":"object","default":{value}}}'
    hold(
        [
            *opening(A, D),
            client(request(1, "tools/list")),
            expect_to_server(request(1, "tools/list")),
            server(f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool},"title":"T"}}]}}}}\n'.encode()),
            expect_to_client(f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}}}]}}}}\n'.encode()),
        ]
    )


def test_a_deep_frame_that_is_translated_survives_or_is_refused_by_name() -> None:
    for depth in (300, 900, 5000):
        deep = "[" * depth + "]" * depth
        tool = f'{{"name":"t","inputSchema":{{"default":{deep}}},"title":"T"}}'
        hold(
            [
                *opening(A, D),
                client(request(1, "tools/list")),
                expect_to_server(request(1, "tools/list")),
                server(f'{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}\n'.encode()),
                expect_to_client(lambda frame: "title" not in str(frame) or "deep" in str(frame)),
            ]
        )


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId" 1}}\n',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}\n',
    ],
)
def test_a_cancellation_that_names_nothing_does_no_harm(
    client_revision: str, server_revision: str, line: bytes
) -> None:
    ping = request(1, "ping")
    steps = opening(client_revision, server_revision)
    hold([*steps, client(line), expect_to_server(line), client(ping), expect_to_server(ping)])


def test_a_request_that_cannot_be_decoded_waits_like_any_other() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x" 1}}\n'
    steps = opening(A, A)
    hold([client(line), *steps, expect_to_server(line)])


def test_an_initialize_may_be_peeked_at_or_decoded() -> None:
    hello = (
        b'{"params":{"protocolVersion":"2024-11-05","capabilities":{}},"id":0,"method":"initialize","jsonrpc":"2.0"}\n'
    )
    hold([client(hello), expect_to_server(hello)])
