"""A client with a handshake, and a server of the per-request era: what joins them.

Lives here: what the client is told of the server, what it asks that its server does not have, and the calls that are
under way. Must not: touch sockets or a clock. Made by another switch, once its server has turned out to have no
handshake; from then on it serves the client in its place.

Theory of operation. The client's session is all ours: `initialize`, `ping`, the log level and subscriptions end here.
What it asks of the server crosses by the steps, gets the metadata of the session stamped onto it, and runs as a
`CallStepper`, which turns results that want input into questions on the stream of the call. What comes back crosses by
the steps again. A server that is lost has kept nothing: its calls fail, and the next request opens it again.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Final

from dragoman.core.calls import Call, cancelled_key, read_reason
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.commands import Outbox, Side
from dragoman.core.edges.backend import NOTHING_READ
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.per_request import PerRequestEdge
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, error_frame, result_frame
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import CALL_TOOL, CANCELLED, INITIALIZED, PING, PROGRESS, SET_LEVEL
from dragoman.core.rules.capabilities import bridges_tasks
from dragoman.core.rules.discovery import to_initialize_result
from dragoman.core.rules.names import DISCOVER, FACTS, NEWER, OLDER, OLDER_FACTS
from dragoman.core.rules.verdict import Verdict
from dragoman.core.switch.to_stateless.hop import Hop
from dragoman.core.switch.to_stateless.running import CallStepper
from dragoman.core.switch.to_stateless.subscriptions import ClientSubscriptions
from dragoman.core.switch.to_stateless.tasking import METHODS, UPDATE, ClientTasks
from dragoman.core.unchecked import find_object

logger = logging.getLogger("dragoman.session")

_ROOTS_CHANGED: Final = "notifications/roots/list_changed"


class ToStateless:
    """Joins one client with a handshake to a server without.

    Args:
        wiring: What the edges need.
        outbox: Where commands go.
        front: The client's edge, whose `initialize` waits for an answer.
        edge: The server's.
        verdict: What the server said of itself.

    Attributes:
        hop: What its calls and streams need.
    """

    takes_arrays = False
    wants_lines = False
    own: frozenset[str] = frozenset(
        {PING, SET_LEVEL, INITIALIZED, CANCELLED, PROGRESS, _ROOTS_CHANGED, *OLDER_FACTS.standing}
    )
    reads = NOTHING_READ

    def __init__(
        self, wiring: Wiring, outbox: Outbox, front: FrontEdge, edge: PerRequestEdge, verdict: Verdict
    ) -> None:
        assert verdict.revision is not None
        assert verdict.discovered is not None
        self.front = front
        self.hop = hop = Hop(wiring, outbox, front, edge, verdict.revision)
        self._server_name = (wiring.bridging and wiring.bridging.server) or "server"
        discovered = verdict.discovered
        if hop.way is not None:
            told = Frame(b"", "result", b"0", None, {"jsonrpc": "2.0", "id": 0, "result": discovered})
            discovered = hop.way.answer(told, DISCOVER).body.get("result", discovered)
        self._capabilities = find_object(discovered, "capabilities")
        if wiring.settings.assume_logging:
            self._capabilities = {"logging": {}, **self._capabilities}
        self._discovered = {**discovered, "capabilities": self._capabilities}
        self._tasks: ClientTasks | None = None
        if wiring.bridging is not None and bridges_tasks(hop.path, self._capabilities):
            self._tasks = ClientTasks(hop, wiring, wiring.bridging)
            self.reads = self._tasks.reads
        self._subscriptions = ClientSubscriptions(hop, self._capabilities)

    def begin(self) -> None:
        """Serve the client: answer its `initialize`."""
        greeting = self.front.expect_greeting()
        self.front.exchange.serve(self)
        introduced = to_initialize_result(self._discovered, self.hop.path, self._server_name)
        self.hop.report("the answer to initialize", introduced.losses)
        body = {"jsonrpc": "2.0", "id": decode(greeting.key), "result": introduced.result}
        answer = Frame(encode_line(body), "result", greeting.key, None, body)
        self.front.accepted(answer, OLDER, NEWER)

    def close(self) -> None:
        """Let go of a server that others use as well: the client is gone."""
        self._subscriptions.close()
        self.hop.schedule.clear()
        self.hop.edge.withdraw_all(self.hop, "the client has closed")

    # What the front edge says

    def carry(self, call: Call, frame: Frame) -> None:
        """Take a request of the client: answer it, or send it to the server."""
        body = frame.body
        if body is None:
            try:
                body = decode(frame.raw)
            except ValueError as error:
                self.front.take_answer(call, error_frame(call.key, PARSE_ERROR, str(error)), own=True)
                return
        params = body.get("params", {})
        params = params if isinstance(params, dict) else {}
        if self._tasks is not None and call.method in METHODS:
            self._tasks.take_request(call, params)
        elif call.method == UPDATE:
            message = f"{UPDATE} is no method of this session's revision"
            self.front.take_answer(call, error_frame(call.key, METHOD_NOT_FOUND, message), own=True)
        elif call.method not in self.own:
            wants_task = call.method == CALL_TOOL and call.translate is not None
            running = CallStepper(self.hop, call, wants_task)
            if self.hop.tools.has_headers and self.hop.tools.needs_list(call.method, params):
                self.hop.tools.list(self.hop.ask_page, lambda: running.send(call.method, params))
            else:
                running.send(call.method, params)
        elif call.method == SET_LEVEL:
            self.front.take_answer(call, self._set_level(call, params), own=True)
        elif call.method == PING:
            self.front.take_answer(call, result_frame(call.key, {}), own=True)
        else:
            self._subscriptions.take_request(call, params)

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Take a notification of the client: all that it has are about its session."""
        if frame.method == CANCELLED:
            call = front.exchange.calls[Side.CLIENT].cancelled.get(cancelled_key(frame) or b"")
            if call is not None and call.at_server is not None:
                call.at_server(read_reason(frame))
        elif frame.method == INITIALIZED:
            self._subscriptions.reach()
        elif frame.method == _ROOTS_CHANGED:
            self.hop.client = replace(self.hop.client, roots=None)
        elif frame.method not in self.own:
            logger.info("%s of the client dropped: servers of %s do not take it", frame.method, self.hop.path.server)

    def reply(self, front: FrontEdge, frame: Frame) -> None:
        """Nothing to do: who asks the client something takes the answer."""

    def _set_level(self, call: Call, params: dict[str, Any]) -> Frame:
        level = params.get("level")
        if "logging" not in self._capabilities:
            return error_frame(call.key, METHOD_NOT_FOUND, "the server does not offer logging")
        if level not in FACTS.log_levels:
            message = f"expected level to be one of {', '.join(FACTS.log_levels)}"
            return error_frame(call.key, INVALID_PARAMS, message, {"pointer": "/params/level"})
        self.hop.say(self.hop.metadata._replace(log_level=level))
        return result_frame(call.key, {})
