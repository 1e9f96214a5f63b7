"""Questions of a per-request server that a client with a handshake is asked by requests: round after round.

Lives here: which questions go to the client, how many at a time, and the answers as the server gets them. Must not:
know where the questions stood: in a result (`inputs`) or in a task (`awaiting`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from dragoman.core.bridge.names import OLDER
from dragoman.core.bridge.questions import Question, describe, embed_answer, unembed
from dragoman.core.declared import find_missing, read_declared
from dragoman.core.methods import ELICITATION, ROOTS
from dragoman.errors import TranslationError, Untranslatable
from dragoman_spec import Loss, facts


class WhenUnaskable(Enum):
    """What to do about a form that the client cannot be shown.

    Attributes:
        REFUSE: End the call and name the question.
        DECLINE: Tell the server that the person declined, and let it go on without.
    """

    REFUSE = "refuse"
    DECLINE = "decline"


@dataclass(frozen=True, slots=True)
class Asked:
    """The client, as far as questions go.

    Attributes:
        revision: That it speaks.
        capabilities: As it declared them in `initialize`.
        can_ask: Whether a request can reach it while its own is open.
        roots: Its roots, if they are known and have not changed; they are not asked for again then.
        unaskable: What to do about a form that it cannot be shown.
    """

    revision: str
    capabilities: Mapping[str, Any]
    can_ask: bool = True
    roots: Sequence[Any] | None = None
    unaskable: WhenUnaskable = WhenUnaskable.REFUSE

    @property
    def takes_several(self) -> bool:
        """Whether it is asked several questions at once: clients from before elicitation are known not to cope."""
        return ELICITATION in facts(self.revision).asked


@dataclass(frozen=True, slots=True)
class Pose:
    """Ask the client these, each under its key; several at once only where there are several."""

    questions: Mapping[str, Question]


@dataclass(frozen=True, slots=True)
class Answered:
    """Everything has been answered.

    Attributes:
        responses: The answers, as `inputResponses`.
        losses: What they cannot carry.
    """

    responses: dict[str, Any]
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Something cannot be answered.

    Attributes:
        reason: For a model or a person.
        urls: What there is to visit, if that is all there was to ask, and the client can be told by an error.
    """

    reason: str
    urls: tuple[dict[str, Any], ...] = ()


Step = Pose | Answered | Refused


@dataclass(slots=True)
class Posing:
    """What a client is asked about one call.

    Attributes:
        client: Who is asked.
    """

    client: Asked
    _unasked: dict[str, Question] = field(default_factory=dict)
    _open: dict[str, Question] = field(default_factory=dict)
    _answers: dict[str, Any] = field(default_factory=dict)
    _losses: list[Loss] = field(default_factory=list)
    _visited: dict[str, None] = field(default_factory=dict)
    _is_over: bool = False

    @property
    def visited(self) -> tuple[str, ...]:
        """The names of the elicitations by URL that were accepted so far."""
        return tuple(self._visited)

    def begin(self, requests: Mapping[str, Any]) -> Step:
        """Take the questions of the next round; none is left of the one before.

        Args:
            requests: `inputRequests` of the server, each of them well formed.
        """
        self._unasked, self._open, self._answers, self._losses = {}, {}, {}, []
        for key, embedded in requests.items():
            if embedded["method"] == ROOTS and self.client.roots is not None:
                self._answers[key] = {"roots": list(self.client.roots)}
                continue
            reason = self._find_obstacle(key, embedded)
            if reason is not None and not self._declines(key, embedded):
                self._is_over = True
                urls = () if self.client.can_ask else self._collect_urls(requests)
                return Refused(f"{describe(embedded)}. It cannot be asked: {reason}", urls)
        return self._go_on()

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
            self._is_over = True
            return Refused(_explain_error(question.method, body["error"]))
        try:
            answer = embed_answer(question.method, body["result"], self.client.revision)
        except TranslationError as error:
            self._is_over = True
            return Refused(f"The client's answer to {question.method} cannot be passed on: {error}")
        self._note_visit(question, answer.result)
        self._answers[key] = answer.result
        self._losses += answer.losses
        return None if self._open else self._go_on()

    def _go_on(self) -> Step:
        if self._unasked:
            keys = list(self._unasked) if self.client.takes_several else [next(iter(self._unasked))]
            self._open = {key: self._unasked.pop(key) for key in keys}
            return Pose(dict(self._open))
        return Answered(self._answers, tuple(self._losses))

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
        if self.client.unaskable is not WhenUnaskable.DECLINE or embedded["method"] != ELICITATION:
            return False
        self._answers[key] = {"action": "decline"}
        return True

    def _collect_urls(self, requests: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Give the URLs to open, if there is nothing else to ask and the client knows the error that says so."""
        if self.client.revision != OLDER or "elicitation.url" not in read_declared(self.client.capabilities):
            return ()
        asked = [embedded for embedded in requests.values() if (embedded.get("params") or {}).get("mode") == "url"]
        return tuple(unembed(embedded, OLDER).params or {} for embedded in asked) if len(asked) == len(requests) else ()

    def _note_visit(self, question: Question, answer: Mapping[str, Any]) -> None:
        """Note that the client was sent to a URL: it is to hear when that is done."""
        elicitation = (question.params or {}).get("elicitationId")
        if isinstance(elicitation, str) and answer.get("action") == "accept":
            self._visited[elicitation] = None


def _explain_error(method: str, error: Mapping[str, Any]) -> str:
    return f"The client did not answer {method}: {str(error.get('message'))[:1000]} ({str(error.get('code'))[:40]})"
