"""A server with a handshake asks in the middle of a call, and its per-request client is asked by a result.

Lives here: the calls that wait for such a client to come back. Must not: send, cancel, or know connections; whoever
drives it says when questions, retries and answers come, and carries out what is returned. Called by `core.switch`.

Theory of operation. The client's request is answered with the server's questions and a sealed state; the server's call
stays open. Between requests a call is *parked*: nobody of the client's is there. The retry brings the state back, is
held against everything that the state is bound to, and hands the answers to the server; from then on the client's new
request is the one that waits. A state is good for one retry. What the server does while a call is parked (it asks
more, takes a question back, ends) is kept for the retry. A call whose client does not come back expires, and its server
is told; how many are parked has a limit. Nothing of this survives a restart, and a retry that comes later hears so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from dragoman.core.bridge.asking import AskedCall, OpenQuestions, Turned, turn
from dragoman.core.bridge.questions import Question
from dragoman.core.bridge.state import Keeper, Moment, Reason, State, refuse
from dragoman.core.places import has_place
from dragoman_spec import Loss

KIND: Final = "park"
"""The kind of state that stands for a parked call."""


class Resumed(NamedTuple):
    """A call whose client has come back.

    Attributes:
        call: Which.
        replies: What answers the server's questions, by the ids of its requests.
        outcome: The server's response, if it came while nobody was there; the call has ended then.
        asks_again: Whether questions are open that this retry did not answer: the client is to be asked at once.
        losses: Of the answers.
    """

    call: str
    replies: Sequence[tuple[bytes, dict[str, Any]]]
    outcome: Any
    asks_again: bool
    losses: tuple[Loss, ...]


class ExpiredCall(NamedTuple):
    """A call whose client did not come back.

    Attributes:
        call: Which.
        is_running: Whether the server is still at it, and is to be told that nobody waits any more.
    """

    call: str
    is_running: bool


@dataclass(slots=True)
class _Call:
    questions: OpenQuestions
    round: int = 0
    expires_s: float | None = None
    """When it is given up; None while a request of the client is there."""
    has_ended: bool = False
    outcome: Any = None

    @property
    def is_attended(self) -> bool:
        return self.expires_s is None


@dataclass(slots=True)
class Parking:
    """The calls of one instance whose servers have asked something.

    Attributes:
        keeper: Writes and reads their states; it says how long a parked call is kept, too.
        most_calls: How many there may be.
        most_questions: How many questions of one call may be open.
        shares: Whether these are calls of several principals: none of them may have all places.
    """

    keeper: Keeper
    most_calls: int = 256
    most_questions: int = 16
    shares: bool = False
    _calls: dict[str, _Call] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._calls)

    def has_room(self, principal: str) -> bool:
        """Whether another call of this principal may wait."""
        whose = (parked.questions.caller.binding.principal for parked in self._calls.values())
        return has_place(principal if self.shares else "", whose, len(self._calls), self.most_calls)

    def __contains__(self, call: object) -> bool:
        return call in self._calls

    def ask(self, call: str, question_id: bytes, method: str, params: Any, caller: AskedCall) -> Question | Turned:
        """Take a question that a server asks in the middle of a call.

        Args:
            call: Which call it is about; a name of our own, the same for all its retries.
            question_id: Of the server's request, as canonical JSON.
            method: Of the server's request.
            params: Of the server's request, in its revision.
            caller: Whose call it is; what is known of a call already counts.

        Returns:
            The question as the client gets it, in the next result of `compose`; or why it does not.
        """
        known = self._calls.get(call)
        if known is None and not self.has_room(caller.binding.principal):
            return turn(f"{len(self._calls)} calls wait for their clients already")
        known = known or _Call(OpenQuestions(caller, self.most_questions))
        question = known.questions.ask(question_id, method, params)
        if isinstance(question, Question):
            self._calls[call] = known
        return question

    def compose(self, call: str, now: Moment, nonce: bytes) -> dict[str, Any]:
        """Park a call: give the result that asks its client all that is open.

        Args:
            call: Which, with questions open and a request of the client there, which this result answers.
            now: The time.
            nonce: Random bytes for the state.
        """
        parked = self._calls[call]
        parked.round += 1
        parked.expires_s = now.steady_s + self.keeper.ttl_s
        state = State(KIND, call, str(parked.round))
        return {
            "resultType": "input_required",
            "inputRequests": parked.questions.spell(),
            "requestState": self.keeper.write(state, parked.questions.caller.binding, now.wall_s, nonce),
        }

    def resume(self, state: State, answers: object, capabilities: Mapping[str, Any]) -> Resumed:
        """Go on with a parked call.

        Args:
            state: That the retry brought, checked by the keeper.
            answers: Its `inputResponses`.
            capabilities: As the retry declares them: they count from here on.

        Returns:
            What to tell the server, or what it has said meanwhile.

        Raises:
            RemoteProtocolError: There is no going on (-32602); the data says why.
        """
        parked = self._calls.get(state.call)
        if parked is None:
            raise refuse(Reason.UNKNOWN)
        if parked.is_attended or state.round != str(parked.round):
            raise refuse(Reason.USED)
        replies, losses = parked.questions.answer(answers)
        parked.expires_s = None
        parked.questions.caller = parked.questions.caller._replace(capabilities=capabilities)
        if parked.has_ended:
            del self._calls[state.call]
        return Resumed(state.call, replies, parked.outcome, bool(parked.questions), losses)

    def withdraw(self, call: str, question_id: bytes) -> None:
        """Take note that the server does not want an answer to this any more."""
        if call in self._calls:
            self._calls[call].questions.withdraw(question_id)

    def finish(self, call: str, response: Any) -> bool:
        """Take the server's response to the call.

        Returns:
            Whether to give it to the client now; otherwise it is kept until the client comes back.
        """
        parked = self._calls.get(call)
        if parked is None or parked.is_attended:
            self._calls.pop(call, None)
            return True
        parked.questions.clear()
        parked.has_ended, parked.outcome = True, response
        return False

    def forget(self, call: str) -> None:
        """Take note that the client has cancelled the call, or that it has ended otherwise."""
        self._calls.pop(call, None)

    def expire(self, now_s: float) -> list[ExpiredCall]:
        """Give up the calls whose clients have not come back in time; on the steady clock."""
        due = [
            call for call, parked in self._calls.items() if parked.expires_s is not None and parked.expires_s <= now_s
        ]
        gone = [(call, self._calls.pop(call)) for call in due]
        return [ExpiredCall(call, not parked.has_ended) for call, parked in gone]

    def find_next_expiry(self) -> float | None:
        """Give the time, on the steady clock, at which `expire` has something to do; None while no call is parked."""
        return min((parked.expires_s for parked in self._calls.values() if parked.expires_s is not None), default=None)
