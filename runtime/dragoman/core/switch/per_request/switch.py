"""A client with a handshake, and a server of the per-request era: the bridge of the cell that BRIDGE calls LM.

Lives here: what the client is told of the server, what it asks that its server does not have, and the calls that are
under way. Must not: touch sockets or a clock. Made by another switch, once its server has turned out to have no
handshake; from then on it serves the client in its place.

Theory of operation. The client's session is all ours: `initialize`, `ping`, the log level and subscriptions end here.
What it asks of the server crosses by the steps, gets the metadata of the session stamped onto it, and runs as a
`RunningCall`, which turns results that want input into questions on the stream of the call. What comes back crosses by
the steps again. A server that is lost has kept nothing: its calls fail, and the next request opens it again.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from dragoman.core.bridge.capabilities import Path, bridges_tasks
from dragoman.core.bridge.discovery import read_initialize, to_initialize_result
from dragoman.core.bridge.inputs import Asked
from dragoman.core.bridge.metadata import Metadata, spell, stamp_spelled, take_identity
from dragoman.core.bridge.names import FACTS, OLDER, OLDER_FACTS
from dragoman.core.bridge.questions import embed_answer
from dragoman.core.bridge.verdict import Verdict
from dragoman.core.calls import Call, cancelled_key, read_reason
from dragoman.core.codes import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR
from dragoman.core.commands import Outbox
from dragoman.core.edges.behind import NOTHING_READ
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import FrontState
from dragoman.core.edges.per_request import Asker, Lent, PerRequestEdge
from dragoman.core.envelope import Frame, Refusal, decoded, error_frame, id_of, new_frame, read_params, result_frame
from dragoman.core.exact_json import decode, encode, encode_line
from dragoman.core.failures import connection_closed
from dragoman.core.methods import CALL_TOOL, CANCELLED, INITIALIZED, LIST_TOOLS, PING, PROGRESS, ROOTS, SET_LEVEL
from dragoman.core.switch.per_request.hearing import ClientNotices
from dragoman.core.switch.per_request.running import RunningCall
from dragoman.core.switch.per_request.tasking import METHODS, ClientTasks
from dragoman.core.switch.tool_headers import PageAsker, TakePage, ToolHeaders
from dragoman.core.translate import OnLoss
from dragoman.core.wiring import Wiring
from dragoman.errors import TranslationError
from dragoman_spec import Loss

logger = logging.getLogger("dragoman.session")

QUESTION_ID: Final = "dragoman-question-"
"""How the ids of the questions to a client begin: nobody else asks it anything."""

_ROOTS_CHANGED: Final = "notifications/roots/list_changed"


class PerRequest:
    """Joins one client with a handshake to a server without.

    Args:
        wiring: What the edges need.
        outbox: Where commands go.
        front: The client's edge, whose `initialize` waits for an answer.
        edge: The server's.
        verdict: What the server said of itself.

    Attributes:
        path: The way between the two.
        metadata: What every request says of the client.
        sender: Whose share of the places at the server its requests take; empty where nobody has a share.
        tools: Which arguments of the server's tools go in headers.
    """

    sender = ""
    takes_arrays = False
    wants_lines = False
    own: frozenset[str] = frozenset(
        {PING, SET_LEVEL, INITIALIZED, CANCELLED, PROGRESS, _ROOTS_CHANGED, *OLDER_FACTS.standing}
    )
    reads = NOTHING_READ

    def __init__(
        self, wiring: Wiring, outbox: Outbox, front: FrontEdge, edge: PerRequestEdge, verdict: Verdict
    ) -> None:
        greeting = front.greeting
        assert greeting is not None
        assert verdict.revision is not None
        assert verdict.discovered is not None
        self.outbox = outbox
        self.front = front
        self.edge = edge
        self.now_s: Callable[[], float] = wiring.now_s
        bridging = wiring.bridging
        self.path = Path(client=greeting.revision, server=verdict.revision, tasks=bridging is not None)
        params = read_params(greeting.frame)
        metadata, losses = read_initialize(params, self.path)
        self._with_tasks = read_initialize(params, self.path, wants_task=True)[0].capabilities
        self._say(metadata)
        self._settings = wiring.settings
        self._server_name = (wiring.bridging and wiring.bridging.server) or "server"
        self._running: dict[bytes, RunningCall] = {}
        self._posed: dict[bytes, RunningCall] = {}
        self._questions = 0
        self.tools = ToolHeaders(sends=edge.upstream.takes_headers, hears=False)
        self._client = Asked(greeting.revision, greeting.capabilities)
        capabilities = verdict.discovered.get("capabilities")
        self._capabilities: dict[str, Any] = capabilities if isinstance(capabilities, dict) else {}
        if wiring.settings.assume_logging:
            self._capabilities = {"logging": {}, **self._capabilities}
        self._discovered = {**verdict.discovered, "capabilities": self._capabilities}
        self._tasks: ClientTasks | None = None
        if bridging is not None and bridges_tasks(self.path, self._capabilities):
            self._tasks = ClientTasks(self, wiring, bridging)
            self.reads = self._tasks.reads
        self._hearing = ClientNotices(self, self._capabilities)
        self.report("initialize", losses)

    def begin(self) -> None:
        """Serve the client: answer its `initialize`."""
        greeting = self.front.greeting
        assert greeting is not None
        self.front.serve(self)
        introduced = to_initialize_result(self._discovered, self.path, self._server_name)
        self.report("the answer to initialize", introduced.losses)
        body = {"jsonrpc": "2.0", "id": decode(greeting.key), "result": introduced.result}
        answer = Frame(encode_line(body), "result", greeting.key, None, body)
        self.front.accepted(answer, OLDER, self.path.server)

    def close(self) -> None:
        """Let go of a server that others use as well: the client is gone."""
        for running in list(self._running.values()):
            running.cancel("the client has closed")
        self._hearing.close()
        self._running.clear()
        self._posed.clear()

    @property
    def client(self) -> Asked:
        """The client, as far as questions go."""
        return self._client

    # What the front edge says

    def ask(self, front: FrontEdge) -> Refusal | None:
        """Nothing to do: a client that is served here has asked."""

    def asked(self, front: FrontEdge) -> None:
        """Nothing to do."""

    def describe_offer(self, front: FrontEdge) -> dict[str, Any]:
        """Nothing was offered."""
        return {}

    def serve_requests(self, front: FrontEdge) -> None:
        """Nothing to do: the client has opened a session."""

    def serve_handshake(self, front: FrontEdge) -> None:
        """Nothing to do: there is one already."""

    def carry(self, call: Call, frame: Frame) -> None:
        """Take a request of the client: answer it, or send it to the server."""
        body = frame.body
        if body is None:
            try:
                body = decode(frame.raw)
            except ValueError as error:
                self.front.take_answer(call, error_frame(call.key, PARSE_ERROR, str(error)), own=True)
                return
        params = body.get("params")
        params = params if isinstance(params, dict) else {}
        if self._tasks is not None and call.method in METHODS:
            self._tasks.take_request(call, params)
        elif call.method not in self.own:
            wants_task = call.method == CALL_TOOL and call.translate is not None
            running = self._running[call.key] = RunningCall(self, self, call, wants_task)
            if self.tools.needs_list(call.method, params):
                self.tools.list(self.ask_page, lambda: running.send(call.method, params))
            else:
                running.send(call.method, params)
        elif call.method == SET_LEVEL:
            self.front.take_answer(call, self._set_level(call, params), own=True)
        elif call.method == PING:
            self.front.take_answer(call, result_frame(call.key, {}), own=True)
        else:
            self._hearing.take_request(call, params)

    def notify(self, front: FrontEdge, frame: Frame) -> None:
        """Take a notification of the client: all that it has are about its session."""
        if frame.method == CANCELLED:
            key = cancelled_key(frame)
            running = None if key is None else self._running.pop(key, None)
            if running is not None:
                running.cancel(read_reason(frame))
        elif frame.method == INITIALIZED:
            self._hearing.reach()
        elif frame.method == _ROOTS_CHANGED:
            self._client = replace(self._client, roots=None)
        elif frame.method not in self.own:
            logger.info("%s of the client dropped: servers of %s do not take it", frame.method, self.path.server)

    def reply(self, front: FrontEdge, frame: Frame) -> None:
        """Take the client's answer to a question."""
        running = self._posed.pop(frame.key or b"", None)
        if running is None or frame.key is None:
            return
        try:
            body = decoded(frame).body
        except ValueError as error:
            body = {"error": {"code": PARSE_ERROR, "message": str(error)}}
        running.take_reply(frame.key, body)

    # What calls and streams need

    def send(self, asker: Asker, method: str, params: Mapping[str, Any], *, takes_tasks: bool = False) -> Lent:
        """Send a request to the server, with the client's metadata, which may say that it takes tasks."""
        stamped = stamp_spelled(params, self._spelled_with_tasks if takes_tasks else self._spelled)
        return self.edge.ask(asker, method, stamped, self.tools.mirrored(method, stamped), sender=self.sender)

    def ask_page(self, params: dict[str, Any], take: TakePage) -> None:
        """Ask for a page of the list of tools."""
        self.send(PageAsker(self, take), LIST_TOOLS, params)

    def hold(self, call: Call, running: RunningCall) -> None:
        """Take note of what is done about a request, in case that its client cancels it."""
        self._running[call.key] = running

    def next_question(self, posed: RunningCall) -> bytes:
        """Give an id for a question to the client."""
        self._questions += 1
        key = encode(f"{QUESTION_ID}{self._questions}")
        self._posed[key] = posed
        return key

    def pose(self, frame: Frame) -> None:
        """Ask the client something, in its own revision."""
        if self.front.state not in (FrontState.READY, FrontState.DRAINING):
            self.reply(self.front, connection_closed("the client has closed").answer(frame.key))
        elif (unfit := self.front.exchange.pose(frame)) is not None:
            self.reply(self.front, connection_closed(unfit.value).answer(frame.key))

    def withdraw(self, key: bytes, reason: str) -> None:
        """Take back a question that the client has not answered."""
        if self._posed.pop(key, None) is not None:
            self.front.exchange.withdraw(key, reason)

    def forget(self, call: Call) -> None:
        """Take note that a call is over."""
        self._running.pop(call.key, None)

    # How a call is answered

    def finish(self, call: Call, result: Mapping[str, Any]) -> None:
        """With a result of the server."""
        rest = take_identity(result)[0] if "_meta" in result else result
        if call.method == LIST_TOOLS:
            rest = self.tools.note(rest)
        body = {"jsonrpc": "2.0", "id": id_of(call.key), "result": rest}
        self.front.take_answer(call, new_frame(Frame, (b"", "result", call.key, None, body, None, (), "")))

    def fail(self, call: Call, code: int, message: str, data: Mapping[str, Any] | None) -> None:
        """With an error of ours."""
        answer = error_frame(call.key, code, message, {"method": call.method, **(data or {})})
        self.front.take_answer(call, answer, own=True)

    def pass_error(self, call: Call, error: dict[str, Any]) -> None:
        """With an error of the server."""
        body = {"jsonrpc": "2.0", "id": decode(call.key), "error": error}
        self.front.take_answer(call, Frame(b"", "error", call.key, None, body))

    def note_roots(self, result: object) -> None:
        """Take note of the client's roots, if it is going to say when they change."""
        roots = self._client.capabilities.get("roots")
        if isinstance(roots, dict) and roots.get("listChanged") is True and isinstance(result, dict):
            with contextlib.suppress(TranslationError):
                found = embed_answer(ROOTS, result, self._client.revision).result
                self._client = replace(self._client, roots=found.get("roots"))

    def report(self, what: str, losses: tuple[Loss, ...]) -> None:
        """Count losses that no frame had, and log them."""
        if losses:
            counters = self.front.exchange.counters
            counters.lossy += 1
            counters.losses += len(losses)
            if self._settings.on_loss is not OnLoss.SILENT:
                way = f"{self.path.client} and {self.path.server}"
                logger.warning("%s, between %s: %s", what, way, _describe_losses(losses))

    def _set_level(self, call: Call, params: dict[str, Any]) -> Frame:
        level = params.get("level")
        if "logging" not in self._capabilities:
            return error_frame(call.key, METHOD_NOT_FOUND, "the server does not offer logging")
        if level not in FACTS.log_levels:
            message = f"expected level to be one of {', '.join(FACTS.log_levels)}"
            return error_frame(call.key, INVALID_PARAMS, message, {"pointer": "/params/level"})
        self._say(self.metadata._replace(log_level=level))
        return result_frame(call.key, {})

    def _say(self, metadata: Metadata) -> None:
        """Say this of the client with every request from here on."""
        self.metadata = metadata
        self._spelled = spell(metadata)
        self._spelled_with_tasks = spell(metadata._replace(capabilities=self._with_tasks))


def _describe_losses(losses: tuple[Loss, ...]) -> str:
    """Name losses on one line: never a value."""
    shown = ", ".join(f"{loss.kind} {loss.pointer} ({loss.bytes} B)" for loss in losses[:8])
    return shown if len(losses) <= 8 else f"{shown} and {len(losses) - 8} more"
