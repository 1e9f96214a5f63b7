"""Lines, glimpses and exact JSON."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.envelope import (
    Frame,
    LineSplitter,
    Malformed,
    Overlong,
    classify,
    decode,
    encode,
    encode_error,
    encode_line,
    encode_result,
    glimpse,
    key_of,
    may_hold_long_integer,
    read_line,
    show,
    skim,
    twin_of,
    with_id,
)
from tests.support.profile import hypothesis_settings

GLIMPSED = [
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', "request", b"1", "tools/list"),
    (b'{"method":"tools/call","params":{"id":9},"jsonrpc":"2.0","id":"a"}', "request", b'"a"', "tools/call"),
    (b'{"jsonrpc":"2.0","method":"x","params":{},"id":-7 } \r\n', "request", b"-7", "x"),
    (b' { "id" : 5 , "jsonrpc" : "2.0" , "method" : "x" , "params" : {} } ', "request", b"5", "x"),
    (b'{"jsonrpc":"2.0","id":3,"result":{"id":4,"method":"y"}}', "result", b"3", None),
    (b'{"result":{"id":4},"jsonrpc":"2.0","id":3}\n', "result", b"3", None),
    (b'{"result":{"id":4},"id":"3","jsonrpc":"2.0"}\n', "result", b'"3"', None),
    (b'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"m"}}', "error", b"3", None),
    (b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', "notification", None, "notifications/initialized"),
    (b'{"method":"notifications/x","params":{"id":1},"jsonrpc":"2.0"}', "notification", None, "notifications/x"),
    (b'{"jsonrpc":"2.0","method":"private"}', "notification", None, "private"),
]

NOT_GLIMPSED = [
    b'{"jsonrpc":"2.0","method":"private","params":{}}',  # an id could stand after a member that is not looked at
    b'{"params":{},"method":"x","jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":"a\\u0062","method":"x"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"x"}',
    b'{"jsonrpc":"2.0","id":12345678901234567890,"method":"x"}',
    b'{"jsonrpc":"2.0","id":"\xc3\xa9","method":"x"}',
    b'{"id":1,"method":"x","params":{}}',
    b'{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1',
    b'{"a":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1}"}',
    b"[]",
    b"",
]


@pytest.mark.parametrize(("line", "kind", "key", "method"), GLIMPSED)
def test_a_glimpse_reads_kind_id_and_method(line: bytes, kind: str, key: bytes | None, method: str | None) -> None:
    assert glimpse(line) == Frame(line, kind, key, method)


@pytest.mark.parametrize("line", NOT_GLIMPSED)
def test_a_glimpse_leaves_what_it_cannot_be_sure_of(line: bytes) -> None:
    assert glimpse(line) is None


TWICE = [
    b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{}}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"id":1}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}, "id" : 2 }\n',
    b'{"jsonrpc":"2.0","method":"ping","params":{},"id":2,"id":2}\n',
    b'{"method":"ping","params":{},"id":2,"jsonrpc":"2.0","id":3}\n',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}\n',
    b'{"jsonrpc":"2.0","id":1,"x":1,"id":1,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","x":1,"id":1,"\\u0069d":2,"method":"ping"}\n',
    b'{"jsonrpc":"2.0","x":1,"id":1,"method":"ping","m\\u0065thod":"tools/call"}\n',
]


@pytest.mark.parametrize("line", TWICE)
def test_two_frames_in_one_are_refused(line: bytes) -> None:
    told = read_line(line)
    assert isinstance(told, Malformed)
    assert (told.code, told.is_response) == (-32600, False)


@pytest.mark.parametrize("name", [b"result", b"error"])
@pytest.mark.parametrize(
    "edge", [b'{"id":1,"id":1,"jsonrpc":"2.0","%s":{}}', b'{"id":1,"jsonrpc":"2.0","%s":{},"id":1}']
)
def test_two_answers_in_one_are_refused_and_say_what_they_answer(edge: bytes, name: bytes) -> None:
    told = read_line(edge % name + b"\n")
    assert isinstance(told, Malformed)
    assert (told.key, told.is_response) == (b"1", True)


@pytest.mark.parametrize(
    "line",
    [
        b'{"x":1,"jsonrpc":"2.0","id":1,"result":{"id":1,"method":"id"}}',
        b'{"x":{"id":2,"id":3},"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"x":"\\u0069d","jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"id":2,"method":"y"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[{"id":2}],"id":3}}',
    ],
)
def test_what_only_looks_like_two_frames_is_one(line: bytes) -> None:
    told = read_line(line)
    assert isinstance(told, Frame)
    assert told.key == b"1"


def test_an_array_in_which_a_frame_is_two_is_written_so_that_everybody_reads_the_same() -> None:
    told = read_line(b'[{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"},7]\n')
    assert isinstance(told, Frame)
    assert told.raw == b'[{"jsonrpc":"2.0","id":2,"method":"ping"},7]\n'


def test_what_is_too_deep_to_be_looked_into_is_refused() -> None:
    deep = b"[" * 1005 + b"]" * 1005
    told = read_line(b'{"x":1,"jsonrpc":"2.0","id":1,"method":"ping","params":{"id":1,"x":' + deep + b"}}\n")
    assert isinstance(told, Malformed)


@pytest.mark.parametrize("key", [b"-0", b"007"])
def test_a_number_that_has_another_spelling_is_not_glimpsed(key: bytes) -> None:
    assert glimpse(b'{"jsonrpc":"2.0","id":%s,"method":"x"}' % key) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from(["id", "method", "result", "error", "params", "jsonrpc", "_meta", "notifications/x"])
objects = st.dictionaries(names | st.text(max_size=3), json_values | names, max_size=5)
frames = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers() | st.text() | st.none() | st.floats(0, 9),
        "method": names | st.text(max_size=9),
        "params": objects,
        "result": objects,
        "error": objects,
        "extra": json_values,
    },
)


@hypothesis_settings(100, 3000)
@given(frames, st.randoms(use_true_random=False), st.booleans())
def test_a_glimpse_never_contradicts_decoding(frame: dict[str, Any], random: Any, spaced: bool) -> None:
    members = list(frame.items())
    random.shuffle(members)
    line = json.dumps(dict(members), separators=(", ", " : ") if spaced else (",", ":"), ensure_ascii=False)
    try:
        raw = line.encode()
    except UnicodeEncodeError:
        raw = json.dumps(dict(members)).encode()
    seen = glimpse(raw)
    if seen is not None and not ("result" in frame and "error" in frame):
        told = classify(raw, decode(raw))
        assert isinstance(told, Frame)
        assert told[:4] == seen[:4]


LINES = [b"one\n", b"\n", b'{"a":1}\r\n', b"x" * 50 + b"\n", b"last\n"]
WHOLE = b"".join(LINES)


@pytest.mark.parametrize("tail", [b"", b"rest"])
def test_lines_come_out_whole_however_they_are_fed(tail: bytes) -> None:
    for at in range(len(WHOLE) + 1):
        splitter = LineSplitter()
        lines = splitter.feed(WHOLE[:at]) + splitter.feed(WHOLE[at:] + tail)
        assert lines == LINES
        assert splitter.finish() == ([tail + b"\n"] if tail else [])


def test_lines_come_out_whole_fed_byte_by_byte() -> None:
    splitter = LineSplitter()
    assert [line for i in range(len(WHOLE)) for line in splitter.feed(WHOLE[i : i + 1])] == LINES


def test_one_whole_line_is_handed_on_without_a_copy() -> None:
    line = b"x" * 100 + b"\n"
    assert LineSplitter().feed(line)[0] is line


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_a_line_over_the_limit_is_not_kept(size: int) -> None:
    splitter = LineSplitter(limit_bytes=20)
    data = b"a" * 19 + b"\n" + b"b" * 500 + b"\n" + b"c\n"
    lines = [line for i in range(0, len(data), size) for line in splitter.feed(data[i : i + size])]
    assert lines[0] == b"a" * 19 + b"\n"
    assert isinstance(lines[1], Overlong)
    assert set(lines[1].head) == {ord("b")} or lines[1].head.endswith(b"\n")
    assert lines[2] == b"c\n"


def test_a_single_read_over_the_limit_is_refused() -> None:
    assert isinstance(LineSplitter(limit_bytes=20).feed(b"b" * 21 + b"\n")[0], Overlong)


@pytest.mark.parametrize(
    "value", [2**64, -(2**63) - 1, 10**300, "\ud800", "\x00", 1.0, 100, -0.0, 1e300, "é", "\u2028"]
)
def test_values_survive_decoding_and_encoding(value: Any) -> None:
    text = json.dumps({"value": value})
    found = decode(encode(decode(text.encode())))["value"]
    assert (type(found), found) == (type(value), value)


def test_a_long_integer_is_not_read_as_a_float() -> None:
    assert isinstance(orjson.loads(b"18446744073709551616"), float)  # the reason for looking; if it fails, look no more
    assert decode(b"[18446744073709551616,1.5]") == [2**64, 1.5]


@pytest.mark.parametrize("at", range(12))
@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_long_integer_is_found_wherever_it_stands(number: int, at: int) -> None:
    assert decode(b" " * at + b"[%d]" % number) == [number]


def test_digits_that_stand_apart_are_no_long_integer() -> None:
    assert not may_hold_long_integer(b"12345 " * 20)


@pytest.mark.parametrize("line", [b"[1.5]", b'"\\ud800"', b"1" * 400])
def test_skimming_reads_what_decoding_reads(line: bytes) -> None:
    assert skim(line) == decode(line)


@pytest.mark.parametrize("line", [b"NaN", b"{", b"\xff"])
def test_skimming_refuses_what_decoding_refuses(line: bytes) -> None:
    with pytest.raises(ValueError, match="not"):
        skim(line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"NaN", "NaN"),
        (b"-Infinity", "Infinity"),
        (b"1e999", "beyond"),
        (b"-1e999", "beyond"),
        (b"\xff", "not UTF-8: byte 0xff at offset 0"),
        (b"[" * 100_000, "deep"),
        (b"{", "not JSON"),
        (b"1" * 5000, "digits"),
        (b'"a\x00"', "not JSON"),
    ],
)
def test_what_is_not_json_is_said_to_be(line: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(":", ".")) as caught:
        decode(line)
    assert words in str(caught.value)


def test_what_is_too_deep_to_write_is_said_to_be() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="deep"):
        encode(deep)
    while deep:
        deep = deep[0]


@hypothesis_settings(50, 2000)
@given(json_values)
def test_encoding_is_the_inverse_of_decoding(value: Any) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    ("request_id", "key"),
    [(1, b"1"), ("1", b'"1"'), (1.0, b"1"), (1.5, b"1.5"), ("é", '"é"'.encode()), (2**70, str(2**70).encode())],
)
def test_ids_are_told_apart_by_type_and_value(request_id: Any, key: bytes) -> None:
    assert key_of(request_id) == key


@pytest.mark.parametrize("request_id", [None, True, [], {}])
def test_what_cannot_be_an_id_has_no_key(request_id: Any) -> None:
    assert key_of(request_id) is None


@pytest.mark.parametrize("line", [b"\n", b" \r\n"])
def test_an_empty_line_is_nothing(line: bytes) -> None:
    assert read_line(line) is None


def test_a_malformed_line_says_what_was_expected() -> None:
    told = read_line(b'{"jsonrpc":"1.0","id":4,"method":"x"}\n')
    assert told == Malformed(-32600, 'expected "jsonrpc": "2.0", found the string \'1.0\'', b"4")


def test_an_overlong_line_names_who_waits() -> None:
    told = read_line(Overlong(b'{"jsonrpc":"2.0","id":4,"result":{"a', 10))
    assert isinstance(told, Malformed)
    assert (told.key, told.is_response) == (b"4", True)


def test_an_overlong_line_that_says_nothing_names_nobody() -> None:
    told = read_line(Overlong(b"aaaa", 10))
    assert isinstance(told, Malformed)
    assert (told.key, told.is_response) == (None, False)


def test_answers_are_written_as_lines() -> None:
    assert encode_line({"a": "é"}) == '{"a":"é"}\n'.encode()
    assert encode_result(b'"k"', {}) == b'{"jsonrpc":"2.0","id":"k","result":{}}\n'
    assert encode_error(None, -1, "m") == b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}\n'
    assert decode(encode_error(b"1", -1, "m", [2]))["error"]["data"] == [2]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"id":7}}\n', b'{"jsonrpc":"2.0","id":"x","result":{"id":7}}\n'),
        (b'{"id" : "7","jsonrpc":"2.0","result":{}}\n', b'{"id" : "x","jsonrpc":"2.0","result":{}}\n'),
        (b'{"jsonrpc":"2.0","result":{"id":7},"id":7}\n', b'{"jsonrpc":"2.0","result":{"id":7},"id":"x"}\n'),
        (b'{"x":1,"jsonrpc":"2.0","id":7,"result":{}}\n', b'{"x":1,"jsonrpc":"2.0","id":"x","result":{}}\n'),
    ],
)
def test_a_frame_gets_another_id_and_keeps_the_rest(line: bytes, expected: bytes) -> None:
    frame = read_line(line)
    assert isinstance(frame, Frame)
    assert with_id(frame, b'"x"') == expected


def test_kept_ids_are_no_larger_than_they_have_to_be() -> None:
    tracemalloc.start()
    kept = [key_of(f"an id like this one {number}") for number in range(100)]
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 100 * len(kept) * 2


def test_with_id_decodes_where_the_edges_do_not_show_the_id() -> None:
    frame = Frame(b'{"params":{},"id":1,"method":"x","jsonrpc":"2.0"}\n', "request", b"1", "x")
    assert with_id(frame, b'"k"') == b'{"params":{},"id":"k","method":"x","jsonrpc":"2.0"}\n'


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
    ],
)
def test_twin_of_an_id_looks_the_same_and_has_the_other_type(key: bytes, twin: bytes | None) -> None:
    assert twin_of(key) == twin


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"hello\r\n", "'hello'"),
        ("\x1b[2J\u2028é\n".encode(), r"'\x1b[2J\u2028\xe9'"),
        (b"\xff\xfe\n", r"'\\xff\\xfe'"),
        (b"x" * 121 + b"\n", f"'{'x' * 120}'..."),
        (Overlong(b"head", 10), "'head'..."),
    ],
)
def test_a_line_is_shown_shortened_and_escaped(line: bytes | Overlong, shown: str) -> None:
    assert show(line) == shown
