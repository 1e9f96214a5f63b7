"""A fresh server for every request of one client: what scope `request` means.

Lives here: the life of each server, and what the client is told. Must not: open anything. Made by
`dragoman.proxy` for scope `request`.

Theory of operation. The client's `initialize` goes to a first server, which gives the answer and is not used again.
Every later request opens another server: it gets the same `initialize`, `notifications/initialized`, the log level if
one was set, and the request, and it ends with its answer. No server lasts, so nothing is offered that would need that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.calls import Call, cancelled_key
from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.commands import Close, Outbox, Outcome
from dragoman.core.edges.behind import NOTHING_READ
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.greeting import INITIALIZED_FRAME, Greeting
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.offer import Accepted, InitializeRefused, pass_on
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import (
    Frame,
    Malformed,
    classify,
    decoded,
    error_frame,
    notification_frame,
    read_params,
    request_frame,
    result_frame,
    rewrite,
    twin_of,
)
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.peek import with_id
from dragoman.core.settings import Settings
from dragoman.core.switch.lasting import LASTING, drop_lasting, explain_crowd, explain_lasting
from dragoman.core.translate import Refusal
from dragoman.core.wiring import Wiring

if TYPE_CHECKING:
    from dragoman.core.bridge.verdict import Verdict
    from dragoman.core.edges.per_request_front import PerRequestFront
    from dragoman.core.switch.apart import Apart

_LEVEL_KEY: Final = b'"dragoman-level"'
_QUESTIONS: Final = 1024


@dataclass(slots=True, eq=False)
class Run:
    """One server and what it is for.

    Attributes:
        upstream: Its edge.
        call: The client's request; None for the server that answers `initialize`.
        frame: The request, as the server is to get it.
        tokens: The progress tokens of what it asks.
    """

    upstream: UpstreamEdge
    call: Call | None = None
    frame: Frame | None = None
    tokens: list[Any] = field(default_factory=list)


class PerCall:
    """Joins one client to many servers.

    Args:
        wiring: What the edges need.
        limit: How many requests there may be at once; four times as many servers may still be on their way out.

    Attributes:
        runs: The servers that are at work, by their edges.
        ending: How many are over and not gone yet. Who asks and cancels without end must not start servers without end.
    """

    takes_arrays = False
    wants_lines = True
    own: frozenset[str] = frozenset()
    reads = NOTHING_READ

    def __init__(self, wiring: Wiring, limit: int = 64) -> None:
        self.outbox = Outbox()
        self.runs: dict[UpstreamEdge, Run] = {}
        self.ending = 0
        self._wiring = wiring = dataclasses.replace(wiring, settings=_without_care(wiring.settings))
        self._limit = limit
        self._greeting: Greeting | None = None
        self._revision: str | None = None
        self._level: Any = None
        self._asked: dict[bytes, tuple[Run, bytes]] = {}
        self._questions = 0
        self._apart: Apart | None = None
        self._lasting: UpstreamEdge | None = None  # that has no handshake, so one does for all requests
        self.front = FrontEdge(wiring, self.outbox, self)

    @property
    def servers(self) -> Iterable[UpstreamEdge]:
        """Those that are at work."""
        return list(self.runs)

    def open(self) -> None:
        """Begin."""
        self.front.open()

    def release(self) -> None:
        """Let the edges go of each other, once all peers are gone."""
        self.front.release()
        for upstream in self.runs:
            upstream.release()
        if self._lasting is not None:
            self._lasting.release()
        if self._apart is not None:
            self._apart.release()
        self.runs.clear()
        self._asked.clear()

    # What the front edge says

    def ask(self, front: FrontEdge) -> Refusal | None:
        """Ask a first server."""
        assert front.greeting is not None
        self._greeting = front.greeting
        return self._start(Run(self._new_upstream()))

    def asked(self, front: FrontEdge) -> None:
        """Nothing to do: the server's answer is on its way."""

    def describe_offer(self, front: FrontEdge) -> dict[str, Any]:
        """Say, for the data of an error, what was asked and offered."""
        offers = (upstream.offer for upstream in self.runs)
        return next((offer.describe() for offer in offers if offer is not None), {})

    def serve_requests(self, front: FrontEdge) -> PerRequestFront | None:
        """Let another switch serve such a client, with a server for each request as well."""
        if self._wiring.bridging is None:
            return None
        # Loaded where it is needed, as in `direct`.
        from dragoman.core.switch.apart import Apart

        self._apart = Apart(self._wiring, self._wiring.bridging, self.outbox, front, self._new_upstream, self._limit)
        return self._apart.requests

    def serve_handshake(self, front: FrontEdge) -> None:
        """Begin anew: what was opened so far goes."""
        assert self._apart is not None
        self._apart.close()

    def carry(self, call: Call, frame: Frame) -> None:
        """Open a server for a request."""
        if frame.method == "ping":
            self.front.take_answer(call, result_frame(call.key, {}))
            return
        code, reason = CONNECTION_CLOSED, explain_crowd(len(self.runs), self.ending, self._limit)
        if call.method in LASTING:
            code, reason = METHOD_NOT_FOUND, explain_lasting(call.method)
        if reason:
            self.front.take_answer(call, error_frame(call.key, code, reason))
            return
        refusal = self._start(Run(self._new_upstream(), call, frame))
        if refusal is not None:
            self.front.take_answer(call, error_frame(call.key, refusal.code, refusal.message, refusal.data))

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Take a notification to the server that it concerns; most concern none."""
        if frame.method == "notifications/cancelled":
            key = cancelled_key(frame)
            for run in [run for run in self.runs.values() if run.call is not None and run.call.key == key]:
                if run.upstream.state is UpstreamState.READY:
                    run.upstream.send(frame)
                self._end(run)
        elif frame.method == "notifications/progress":
            token = read_params(frame).get("progressToken")
            for run in self.runs.values():
                if token in run.tokens:
                    run.upstream.send(frame)

    def reply(self, front: FrontEdge, frame: Frame) -> None:
        """Take an answer to the server that asked."""
        run, key = self._asked.pop(frame.key or b"", (None, b""))
        if run is None:
            return
        try:
            run.upstream.send(Frame(with_id(frame, key), frame.kind, key, None))
        except ValueError as error:
            run.upstream.send(error_frame(key, INTERNAL_ERROR, f"the client's answer cannot be read: {error}"))

    # What the upstream edges say

    def take_server(self, upstream: UpstreamEdge, frame: Frame | Malformed) -> None:
        """Take what a server says while it is at work."""
        run = self.runs.get(upstream)
        if run is None:
            return
        if isinstance(frame, Malformed):
            if frame.is_response and run.call is not None and frame.key == run.call.key:
                self._fail(run, f"the server answered with something that is not a response: {frame.reason}")
        elif frame.kind == "batch":
            for one in frame.body:
                self.take_server(upstream, classify(encode_line(one), one))
        elif frame.kind == "request":
            self._take_question(run, frame)
        elif frame.kind == "notification":
            stream = None if run.call is None else run.call.key
            self.front.take_server(frame._replace(stream=stream))
        elif run.call is not None and self._answers(frame, run.call):
            self._finish(run, run.call, frame)

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        """Whether its request still waits for an answer, or the client's `initialize` does."""
        return upstream in self.runs and self.front.state not in (FrontState.FAILED, FrontState.CLOSED)

    def offered(self, upstream: UpstreamEdge) -> None:
        """Nothing to do: nobody is told what a server says before it has agreed to something."""

    def accepted(self, upstream: UpstreamEdge, accepted: Accepted) -> None:
        """Answer the client with what the first server said; let any other do its work."""
        run = self.runs[upstream]
        if run.call is None:
            self._revision = accepted.revision
            self._end(run)
            self.front.accepted(_without_lasting(accepted.answer), accepted.revision)
        elif accepted.revision != self._revision:
            self._fail(run, f"a fresh server speaks {accepted.revision}, and the first one spoke {self._revision}")
        else:
            assert run.frame is not None
            upstream.announce(INITIALIZED_FRAME)
            if self._level is not None:
                upstream.send(request_frame(_LEVEL_KEY, "logging/setLevel", {"level": self._level}))
            upstream.send(run.frame)

    def refused(self, upstream: UpstreamEdge, refused: InitializeRefused) -> None:
        """Tell the client."""
        run = self.runs.get(upstream)
        if run is None:
            return
        if run.call is None:
            self._end(run)
            assert self.front.greeting is not None
            answer = error_frame(self.front.greeting.key, refused.code, refused.message, refused.data)
            self.front.refused(answer, refused.words)
        else:
            self._fail(run, f"a fresh server refused initialize: {refused.message}")

    def failed(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Tell the client."""
        run = self.runs.get(upstream)
        if run is None:  # it has been told already
            return
        if run.call is None:
            self._end(run)
            self.front.failed(failure)
        else:
            self._fail(run, f"a fresh server refused initialize: {failure.message}")

    def interrupted(self, upstream: UpstreamEdge, failure: Refusal) -> None:
        """Never called: no server here is started again."""

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        """Fail the request that it was for, alone."""
        run = self.runs.get(upstream)
        if run is None:
            return
        if run.call is None:
            self._end(run)
            self.front.lost(reason, outcome)
        else:
            self._fail(run, reason)

    def discovered(self, upstream: UpstreamEdge, verdict: Verdict) -> None:
        """Let the bridge between the eras serve the client: the server has no handshake, nothing lasts there."""
        run = self.runs.pop(upstream)
        if run.call is not None:
            self.runs[upstream] = run
            self._fail(run, "a fresh server has no handshake, and the first one had")
            return
        # Loaded where it is needed, as in `direct`.
        from dragoman.core.edges.per_request import PerRequestEdge
        from dragoman.core.switch.per_request.switch import PerRequest

        self._lasting = upstream
        PerRequest(self._wiring, self.outbox, self.front, PerRequestEdge(upstream), verdict).begin()

    def gone(self, upstream: UpstreamEdge) -> None:
        """Take note that a server is gone which was closed."""
        if upstream is not self._lasting and (self._apart is None or not self._apart.note_gone(upstream)):
            self.ending -= 1

    def _new_upstream(self) -> UpstreamEdge:
        return UpstreamEdge(self._wiring.settings, self.outbox, self)

    def _start(self, run: Run) -> Refusal | None:
        greeting = self._greeting
        assert greeting is not None, "the first call is initialize"
        self.runs[run.upstream] = run
        run.upstream.open()
        introduce = pass_on(greeting, self._wiring, self.front.exchange.counters)
        refusal = run.upstream.ask(greeting, introduce, greeting.key)
        if refusal is not None:
            self._end(run)
        return refusal

    def _take_question(self, run: Run, frame: Frame) -> None:
        """Pass a server's request on, under an id that no other server of this client uses."""
        assert frame.key is not None
        if frame.method == "ping":
            run.upstream.send(result_frame(frame.key, {}))
        elif run.upstream.state is not UpstreamState.READY:
            run.upstream.send(error_frame(frame.key, INVALID_REQUEST, "expected the answer to initialize first"))
        elif len(self._asked) >= _QUESTIONS:
            reason = f"more than {_QUESTIONS} requests of servers are unanswered"
            run.upstream.send(error_frame(frame.key, CONNECTION_CLOSED, reason))
        else:
            self._questions += 1
            key = b"%d" % self._questions
            self._asked[key] = run, frame.key
            meta = read_params(frame).get("_meta")
            if isinstance(meta, dict) and "progressToken" in meta and len(run.tokens) < _QUESTIONS:
                run.tokens.append(meta["progressToken"])
            stream = None if run.call is None else run.call.key
            self.front.take_server(Frame(_with_id(frame, key), "request", key, frame.method, None, stream))

    def _finish(self, run: Run, call: Call, frame: Frame) -> None:
        if call.method == "logging/setLevel" and frame.kind == "result" and run.frame is not None:
            self._level = read_params(run.frame).get("level")
        if frame.key != call.key:
            frame = Frame(_with_id(frame, call.key), frame.kind, call.key, None)
        self._end(run)
        self.front.take_answer(call, frame)

    def _answers(self, frame: Frame, call: Call) -> bool:
        if frame.key is None or frame.key == call.key:
            return frame.key is not None
        return self._wiring.settings.restore_ids and call.key == twin_of(frame.key)

    def _fail(self, run: Run, reason: str) -> None:
        self._end(run)
        if run.call is not None:
            answer = error_frame(run.call.key, CONNECTION_CLOSED, reason, {"method": run.call.method})
            self.front.take_answer(run.call, answer)

    def _end(self, run: Run) -> None:
        if self.runs.pop(run.upstream, None) is None:
            return
        for key in [key for key, (asking, _) in self._asked.items() if asking is run]:
            del self._asked[key]
            params = {"requestId": decode(key), "reason": "the server that asked is gone"}
            # Or the session would wait for its client for ever.
            self.front.take_server(notification_frame("notifications/cancelled", params))
        self.ending += 1
        self.outbox.add(Close(run.upstream))


def _with_id(frame: Frame, key: bytes) -> bytes:
    try:
        return with_id(frame, key)
    except ValueError:  # whoever it is passed on to will say so
        return frame.raw


def _without_lasting(frame: Frame) -> Frame:
    body = decoded(frame).body
    drop_lasting(body["result"].get("capabilities"))
    return rewrite(frame, body)


def _without_care(settings: Settings) -> Settings:
    """Leave out what is for servers that last."""
    return dataclasses.replace(settings, restart=None, health_s=None)
