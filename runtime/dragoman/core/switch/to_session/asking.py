"""What a server with a handshake asks in the middle of a call, and how its per-request client hears of it.

Lives here: answering the client with the questions, and going on when it comes back. Must not: find the call that a
question is about (`attribution`), keep tasks (`promoting`), or carry ordinary answers.

The client's request is answered with the questions and a sealed state, and the server's call stays open: it is
*parked*, for nobody of the client's is there. The retry brings the state back, which is good for one retry, and is the
request that waits from then on. What the server does while a call is parked (it asks more, takes a question back, ends)
is kept for the retry. A call whose client does not come back is given up, and its server is told. How many are parked
has a limit: at it, whoever has most gives up its oldest for another. Nothing of this survives a restart. A retry that
comes later hears so. Questions that come together go together.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.calls import cancelled_key
from dragoman.core.codes import INTERNAL_ERROR, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.declared import find_missing, read_declared
from dragoman.core.edges.per_request_front import PerRequestCall
from dragoman.core.envelope import Frame, Refusal, decoded, error_frame, result_frame
from dragoman.core.label import teller_of
from dragoman.core.methods import CALL_TOOL, ROOTS
from dragoman.core.places import find_giver, keep_latest
from dragoman.core.rules import replay, urls
from dragoman.core.rules.asking import CallOwner, RefusedQuestion, read_question, refuse_question, refuse_undeclared
from dragoman.core.rules.capabilities import declares_tasks
from dragoman.core.rules.inputs import failed_tool
from dragoman.core.rules.names import FACTS
from dragoman.core.rules.questions import Question, Reply, describe
from dragoman.core.rules.replay import Replay
from dragoman.core.rules.state import Reason, State, refuse
from dragoman.core.rules.strategy import Strategy, choose_strategy
from dragoman.core.rules.tasks import read_relation
from dragoman.core.switch.to_session.attribution import OpenQuestion, UnclearQuestions
from dragoman.core.switch.to_session.loans import SETTLE_S, SessionLoan
from dragoman.core.switch.to_session.promoting import Promoting
from dragoman.core.switch.to_session.reading import Served, bind, without_answers

logger = logging.getLogger("dragoman.bridge")

TOGETHER_S: Final = 0.02
"""How long it is waited for another question, so that those of one moment are put to the client in one result."""

_PARK: Final = "park"
"""The kind of state that stands for a parked call."""

_GAVE_WAY: Final = "another call waits for its client in its place; see --max-parked"
_NOT_ASKED: Final = "the client could not be asked"


Start = Callable[[PerRequestCall, Mapping[str, Any], Replay | None], None]


class ClientQuestions:
    """The questions of one server.

    Args:
        served: The session.
        start: Sends the server a request with these params; one that was made before has its answers recorded.
        promoting: The calls that are tasks for their clients.
        declared: What the server was told of its clients: it is asked for nothing else.

    Attributes:
        unclear: The questions whose call is not known for certain.
        parked: The calls that have asked something, by name, also those whose clients are there; the one whose client
            was asked last is last.
    """

    __slots__ = (
        "_bridging",
        "_declared",
        "_gave_way",
        "_loans",
        "_promoting",
        "_served",
        "_start",
        "parked",
        "unclear",
    )  # fmt: skip

    def __init__(
        self,
        served: Served,
        start: Start,
        promoting: Promoting,
        declared: Mapping[str, Any],
    ) -> None:
        self._declared = read_declared(declared)
        self._gave_way: dict[str, None] = {}  # the names of those that gave their place to another
        self.parked: dict[str, SessionLoan] = {}
        self._start = start
        self._served = served
        self._loans, self._bridging = served.loans, served.bridging
        self._promoting = promoting
        self.unclear = UnclearQuestions(served, self)
        served.loans.listener = self

    # What the server asks

    def take_question(self, frame: Frame) -> None:
        """Take a request of the server."""
        key, method = frame.key or b"null", frame.method or ""
        try:
            params = decoded(frame).body.get("params")
        except ValueError as error:
            self._served.upstream.send(error_frame(key, PARSE_ERROR, str(error)))
            return
        if method not in FACTS.asked:
            self._reply(key, Refusal(METHOD_NOT_FOUND, f"clients cannot be asked {method}", {"method": method}))
        elif (missing := find_missing(method, params if isinstance(params, dict) else {}, self._declared)) is not None:
            loan = self._loans.find_certain(frame.stream, read_relation(params))
            self._turn_away(loan, key, refuse_undeclared(method, missing))
        else:
            self.unclear.place(key, method, params, frame.stream)

    def begin(self, loan: SessionLoan) -> None:
        """Send the server a request, once it knows what it wanted to know first."""
        if not self.unclear.open or not self._ask_first(loan):
            self._loans.start(loan)

    def _ask_first(self, loan: SessionLoan) -> bool:
        """Ask a client what its server wanted to know before there was a call; whether this one waits for that."""
        request, early = loan.request, self.unclear.early
        if request is None or not early or not loan.may_ask or not self.has_room(loan):
            return False
        try:
            self._served.note_caller(loan, request)
        except ValueError:  # nested deeper than can be written: it could not go on
            return False
        loan.strategy = Strategy.PARK
        self._loans.hold(loan)
        for question in early:
            if not loan.is_left:  # one that cannot be put is the end of the call
                self.unclear.withdraw(question.key)
                self._keep(loan, question)
        return loan.is_left or bool(loan.questions)

    def put_question(self, loan: SessionLoan, question: OpenQuestion) -> None:
        """Put a question to the client of this call."""
        request = loan.request
        self._loans.note_asking(loan)
        if loan.is_left:
            self._reply(question.key, Refusal(INTERNAL_ERROR, "nobody waits for this call any more", {}))
            return
        if request is not None:
            self._served.note_caller(loan, request)
        assert loan.questions is not None, "only a call that has asked has nobody who waits for it"
        if loan.strategy is None:
            self._choose(loan, question)
        match loan.strategy:
            case Strategy.REPLAY if request is not None:
                self._repeat(loan, request, question)
            case Strategy.REFUSE:
                self._refuse(loan, question)
            case _:
                self._keep(loan, question)

    def _choose(self, loan: SessionLoan, question: OpenQuestion) -> None:
        """Choose how the client is asked: for all questions of a call, when the first one comes."""
        questions, request = loan.questions, loan.request
        assert questions is not None
        assert request is not None
        caller, can_park = questions.caller, self.has_room(loan)
        name = request.params.get("name")
        can_be_task = (
            loan.method == CALL_TOOL and declares_tasks(caller.capabilities) and self._promoting.has_room(loan)
        )
        if can_be_task:  # one that cannot be asked anything has no use for it
            can_be_task = isinstance(read_question(caller, question.method, question.params), Question)
        loan.strategy = choose_strategy(
            self._bridging.questions,
            loan.method,
            can_park=can_park,
            tool=self._served.tools.find(name),
            may_repeat=isinstance(name, str) and name in self._bridging.repeatable,
            can_be_task=can_be_task,
        )
        if loan.strategy is Strategy.TASK:
            self._promoting.begin(loan)

    def _keep(self, loan: SessionLoan, question: OpenQuestion) -> None:
        """Keep the server's call: it goes on with the answer."""
        assert loan.questions is not None
        if loan.task is None and not self.has_room(loan):
            self._turn_away(
                loan, question.key, refuse_question(f"{len(self.parked)} calls wait for their clients already")
            )
            return
        asked = loan.questions.add_question(question.key, question.method, question.params)
        if isinstance(asked, RefusedQuestion):
            self._turn_away(loan, question.key, asked)
            return
        if asked.losses:
            logger.warning("%s of the server: %d value(s) cannot be asked", question.method, len(asked.losses))
        if loan.task is not None:
            self._promoting.change(loan)
        elif loan.name not in self.parked:
            self._park(loan)
        if loan.request is None:
            self._loans.go_on()
        elif len(loan.questions.open) == 1:
            self._loans.wait(loan, TOGETHER_S, self._compose)

    def has_room(self, loan: SessionLoan) -> bool:
        """Whether this call may be parked."""
        return (
            loan.name in self.parked
            or len(self.parked) < self._bridging.most_parked
            or self._find_oldest(loan) is not None
        )

    def _park(self, loan: SessionLoan) -> None:
        """Give a call a place, which another one may have to give up for it."""
        most = self._bridging.most_parked
        oldest = self._find_oldest(loan) if len(self.parked) >= most else None
        self.parked[loan.name] = loan
        if oldest is not None:
            keep_latest(self._gave_way, oldest.name, None, most)
            self._expire(oldest, _GAVE_WAY)

    def _find_oldest(self, loan: SessionLoan) -> SessionLoan | None:
        """Return the call that gives its place to this one, which is the oldest of whoever has most."""
        giver = find_giver(loan.holder, Counter(one.holder for one in self.parked.values()))
        return next((one for one in self.parked.values() if one.holder == giver and one.request is None), None)

    def _repeat(self, loan: SessionLoan, request: PerRequestCall, question: OpenQuestion) -> None:
        """Answer from what is recorded, or end the call and ask."""
        assert loan.questions is not None
        if loan.replay is None:
            loan.replay = Replay(loan.questions.caller)
        said = loan.replay.take_question(question.method, question.params)
        if isinstance(said, Question):
            bridging = self._bridging
            result = loan.replay.compose(said, bridging.keeper(), bridging.now(), bridging.nonce())
            if not isinstance(result, RefusedQuestion):
                self._loans.leave(loan, "the call is made again once its client has answered")
                self._served.put_result(request, result)
                return
            said = result
        if isinstance(said, Reply):
            self._served.upstream.send(result_frame(question.key, said.result))
        else:
            self._turn_away(loan, question.key, said)

    def _refuse(self, loan: SessionLoan, question: OpenQuestion) -> None:
        """Ask nobody, and say in the client's answer what was asked."""
        request = loan.request
        assert loan.questions is not None
        asked = read_question(loan.questions.caller, question.method, question.params)
        if isinstance(asked, RefusedQuestion):
            self._turn_away(loan, question.key, asked)
        elif loan.method == CALL_TOOL:
            text = describe({"method": question.method, "params": asked.params})
            self._reply(question.key, refuse_question("that is not wanted here").reply)
            assert request is not None, "who is refused does not come back"
            self._loans.refuse(loan, _NOT_ASKED)
            self._served.put_result(request, failed_tool(f"{text}. Questions are not passed on here."))
        else:
            self._turn_away(loan, question.key, refuse_question("questions are not passed on here"))

    def _turn_away(self, loan: SessionLoan | None, key: bytes, refused: RefusedQuestion) -> None:
        """Answer a question that is not put to the client, which may be the end of the call."""
        self._reply(key, refused.reply)
        if refused.missing and loan is not None and not loan.is_left:
            caller = loan.questions.caller if loan.questions is not None else loan.request and loan.request.metadata
            # A session that was opened for somebody else may have been told of less than this client declares.
            has = read_declared(caller and caller.capabilities)
            loan.missing = None if refused.missing in has else refused.missing
        if refused.error is not None and loan is not None and (loan.request is not None or loan.task is not None):
            logger.warning("%s ends without an answer: %s", loan.method, refused.error.message)
            self._end(loan, refused.error, _NOT_ASKED)

    def _reply(self, key: bytes, refusal: Refusal) -> None:
        self._served.upstream.send(error_frame(key, refusal.code, refusal.message, refusal.data or None))

    def withdraw(self, frame: Frame) -> None:
        """Record that the server does not want an answer to a question any more."""
        key = cancelled_key(frame) or b""
        self.unclear.withdraw(key)
        loan = self._loans.find_asking(key)
        if loan is not None and loan.questions:
            loan.questions.withdraw(key)
            self._promoting.change(loan)
            if loan.request is not None and not loan.questions:
                self._loans.schedule.stop(loan.alarm)
                if loan.frame is not None:  # it was kept for this alone
                    self.begin(loan)

    # What the client answers

    def resume(self, request: PerRequestCall) -> bool:
        """Go on with what a request was a part of; False where it is a request of its own.

        Raises:
            RemoteProtocolError: It cannot go on.
            ValueError: Its params are nested deeper than can be written.
        """
        text = request.params.get("requestState")
        if text is None or request.method not in FACTS.input_required:
            return False
        bridging = self._bridging
        binding = bind(bridging, request)
        state = bridging.keeper().read(text, binding, bridging.now(), self.parked)
        if state.kind == urls.KIND:
            self._go_on_after_visit(request, state)
        elif state.kind == replay.KIND:
            caller = CallOwner(binding, request.metadata.capabilities, self._served.revision)
            attempt = replay.resume_replay(state, request.params.get("inputResponses"), caller)
            self._start(request, without_answers(request.params), attempt)
        else:
            self._go_on(request, state)
        return True

    def _go_on_after_visit(self, request: PerRequestCall, state: State) -> None:
        params, _ = urls.resume_visit(state, request.params)
        if params is not None:
            self._start(request, params, None)
        elif request.method == CALL_TOOL:
            self._served.put_result(request, failed_tool("The URL that this tool needs visited was not visited."))
        else:
            self._served.front.refuse(request, INTERNAL_ERROR, "the URL that this needs visited was not visited")

    def _go_on(self, request: PerRequestCall, state: State) -> None:
        loan = self.parked.get(state.call)
        if loan is None or loan.questions is None:
            raise refuse(Reason.GAVE_WAY if state.call in self._gave_way else Reason.UNKNOWN)
        if loan.request is not None or state.round != str(loan.round):
            raise refuse(Reason.USED)
        answered = self._served.pass_answers(loan.questions, request)
        self._loans.schedule.stop(loan.alarm)
        loan.request, loan.alarm = request, None
        if loan.outcome is not None:
            del self.parked[loan.name]
            self._served.pass_answer(request, loan, loan.outcome)
            return
        loan.questions.caller = loan.questions.caller._replace(capabilities=request.metadata.capabilities)
        for _, method, result in answered:
            if method == ROOTS:
                self.unclear.keep_roots(loan, result)
        if loan.questions.open:
            self._compose(loan)
        elif loan.frame is not None:  # it was kept until the server knows what it wanted to know first
            self._loans.wait(loan, SETTLE_S, self.begin)
        elif self.unclear.open:
            self.unclear.relieve()

    # How calls end

    def finish(self, loan: SessionLoan, frame: Frame) -> None:
        """Take the server's answer to a call, for its client or until that comes back."""
        is_awaited = loan.name in self.parked and loan.request is None
        if is_awaited:
            loan.outcome = frame  # before its questions go to others, which may need its place
        if self.unclear.open:
            self.unclear.finish(loan)
        if loan.questions is not None and loan.questions.open:
            for key in loan.questions.clear():
                self._reply(key, Refusal(INTERNAL_ERROR, "the call is over, and nobody has answered", {}))
        if is_awaited:
            return
        if loan.alarm is not None:
            self._loans.schedule.stop(loan.alarm)
        self.parked.pop(loan.name, None)
        if loan.task is not None:
            self._promoting.finish(loan, frame)
        elif loan.request is not None:
            self._served.pass_answer(loan.request, loan, frame)

    def leave(self, reason: str) -> None:
        """Record that no client comes back."""
        for loan in [one for one in self._loans if one.request is None]:
            if not loan.is_left:
                self._loans.leave(loan, reason)
            self._loans.give_up(loan)

    def revoke(self, reason: str, sender: str) -> None:
        """Record that a principal may not come back: its calls end, and are not kept for it."""
        own = [one for one in self._loans if teller_of(one.sender) == sender]
        for loan in [one for one in own if one.request is None and not one.is_left]:
            self.give_up(loan, reason)
        ended = [one for one in self.parked.values() if one.outcome is not None]
        for loan in [one for one in ended if teller_of(one.sender) == sender]:
            self._expire(loan, reason)

    def let_go(self, loan: SessionLoan) -> None:
        """Nobody waits for this any more; what was asked about it is still there."""
        self.parked.pop(loan.name, None)
        self.unclear.leave(loan)
        for key in loan.questions.clear() if loan.questions and loan.frame is not None else ():
            self._reply(key, Refusal(INTERNAL_ERROR, "the client did not answer", {}))

    def _expire(self, loan: SessionLoan, reason: str = "the client did not come back to answer") -> None:
        del self.parked[loan.name]
        self._loans.schedule.stop(loan.alarm)
        if loan.outcome is None:
            self.give_up(loan, reason)

    def give_up(self, loan: SessionLoan, reason: str) -> None:
        """End a call whose client has not come back."""
        logger.warning("%s given up: %s", loan.method, reason)
        self._end(loan, Refusal(INTERNAL_ERROR, reason, {}), reason)

    def _end(self, loan: SessionLoan, failure: Refusal, reason: str) -> None:
        """Fail a call; its server may end it by itself, and then is known to be done.

        Args:
            loan: The call.
            failure: What its client is told.
            reason: What its server is told.
        """
        request = loan.request
        for key in loan.questions.clear() if loan.questions else ():
            self._reply(key, Refusal(INTERNAL_ERROR, reason, {}))
        self._loans.refuse(loan, reason)
        if request is not None:
            self._served.front.refuse(request, failure.code, failure.message, failure.data)
        elif loan.task is not None:
            self._promoting.fail(loan, failure)

    def _compose(self, loan: SessionLoan) -> None:
        """Park a call: answer its client's request with all that is open."""
        questions, request, bridging = loan.questions, loan.request, self._bridging
        assert questions is not None
        assert request is not None
        keeper = bridging.keeper()
        loan.round += 1
        state = State(_PARK, loan.name, str(loan.round))
        result = {
            "resultType": "input_required",
            "inputRequests": questions.spell(),
            "requestState": keeper.write(state, questions.caller.binding, bridging.now(), bridging.nonce()),
        }
        loan.request = None
        self.parked[loan.name] = self.parked.pop(loan.name)
        self._loans.wait(loan, keeper.ttl_s, self._expire)
        self._served.put_result(request, result)
        self._loans.go_on()
