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

from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.envelope import Refusal
from dragoman.core.rules.asking import CallOwner, RefusedQuestion, read_question, refuse_question
from dragoman.core.rules.questions import Question, Reply, unembed_answer
from dragoman.core.rules.state import LONGEST_TOKEN, Keeper, Reason, State, digest_params, refuse
from dragoman.errors import RemoteProtocolError, TranslationError

KIND: Final = "replay"
"""The kind of state that stands for recorded answers."""

_KEY: Final = "question"


@dataclass(slots=True)
class Replay:
    """One attempt at a call.

    Attributes:
        caller: Whose call it is.
        recorded: What was asked in earlier attempts, by digest, and what was answered.
    """

    caller: CallOwner
    recorded: list[tuple[str, Any]] = field(default_factory=list)
    _used: int = 0

    def take_question(self, method: str, params: Any) -> Reply | Question | RefusedQuestion:
        """Take the server's next question.

        Returns:
            The recorded answer, in the server's form; the question, where it is new: the call is to be cancelled, and
            the client to be asked by `compose`; or why there is neither, such as that the server asks something else
            than before.
        """
        question = read_question(self.caller, method, params)
        if isinstance(question, RefusedQuestion) or self._used == len(self.recorded):
            return question
        digest, answer = self.recorded[self._used]
        self._used += 1
        if digest != _digest(question):
            return _end_call(method, refuse(Reason.OTHER_QUESTION))
        try:
            return unembed_answer(question, answer, self.caller.revision)
        except TranslationError:
            pointer = f"/params/inputResponses/{_KEY}-{self._used}"
            return _end_call(method, refuse(Reason.MALFORMED, {"pointer": pointer}))

    def compose(
        self, question: Question, keeper: Keeper, now_s: float, nonce: bytes
    ) -> dict[str, Any] | RefusedQuestion:
        """Return the result that asks the client a new question, unless what is recorded is longer than a state may be.

        Args:
            question: That `take_question` returned.
            keeper: Writes the state.
            now_s: The time.
            nonce: Random bytes for the state.
        """
        record = [*self.recorded, (_digest(question), None)]
        state = keeper.write(State(KIND, extra=record), self.caller.binding, now_s, nonce)
        if len(state) > LONGEST_TOKEN:
            return refuse_question("what it has answered so far is too long to be carried along")
        asked = {"method": question.method} | ({} if question.params is None else {"params": question.params})
        return {
            "resultType": "input_required",
            "inputRequests": {f"{_KEY}-{len(record)}": asked},
            "requestState": state,
        }


def resume_replay(state: State, answers: object, caller: CallOwner) -> Replay:
    """Begin the next attempt at a call.

    Args:
        state: That the retry brought, checked by the keeper.
        answers: Its `inputResponses`.
        caller: Whose call it is, as the retry says.

    Raises:
        RemoteProtocolError: The answer is not one (-32602).
    """
    *recorded, (digest, _) = [(digest, answer) for digest, answer in state.extra]
    key = f"{_KEY}-{len(recorded) + 1}"
    if not isinstance(answers, dict | None):
        raise refuse(Reason.MALFORMED, {"pointer": "/params/inputResponses"})
    if answers is None or key not in answers:
        return Replay(caller, recorded)  # the question is asked again
    if not isinstance(answers[key], dict):
        raise refuse(Reason.MALFORMED, {"pointer": f"/params/inputResponses/{key}"})
    return Replay(caller, [*recorded, (digest, answers[key])])


def _end_call(method: str, error: RemoteProtocolError) -> RefusedQuestion:
    """End the call with this error."""
    reply = Refusal(INTERNAL_ERROR, error.message, {"method": method})
    return RefusedQuestion(reply, Refusal(error.code, error.message, error.data or {}))


def _digest(question: Question) -> str:
    return digest_params({"method": question.method, "params": question.params})
