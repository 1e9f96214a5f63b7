"""Lines that are peeked at, and those that have to be decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.envelope import Frame, Malformed, classify
from dragoman.core.exact_json import decode, outline
from dragoman.core.lines import Overlong
from dragoman.core.peek import peek, read_line, splice_id, with_id
from tests.support.json_values import json_values
from tests.support.profile import hypothesis_settings

PEEKED = [
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', "request", b"1", "tools/list"),
    (b'{"method":"tools/call","params":{"id":9},"jsonrpc":"2.0","id":"a"}', "request", b'"a"', "tools/call"),
    (b'{"jsonrpc":"2.0","method":"x","params":{},"id":-7 } \r\n', "request", b"-7", "x"),
    (b' { "id" : 5 , "jsonrpc" : "2.0" , "method" : "x" , "params" : {} } ', "request", b"5", "x"),
    (b'{"jsonrpc":"2.0","id":3,"result":{"id":4,"methods":"y"}}', "result", b"3", None),
    (b'{"jsonrpc":"2.0","id":3,"result":{"methods":"y","x":"' + b"x" * 1100 + b'"}}', "result", b"3", None),
    (b'{"jsonrpc":"2.0","id":3,"result":{"x":"' + b'\\"method\\":' * 2000 + b'"}}', "result", b"3", None),
    (b'{"jsonrpc":"2.0","id":3,"result":{"x":"caf\\u00e9"}}', "result", b"3", None),
    (b'{"result":{"id":4},"jsonrpc":"2.0","id":3}\n', "result", b"3", None),
    (b'{"result":{"id":4},"id":"3","jsonrpc":"2.0"}\n', "result", b'"3"', None),
    (b'{"jsonrpc":"2.0","id":3,"result" : {"error":1}}' + b" " * 200 + b"}", "result", b"3", None),
    (b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n', "notification", None, "notifications/initialized"),
    (b'{"method":"notifications/x","params":{"n":1},"jsonrpc":"2.0"}', "notification", None, "notifications/x"),
    (b'{"jsonrpc":"2.0","method":"notifications/private"}', "notification", None, "notifications/private"),
]


NOT_PEEKED = [
    b'{"jsonrpc":"2.0","method":"notifications/x","params":{},"id":0,"extra":null}',
    b'{"method":"notifications/x","params":{"id":1},"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","method":"tools/list"}',  # a request of this name has an id
    b'{"jsonrpc":"2.0","method":"private","params":{}}',  # an id could stand after a member that is not looked at
    b'{"params":{},"method":"x","jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":"a\\u0062","method":"x"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"x"}',
    b'{"jsonrpc":"2.0","id":12345678901234567890,"method":"x"}',
    b'{"jsonrpc":"2.0","id":"\xc3\xa9","method":"x"}',
    b'{"id":1,"method":"x","params":{}}',
    b'{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}',
    b'{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"m"}}',  # it needs a code and a message
    b'{"jsonrpc":"2.0","id":3,"result":{},"error":null}',
    b'{"jsonrpc":"2.0","id":3,"result":null}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{},"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{},"error":{}}',
    b'{"jsonrpc":"2.0","id":3,"result":{},"method":"y"}',
    b'{"jsonrpc":"2.0","id":3,"result":{},"m\\u0065thod":"y"}',
    b'{"jsonrpc":"2.0","id":3,"result":{"method":"y","x":"' + b"x" * 1100 + b'"}}',
    b'{"jsonrpc":"2.0","id":3,"result":{},"method":"y","x":"' + b"x" * 20_000 + b'"}',
    b'{"jsonrpc":"2.0","id":1,"params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1',
    b'{"a":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1}"}',
    b"[]",
    b"",
]


@pytest.mark.parametrize(("line", "kind", "key", "method"), PEEKED)
def test_a_peek_reads_kind_id_and_method(line: bytes, kind: str, key: bytes | None, method: str | None) -> None:
    assert peek(line) == Frame(line, kind, key, method)


@pytest.mark.parametrize("line", NOT_PEEKED)
def test_a_peek_leaves_what_it_cannot_be_sure_of(line: bytes) -> None:
    assert peek(line) is None


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


LONG = {
    "long strings": b'{"x":"%b"}' % (b"x" * 30_000),
    "short strings": b'{"rows":[%b]}' % b",".join(b'{"a":"%d"}' % number for number in range(3000)),
    "of two kilobytes": b'{"x":"%b"}' % (b"x" * 2000),
}


@pytest.mark.parametrize("name", [b"method", b"m\\u0065thod"])
@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_result_with_a_method_far_from_its_end_is_refused(text: bytes, name: bytes) -> None:
    """Clients on the official Python SDK take it for a request."""
    for answer in (
        b'"result":%b,"%b":"x","params":%b' % (text, name, text),
        b'"result":{},"%b":"x","y":%b' % (name, text),
    ):
        told = read_line(b'{"jsonrpc":"2.0","id":3,%b}\n' % answer)
        assert isinstance(told, Malformed)
        assert (told.code, told.key, told.is_response) == (-32600, b"3", True)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_method_within_a_result_is_what_it_says(text: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":3,"result":{"a":%b,"method":"GET","b":%b}}\n' % (text, text)
    told = read_line(line)
    assert isinstance(told, Frame)
    assert (told.kind, told.key, told.method, told.raw) == ("result", b"3", None, line)


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
    deep = b"[" * 100_000 + b"]" * 100_000  # more than any release of Python reads
    told = read_line(b'{"x":1,"jsonrpc":"2.0","id":1,"method":"ping","params":{"id":1,"x":' + deep + b"}}\n")
    assert isinstance(told, Malformed)


@pytest.mark.parametrize("key", [b"-0", b"007"])
def test_a_number_that_has_another_spelling_is_not_peeked_at(key: bytes) -> None:
    assert peek(b'{"jsonrpc":"2.0","id":%s,"method":"x"}' % key) is None


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
def test_a_peek_never_contradicts_decoding(frame: dict[str, Any], random: Any, spaced: bool) -> None:
    members = list(frame.items())
    random.shuffle(members)
    line = json.dumps(dict(members), separators=(", ", " : ") if spaced else (",", ":"), ensure_ascii=False)
    try:
        raw = line.encode()
    except UnicodeEncodeError:
        raw = json.dumps(dict(members)).encode()
    seen = peek(raw)
    # Of what is a request and a response at once, a peek sees the half that stands at the edge.
    if seen is not None and sum(name in frame for name in ("method", "result", "error")) == 1:
        told = classify(raw, decode(raw))
        assert isinstance(told, Frame)
        assert told[:4] == seen[:4]


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


def test_with_id_decodes_where_the_edges_do_not_show_the_id() -> None:
    frame = Frame(b'{"params":{},"id":1,"method":"x","jsonrpc":"2.0"}\n', "request", b"1", "x")
    assert with_id(frame, b'"k"') == b'{"params":{},"id":"k","method":"x","jsonrpc":"2.0"}\n'


LONG = b'"' + b"x" * 100_000 + b'"'


@pytest.mark.parametrize(
    ("line", "spliced"),
    [
        (
            b'{"jsonrpc":"2.0", "id":7,"method":"m","params":{"a" :%b}}\n',
            b'{"jsonrpc":"2.0", "id":8,"method":"m","params":{"a" :%b}}\n',
        ),
        (
            b'{"method":"m","params":[%b],"jsonrpc":"2.0","id":7}',
            b'{"method":"m","params":[%b],"jsonrpc":"2.0","id":8}',
        ),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b},"id":9,"id":7}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b},"id":9,"x":1,"id":7,"y":2}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":%b},"\\u0069d":9,"x":1}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"id":%b}}', None),  # it could be, and is encoded anew
    ],
)
def test_another_id_is_put_in_where_nothing_else_can_be_taken_for_it(line: bytes, spliced: bytes | None) -> None:
    line %= LONG
    assert splice_id(line, b"8", outline(line)) == (None if spliced is None else spliced % LONG)
