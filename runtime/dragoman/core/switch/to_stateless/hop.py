"""What lies between a client with a handshake and a per-request server, for its calls and its streams.

Lives here: sending to the server with the client's metadata, asking the client, and what is known of both. Must not:
know which calls and streams there are (`switch`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from dragoman.core.calls import Call
from dragoman.core.commands import Outbox, Schedule
from dragoman.core.edges.failures import connection_closed
from dragoman.core.edges.front import FrontEdge
from dragoman.core.edges.lifecycle import FrontState
from dragoman.core.edges.per_request import PerRequestEdge, PerRequestLoan
from dragoman.core.edges.way import Way
from dragoman.core.edges.wiring import Wiring
from dragoman.core.envelope import Frame, error_frame, id_of, new_frame, read_params, request_frame
from dragoman.core.exact_json import decode, encode
from dragoman.core.methods import LIST_TOOLS, ROOTS
from dragoman.core.paging import TakePage
from dragoman.core.rules.capabilities import Path
from dragoman.core.rules.discovery import read_initialize
from dragoman.core.rules.inputs import AskedClient
from dragoman.core.rules.metadata import Metadata, spell, stamp_spelled, take_identity
from dragoman.core.rules.names import NEWER
from dragoman.core.rules.questions import embed_answer
from dragoman.core.switch.listed_tools import ListedTools, ask_for_page
from dragoman.core.translate import report_losses
from dragoman.errors import TranslationError
from dragoman_spec import Loss

QUESTION_ID: Final = "dragoman-question-"
"""How the ids of the questions to a client begin: nobody else asks it anything."""

TakeReply = Callable[[Frame], None]
"""Takes the client's answer to a question, or one in its place."""


class Hop:
    """The way between one client and one server.

    Attributes:
        path: The revision of the client, and the one of the newer era that the bridge leads to.
        way: From there to the server's revision and back; None where that is the same.
        metadata: What every request says of the client.
        sender: Whose share of the places at the server its requests take; empty where nobody has a share.
        tools: Which arguments of the server's tools go in headers.
        client: The client, as far as questions go.
    """

    sender = ""

    def __init__(
        self, wiring: Wiring, outbox: Outbox, front: FrontEdge, edge: PerRequestEdge, server_revision: str
    ) -> None:
        greeting = front.expect_greeting()
        self.schedule = Schedule(outbox, front)
        self.front = front
        self.edge = edge
        self.now_s: Callable[[], float] = wiring.now_s
        self.path = Path(client=greeting.revision, server=NEWER, tasks=wiring.bridging is not None)
        self.way: Way | None = None
        if server_revision != NEWER:
            self.way = Way(wiring, NEWER, server_revision, front.exchange.counters)
        params = read_params(greeting.frame)
        metadata, losses = read_initialize(params, self.path)
        self._with_tasks = read_initialize(params, self.path, wants_task=True)[0].capabilities
        self.say(metadata)
        self._on_loss = wiring.settings.on_loss
        self._questions = 0
        self.tools = ListedTools(sends=edge.upstream.takes_headers, hears=False, remind=self.schedule.after)
        self.client = AskedClient(greeting.revision, greeting.capabilities)
        self.report("initialize", losses)

    def say(self, metadata: Metadata) -> None:
        """Say this of the client with every request from here on."""
        self.metadata = metadata
        self._spelled = spell(metadata)
        self._spelled_with_tasks = spell(metadata._replace(capabilities=self._with_tasks))

    def send(self, lent: PerRequestLoan, params: Mapping[str, Any], *, takes_tasks: bool = False) -> PerRequestLoan:
        """Send a request to the server, with the client's metadata, which may say that it takes tasks."""
        lent.way = self.way
        stamped = stamp_spelled(params, self._spelled_with_tasks if takes_tasks else self._spelled)
        mirrored = self.tools.mirrored(lent.method, stamped) if self.tools.has_headers else ()
        return self.edge.lend(lent, stamped, mirrored, sender=self.sender)

    def ask_page(self, params: dict[str, Any], take: TakePage) -> None:
        """Ask for a page of the list of tools."""
        self.send(ask_for_page(take), params)

    def finish(self, call: Call, result: Mapping[str, Any]) -> None:
        """With a result of the server."""
        rest = take_identity(result)[0] if "_meta" in result else result
        if call.method == LIST_TOOLS:
            rest = self.tools.note(rest)
        body = {"jsonrpc": "2.0", "id": id_of(call.key), "result": rest}
        self.front.take_answer(
            call, new_frame(Frame, (b"", "result", call.key, None, body, None, (), "", (), None, b""))
        )

    def fail(self, call: Call, code: int, message: str, data: Mapping[str, Any] | None) -> None:
        """With an error of ours."""
        answer = error_frame(call.key, code, message, {"method": call.method, **(data or {})})
        self.front.take_answer(call, answer, own=True)

    def pass_error(self, call: Call, error: dict[str, Any]) -> None:
        """With an error of the server."""
        body = {"jsonrpc": "2.0", "id": decode(call.key), "error": error}
        self.front.take_answer(call, Frame(b"", "error", call.key, None, body))

    def pose(self, method: str, params: dict[str, Any] | None, stream: bytes, take_reply: TakeReply) -> bytes:
        """Ask the client something, in its own revision, on the stream of a call; give the id of the question."""
        self._questions += 1
        key = encode(f"{QUESTION_ID}{self._questions}")
        frame = request_frame(key, method, params)._replace(stream=stream)
        if self.front.state not in (FrontState.READY, FrontState.DRAINING):
            take_reply(connection_closed("the client has closed").answer(key))
        elif (unfit := self.front.exchange.pose(frame, take_reply)) is not None:
            take_reply(connection_closed(unfit.value).answer(key))
        return key

    def note_roots(self, result: object) -> None:
        """Record the client's roots, if it is going to say when they change."""
        roots = self.client.capabilities.get("roots")
        if isinstance(roots, dict) and roots.get("listChanged") is True and isinstance(result, dict):
            with contextlib.suppress(TranslationError):
                found = embed_answer(ROOTS, result, self.client.revision).result
                self.client = replace(self.client, roots=found.get("roots"))

    def report(self, what: str, losses: tuple[Loss, ...]) -> None:
        """Count losses that no frame had, and log them."""
        if losses:
            counters = self.front.exchange.counters
            report_losses(what, (self.path.client, self.path.server), losses, counters, self._on_loss)
