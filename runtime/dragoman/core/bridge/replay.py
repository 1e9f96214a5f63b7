"""A question in the middle of a call that may be made twice: ask in a result, and make the call again with the answer.

Lives here: one call of that kind, between two results. Must not: keep anything from one request to the next; all of it
stands, sealed, in the client's state, so it survives restarts and is the same in every replica. Whoever drives it makes
the server's call, cancels it where a question is new, and carries out what is returned.

Theory of operation. What the server asked so far, as digests, and what the client answered are recorded. The call made
again asks the same, in the same order, and is answered from the record; the first question that is not in it ends the
call again, and is the next round. A server that asks something else than before is refused: the answers were given to
other questions. Only what may be run twice may be replayed (`strategy`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.bridge.capabilities import spell_required
from dragoman.core.bridge.names import MISSING_CLIENT_CAPABILITY
from dragoman.core.bridge.questions import Question, Reply, embed, unembed_answer
from dragoman.core.bridge.seal import LONGEST_TOKEN
from dragoman.core.bridge.state import Binding, Keeper, Reason, State, digest_params, refuse
from dragoman.core.declared import find_missing, read_declared
from dragoman.errors import RemoteProtocolError, TranslationError

KIND: Final = "replay"
"""The kind of state that stands for recorded answers."""

_KEY: Final = "question"


@dataclass(slots=True)
class Replay:
    """One attempt at a call.

    Attributes:
        revision: Of the server.
        capabilities: As this request declared them.
        recorded: What was asked in earlier attempts, by digest, and what was answered.
    """

    revision: str
    capabilities: Mapping[str, Any]
    recorded: list[tuple[str, Any]] = field(default_factory=list)
    _used: int = 0

    def ask(self, method: str, params: Mapping[str, Any] | None) -> Reply | Question:
        """Take the server's next question.

        Args:
            method: Of the server's request; one that `is_question`.
            params: Of the server's request.

        Returns:
            The recorded answer, in the server's form; or the question, which is new: the call is to be cancelled, and
            the client to be asked by `compose`.

        Raises:
            RemoteProtocolError: The server asks something else than before, or what was recorded does not answer it
                (-32602), or it asks what this client did not declare (-32021). The call is to be cancelled.
            TranslationError: The question is not one of the server's revision.
        """
        question = embed(method, params, self.revision)
        if self._used < len(self.recorded):
            digest, answer = self.recorded[self._used]
            self._used += 1
            if digest != _digest(question):
                raise refuse(Reason.OTHER_QUESTION)
            try:
                return unembed_answer(question, answer, self.revision)
            except TranslationError:
                raise refuse(Reason.MALFORMED, {"pointer": f"/params/inputResponses/{_KEY}-{self._used}"}) from None
        missing = find_missing(method, question.params or {}, read_declared(self.capabilities))
        if missing is not None:
            reason = f"the server asks {method}, and the client did not declare the capability {missing}"
            data = {"requiredCapabilities": spell_required(missing)}
            raise RemoteProtocolError(MISSING_CLIENT_CAPABILITY, reason, data)
        return question

    def compose(
        self, question: Question, keeper: Keeper, binding: Binding, now_s: float, nonce: bytes
    ) -> dict[str, Any] | None:
        """Return the result that asks the client a new question.

        Args:
            question: That `ask` returned.
            keeper: Writes the state.
            binding: The client's request.
            now_s: The time.
            nonce: Random bytes for the state.

        Returns:
            The result; None where what is recorded has become longer than a state may be.
        """
        record = [*self.recorded, (_digest(question), None)]
        state = keeper.write(State(KIND, extra=record), binding, now_s, nonce)
        if len(state) > LONGEST_TOKEN:
            return None
        asked = {"method": question.method} | ({} if question.params is None else {"params": question.params})
        return {
            "resultType": "input_required",
            "inputRequests": {f"{_KEY}-{len(record)}": asked},
            "requestState": state,
        }


def resume_replay(state: State, answers: object, revision: str, capabilities: Mapping[str, Any]) -> Replay:
    """Begin the next attempt at a call.

    Args:
        state: That the retry brought, checked by the keeper.
        answers: Its `inputResponses`.
        revision: Of the server.
        capabilities: As the retry declares them.

    Raises:
        RemoteProtocolError: The answer is not one (-32602).
    """
    *recorded, (digest, _) = [(digest, answer) for digest, answer in state.extra]
    key = f"{_KEY}-{len(recorded) + 1}"
    if not isinstance(answers, dict | None):
        raise refuse(Reason.MALFORMED, {"pointer": "/params/inputResponses"})
    if answers is None or key not in answers:
        return Replay(revision, capabilities, recorded)  # the question is asked again
    if not isinstance(answers[key], dict):
        raise refuse(Reason.MALFORMED, {"pointer": f"/params/inputResponses/{key}"})
    return Replay(revision, capabilities, [*recorded, (digest, answers[key])])


def _digest(question: Question) -> str:
    return digest_params({"method": question.method, "params": question.params})
