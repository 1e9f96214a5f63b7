"""What a client with a handshake is asked about one of its calls: by requests, on the stream of that call.

Lives here: the questions that are not answered. Must not: decide what is asked (`core.bridge`). Made by `running` and
`waiting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.core.bridge.questions import Question
from dragoman.core.calls import Call
from dragoman.core.envelope import Frame, request_frame
from dragoman.core.exact_json import decode, encode
from dragoman.core.methods import ROOTS

if TYPE_CHECKING:
    from dragoman.core.switch.per_request.switch import PerRequest


class PosedQuestions:
    """The questions about one call.

    Args:
        switch: Whose client is asked.
        call: The client's request.
        then: What to do with the answer to the question of this name.
    """

    __slots__ = ("_call", "_posed", "_switch", "_then")

    def __init__(self, switch: PerRequest, call: Call, then: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._switch = switch
        self._call = call
        self._then = then
        self._posed: dict[bytes, tuple[str, str]] = {}  # by id: the method and the name within the call

    def pose(self, name: str, question: Question) -> None:
        """Ask the client."""
        self._switch.report(question.method, question.losses)
        key = self._switch.next_question(self)
        self._posed[key] = question.method, name
        self._switch.pose(_write(key, question, self._call.key))

    def take_reply(self, key: bytes, body: Mapping[str, Any]) -> None:
        """The client has answered, or somebody did in its place."""
        method, name = self._posed.pop(key, ("", ""))
        if method == ROOTS:
            self._switch.note_roots(body.get("result"))
        if method:
            self._then(name, body)

    def withdraw(self, reason: str) -> None:
        """Take back what is not answered."""
        for key in list(self._posed):
            self._switch.withdraw(key, reason)
        self._posed.clear()


def _write(key: bytes, question: Question, stream: bytes) -> Frame:
    frame = request_frame(key, question.method, question.params or {})
    if question.params is None:
        body = {"jsonrpc": "2.0", "id": decode(key), "method": question.method}
        frame = frame._replace(raw=encode(body) + b"\n")
    return frame._replace(stream=stream)
