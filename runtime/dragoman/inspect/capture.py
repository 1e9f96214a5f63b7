"""A trace as a conversation with one peer: what it said, and what it was told in answer.

Lives here: choosing a connection, and pairing requests with answers. Must not: talk to anybody (`mock`, `play`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.core.exact_json import decode, encode

Side = Literal["client", "server"]


class NoCapture(Exception):
    """There is nothing in a trace that could be played back: why."""


@dataclass(slots=True)
class RecordedCall:
    """A request of a client, and what came of it at a server.

    Attributes:
        request: As it was sent.
        before: What the server said on its own before the answer: notifications and questions.
        answer: The response; None if none came.
    """

    request: dict[str, Any]
    before: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None


@dataclass(slots=True)
class Capture:
    """What crossed one connection.

    Attributes:
        connection: Its number.
        revision: What was spoken on it; empty if that is not known.
        calls: The client's requests, in order.
        replies: What the client answered to questions, by their ids as JSON.
        notices: The client's notifications, with how many of its requests came before.
    """

    connection: int
    revision: str = ""
    calls: list[RecordedCall] = field(default_factory=list)
    replies: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    notices: list[tuple[int, dict[str, Any]]] = field(default_factory=list)


def read_capture(lines: Iterable[bytes], side: Side, connection: int | None = None) -> Capture:
    """Read a trace.

    Args:
        lines: Its lines.
        side: The peer at the other end of the wanted connection: `server`, to take its place; `client`, to say what it
            said.
        connection: The number of the connection; None: the first with a request that was answered.

    Raises:
        NoCapture: There is no such connection, or nothing was answered on it.
    """
    found: dict[int, Capture] = {}
    open_: dict[tuple[int, bytes], RecordedCall] = {}
    for line in lines:
        said = _read(line)
        if said is None or said.get("side") != side or said.get("direction") not in ("received", "sent"):
            continue
        number, frame = said.get("connection"), said.get("frame")
        frames = [one for one in (frame if isinstance(frame, list) else [frame]) if isinstance(one, dict)]
        if not isinstance(number, int) or not frames:
            continue
        capture = found.setdefault(number, Capture(number))
        capture.revision = said.get("revision") or capture.revision
        is_clients = (said["direction"] == "received") == (side == "client")
        for one in frames:
            _take(capture, open_, one, encode(said.get("number", one.get("id"))), is_clients)
    if connection is not None and connection not in found:
        raise NoCapture(f"there is no connection {connection} to a {side} in it; there are {sorted(found) or 'none'}")
    wanted = [found[connection]] if connection is not None else list(found.values())
    for capture in wanted:
        if any(call.answer is not None for call in capture.calls):
            return capture
    raise NoCapture(f"nothing was asked and answered on a connection to a {side} in it")


def _take(
    capture: Capture,
    open_: dict[tuple[int, bytes], RecordedCall],
    frame: dict[str, Any],
    name: bytes,
    is_clients: bool,
) -> None:
    """Put a frame where it belongs; its name is its id, or what stands for it where several clients use the same."""
    is_request, has_id = "method" in frame, "id" in frame
    key = capture.connection, name
    if is_clients and is_request and has_id:
        open_[key] = RecordedCall(frame)
        capture.calls.append(open_[key])
    elif is_clients and is_request:
        capture.notices.append((len(capture.calls), frame))
    elif is_clients:
        capture.replies[name] = frame
    elif is_request:
        waiting = (call for (number, _), call in reversed(open_.items()) if number == capture.connection)
        if (last := next(waiting, None)) is not None:
            last.before.append(frame)
    elif key in open_:
        open_.pop(key).answer = frame


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        said = decode(line)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
