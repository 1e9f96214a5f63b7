"""A per-request server wants input before it answers; its client has a handshake and is asked by requests.

Lives here: one call of such a client, from the server's first result to the last. Must not: send, wait, or know ids;
whoever drives it gives each request an id of its own and sleeps as long as it is told. Called by `core.edges`.

Theory of operation. A result that wants input ends the request; the questions in it are posed to the client while its
own request is still open; their answers go back with the same request under a new id, and with them, unread, the
state that the server gave (2026-07-28/basic/patterns/mrtr). So a call is a loop of rounds, and a round is: questions
out, answers in, retry. A round without questions only waits. Both kinds are counted, or a server could keep a client
for ever. A question that the client cannot be asked ends the call with a readable reason: as the failed result of a
tool, which a model sees, else as an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from dragoman.core.bridge.names import (
    INTERNAL_ERROR,
    OLDER,
    URL_ELICITATION_REQUIRED,
)
from dragoman.core.bridge.questions import ELICITATION, ROOTS, Question, describe, embed_answer, unembed
from dragoman.core.bridge.results import ResultType, read_type
from dragoman.core.switch.shared.declared import find_missing, read_declared
from dragoman.errors import RemoteProtocolError, TranslationError, Untranslatable
from dragoman_spec import Loss, facts

_ANSWERS: tuple[str, ...] = ("inputResponses", "requestState")


class WhenUnaskable(Enum):
    """What to do about a form that the client cannot be shown.

    Attributes:
        REFUSE: End the call and name the question.
        DECLINE: Tell the server that the person declined, and let it go on without.
    """

    REFUSE = "refuse"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a call may go on.

    Attributes:
        rounds: How many results in a row may want input.
        waits: How many of them in a row may have no question.
        first_wait_s: How long to wait after the first of those, in seconds; each time twice as long.
        longest_wait_s: But never longer than this.
    """

    rounds: int = 10
    waits: int = 3
    first_wait_s: float = 0.25
    longest_wait_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The client, as far as questions go.

    Attributes:
        revision: That it speaks.
        capabilities: As it declared them in `initialize`.
        can_ask: Whether a request can reach it while its own is open.
        roots: Its roots, if they are known and have not changed; they are not asked for again then.
    """

    revision: str
    capabilities: Mapping[str, Any]
    can_ask: bool = True
    roots: Sequence[Any] | None = None

    @property
    def takes_several(self) -> bool:
        """Whether it is asked several questions at once: clients from before elicitation are known not to cope."""
        return "elicitation/create" in facts(self.revision).asked


class Pose(NamedTuple):
    """Ask the client these, each under its key; several at once only where there are several."""

    questions: Mapping[str, Question]


class Retry(NamedTuple):
    """Send the request again with these params, after so many seconds; under another id."""

    params: dict[str, Any]
    after_s: float = 0.0
    losses: tuple[Loss, ...] = ()


class Finish(NamedTuple):
    """Answer the client with this result, which is of 2026-07-28; then say that these elicitations are complete."""

    result: Mapping[str, Any]
    elicitations: tuple[str, ...] = ()


class Fail(NamedTuple):
    """Answer the client with this error."""

    code: int
    message: str
    data: dict[str, Any]


Step = Pose | Retry | Finish | Fail


@dataclass(slots=True)
class InputLoop:
    """One call.

    Attributes:
        method: Of the client's request.
        params: As they went to the server the first time.
        client: Who is asked.
        limits: How long it may go on.
        unaskable: What to do about a form that the client cannot be shown.
    """

    method: str
    params: Mapping[str, Any]
    client: Asked
    limits: Limits = Limits()
    unaskable: WhenUnaskable = WhenUnaskable.REFUSE
    _rounds: int = 0
    _waits: int = 0
    _state: str | None = None
    _unasked: dict[str, Question] = field(default_factory=dict)
    _open: dict[str, Question] = field(default_factory=dict)
    _answers: dict[str, Any] = field(default_factory=dict)
    _losses: list[Loss] = field(default_factory=list)
    _visited: dict[str, None] = field(default_factory=dict)
    _is_over: bool = False

    @property
    def open_questions(self) -> Sequence[str]:
        """The keys of the questions that the client has not answered: to be withdrawn when the call ends before."""
        return tuple(self._open)

    def take_result(self, result: Mapping[str, Any]) -> Step:
        """Take a result of the server.

        Returns:
            What to do next.
        """
        try:
            kind = read_type(result, self.method)
        except RemoteProtocolError as error:
            return Fail(error.code, error.message, error.data or {})
        if kind is ResultType.COMPLETE:
            return Finish(result, tuple(self._visited))
        self._rounds += 1
        self._state = result.get("requestState")
        requests = result.get("inputRequests") or {}
        self._waits = 0 if requests else self._waits + 1
        if self._rounds > self.limits.rounds or self._waits > self.limits.waits:
            return self._give_up(f"The server asked for input {self._rounds} times without coming to an end.")
        self._unasked, self._open, self._answers, self._losses = {}, {}, {}, []
        return self._prepare(requests) or self._go_on()

    def take_answer(self, key: str, body: Mapping[str, Any]) -> Step | None:
        """Take the client's answer to a question.

        Args:
            key: Of the question.
            body: The JSON-RPC response.

        Returns:
            What to do next; None while other questions are open, and for what nobody asked.
        """
        question = self._open.pop(key, None)
        if question is None or self._is_over:
            return None
        if "error" in body:
            return self._give_up(_explain_error(question.method, body["error"]))
        try:
            answer = embed_answer(question.method, body["result"], self.client.revision)
        except TranslationError as error:
            return self._give_up(f"The client's answer to {question.method} cannot be passed on: {error}")
        self._note_visit(question, answer.result)
        self._answers[key] = answer.result
        self._losses += answer.losses
        return None if self._open else self._go_on()

    def _prepare(self, requests: Mapping[str, Any]) -> Step | None:
        """Turn questions into what the client is asked; give the end of the call where one cannot be."""
        refused: dict[str, str] = {}
        for key, embedded in requests.items():
            if embedded["method"] == ROOTS and self.client.roots is not None:
                self._answers[key] = {"roots": list(self.client.roots)}
                continue
            reason = self._find_obstacle(key, embedded)
            if reason is not None and not self._declines(key, embedded):
                refused[key] = reason
        if not refused:
            return None
        if not self.client.can_ask and (urls := self._collect_urls(requests)):
            message = "The client has to open a URL before this can go on."
            return Fail(URL_ELICITATION_REQUIRED, message, {"elicitations": urls})
        key, reason = next(iter(refused.items()))
        return self._give_up(f"{describe(requests[key])}. It cannot be asked: {reason}")

    def _find_obstacle(self, key: str, embedded: Mapping[str, Any]) -> str | None:
        missing = find_missing(
            embedded["method"], embedded.get("params") or {}, read_declared(self.client.capabilities)
        )
        if missing is not None:
            return f"the client did not declare the capability {missing}."
        try:
            question = unembed(embedded, self.client.revision)
        except Untranslatable as error:
            return error.reason
        except TranslationError as error:
            return str(error)
        if not self.client.can_ask:
            return "no request can reach the client during a call."
        self._unasked[key] = question
        return None

    def _declines(self, key: str, embedded: Mapping[str, Any]) -> bool:
        if self.unaskable is not WhenUnaskable.DECLINE or embedded["method"] != ELICITATION:
            return False
        self._answers[key] = {"action": "decline"}
        return True

    def _collect_urls(self, requests: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Give the URLs to open, if there is nothing else to ask and the client knows the error that says so."""
        declared = read_declared(self.client.capabilities)
        if self.client.revision != OLDER or "elicitation.url" not in declared:
            return []
        asked = [embedded for embedded in requests.values() if (embedded.get("params") or {}).get("mode") == "url"]
        return [unembed(embedded, OLDER).params or {} for embedded in asked] if len(asked) == len(requests) else []

    def _go_on(self) -> Step:
        if self._unasked:
            keys = list(self._unasked) if self.client.takes_several else [next(iter(self._unasked))]
            self._open = {key: self._unasked.pop(key) for key in keys}
            return Pose(dict(self._open))
        params = {name: value for name, value in self.params.items() if name not in _ANSWERS}
        if self._answers:
            params["inputResponses"] = self._answers
        if self._state is not None:
            params["requestState"] = self._state
        wait_s = self.limits.first_wait_s * 2 ** (self._waits - 1) if self._waits else 0.0
        return Retry(params, min(wait_s, self.limits.longest_wait_s), tuple(self._losses))

    def _note_visit(self, question: Question, answer: Mapping[str, Any]) -> None:
        """Note that the client was sent to a URL: it is to hear when that is done."""
        elicitation = (question.params or {}).get("elicitationId")
        if isinstance(elicitation, str) and answer.get("action") == "accept":
            self._visited[elicitation] = None

    def _give_up(self, reason: str) -> Step:
        """End the call: a model reads why a tool failed, a program reads an error."""
        self._is_over = True
        if self.method == "tools/call":
            content = [{"type": "text", "text": reason}]
            return Finish({"resultType": "complete", "content": content, "isError": True}, tuple(self._visited))
        return Fail(INTERNAL_ERROR, reason, {"method": self.method})


def _explain_error(method: str, error: Mapping[str, Any]) -> str:
    return f"The client did not answer {method}: {str(error.get('message'))[:1000]} ({str(error.get('code'))[:40]})"
