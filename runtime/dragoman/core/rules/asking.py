"""The questions of a server with a handshake in the middle of one call, and the answers of its per-request client.

Lives here: which questions are open, under which keys, and whether they may be put. Must not: know how they reach the
client: in a result, or in what is told of a task (`promoted`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dragoman.core.codes import INTERNAL_ERROR, METHOD_NOT_FOUND
from dragoman.core.declared import find_missing, read_declared
from dragoman.core.envelope import Refusal
from dragoman.core.rules.questions import Question, Reply, embed, is_question, unembed_answer
from dragoman.core.rules.state import Binding, Reason, refuse
from dragoman.errors import TranslationError
from dragoman_spec import Loss
from dragoman_spec.record import record


class CallOwner(NamedTuple):
    """Whose call it is that a server asks about.

    Attributes:
        binding: The client's request.
        capabilities: As this request declared them.
        revision: Of the server.
    """

    binding: Binding
    capabilities: Mapping[str, Any]
    revision: str


@record
class RefusedQuestion:
    """A question that is not put to the client.

    Attributes:
        reply: The error that answers the server.
        error: The error that ends the call for the client, which is then to be cancelled; None where it can go on.
        missing: The capability that the client did not declare, where that is the reason.
    """

    reply: Refusal
    error: Refusal | None
    missing: str | None = None


class Answered(NamedTuple):
    """The result that answers a request of the server."""

    id: bytes
    method: str
    result: dict[str, Any]


class _Open(NamedTuple):
    id: bytes
    question: Question


@dataclass(slots=True)
class OpenQuestions:
    """The questions of one call that are not answered.

    Attributes:
        caller: Whose call it is.
        most: How many there may be.
        open: They, by the names that the client knows them by.
    """

    caller: CallOwner
    most: int = 16
    open: dict[str, _Open] = field(default_factory=dict)
    _asked: int = 0

    def __len__(self) -> int:
        return len(self.open)

    def __contains__(self, question_id: object) -> bool:
        return any(asked.id == question_id for asked in self.open.values())

    def add_question(self, question_id: bytes, method: str, params: Any) -> Question | RefusedQuestion:
        """Take a request of the server.

        Args:
            question_id: Its id, as canonical JSON.
            method: What it asks.
            params: Of it, in the server's revision.

        Returns:
            The question as the client gets it; or why it does not.
        """
        if len(self.open) >= self.most:
            return refuse_question(f"{self.most} questions of this call wait for an answer already")
        question = read_question(self.caller, method, params)
        if isinstance(question, Question):
            self._asked += 1  # "each request key MUST be unique over the lifetime of a single task"
            self.open[f"question-{self._asked}"] = _Open(question_id, question)
        return question

    def spell(self) -> dict[str, Any]:
        """Return what is open as `inputRequests`."""
        return {
            key: {"method": asked.question.method}
            | ({} if asked.question.params is None else {"params": asked.question.params})
            for key, asked in self.open.items()
        }

    def take_answers(self, answers: object) -> tuple[Sequence[Answered], tuple[Loss, ...]]:
        """Take `inputResponses` of the client; what answers nothing that is open is ignored.

        Returns:
            What answers the server's requests, and the losses.

        Raises:
            RemoteProtocolError: An answer is not one to its question (-32602); then none of them counts.
        """
        if answers is None:
            return [], ()
        if not isinstance(answers, dict):
            raise refuse(Reason.MALFORMED, {"pointer": "/params/inputResponses"})
        replies = {key: self._read(key, answers[key]) for key in self.open if key in answers}
        losses = tuple(loss for reply in replies.values() for loss in reply.losses)
        answered = [(self.open.pop(key), reply.result) for key, reply in replies.items()]
        return [Answered(asked.id, asked.question.method, result) for asked, result in answered], losses

    def _read(self, key: str, answer: object) -> Reply:
        where = {"pointer": f"/params/inputResponses/{key}"}
        if not isinstance(answer, dict):
            raise refuse(Reason.MALFORMED, where)
        try:
            return unembed_answer(self.open[key].question, answer, self.caller.revision)
        except TranslationError:
            raise refuse(Reason.MALFORMED, where) from None

    def withdraw(self, question_id: bytes) -> None:
        """Record that the server does not want an answer to this any more."""
        self.open = {key: asked for key, asked in self.open.items() if asked.id != question_id}

    def clear(self) -> list[bytes]:
        """Forget all questions; give the ids of the server's requests."""
        asked, self.open = self.open, {}
        return [one.id for one in asked.values()]


def read_question(caller: CallOwner, method: str, params: Any) -> Question | RefusedQuestion:
    """Read a request of the server, in its revision, as a question about this call; or say why it cannot be put."""
    if not is_question(method):
        return RefusedQuestion(Refusal(METHOD_NOT_FOUND, f"clients cannot be asked {method}", {"method": method}), None)
    try:
        question = embed(method, params, caller.revision)
    except TranslationError as error:
        return RefusedQuestion(Refusal(error.code, str(error), error.data), refuse_question(str(error)).error)
    missing = find_missing(method, question.params or {}, read_declared(caller.capabilities))
    return question if missing is None else refuse_undeclared(method, missing)


def refuse_question(reason: str) -> RefusedQuestion:
    """Turn a question away, and end its call."""
    refusal = Refusal(INTERNAL_ERROR, f"the client cannot be asked: {reason}", {})
    return RefusedQuestion(refusal, refusal)


def refuse_undeclared(method: str, missing: str) -> RefusedQuestion:
    """Turn away a question that its client has said it cannot answer: that is between us and the server."""
    reason = f"the client did not declare the capability {missing}"
    return RefusedQuestion(Refusal(METHOD_NOT_FOUND, reason, {"method": method}), None, missing)
