"""A list that came twice is recognised by its bytes, and by nothing less."""

from __future__ import annotations

import json

import pytest

from dragoman.core.edges.per_request import _OURS
from dragoman.core.envelope import Frame
from dragoman.core.known_lists import LISTED_BYTES, KnownList
from dragoman.core.peek import read_line
from dragoman.transports.lines import LineFramer


def listed(key: object = 1, said: str = "Says something.", more: str = "") -> bytes:
    """A response that lists tools, as a line."""
    tools = [{"name": f"tool_{n}", "description": said, "inputSchema": {"type": "object"}} for n in range(100)]
    result = {"tools": tools} | ({more: 1} if more else {})
    return json.dumps({"jsonrpc": "2.0", "id": key, "result": result}, separators=(",", ":")).encode() + b"\n"


def knowing(line: bytes, times: int = 2) -> KnownList:
    """What has seen a line so many times."""
    known = KnownList()
    for _ in range(times):
        known.note(line)
    return known


@pytest.mark.parametrize("key", [2, 123456, "an id"])
def test_a_list_that_came_twice_is_its_beginning(key: object) -> None:
    line = listed(key)
    assert len(line) > LISTED_BYTES
    beginning = b'{"jsonrpc":"2.0","id":%s,"result":{}}\n' % json.dumps(key).encode()
    assert knowing(listed()).shorten(line) == beginning
    assert knowing(listed()).shorten(line.rstrip()) == beginning
    assert knowing(listed(), 1).shorten(line) == b""


def test_it_is_read_as_if_it_had_not_come_before() -> None:
    line = listed(7)
    first, again = read_line(line), read_line(line, knowing(listed()).shorten(line))
    assert isinstance(first, Frame)
    assert isinstance(again, Frame)
    assert again._replace(bare=b"") == first


@pytest.mark.parametrize("at", [60, 3000, -4])
def test_one_byte_makes_another_list(at: int) -> None:
    line = bytearray(listed())
    line[at] ^= 1
    known = knowing(listed())
    assert known.shorten(bytes(line)) == b""
    assert known.shorten(listed()[:-3] + b"\n") == b""
    assert known.shorten(listed().rstrip() + b" \n") == b""


def test_what_stands_behind_the_result_makes_it_another_one() -> None:
    """Some readers take this for a request."""
    known = knowing(listed())
    for end in (b',"method":"ping"}\n', b',"method":"ping","params":{}}\n', b"}}\n"):
        line = listed()[:-2] + end
        assert known.shorten(line) == b""
        assert known.shorten(line.rstrip()) == b""


@pytest.mark.parametrize("name", ["id", "method", "error", "input_required", "-32600", "\\u0069d", "\u00e9\u1234"])
def test_a_list_with_names_that_are_looked_for_is_never_known(name: str) -> None:
    line = listed(more=name)
    known = knowing(line, 5)
    assert (known.shorten(line) != b"") is (b"\\" not in line and name in ("", "\u00e9\u1234"))


def test_all_that_is_looked_for_between_peers_without_sessions_keeps_a_list_from_being_known() -> None:
    for word in _OURS:
        line = listed(said=f"Says {word.decode()}.")
        assert knowing(line, 5).shorten(line) == b""


def test_what_is_no_list_or_no_json_is_not_known() -> None:
    whole = listed()
    others = [
        whole.replace(b'"tools":', b'"rests":'),
        whole.replace(b'{"type"', b"[type"),
        whole.replace(b'"result":{', b'"result": {'),
        whole.replace(b"}}\n", b"]}\n"),
        listed(said="x" * 3000),
    ]
    for line in others:
        assert knowing(line, 5).shorten(line) == b""


def test_the_last_list_is_known_and_no_other() -> None:
    known, other = knowing(listed()), listed(said="Says another.")
    known.note(other)
    assert known.shorten(listed()) == known.shorten(other) == b""
    known.note(other)
    assert known.shorten(listed()) == b""
    assert known.shorten(other)


def test_a_reader_of_lines_knows_its_lists() -> None:
    framer = LineFramer()
    bare = []
    for key in range(4):
        [frame] = framer.feed(listed(key))
        assert isinstance(frame, Frame)
        assert (frame.raw, frame.key) == (listed(key), b"%d" % key)
        bare.append(len(frame.bare))
    assert bare[:2] == [0, 0]
    assert 0 < bare[2] == bare[3] < 100
