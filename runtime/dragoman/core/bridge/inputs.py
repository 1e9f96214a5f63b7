"""A per-request server wants input before it answers; its client has a handshake and is asked by requests.

Lives here: one call of such a client, from the server's first result to the last. Must not: send, wait, or know ids;
whoever drives it gives each request an id of its own and sleeps as long as it is told. Called by `core.switch`.

Theory of operation. A result that wants input ends the request; the questions in it are posed to the client while its
own request is still open; their answers go back with the same request under a new id, and with them, unread, the state
that the server gave (2026-07-28/basic/patterns/mrtr). So a call is a loop of rounds, and a round is: questions out,
answers in, retry. A round without questions only waits (`core.rounds`). A question that the client cannot be asked ends
the call with a readable reason: as the failed result of a tool, which a model sees, else as an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.bridge.names import URL_ELICITATION_REQUIRED
from dragoman.core.bridge.posing import Answered, Asked, Pose, Posing
from dragoman.core.bridge.posing import Step as PosingStep
from dragoman.core.bridge.results import ResultType, read_type
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.rounds import Rounds
from dragoman.errors import RemoteProtocolError
from dragoman_spec import Loss

_OF_RETRIES: Final = ("inputResponses", "requestState")


@dataclass(frozen=True, slots=True)
class Retry:
    """Send the request again with these params, after so many seconds; under another id."""

    params: dict[str, Any]
    after_s: float = 0.0
    losses: tuple[Loss, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishCall:
    """Answer the client with this result, which is of 2026-07-28; then say that these elicitations are complete."""

    result: Mapping[str, Any]
    elicitations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailCall:
    """Answer the client with this error."""

    code: int
    message: str
    data: Any = None


Step = Pose | Retry | FinishCall | FailCall


@dataclass(slots=True)
class InputLoop:
    """One call.

    Attributes:
        method: Of the client's request.
        params: As they went to the server the first time.
        client: Who is asked.
    """

    method: str
    params: Mapping[str, Any]
    client: Asked
    _rounds: Rounds = field(default_factory=Rounds)
    _pause_s: float = 0.0
    _state: str | None = None
    _posing: Posing = field(init=False)

    def __post_init__(self) -> None:
        self._posing = Posing(self.client)

    def take_result(self, result: Mapping[str, Any]) -> Step:
        """Take a result of the server.

        Returns:
            What to do next.
        """
        try:
            kind = read_type(result, self.method)
        except RemoteProtocolError as error:
            return FailCall(error.code, error.message, error.data)
        if kind is ResultType.COMPLETE:
            return FinishCall(result, self._posing.visited)
        self._state = result.get("requestState")
        requests = result.get("inputRequests") or {}
        pause_s = self._rounds.note(bool(requests))
        if pause_s is None:
            return self._give_up(f"The server asked for input {self._rounds.count} times without coming to an end.")
        self._pause_s = pause_s
        return self._follow(self._posing.begin(requests))

    def take_answer(self, key: str, body: Mapping[str, Any]) -> Step | None:
        """Take the client's answer to a question.

        Args:
            key: Of the question.
            body: The JSON-RPC response.

        Returns:
            What to do next; None while other questions are open, and for what nobody asked.
        """
        step = self._posing.take_answer(key, body)
        return None if step is None else self._follow(step)

    def _follow(self, step: PosingStep) -> Step:
        if isinstance(step, Pose):
            return step
        if isinstance(step, Answered):
            return self._retry(step)
        if step.urls:
            message = "The client has to open a URL before this can go on."
            return FailCall(URL_ELICITATION_REQUIRED, message, {"elicitations": list(step.urls)})
        return self._give_up(step.reason)

    def _retry(self, answered: Answered) -> Retry:
        params = {name: value for name, value in self.params.items() if name not in _OF_RETRIES}
        if answered.responses:
            params["inputResponses"] = answered.responses
        if self._state is not None:
            params["requestState"] = self._state
        return Retry(params, self._pause_s, answered.losses)

    def _give_up(self, reason: str) -> Step:
        """End the call: a model reads why a tool failed, a program reads an error."""
        if self.method == "tools/call":
            return FinishCall(failed_tool(reason), self._posing.visited)
        return FailCall(INTERNAL_ERROR, reason, {"method": self.method})


def failed_tool(reason: str) -> dict[str, Any]:
    """Give the result of a tool that failed for this reason."""
    return {"resultType": "complete", "content": [{"type": "text", "text": reason}], "isError": True}
