"""A fresh server for every request of a session: what scope `request` means, without I/O.

Lives here: the short life of each server and what the session is told of it. Must not: open anything. Called by
`dragoman.transports.throwaway`.

Theory of operation. The session's `initialize` goes to a first server, whose result is the answer; that server is not
used again. Every later request opens another one: the same `initialize`, `notifications/initialized`, the log level if
one was set, the request; its answer ends it. Nothing lasts, so what needs to last is neither offered nor served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from dragoman.core.envelope import Frame, Malformed, classify, encode_error, encode_result, key_of, twin_of
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.failures import CONNECTION_CLOSED
from dragoman.core.lines import DEFAULT_LIMIT_BYTES, LineSplitter
from dragoman.core.peek import read_line, with_id
from dragoman.core.sharing.desk import object_in, params_of
from dragoman.core.wholeness import read_last_line
from dragoman_spec import HANDSHAKE_REVISIONS, facts

_LEVEL_ID: Final = "dragoman-level"
_INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
_QUESTIONS: Final = 1024
_ENDING: Final = 4
_LASTING: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).standing)
_NOT_OFFERED: Final = frozenset(name for revision in HANDSHAKE_REVISIONS for name in facts(revision).server_flags)
"""Capabilities that need a server which lasts."""


class Phase(Enum):
    """How far a server has come."""

    OPENING = "opening"
    WORKING = "working"
    OVER = "over"


@dataclass(slots=True, eq=False)
class Run:
    """One server and the request that it is for.

    Attributes:
        frame: The request.
        phase: How far it has come.
        splitter: What it has said of a line.
        tokens: The progress tokens of what it asks.
    """

    frame: Frame
    splitter: LineSplitter
    phase: Phase = Phase.OPENING
    tokens: list[Any] = field(default_factory=list)


Deliveries = list[tuple[Run | None, bytes]]
"""Lines and whom they are for; None is the session. A run that is not known yet is to be opened first, and one whose
phase is `OVER` to be closed afterwards."""


class Throwaways:
    """The servers of one session.

    Args:
        limit: How many requests there may be at once; four times as many servers may still be on their way out.
        limit_bytes: The longest line accepted.

    Attributes:
        runs: The servers that are at work.
        ending: How many are over and not gone yet; counted by whoever closes them. Who asks and cancels without end
            must not start servers without end.
    """

    def __init__(self, limit: int = 64, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.runs: dict[Run, None] = {}
        self.ending = 0
        self._limit = limit
        self._limit_bytes = limit_bytes
        self._splitter = LineSplitter(limit_bytes)
        self._initialize: Frame | None = None
        self._level: Any = None
        self._asked: dict[bytes, tuple[Run, bytes]] = {}
        self._questions = 0
        self._out: Deliveries = []
        self._taking: Mapping[str, Callable[[Frame], None]] = {
            "request": self._take_request,
            "notification": self._take_notification,
        }

    def receive(self, data: bytes) -> Deliveries:
        """Take bytes that the session sent."""
        for line in self._splitter.feed(data):
            frame = read_line(line)
            members = [frame] if not isinstance(frame, Frame) or frame.kind != "batch" else map(_member, frame.body)
            for one in members:
                if isinstance(one, Malformed):
                    self._post(None, encode_error(one.key, one.code, one.reason))
                elif one is not None:
                    self._taking.get(one.kind, self._take_answer)(one)
        return self._take_out()

    def receive_server(self, run: Run, data: bytes) -> Deliveries:
        """Take bytes that a server sent."""
        for line in run.splitter.feed(data):
            self._take_line(run, read_line(line))
        return self._take_out()

    def lose(self, run: Run, reason: str) -> Deliveries:
        """Take note that a server is gone; a last line without line feed counts if it is whole."""
        for line in run.splitter.finish():
            self._take_line(run, read_last_line(line))
        if run.phase is not Phase.OVER:
            self._fail(run, reason)
        return self._take_out()

    def _take_request(self, frame: Frame) -> None:
        assert frame.key is not None
        if frame.method == "ping":
            self._post(None, encode_result(frame.key, {}))
        elif frame.method in _LASTING:
            reason = f"{frame.method} needs a server that lasts; here each request has its own (scope request)"
            self._post(None, encode_error(frame.key, -32601, reason))
        elif len(self.runs) >= self._limit:
            self._post(None, encode_error(frame.key, CONNECTION_CLOSED, f"more than {self._limit} requests at once"))
        elif self.ending >= self._limit * _ENDING:
            reason = f"{self._limit * _ENDING} servers of earlier requests are not gone yet"
            self._post(None, encode_error(frame.key, CONNECTION_CLOSED, reason))
        else:
            opening = frame if frame.method == "initialize" else self._initialize
            if opening is None:
                self._post(None, encode_error(frame.key, -32600, "expected initialize first"))
                return
            run = Run(frame, LineSplitter(self._limit_bytes))
            self.runs[run] = None
            self._post(run, opening.raw)

    def _take_notification(self, frame: Frame) -> None:
        params = params_of(_body(frame))
        for run in list(self.runs):
            if frame.method == "notifications/cancelled" and run.frame.key == key_of(params.get("requestId")):
                if run.phase is Phase.WORKING:
                    self._post(run, frame.raw)
                self._end(run)
            elif frame.method == "notifications/progress" and params.get("progressToken") in run.tokens:
                self._post(run, frame.raw)

    def _take_answer(self, frame: Frame) -> None:
        run, key = self._asked.pop(frame.key or b"", (None, b""))
        if run is not None and run.phase is not Phase.OVER:
            self._post(run, with_id(frame, key))

    def _take_line(self, run: Run, frame: Frame | Malformed | None) -> None:
        members = [frame] if not isinstance(frame, Frame) or frame.kind != "batch" else map(_member, frame.body)
        for one in members:
            if isinstance(one, Frame) and run.phase is not Phase.OVER:
                self._take_server(run, one)
            elif isinstance(one, Malformed) and one.is_response and run.phase is not Phase.OVER:
                self._fail(run, f"the server answered with something that is not a response: {one.reason}")

    def _take_server(self, run: Run, frame: Frame) -> None:
        if frame.kind == "request":
            self._take_question(run, frame)
        elif frame.kind == "notification":
            self._post(None, frame.raw)
        elif run.phase is Phase.OPENING:
            self._take_opening(run, frame)
        elif _answers(frame, run.frame):
            if run.frame.method == "logging/setLevel" and frame.kind == "result":
                self._level = params_of(_body(run.frame)).get("level")
            self._post(None, frame.raw)
            self._end(run)

    def _take_question(self, run: Run, frame: Frame) -> None:
        """Pass a server's request on, under an id that no other server of this session uses."""
        assert frame.key is not None
        if frame.method == "ping":
            self._post(run, encode_result(frame.key, {}))
        elif run.phase is Phase.OPENING:
            self._post(run, encode_error(frame.key, -32600, "expected the answer to initialize first"))
        elif len(self._asked) >= _QUESTIONS:
            reason = f"more than {_QUESTIONS} requests of servers are unanswered"
            self._post(run, encode_error(frame.key, CONNECTION_CLOSED, reason))
        else:
            self._questions += 1
            key = b"%d" % self._questions
            self._asked[key] = run, frame.key
            meta = params_of(_body(frame)).get("_meta")
            if isinstance(meta, dict) and "progressToken" in meta and len(run.tokens) < _QUESTIONS:
                run.tokens.append(meta["progressToken"])
            self._post(None, with_id(frame, key))

    def _take_opening(self, run: Run, frame: Frame) -> None:
        first = run.frame.method == "initialize"
        opening = run.frame if first else self._initialize
        assert opening is not None
        if frame.key is not None and not _answers(frame, opening):
            return
        if first:
            if frame.kind == "result":
                self._initialize = opening
                frame = _without_lasting(frame)
            self._post(None, frame.raw)
            self._end(run)
        elif frame.kind == "error":
            error = object_in(_body(frame), "error")
            message = f"a fresh server refused initialize: {error.get('message')}"
            self._post(None, encode_error(run.frame.key, CONNECTION_CLOSED, message))
            self._end(run)
        else:
            run.phase = Phase.WORKING
            self._post(run, _INITIALIZED)
            if self._level is not None:
                params = {"level": self._level}
                level = {"jsonrpc": "2.0", "id": _LEVEL_ID, "method": "logging/setLevel", "params": params}
                self._post(run, encode_line(level))
            self._post(run, run.frame.raw)

    def _fail(self, run: Run, reason: str) -> None:
        self._post(None, encode_error(run.frame.key, CONNECTION_CLOSED, reason, {"method": run.frame.method}))
        self._end(run)

    def _end(self, run: Run) -> None:
        run.phase = Phase.OVER
        self.runs.pop(run, None)
        for key in [key for key, (asking, _) in self._asked.items() if asking is run]:
            del self._asked[key]
            params = {"requestId": decode(key), "reason": "the server that asked is gone"}
            frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._post(None, encode_line(frame))  # or the session would wait for its client for ever
        self._post(run, b"")

    def _post(self, to: Run | None, line: bytes) -> None:
        self._out.append((to, line))

    def _take_out(self) -> Deliveries:
        out, self._out = self._out, []
        return out


def _member(value: Any) -> Frame | Malformed:
    return classify(encode_line(value), value)


def _body(frame: Frame) -> Any:
    if frame.body is not None:
        return frame.body
    try:
        return decode(frame.raw)
    except ValueError:  # whoever it is passed on to will say so
        return {}


def _answers(answer: Frame, request: Frame) -> bool:
    return answer.key is not None and request.key in (answer.key, twin_of(answer.key))


def _without_lasting(frame: Frame) -> Frame:
    body = _body(frame)
    if not body:  # it cannot be read: whoever asked says so
        return frame
    capabilities = object_in(object_in(body, "result"), "capabilities")
    for path in _NOT_OFFERED:
        name, _, flag = path.partition(".")
        object_in(capabilities, name).pop(flag, None)
    return frame._replace(raw=encode_line(body), body=body)
