"""The bounded queue for frames that come early."""

from __future__ import annotations

from dragoman.core.envelope import Frame, classify
from dragoman.core.waiting import WaitingRoom, request_keys


def a_request(key: bytes, size: int = 10) -> Frame:
    return Frame(b"x" * size, "request", key, "m")


def test_frames_come_out_in_order() -> None:
    room = WaitingRoom(9, 999)
    for key in (b"2", b"1"):
        room.add(a_request(key))
    assert [frame.key for frame in room.take_all()] == [b"2", b"1"]
    assert len(room) == 0


def test_the_room_is_bounded_in_number() -> None:
    room = WaitingRoom(1, 999)
    assert room.add(a_request(b"1"))
    assert not room.add(a_request(b"2"))


def test_the_room_is_bounded_in_bytes() -> None:
    room = WaitingRoom(9, 15)
    assert room.add(a_request(b"1"))
    assert not room.add(a_request(b"2"))
    room.take_all()
    assert room.add(a_request(b"2"))


def test_a_request_can_be_taken_back() -> None:
    room = WaitingRoom(9, 15)
    room.add(Frame(b"", "notification", None, "m"))
    room.add(a_request(b"1"))
    assert not room.remove(b'"1"')
    assert room.remove(b"1")
    assert room.add(a_request(b"2"))


def test_the_requests_of_a_frame_are_those_that_want_an_answer() -> None:
    members = [
        {"jsonrpc": "2.0", "id": 1, "method": "m"},
        {"jsonrpc": "2.0", "method": "n"},
        {"jsonrpc": "2.0", "id": "r", "result": {}},
        7,
    ]
    batch = classify(b"", members)
    assert isinstance(batch, Frame)
    assert request_keys(batch) == [b"1"]
    assert request_keys(a_request(b"5")) == [b"5"]
    assert request_keys(Frame(b"", "notification", None, "n")) == []
