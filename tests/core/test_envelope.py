"""Ids as keys, and answers that are written here."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from dragoman.core.envelope import Frame, encode_error, encode_result, key_of, mend_response, twin_of, written
from dragoman.core.exact_json import decode, encode_line


@pytest.mark.parametrize(
    ("request_id", "key"),
    [(1, b"1"), ("1", b'"1"'), (1.0, b"1"), (1.5, b"1.5"), ("é", '"é"'.encode()), (2**70, str(2**70).encode())],
)
def test_ids_are_told_apart_by_type_and_value(request_id: Any, key: bytes) -> None:
    assert key_of(request_id) == key


@pytest.mark.parametrize("request_id", [None, True, [], {}])
def test_what_cannot_be_an_id_has_no_key(request_id: Any) -> None:
    assert key_of(request_id) is None


def test_answers_are_written_as_lines() -> None:
    assert encode_line({"a": "é"}) == '{"a":"é"}\n'.encode()
    assert encode_result(b'"k"', {}) == b'{"jsonrpc":"2.0","id":"k","result":{}}\n'
    assert encode_error(None, -1, "m") == b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}\n'
    assert decode(encode_error(b"1", -1, "m", [2]))["error"]["data"] == [2]


def test_kept_ids_are_no_larger_than_they_have_to_be() -> None:
    tracemalloc.start()
    kept = [key_of(f"an id like this one {number}") for number in range(100)]
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 100 * len(kept) * 2


@pytest.mark.parametrize(
    ("key", "twin"),
    [
        (b"3", b'"3"'),
        (b'"3"', b"3"),
        (b'"03"', None),
        (b'"x"', None),
        (b"-3", None),
        (b"1.5", None),
        (b'""', None),
        (b'"\xc2\xb3"', None),
        (b'"\xd9\xa3"', None),
        (b'"0"', b"0"),
        (b'"' + b"9" * 5000 + b'"', b"9" * 5000),
    ],
)
def test_twin_of_an_id_looks_the_same_and_has_the_other_type(key: bytes, twin: bytes | None) -> None:
    assert twin_of(key) == twin


@pytest.mark.parametrize(("said", "code"), [(-32602, -32602), (-32602.0, -32602), (1.5, -32603), ("x", -32603)])
def test_the_code_of_an_error_is_an_integer_whatever_the_server_wrote(said: object, code: int) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "error": {"code": said, "message": "no"}}
    mended = mend_response(Frame(encode_line(body), "error", b"1", None, body))
    assert decode(written(mended).raw)["error"] == {"code": code, "message": "no"}
    assert type(decode(written(mended).raw)["error"]["code"]) is int
