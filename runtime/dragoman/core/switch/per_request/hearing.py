"""What a client hears of a per-request server outside of its calls: the streams of one `ListenStream`, carried out.

Lives here: sending `subscriptions/listen`, and what comes on it. Must not: decide which streams there are
(`core.bridge.listening`). Made by `switch`.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Any

from dragoman.core.bridge.listening import AnswerClient, CloseListen, Command, ListenStream, OpenListen, TellClient
from dragoman.core.calls import Call
from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.commands import Alarm
from dragoman.core.edges.per_request import Lent
from dragoman.core.envelope import Frame, error_frame, notification_frame, result_frame
from dragoman.core.methods import ACKNOWLEDGED, CANCELLED, LISTEN
from dragoman.core.switch.per_request.hop import Hop

logger = logging.getLogger("dragoman.session")


class ClientNotices:
    """The streams of notifications of one client.

    Args:
        hop: The way between client and server.
        capabilities: Of the server, as it discovered itself.
    """

    def __init__(self, hop: Hop, capabilities: dict[str, Any]) -> None:
        self._hop = hop
        self._listener = ListenStream(capabilities)
        self._streams: dict[int, _Stream] = {}
        self._calls: dict[bytes, Call] = {}

    def reach(self) -> None:
        """From here on the client can hear something."""
        self._carry_out(self._listener.reach(True))

    def close(self) -> None:
        """The client is gone."""
        for stream in list(self._streams.values()):
            stream.close()
        self._streams.clear()

    def take_request(self, call: Call, params: dict[str, Any]) -> None:
        """Take a request to subscribe to a resource, or to unsubscribe."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            answer = error_frame(call.key, INVALID_PARAMS, "expected uri to be a string", {"pointer": "/params/uri"})
            self._hop.front.take_answer(call, answer, own=True)
            return
        self._calls[call.key] = call
        subscribes = call.method == "resources/subscribe"
        take = self._listener.subscribe if subscribes else self._listener.unsubscribe
        self._carry_out(take(call.key, uri))

    def take_notice(self, number: int, frame: Frame) -> None:
        """Take a notification of a stream."""
        self._hop.tools.hear(frame.method)
        params = frame.body.get("params")
        if frame.method == ACKNOWLEDGED:
            granted = params.get("notifications") if isinstance(params, dict) else None
            self._carry_out(self._listener.acknowledge(number, granted, self._hop.now_s()))
        elif frame.method == CANCELLED:
            self.take_end(number, None, is_withdrawn=True)
        else:
            assert frame.method is not None
            self._carry_out(self._listener.hear(number, frame.method, params, self._hop.now_s()))

    def take_end(self, number: int, error: dict[str, Any] | None, *, is_withdrawn: bool = False) -> None:
        """Take note that a stream has ended."""
        stream = self._streams.pop(number, None)
        if stream is None:
            return
        if is_withdrawn:
            stream.close()
        self._carry_out(self._listener.end(number, self._hop.now_s(), error))

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case OpenListen(number, wanted, after_s):
                    stream = self._streams[number] = _Stream(self, self._hop, number, wanted)
                    stream.open(after_s)
                case CloseListen(number):
                    if number in self._streams:
                        self._streams.pop(number).close()
                case AnswerClient(key, refusal):
                    call = self._calls.pop(key, None)
                    if call is None:
                        continue
                    answer = result_frame(key, {})
                    if refusal is not None:
                        answer = error_frame(key, refusal.code, refusal.message, refusal.data or None)
                    self._hop.front.take_answer(call, answer, own=True)
                case TellClient(method, params):
                    self._hop.front.take_server(notification_frame(method, params))


class _Stream:
    """One `subscriptions/listen`, or one that is about to be sent."""

    hears_logs = False

    def __init__(self, hearing: ClientNotices, hop: Hop, number: int, wanted: dict[str, Any]) -> None:
        self._hearing = hearing
        self._hop = hop
        self._number = number
        self._wanted = wanted
        self._lent: Lent | None = None
        self._alarm: Alarm | None = None

    @property
    def owner(self) -> Hashable:
        """Whose it is."""
        return self._hop

    def open(self, after_s: float) -> None:
        """Send the request, after so many seconds."""
        if after_s:
            self._alarm = self._hop.schedule.after(after_s, self._send)
        else:
            self._send()

    def close(self) -> None:
        """Cancel it."""
        self._hop.schedule.stop(self._alarm)
        if self._lent is not None:
            self._hop.edge.withdraw(self._lent)

    def take_answer(self, frame: Frame) -> None:
        """The server has ended the stream, or refused it."""
        error = frame.body.get("error")
        if error is not None:
            logger.info("%s ended: %s", LISTEN, str(error.get("message"))[:200])
        self._hearing.take_end(self._number, error)

    def take_notice(self, frame: Frame) -> None:
        """A notification of this stream came."""
        self._hearing.take_notice(self._number, frame)

    def _send(self) -> None:
        self._lent = self._hop.send(self, LISTEN, {"notifications": self._wanted})
