"""What a line of a trace says.

Lives here: making the object of each thing that happened, and which revision each connection has agreed on. Must not:
write (`writer`), or run where frames are relayed: all this is done in the writer's thread.

The revision of a connection is read off its own frames: what answers `initialize` on it names the revision.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from dragoman.core.envelope import Frame, Malformed, Refusal
from dragoman.core.exact_json import decode, encode
from dragoman.core.lines import Overlong
from dragoman.core.translate import Crossing
from dragoman.core.unchecked import find
from dragoman.trace.redact import redact, redact_headers, redact_text
from dragoman.transports.base import Headers, HttpHeads

LINE_SHOWN: Final = 2000
"""How much of what is not a frame is shown."""


class Where(NamedTuple):
    """A connection.

    Attributes:
        session: Whose session it is; empty where there is only one.
        number: Of the connection, counted from 1.
        side: Which peer is at its other end.
        server: Which of several servers that is, by its name; empty where there is one.
    """

    session: str
    number: int
    side: str
    server: str = ""


What = Frame | Malformed | HttpHeads | str


class Noted(NamedTuple):
    """Something that happened on a connection.

    Attributes:
        time_s: When, in seconds since the epoch.
        where: The connection.
        direction: `received`, `sent`, `given up`, `ended`, `broken`, `closed` or `http`.
        what: The frame, or the reason, or headers.
    """

    time_s: float
    where: Where
    direction: str
    what: What


class Translated(NamedTuple):
    """A frame that was translated."""

    time_s: float
    session: str
    crossing: Crossing
    server: str = ""


Entry = Noted | tuple[float, Where, str, What] | Translated | bytes
"""What is to be written; bytes are lines that somebody has written already. What happens several times a call comes as
a plain tuple, which is made in a fifth of the time of one with names."""


def size_of(entry: Entry) -> int:
    """Return how many bytes an entry holds on to, nearly."""
    if isinstance(entry, bytes):
        return len(entry)
    if isinstance(entry, Translated):
        after = entry.crossing.after
        return len(entry.crossing.before.raw) + (len(after.raw) if isinstance(after, Frame) else 0)
    what = entry[3]
    return len(what.raw) if isinstance(what, Frame) else 100


class Scribe:
    """Makes lines.

    Args:
        process: The number of the process in which it happened; None: this one.
    """

    def __init__(self, process: int | None = None) -> None:
        self._revisions: dict[int, str] = {}
        self._asked: dict[int, bytes | None] = {}  # the ids of `initialize`, by connection
        self._process = os.getpid() if process is None else process

    def write(self, entry: Entry) -> bytes:
        """Return the line for what happened."""
        if isinstance(entry, bytes):
            return entry
        if isinstance(entry, Translated):
            return _line(entry.time_s, self._process, entry.session, self._describe_crossing(entry))
        noted = Noted(*entry)
        return _line(noted.time_s, self._process, noted.where.session, self._describe(noted))

    def write_dropped(self, time_s: float, count: int) -> bytes:
        """Return the line that says how many lines are missing before it."""
        return _line(time_s, self._process, "", {"direction": "dropped", "lines": count})

    def _describe(self, noted: Noted) -> dict[str, Any]:
        what, (_, number, side, server) = noted.what, noted.where
        shown: dict[str, Any] = {}
        if isinstance(what, Frame):
            shown = _read(what)
            self._learn(number, what, shown)
        said = {"side": side, "connection": number, "direction": noted.direction}
        if server:
            said["server"] = server
        said["revision"] = self._revisions.get(number)
        match what:
            case Frame(stream=bytes(stream)):
                said["stream"] = _read_id(stream)
            case Frame(key=bytes(key)) if (given := find(shown, "frame", "id")) is not None and encode(given) != key:
                said["number"] = _read_id(key)
            case HttpHeads() as heads:
                shown = _show_heads(heads)
            case Malformed() as malformed:
                shown = {"malformed": malformed.reason, "line": _show(malformed.line)}
            case str() if noted.direction == "closed":
                self._revisions.pop(number, None)
                self._asked.pop(number, None)
            case str(reason):
                shown = {"reason": redact_text(reason)}
        return said | shown

    def _learn(self, number: int, frame: Frame, shown: dict[str, Any]) -> None:
        """Record the revision, where a frame agrees on one."""
        if frame.method == "initialize" and frame.kind == "request":
            self._asked[number] = frame.key
        elif frame.kind == "result" and number in self._asked and self._asked[number] == frame.key:
            revision = find(shown, "frame", "result", "protocolVersion")
            if isinstance(revision, str):
                self._revisions[number] = revision
                del self._asked[number]

    def _describe_crossing(self, entry: Translated) -> dict[str, Any]:
        crossing = entry.crossing
        said: dict[str, Any] = {
            "side": crossing.side.value,
            "direction": "translated",
            **({"server": entry.server} if entry.server else {}),
            "revision": crossing.source,
            "to": crossing.target,
            "method": crossing.method,
            "before": _body(crossing.before),
        }
        match crossing.after:
            case Frame() as after:
                said["after"] = _body(after)
            case Refusal(code, message, data):
                said["refused"] = redact({"code": code, "message": message, "data": data})
            case None:
                said["after"] = None
        said["losses"] = [
            {"pointer": one.pointer, "kind": one.kind, "bytes": one.bytes, "cosmetic": one.cosmetic}
            for one in crossing.losses
        ]
        return said


def _read(frame: Frame) -> dict[str, Any]:
    """Return a frame, or what came in its place: whoever peeks at frames takes some that are not JSON."""
    try:
        return {"frame": redact(decode(frame.raw))}
    except ValueError as error:
        return {"malformed": str(error), "line": _show(frame.raw)}


def _body(frame: Frame) -> Any:
    return _read(frame).get("frame")


def _show_heads(heads: HttpHeads) -> dict[str, Any]:
    said: dict[str, Any] = {"method": heads.method, "status": heads.status}
    if heads.keys:
        said["ids"] = [_read_id(key) for key in heads.keys]
    return said | {
        "request": redact_headers(_list_headers(heads.request)),
        "response": redact_headers(_list_headers(heads.response)),
    }


def _list_headers(headers: Mapping[bytes, bytes] | Headers | bytes) -> dict[str, str]:
    """Return headers by their names in small letters."""
    pairs: Iterable[tuple[bytes, bytes]] = (
        (
            (name, value.strip())
            for name, _, value in (line.partition(b":") for line in headers.split(b"\r\n")[1:])
            if name
        )
        if isinstance(headers, bytes)
        else dict(headers).items()
    )
    return {name.decode("latin-1").lower(): value.decode("utf-8", "replace") for name, value in pairs}


def _read_id(key: bytes) -> Any:
    try:
        return decode(key)
    except ValueError:
        return None


def _show(line: bytes | Overlong) -> str:
    raw = line.head if isinstance(line, Overlong) else line
    return redact_text(raw[:LINE_SHOWN].decode(errors="backslashreplace").rstrip("\r\n"))


def _line(time_s: float, process: int, session: str, said: dict[str, Any]) -> bytes:
    when = datetime.fromtimestamp(time_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return encode({"time": when, "process": process, "session": session or None} | said) + b"\n"
