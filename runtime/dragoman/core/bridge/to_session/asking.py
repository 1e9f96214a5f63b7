"""What a server with a handshake asks in the middle of a call, and how its per-request client hears of it.

Lives here: finding the call that a question is about, answering the client with the questions, and going on when it
comes back. Must not: keep tasks (`promoting`), or carry ordinary answers.

The client's request is answered with the questions and a sealed state, and the server's call stays open: it is
*parked*, for nobody of the client's is there. The retry brings the state back, which is good for one retry, and is the
request that waits from then on. What the server does while a call is parked (it asks more, takes a question back, ends)
is kept for the retry. A call whose client does not come back is given up, and its server is told. How many are parked
has a limit: at it, whoever has most gives up its oldest for another. Nothing of this survives a restart. A retry that
comes later hears so.

A question that belongs to no call is refused. One that belongs to one of several is put to the likeliest if all are of
one sender; else it is refused, and from then on the senders take turns (`works`). Those that come together go together.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from dragoman.core.bridge import replay, urls
from dragoman.core.bridge.asking import AskedCall, OpenQuestions, Turned, turn, turn_undeclared
from dragoman.core.bridge.inputs import failed_tool
from dragoman.core.bridge.names import FACTS
from dragoman.core.bridge.questions import Question, Reply, describe
from dragoman.core.bridge.roots import RootsCache
from dragoman.core.bridge.state import Reason, State, refuse
from dragoman.core.bridge.strategy import Strategy, choose_strategy
from dragoman.core.bridge.tasks import read_relation
from dragoman.core.bridge.to_session.parked import ParkedCalls
from dragoman.core.bridge.to_session.promoting import Promoting
from dragoman.core.bridge.to_session.reading import Answerer, Served, bind, find_principal, without_answers
from dragoman.core.bridge.to_session.repeating import ask_again
from dragoman.core.bridge.to_session.undecided import Undecided, UndecidedQuestions
from dragoman.core.bridge.to_session.visiting import go_on_after_visit
from dragoman.core.bridge.to_session.works import SETTLE_S, Work
from dragoman.core.calls import cancelled_key
from dragoman.core.codes import INTERNAL_ERROR, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.declared import find_missing, read_declared
from dragoman.core.edges.per_request_front import Request
from dragoman.core.envelope import Frame, Refusal, decoded, error_frame, result_frame
from dragoman.core.methods import ROOTS

logger = logging.getLogger("dragoman.bridge")

TOGETHER_S: Final = 0.02
"""How long it is waited for another question, so that those of one moment are put to the client in one result."""

_MOST_EARLY: Final = 4

_PARK: Final = "park"
"""The kind of state that stands for a parked call."""

_UNCLEAR: Final = "it is not clear which call this is about, so nobody can be asked"
_NO_CALL: Final = "no call is open that this could be about, so nobody can be asked"
_GAVE_WAY: Final = "another call waits for its client in its place; see --max-parked"
_NOT_ASKED: Final = "the client could not be asked"


class Asking:
    """The questions of one server.

    Args:
        served: The session.
        answerer: Who does what is not about questions.
        promoting: The calls that are tasks for their clients.
        declared: What the server was told of its clients: it is asked for nothing else.
    """

    __slots__ = (
        "_answerer", "_bridging", "_declared", "_parking", "_promoting", "_roots", "_served", "_works", "early",
        "parked", "undecided",
    )  # fmt: skip

    def __init__(
        self,
        served: Served,
        answerer: Answerer,
        promoting: Promoting,
        declared: Mapping[str, Any],
    ) -> None:
        self._declared = read_declared(declared)
        self._parking = ParkedCalls(served.bridging.most_parked)
        self.parked = self._parking.calls
        self._answerer = answerer
        self._served = served
        self._works, self._bridging = served.works, served.bridging
        self._promoting = promoting
        self._roots = RootsCache(0.0 if served.bridging.shares_server else served.bridging.roots_ttl_s)
        self.early: dict[bytes, Any] = {}  # roots that were asked for before there was a call: the params, by id
        self.undecided = UndecidedQuestions(served.works)
        served.works.listener = self

    # What the server asks

    def take(self, frame: Frame) -> None:
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
            self._turn(None, key, turn_undeclared(method, missing))
        else:
            self._put(key, method, params, frame.stream)

    def _put(self, key: bytes, method: str, params: Any, stream: bytes | None) -> None:
        task_id = read_relation(params)
        waits = method == ROOTS and stream is None and task_id is None and self._may_wait
        works = [] if waits else self._works.find_asked(stream, task_id)
        roots = self._find_roots(works) if method == ROOTS else None
        if roots is not None:
            self._served.upstream.send(result_frame(key, {"roots": list(roots)}))
        elif len(works) == 1:
            self._ask(works[0], key, method, params)
        elif waits:
            self.early[key] = params
        elif not works or len({work.sender for work in works}) > 1:
            self._refuse_unclear(key)  # not even when one is left: the server may answer a call and not wait for this
        else:
            patience_s = (
                self._works.turn_s if any(work.waits_for_client for work in works) else self._bridging.keeper().ttl_s
            )
            self._decide(Undecided(key, method, params, set(works), self._bridging.steady_s() + patience_s))

    def _decide(self, question: Undecided) -> None:
        """Put a question to the likeliest of the calls that it may be about, or let it wait."""
        if len(question.works) > 1 and any(work.is_left for work in question.works):
            self._refuse_unclear(question.key)
            return
        work = self._guess(question.works)
        if work is None:

            def late() -> None:
                self.undecided.withdraw(question.key)
                self._refuse_unclear(question.key)

            after_s = question.until_s - self._bridging.steady_s()
            self._refuse_unclear(*self.undecided.add(question, after_s, late))
            return
        if len(question.works) > 1:
            self.undecided.guess(question, work)
        self._ask(work, question.key, question.method, question.params)

    def _guess(self, works: Collection[Work]) -> Work | None:
        """Return the likeliest of these; None if a wrong guess would do harm.

        That is one whose client is there and which has no question yet, of the tool that was called last; of several
        calls of it the first, for servers ask in the order of calls.
        """
        if len(works) > 1:
            able = [work for work in works if self._can_wait(work)] if self._works.may_guess(works) else []
            # Whoever is there and cannot be asked would wait for somebody who may never come back.
            works = [] if len(able) < len(works) and all(work.waits_for_client for work in able) else able
        free = [work for work in works if work.request is not None and not work.questions]
        newest = max(free or works, key=lambda work: (work.request is not None, work.number), default=None)
        return next(
            (work for work in sorted(free, key=lambda one: one.number) if newest and work.subject == newest.subject),
            newest,
        )

    def _can_wait(self, work: Work) -> bool:
        return work.way in (Strategy.TASK, Strategy.PARK) or (work.way is None and self._parking.has_room(work))

    def _find_roots(self, works: Sequence[Work]) -> Sequence[Any] | None:
        """Give the roots of those whose calls these are; None if they are not known, or these are several people's."""
        whose = {self._whose(work) for work in works} or {self._bridging.principal}
        return self._roots.get(whose.pop(), self._bridging.steady_s()) if len(whose) == 1 else None

    @property
    def _may_wait(self) -> bool:
        """Whether roots that are asked for outside of any call wait for the next one of the only client there is."""
        bridging = self._bridging
        return (
            not self._works.can_be_asked
            and not bridging.shares_server
            and bridging.questions not in (Strategy.REFUSE.value, Strategy.REPLAY.value)
            and len(self.early) < _MOST_EARLY
        )

    def __contains__(self, key: object) -> bool:
        return key in self.undecided or key in self.early

    def ask_first(self, work: Work) -> bool:
        """Ask a client what its server wanted to know before there was a call; whether this one waits for that."""
        request = work.request
        if request is None or not self.early or not work.may_ask or not self._parking.has_room(work):
            return False
        try:
            self._note_caller(work, request)
        except ValueError:  # nested deeper than can be written: it could not go on
            return False
        early, self.early = self.early, {}
        work.way = Strategy.PARK
        self._works.hold(work)
        for key, params in early.items():
            self._keep(work, key, ROOTS, params)
        return bool(work.questions)

    def _refuse_unclear(self, *keys: bytes) -> None:
        reason = _UNCLEAR if self._works.can_be_asked else _NO_CALL
        for key in keys:
            logger.warning("a request of the server refused: %s", reason)
            self._reply(key, Refusal(METHOD_NOT_FOUND, reason, {}))

    def _whose(self, work: Work | None) -> str:
        """Return the principal whose call it is: of several that share a server, none is told another's roots."""
        if work is not None and work.request is not None:
            return find_principal(self._bridging, work.request)
        if work is None or work.questions is None:
            return self._bridging.principal
        return work.questions.caller.binding.principal

    def _note_caller(self, work: Work, request: Request) -> None:
        if work.questions is None:
            binding = bind(self._bridging, request)
            work.questions = OpenQuestions(AskedCall(binding, request.metadata.capabilities, self._served.revision))

    def _ask(self, work: Work, key: bytes, method: str, params: Any) -> None:
        request = work.request
        self._works.note_asking(work)
        if work.is_left:
            self._reply(key, Refusal(INTERNAL_ERROR, "nobody waits for this call any more", {}))
            return
        if request is not None:
            self._note_caller(work, request)
        assert work.questions is not None, "only a call that has asked has nobody who waits for it"
        if work.way is None:
            self._choose(work, key, method, params)
        match work.way:
            case Strategy.REPLAY if request is not None:
                self._repeat(work, request, key, method, params)
            case Strategy.REFUSE:
                self._refuse(work, key, method, params)
            case _:
                self._keep(work, key, method, params)

    def _choose(self, work: Work, key: bytes, method: str, params: Any) -> None:
        """Choose how the client is asked: for all questions of a call, when the first one comes."""
        questions, request = work.questions, work.request
        assert questions is not None
        assert request is not None
        caller = questions.caller
        name = request.params.get("name")
        may_be_asked = not isinstance(OpenQuestions(caller).ask(key, method, params), Turned)
        work.way = choose_strategy(
            self._bridging.questions,
            work.method,
            caller.capabilities,
            tool=self._served.tools.find(name),
            may_repeat=name in self._bridging.repeatable,
            can_park=self._parking.has_room(work),
            tasks=self._promoting.has_room(work) and may_be_asked,
        )
        if work.way is Strategy.TASK:
            self._promoting.begin(work)

    def _keep(self, work: Work, key: bytes, method: str, params: Any) -> None:
        """Keep the server's call: it goes on with the answer."""
        assert work.questions is not None
        asked: Question | Turned
        if work.task is None and work.name not in self.parked and not self._parking.has_room(work):
            asked = turn(f"{len(self.parked)} calls wait for their clients already")
        else:
            asked = work.questions.ask(key, method, params)
        if isinstance(asked, Turned):
            self._turn(work, key, asked)
            return
        if asked.losses:
            logger.warning("%s of the server: %d value(s) cannot be asked", method, len(asked.losses))
        if work.task is not None:
            self._promoting.change(work)
        elif work.name not in self.parked:
            oldest = self._parking.add(work)
            if oldest is not None:
                self._expire(oldest, _GAVE_WAY)
        if work.request is None:
            self._works.go_on()
        elif len(work.questions) == 1:
            self._works.wait(work, TOGETHER_S, self._compose)

    def _repeat(self, work: Work, request: Request, key: bytes, method: str, params: Any) -> None:
        """Answer from what is recorded, or end the call and ask."""
        said = ask_again(work, method, params, self._bridging)
        if isinstance(said, Turned):
            self._turn(work, key, said)
        elif isinstance(said, Reply):
            self._served.upstream.send(result_frame(key, said.result))
        else:
            self._works.leave(work, "the call is made again once its client has answered")
            self._served.answer(request, said)

    def _refuse(self, work: Work, key: bytes, method: str, params: Any) -> None:
        """Ask nobody, and say in the client's answer what was asked."""
        request = work.request
        assert work.questions is not None
        asked = OpenQuestions(work.questions.caller).ask(key, method, params)
        if isinstance(asked, Turned):
            self._turn(work, key, asked)
        elif work.method == "tools/call":
            text = describe({"method": method, "params": asked.params})
            self._reply(key, turn("that is not wanted here").reply)
            assert request is not None, "who is refused does not come back"
            self._works.refuse(work, _NOT_ASKED)
            self._served.answer(request, failed_tool(f"{text}. Questions are not passed on here."))
        else:
            self._turn(work, key, turn("questions are not passed on here"))

    def _turn(self, work: Work | None, key: bytes, turned: Turned) -> None:
        """Answer a question that is not put to the client, which may be the end of the call."""
        self._reply(key, turned.reply)
        request, error = None if work is None else work.request, turned.error
        if error is None or work is None or (request is None and work.task is None):
            return
        logger.warning("%s ends without an answer: %s", work.method, error.message)
        self._works.refuse(work, _NOT_ASKED)
        if request is not None:
            self._served.front.refuse(request, error.code, error.message, error.data)
        else:
            self._promoting.fail(work, error)

    def _reply(self, key: bytes, refusal: Refusal) -> None:
        self._served.upstream.send(error_frame(key, refusal.code, refusal.message, refusal.data or None))

    def withdraw(self, frame: Frame) -> None:
        """Record that the server does not want an answer to a question any more."""
        key = cancelled_key(frame) or b""
        self.undecided.withdraw(key)
        self.early.pop(key, None)
        work = self._works.find_asking(key)
        if work is not None and work.questions:
            work.questions.withdraw(key)
            self._promoting.change(work)
            if work.request is not None and not work.questions:
                self._works.schedule.stop(work.alarm)

    # What the client answers

    def resume(self, request: Request) -> bool:
        """Go on with what a request was a part of; False where it is a request of its own.

        Raises:
            RemoteProtocolError: It cannot go on.
            ValueError: Its params are nested deeper than can be written.
        """
        text = request.params.get("requestState")
        if text is None or request.method not in FACTS.input_required:
            return False
        bridging = self._bridging
        state = bridging.keeper().read(text, bind(bridging, request), bridging.now(), self.parked)
        if state.kind == urls.KIND:
            go_on_after_visit(request, state, self._served.front, self._served.answer, self._answerer.start)
        elif state.kind == replay.KIND:
            capabilities, answers = request.metadata.capabilities, request.params.get("inputResponses")
            attempt = replay.resume_replay(state, answers, self._served.revision, capabilities)
            self._answerer.start(request, without_answers(request.params), attempt)
        else:
            self._go_on(request, state)
        return True

    def _go_on(self, request: Request, state: State) -> None:
        work = self.parked.get(state.call)
        if work is None or work.questions is None:
            raise refuse(Reason.GAVE_WAY if state.call in self._parking.gave_way else Reason.UNKNOWN)
        if work.request is not None or state.round != str(work.round):
            raise refuse(Reason.USED)
        replies, losses = work.questions.answer(request.params.get("inputResponses"))
        if losses:
            logger.warning("answers of the client: %d value(s) cannot be passed to the server", len(losses))
        self._works.schedule.stop(work.alarm)
        work.request = request
        if work.outcome is not None:
            del self.parked[work.name]
            self._answerer.take_answer(work, work.outcome)
            return
        work.questions.caller = work.questions.caller._replace(capabilities=request.metadata.capabilities)
        for key, method, result in replies:
            if method == ROOTS:
                self._roots.put(self._whose(work), result, self._bridging.steady_s())
            self._served.upstream.send(result_frame(key, result))
        if work.questions:
            self._compose(work)
        elif work.frame is not None:  # it was kept until the server knows what it wanted to know first
            self._works.wait(work, SETTLE_S, self._works.start)
        else:
            self._refuse_unclear(*self.undecided.relieve())

    # How calls end

    def finish(self, work: Work, frame: Frame) -> bool:
        """Take the server's answer to a call; whether it is to be given to the client now."""
        for question in self.undecided.finish(work):
            self._decide(question)
        self._refuse_unclear(*self.undecided.relieve())
        if work.name in self.parked and work.request is None and work.questions is not None:
            work.questions.clear()
            work.outcome = frame
            return False
        self._works.schedule.stop(work.alarm)
        self.parked.pop(work.name, None)
        if work.task is not None:
            self._promoting.finish(work, frame)
        return work.task is None

    def leave(self, reason: str) -> None:
        """Record that no client comes back."""
        for work in [work for work in self._works if work.request is None]:
            if work.is_left:
                self._works.give_up(work)
            else:
                self._works.cancel(work, reason)
                self.let_go(work)

    def revoke(self, reason: str, sender: str) -> None:
        """Record that a principal may not come back: its calls end, and are not kept for it."""
        for work in [one for one in self._works if one.request is None and one.sender == sender and not one.is_left]:
            self.give_up(work, reason)
        for work in [one for one in self.parked.values() if one.outcome is not None and one.sender == sender]:
            self._expire(work, reason)

    def interrupt(self) -> None:
        """Record that the server is gone: what it has asked needs no answer any more."""
        self.undecided.clear()
        self.early.clear()

    def let_go(self, work: Work) -> None:
        """Nobody waits for this any more; what was asked about it is still there."""
        self.parked.pop(work.name, None)
        self._refuse_unclear(*self.undecided.leave(work))
        for key in work.questions.clear() if work.questions and work.frame is not None else ():
            self._reply(key, Refusal(INTERNAL_ERROR, "the client did not answer", {}))

    def _expire(self, work: Work, reason: str = "the client did not come back to answer") -> None:
        del self.parked[work.name]
        self._works.schedule.stop(work.alarm)
        if work.outcome is None:
            self.give_up(work, reason)

    def give_up(self, work: Work, reason: str) -> None:
        """End a call whose client has not come back; its server may end it by itself, and then is known to be done."""
        logger.warning("%s given up: %s", work.method, reason)
        for key in work.questions.clear() if work.questions else ():
            self._reply(key, Refusal(INTERNAL_ERROR, reason, {}))
        if work.task is not None:
            self._promoting.fail(work, Refusal(INTERNAL_ERROR, reason, {}))
        self._works.refuse(work, reason)

    def _compose(self, work: Work) -> None:
        """Park a call: answer its client's request with all that is open."""
        questions, request, bridging = work.questions, work.request, self._bridging
        assert questions is not None
        assert request is not None
        keeper = bridging.keeper()
        work.round += 1
        state = State(_PARK, work.name, str(work.round))
        result = {
            "resultType": "input_required",
            "inputRequests": questions.spell(),
            "requestState": keeper.write(state, questions.caller.binding, bridging.now(), bridging.nonce()),
        }
        work.request = None
        self.parked[work.name] = self.parked.pop(work.name)
        self._works.wait(work, keeper.ttl_s, self._expire)
        self._served.answer(request, result)
        self._works.go_on()
