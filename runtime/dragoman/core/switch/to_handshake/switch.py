"""Joins clients that open no session to a server that opens one.

Lives here: the entry points: opening the server in the client's name, requests and their answers. Must not: touch
sockets or a clock. Made by `switch.direct`; called by the edges.

Theory of operation. The first request of the client opens the server's session, with the capabilities of everybody who
can be bridged, for they are fixed there, and each request brings its own; requests wait until it is open. From then on
a request goes to the server under an id of ours, over the steps, and its answer comes back the same way. What the
server asks meanwhile is for `asking`, what it tells for `hearing`. When the server is lost, so is everything.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.bridge.capabilities import Path, Scope
from dragoman.core.bridge.discovery import to_discover_result
from dragoman.core.bridge.names import FACTS, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, NEWER, OLDER
from dragoman.core.bridge.replay import Replay
from dragoman.core.bridge.strategy import Strategy, promotes
from dragoman.core.bridge.verdict import Verdict
from dragoman.core.commands import Alarm, Outbox, Outcome, Side, Wake
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.greeting import INITIALIZED_FRAME
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, pass_on
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, Malformed, decoded
from dragoman.core.exact_json import encode_line
from dragoman.core.failures import CONNECTION_CLOSED, Failed
from dragoman.core.negotiation import SAME
from dragoman.core.switch.relay import make_relay
from dragoman.core.switch.to_handshake.answers import Answers, VisitFirst
from dragoman.core.switch.to_handshake.arguments import ArgumentHeaders
from dragoman.core.switch.to_handshake.asking import Asking
from dragoman.core.switch.to_handshake.frames import ServerFrames
from dragoman.core.switch.to_handshake.hearing import ServerNotices
from dragoman.core.switch.to_handshake.listed import LIST, ListedTools
from dragoman.core.switch.to_handshake.native import ServerTasks
from dragoman.core.switch.to_handshake.promoting import Promoting
from dragoman.core.switch.to_handshake.reading import without_answers, write_greeting, write_request
from dragoman.core.switch.to_handshake.visiting import ask_to_visit
from dragoman.core.switch.to_handshake.works import Work, Works
from dragoman.core.translate import Adaptor, Refusal
from dragoman.core.wiring import Bridging, Wiring
from dragoman.errors import InitializationTimeout, RemoteProtocolError

if TYPE_CHECKING:
    from dragoman.core.switch.apart import Apart

logger = logging.getLogger("dragoman.bridge")

_LISTEN: Final = "subscriptions/listen"
_DISCOVER: Final = FACTS.lifecycle["discover"]


class ToHandshake:
    """Serves the requests of one connection at one server.

    Args:
        wiring: What the edges need.
        bridging: What the bridge needs.
        outbox: Where commands go.
        front: The edge that has the connection.
        upstream: The server's, whose owner this becomes.
        apart: Who gives requests to several of these; None where this one serves all.

    Attributes:
        requests: The client's edge, as far as requests go.
        label: Random text that the names of all its calls begin with.
    """

    def __init__(
        self,
        wiring: Wiring,
        bridging: Bridging,
        outbox: Outbox,
        front: FrontEdge,
        upstream: UpstreamEdge,
        apart: Apart | None = None,
    ) -> None:
        counters, lasts = front.exchange.counters, apart is None
        scope: Scope = "shared" if bridging.shares_server else "client"
        self.requests = PerRequestFront(front, wiring.settings, counters, self) if apart is None else apart.requests
        self.label = bridging.nonce().hex()
        self._apart = apart
        self.upstream = upstream
        self._wiring = wiring
        self._bridging = bridging
        self._outbox = outbox
        self._front = front
        self._path = Path(NEWER, OLDER, scope, tasks=lasts, promotes=lasts and promotes(bridging.questions))
        self._works = Works(upstream, wiring.settings.restore_ids, self.label)
        self._waiting: list[Request] = []
        self._opens_until_s: float | None = None
        self._wakes_at_s: float | None = None
        self._alarm = Alarm(front, self._expire)
        self._asking: Asking | None = None
        self._hearing: ServerNotices | None = None
        self._frames: ServerFrames | None = None
        self._discovered: dict[str, Any] = {}
        self._upward = self._downward = Adaptor(None, wiring.settings.on_loss, counters)
        self._answers = Answers(self._path, {}, self._downward)
        self._listed = ListedTools(self._works)
        self._promoting = Promoting(bridging, self.requests, upstream, self._works, self._answers)
        self._tasks: ServerTasks | None = None
        self._headers = ArgumentHeaders(self._listed, is_checked=False)
        upstream.hand_to(self)

    def release(self) -> None:
        """Let go of everything, once the session is over."""
        if self._apart is None:
            self.requests.release()
        if self._wakes_at_s is not None:
            self._outbox.add(Wake(self._alarm, None))
        self._works.clear()
        self._asking = self._hearing = self._tasks = self._frames = self._apart = None
        self._opens_until_s = self._wakes_at_s = None
        del self._front, self._alarm

    # What the client's edge says

    def carry(self, request: Request) -> None:
        """Serve a request, once the server's session is open."""
        if self.upstream.state is UpstreamState.LOST:
            self.requests.refuse(request, CONNECTION_CLOSED, "the server has gone")
        elif self._asking is not None:  # the server's edge keeps what it cannot send just now
            self._serve(request)
        else:
            self._waiting.append(request)
            if self.upstream.state is UpstreamState.IDLE:
                self._open(request)
        self._schedule()

    def cancel(self, request: Request, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        if request in self._waiting:
            self._waiting.remove(request)
        elif self._hearing is not None and not self._hearing.stop_listening(request):
            work = self._works.find_for(request)
            if work is not None and self._asking is not None:
                self._asking.forget(work)
                self._works.cancel(work, reason)
        self._schedule()

    def finished(self, request: Request) -> None:
        """Let the server say less, if this was the request that wanted more."""
        if self._hearing is not None:
            self._hearing.finish(request, self._bridging.steady_s())

    def leave(self, reason: str) -> None:
        """Give up what waits for the client to come back, and end the streams that would never end."""
        if self._asking is not None:
            self._asking.leave(reason)
        if self._hearing is not None:
            self._hearing.end_all(reason)

    def _expire(self) -> None:
        """Do what is due."""
        self._wakes_at_s = None
        if self._opens_until_s is not None and self._opens_until_s <= self._bridging.steady_s():
            error = InitializationTimeout("the server's answer to initialize", self._wiring.settings.init_timeout_s)
            self._lose(str(error), Outcome.INITIALIZATION_TIMED_OUT)
            return
        if self._asking is not None:
            self._asking.expire()
        if self._hearing is not None:
            self._hearing.settle(self._bridging.steady_s())
        self._schedule()

    def _schedule(self) -> None:
        """Ask to be woken when something is due."""
        next_s = self._opens_until_s
        for part in (self._asking, self._hearing):
            due_s = None if part is None else part.next_s
            if due_s is not None and (next_s is None or due_s < next_s):
                next_s = due_s
        if next_s != self._wakes_at_s:
            self._wakes_at_s = next_s
            after_s = None if next_s is None else max(0.0, next_s - self._bridging.steady_s())
            self._outbox.add(Wake(self._alarm, after_s))
        if self._apart is not None:
            self._apart.settle(self)

    @property
    def is_idle(self) -> bool:
        """Whether the server is at work on nothing, and nothing waits for it."""
        return not (self._waiting or self._listed.is_listing or any(self._works))

    @property
    def is_parking(self) -> bool:
        """Whether a client is to come back for something."""
        return self._asking is not None and bool(self._asking.parking)

    # Opening the server's session

    def _open(self, request: Request) -> None:
        if self._wiring.settings.server_revision == SAME:
            self.upstream.pin()
            return
        greeting = write_greeting(request, self._path)
        settings, counters = self._wiring.settings, self._front.exchange.counters
        introduce = pass_on(greeting, self._wiring.translate, settings, counters)
        self._opens_until_s = self._bridging.steady_s() + settings.init_timeout_s
        is_known = self._apart is not None and self._apart.has_handshake
        refusal = self.upstream.ask(greeting, introduce, greeting.key, needs_session=is_known)
        if refusal is not None:
            self._fail_waiting(Failed(refusal.code, refusal.message, refusal.data))

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        """Whether the client is there, or waits for answers."""
        return self._front.state in (FrontState.PER_REQUEST, FrontState.CLOSING)

    def offered(self, upstream: UpstreamEdge) -> None:
        """Nothing to do: nobody hears what a server says before it has agreed to something."""

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """Go on with what waits."""
        revision = accepted.revision
        adapted = self._adaptor(Side.SERVER, revision, OLDER).adapt(accepted.answer, "initialize")
        if isinstance(adapted, Refusal):
            self._fail_waiting(Failed(adapted.code, adapted.message, adapted.data))
            return
        initialized = decoded(accepted.answer if adapted is None else adapted).body["result"]
        self._opens_until_s = None
        if self._apart is not None:
            self._apart.note_opened(initialized.get("capabilities"))
        self._discovered, losses = to_discover_result(initialized, self._path)
        if losses:
            named = ", ".join(loss.pointer for loss in losses)
            logger.warning("the client is not told of what its revision does not have: %s", named)
        info = initialized.get("serverInfo")
        self._upward = self._adaptor(Side.CLIENT, NEWER, revision)
        self._downward = self._adaptor(Side.SERVER, revision, NEWER)
        strips = not self._bridging.shares_channel
        self._answers = Answers(self._path, info if isinstance(info, dict) else {}, self._downward, strips)
        capabilities = initialized.get("capabilities")
        self._serve_session(upstream, revision, capabilities if isinstance(capabilities, dict) else {})
        logger.info("the server speaks %s, the client %s", revision, NEWER)
        upstream.announce(INITIALIZED_FRAME)
        for request in self._take_waiting():
            self._serve(request)
        self._schedule()

    def _serve_session(self, upstream: UpstreamEdge, revision: str, capabilities: Mapping[str, Any]) -> None:
        bridging, front, works = self._bridging, self.requests, self._works
        self._headers = ArgumentHeaders(self._listed, not bridging.shares_channel and "tools" in capabilities)
        self._promoting = promoting = Promoting(bridging, front, upstream, works, self._answers)
        self._asking = Asking(bridging, front, upstream, works, self, promoting, self._listed, revision)
        self._tasks = ServerTasks(bridging, front, works, promoting, self._listed, capabilities, revision)
        self._hearing = ServerNotices(
            front,
            self.answer,
            works,
            promoting,
            self._tasks,
            self._listed,
            self._downward,
            capabilities,
            bridging.shares_channel,
        )
        parts = self._asking, self._hearing, self._tasks
        self._frames = ServerFrames(works, *parts, self._front.exchange, self.take_answer)

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """Hand on from here on: the server has no handshake, and there is nothing to bridge."""
        self._opens_until_s = None
        relay = make_relay(self._front, self.requests, upstream, self._bridging)
        waiting = self._take_waiting()
        if self._apart is None:
            self.requests.hand_to(relay)
        else:
            self._apart.relayed(self, relay)
            self._apart = None
        self._schedule()
        for request in waiting:
            relay.carry(request)

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """Tell who waits; the next request tries again."""
        self._fail_waiting(Failed(INTERNAL_ERROR, f"the server refused initialize: {refused.words}", {}))

    def failed(self, upstream: UpstreamEdge, failure: Failed) -> None:
        """Tell who waits; the next request tries again."""
        self._fail_waiting(Failed(INTERNAL_ERROR, failure.message, failure.data))

    def interrupted(self, upstream: UpstreamEdge, failure: Failed) -> None:
        """Answer what is with the server, parked calls too: they cannot go on in another one."""
        for key in self._works.open_keys:
            self.take_server(upstream, failure.answer(key))

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """End the session with that of its server."""
        self._lose(reason, outcome)

    def _lose(self, reason: str, outcome: Outcome) -> None:
        self._opens_until_s = None
        if self._apart is None:
            self._front.lost(reason, outcome)
        else:
            self._apart.lost(self, reason)

    def _fail_waiting(self, failure: Failed) -> None:
        self._opens_until_s = None
        for request in self._take_waiting():
            self.requests.refuse(request, failure.code, failure.message, failure.data)
        self._schedule()

    def _take_waiting(self) -> list[Request]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _adaptor(self, side: Side, source: str, target: str) -> Adaptor:
        way, settings = self._wiring.translate(source, target), self._wiring.settings
        counters = self._front.exchange.counters
        return Adaptor(None if way.identity else way, settings.on_loss, counters, side, settings.watch)

    # Requests and their answers

    def _serve(self, request: Request) -> None:
        if self._headers.needs_list(request):
            self._listed.list(lambda: self._serve_checked(request))
        else:
            self._serve_checked(request)

    def _serve_checked(self, request: Request) -> None:
        if self.requests.requests.get(request.key) is not request:
            return  # it was cancelled meanwhile
        asking, hearing, tasks = self._asking, self._hearing, self._tasks
        assert asking is not None
        assert hearing is not None
        assert tasks is not None
        try:
            self._headers.check(request)
            if request.method == _DISCOVER:
                self.requests.answer(request, self._discovered)
                return
            if request.method == _LISTEN:
                hearing.listen(request)
                return
            hearing.prepare(request)
            if not self._promoting.serve(request) and not asking.resume(request):
                tasks.prepare(request, lambda: self.start(request, without_answers(request.params)))
        except RemoteProtocolError as error:
            logger.warning("%s request of the client refused: %s", request.method, error.message)
            self.requests.refuse(request, error.code, error.message, error.data)
        except ValueError as error:
            self.requests.refuse(request, INVALID_PARAMS, str(error))

    def start(self, request: Request, params: Mapping[str, Any], attempt: Replay | None = None) -> None:
        """Send the server a request with these params; one that was made before has its answers recorded."""
        assert self._tasks is not None
        work = self._works.new_work(request)
        if attempt is not None:
            work.way, work.replay = Strategy.REPLAY, attempt
        frame = write_request(request, work.key, params)
        adapted = self._upward.adapt(frame, request.method)
        if adapted is None:
            reason = f"the server's revision has no {request.method}"
            self.requests.refuse(request, METHOD_NOT_FOUND, reason, {"method": request.method})
        elif isinstance(adapted, Refusal):
            self.requests.refuse(request, adapted.code, adapted.message, adapted.data)
        else:
            work.frame = adapted if adapted.raw else adapted._replace(raw=encode_line(frame.body), body=None)
            work.frame = self._tasks.ask_for(work, work.frame)
            self._works.start(work)

    def answer(self, request: Request, result: dict[str, Any]) -> None:
        """Answer with a result in the form of 2026-07-28; it says whose it is."""
        self.requests.answer(request, self._answers.sign(result))

    def take_answer(self, work: Work, frame: Frame) -> None:
        """Give the server's answer to who waits for it."""
        request = work.request
        if request is None:
            return
        if work.method == LIST:
            frame = self._listed.read(frame)
        said = self._answers.spell(work.method, frame, request.key, request.id)
        if isinstance(said, VisitFirst):
            ask_to_visit(request, said.error, self._bridging, self.requests, self.answer)
        elif isinstance(said, Frame):
            self.requests.put_frame(request, said)
        else:
            self.requests.refuse(request, said.code, said.message, said.data)

    # What the server says

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Take what the server says."""
        if self._frames is not None:
            self._frames.take(frame)
        elif isinstance(frame, Malformed):
            self._front.exchange.reject(Side.SERVER, frame)
        else:
            logger.debug("%s of the server dropped: its session is not open", frame.kind)
        self._schedule()
