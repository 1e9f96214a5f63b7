"""The open session of a server with a handshake, as it serves requests that open none.

Lives here: requests on their way to the server, its answers on their way back, and telling apart what it says. Must
not: open the session or end it (`switch`), or know what is made of questions (`asking`), `notifications` and tasks
(`promoting`). Made by `switch` once the server has agreed to a revision.

A request goes to the server under an id of ours, over the steps, and its answer comes back the same way. What the
server asks meanwhile is for `asking`, what it tells for `notifications`. Most requests need no more than the steps,
and go straight there and back; a retry, a task, a log level or headers to be checked are looked at where there can be
such.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.bridge.capabilities import Path
from dragoman.core.bridge.discovery import to_discover_result
from dragoman.core.bridge.names import DISCOVER, NEWER, TASK_METHODS
from dragoman.core.bridge.replay import Replay
from dragoman.core.bridge.strategy import Strategy
from dragoman.core.bridge.to_session.asking import Asking
from dragoman.core.bridge.to_session.notifications import ServerNotifications
from dragoman.core.bridge.to_session.promoting import Promoting
from dragoman.core.bridge.to_session.reading import (
    KNOWN,
    RETRY,
    RequestWriter,
    Served,
    read_as_first,
    without_answers,
)
from dragoman.core.bridge.to_session.works import Works
from dragoman.core.calls import NAME_BYTES
from dragoman.core.codes import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.commands import Schedule, Side
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed, Refusal, classify, decoded, error_frame, result_frame
from dragoman.core.exchange import Exchange
from dragoman.core.methods import CALL_TOOL, CANCELLED, LIST_TOOLS, LISTEN
from dragoman.core.paging import TakePage
from dragoman.core.switch.listed_tools import ListedTools
from dragoman.core.unchecked import find_object
from dragoman.core.way import Way
from dragoman.core.wiring import Bridging, Wiring

logger = logging.getLogger("dragoman.bridge")


_PING_KEY: Final = b'"dragoman-ping"'
_STRAIGHT: Final = KNOWN - TASK_METHODS.keys() - {LISTEN, DISCOVER}
"""Methods of requests that need nothing but the steps, unless the session or the request wants more."""


class OpenSession:
    """Serves requests at one server.

    Args:
        wiring: What the edges need.
        bridging: What the bridge needs.
        exchange: Counts what goes nowhere.
        requests: The clients' edge.
        upstream: The server's.
        label: Random text that the names of all calls begin with.
        path: The way between client and server.
        revision: That the server has agreed to.
        initialized: The result of its `initialize`, in the form of the newest revision with a handshake.
        declared: What it was told of its client.
        schedule: Has done later what is to be done later.
    """

    __slots__ = (
        "_asking",
        "_discovered",
        "_exchange",
        "_lists_all",
        "_notifications",
        "_promoting",
        "_served",
        "_straight",
        "_unclear",
        "_upward",
        "_wiring",
        "_works",
        "_writer",
    )

    def __init__(
        self,
        wiring: Wiring,
        bridging: Bridging,
        exchange: Exchange,
        requests: PerRequestFront,
        upstream: UpstreamEdge,
        label: str,
        path: Path,
        revision: str,
        initialized: Mapping[str, Any],
        declared: Mapping[str, Any],
        schedule: Schedule,
    ) -> None:
        self._exchange = exchange
        self._wiring = wiring
        self._discovered, losses = to_discover_result(initialized, path)
        if losses:
            named = ", ".join(loss.pointer for loss in losses)
            logger.warning("the client is not told of what its revision does not have: %s", named)
        self._upward = wiring.make_adaptor(Side.CLIENT, NEWER, revision, exchange.counters)
        downward = wiring.make_adaptor(Side.SERVER, revision, NEWER, exchange.counters)
        info, capabilities = initialized.get("serverInfo"), initialized.get("capabilities")
        info, capabilities = (value if isinstance(value, dict) else {} for value in (info, capabilities))
        self._writer = RequestWriter()
        self._works = works = Works(upstream, wiring.settings.restore_ids, label, schedule, bridging)
        tools = ListedTools(sends=False, hears=not bridging.shares_channel, remind=schedule.after, keeps=True)
        self._served = served = Served(
            bridging, requests, upstream, works, tools, path, revision, info, capabilities, downward
        )
        self._promoting = promoting = Promoting(served)
        self._asking = Asking(served, self.start, promoting, declared)
        self._unclear = self._asking.unclear
        self._notifications = ServerNotifications(served, promoting)
        self._lists_all = promoting.runs_at_server or (not bridging.shares_channel and "tools" in capabilities)
        looks_at_calls = self._lists_all or bridging.questions == Strategy.REPLAY.value
        self._straight = _STRAIGHT - {CALL_TOOL} if looks_at_calls else _STRAIGHT

    def release(self) -> None:
        """Let go of everything."""
        self._works.clear()
        del self._asking.unclear, self._asking, self._unclear, self._notifications

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, and nobody is to come back for anything."""
        return not (any(self._works) or self._asking.parked or self._promoting.kept or self._notifications.listens)

    def interrupt(self, failure: Refusal) -> None:
        """Answer what is with the server, parked calls too: the server is gone, and will not."""
        self._unclear.clear()
        for key in self._works.take_open():
            self.take_frame(failure.answer(key))

    def end(self, failure: Refusal) -> None:
        """Answer everything that is under way: the server is gone for good."""
        while self._works.take_open():  # one that is over may let another go on
            self.interrupt(failure)
        # Those that were kept until the server knows more:
        for request in [work.request for work in self._works if work.request is not None]:
            self._served.front.refuse(request, failure.code, failure.message, failure.data)
        self._notifications.listens.end_all(failure.message)

    # Requests and their answers

    def serve(self, request: Request) -> None:
        """Take a request to the server."""
        if request.metadata.revision != NEWER:
            way = Way(self._wiring, request.metadata.revision, NEWER, self._exchange.counters)
            if not read_as_first(request, way, self._served.front):
                return
        params, metadata = request.params, request.metadata
        if (
            request.method in self._straight
            and metadata.log_level is None
            and RETRY.isdisjoint(params)
            and not self._unclear.open
        ):
            self.start(request, params)
        elif self._must_list(request):
            self._served.tools.list(self._ask_page, lambda: self._served.front.attempt(request, self._serve_checked))
        else:
            self._served.front.attempt(request, self._serve_checked)

    def _must_list(self, request: Request) -> bool:
        """Whether too little is known of the tool that a request calls."""
        if request.method != CALL_TOOL or CALL_TOOL in self._straight:
            return False
        name = request.params.get("name")
        needs_to = self._lists_all or name not in self._served.bridging.repeatable
        return needs_to and not self._served.tools.is_known(name)

    def _serve_checked(self, request: Request) -> None:
        self._served.tools.check(request)
        if request.method == DISCOVER:
            self._served.front.put_result(request, self._discovered)
            return
        if request.method == LISTEN:
            self._notifications.listens.open(request)
            return
        if request.metadata.log_level is not None:
            self._notifications.set_level(request, request.metadata.log_level)
        if request.method in TASK_METHODS:
            self._promoting.serve(request)
        elif not self._asking.resume(request):
            self.start(request, without_answers(request.params))

    def _ask_page(self, params: dict[str, Any], take: TakePage) -> None:
        def take_answer(answer: Frame) -> None:
            try:
                page = find_object(decoded(answer).body, "result")
            except ValueError:
                page = {}
            take(page, len(answer.raw))

        self._works.send_own(LIST_TOOLS, params, take_answer)

    def start(self, request: Request, params: Mapping[str, Any], attempt: Replay | None = None) -> None:
        """Send the server a request with these params; one that was made before has its answers recorded."""
        work = self._works.new_work(request)
        if attempt is not None:
            work.way, work.replay = Strategy.REPLAY, attempt
        try:
            body = self._writer.write(request, work.number, params)
            adapted = self._upward.cross("request", work.key, request.method, body)
        except ValueError as error:  # nested deeper than can be written
            self._served.front.refuse(request, INVALID_PARAMS, str(error))
            return
        if adapted is None:
            reason = f"the server's revision has no {request.method}"
            self._served.front.refuse(request, METHOD_NOT_FOUND, reason, {"method": request.method})
        elif isinstance(adapted, Refusal):
            self._served.front.refuse(request, adapted.code, adapted.message, adapted.data)
        else:
            work.frame = self._promoting.ask_for(work, adapted) if self._promoting.runs_at_server else adapted
            self._asking.begin(work)

    def ping(self, then: Callable[[], None]) -> None:
        """Go on once the server has read everything so far."""
        self._works.send_own("ping", {}, lambda answer: then(), _PING_KEY)

    def cancel(self, request: Request, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        if not self._notifications.listens.cancel(request):
            work = self._works.find_for(request)
            if work is not None:
                self._works.leave(work, reason)

    def leave(self, reason: str, sender: str) -> None:
        """Give up what waits for the client to come back, and end the streams that would never end."""
        if sender:
            self._asking.revoke(reason, sender)
        else:
            self._asking.leave(reason)
            self._notifications.listens.end_all(reason)

    # What the server says

    def take_frame(self, frame: Frame | Malformed) -> None:
        """Take a frame of the server."""
        if isinstance(frame, Malformed):
            self._take_malformed(frame)
        elif frame.kind == "result" or frame.kind == "error":
            self._take_response(frame)
        elif frame.kind == "batch":
            for member in frame.body:
                self.take_frame(classify(b"", member, frame.stream))
        elif frame.kind == "request":
            self._take_request(frame)
        elif frame.method == CANCELLED:
            self._asking.withdraw(frame)
        else:
            self._notifications.take_notification(frame)

    def _take_request(self, frame: Frame) -> None:
        key = frame.key or b"null"
        if frame.method == "ping":
            self._served.upstream.send(result_frame(key, {}))
        elif len(key) > NAME_BYTES:
            self._exchange.counters.malformed += 1
            self._served.upstream.send(
                error_frame(key, INVALID_REQUEST, f"expected ids to have at most {NAME_BYTES} bytes")
            )
        elif self._works.find_asking(key) is not None or key in self._unclear:
            self._exchange.counters.malformed += 1  # an answer under its id would be one to the other request
            logger.warning("%s request of the server dropped: its id belongs to one that is not answered", frame.method)
        else:
            self._asking.take_question(frame)

    def _take_malformed(self, malformed: Malformed) -> None:
        self._exchange.mistakes.note_malformed(Side.SERVER, malformed)
        if malformed.is_response and malformed.key is not None:
            message = f"the server answered with something that is not a response: {malformed.reason}"
            self._take_response(decoded(error_frame(malformed.key, INTERNAL_ERROR, message)))

    def _take_response(self, frame: Frame) -> None:
        work, hook = (None, None) if frame.key is None else self._works.take_answered(frame.key)
        if hook is not None:
            hook(frame)
        elif work is None:
            self._exchange.counters.unmatched += 1
            logger.debug("the server answered what nobody asked, or what was answered")
        elif work.questions is None and not (work.wants_task or work.is_left or self._unclear.open):
            # The server has asked nothing about it, and nothing waits for its end.
            if self._works.is_asking:
                self._works.go_on()
            if work.request is not None:
                self._served.pass_answer(work.request, work.method, frame)
        elif not (work.wants_task and self._promoting.follow(work, frame)):
            self._asking.finish(work, frame)
            self._works.finish(work)
