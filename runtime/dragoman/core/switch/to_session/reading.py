"""What a frame holds on its way between a per-request client and a server with a handshake.

Lives here: reading and writing it, and whose it is. Must not: decide anything.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import dragoman_spec
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.edges.greeting import IDENTITY, Greeting
from dragoman.core.edges.per_request_front import PerRequestCall, PerRequestFront
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.edges.way import Way
from dragoman.core.edges.wiring import Bridging
from dragoman.core.envelope import Frame, Refusal, decoded, request_frame, result_frame
from dragoman.core.exact_json import decode
from dragoman.core.methods import LIST_TOOLS
from dragoman.core.mistakes import refuse_garbled
from dragoman.core.rules import errors, urls
from dragoman.core.rules.asking import Answered, CallOwner, OpenQuestions
from dragoman.core.rules.capabilities import Path, runs_tools_as_tasks
from dragoman.core.rules.discovery import to_initialize_params
from dragoman.core.rules.metadata import Metadata, put_identity, read, take_off
from dragoman.core.rules.names import FACTS, META_SERVER_INFO, NEWER, OLDER
from dragoman.core.rules.state import Binding, digest_params
from dragoman.core.rules.tasks import leave_off_relation
from dragoman.core.switch.listed_tools import ListedTools
from dragoman.core.switch.to_session.loans import SessionLoan, SessionLoans
from dragoman.core.translate import Adaptor
from dragoman.core.unchecked import find_object
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.bridge")

_OPENING_KEY: Final = b'"dragoman-initialize"'
_METADATA: Final = frozenset(name for name in FACTS.request_meta.values() if "/" in name)
KNOWN: Final = frozenset(dragoman_spec.load(NEWER).METHODS)
"""Methods of the client's revision: of others, the steps know nothing."""

RETRY: Final = frozenset({"inputResponses", "requestState"})
"""What params have that go on from an earlier request."""


def write_greeting(request: PerRequestCall, path: Path, declared: Mapping[str, Any]) -> Greeting:
    """Write the `initialize` that opens the server's session in the name of a request's client."""
    params = to_initialize_params(request.metadata._replace(capabilities=declared), path, IDENTITY)
    frame = decoded(request_frame(_OPENING_KEY, "initialize", params))
    return Greeting(frame, _OPENING_KEY, OLDER, OLDER, params["capabilities"])


def read_as_first(request: PerRequestCall, way: Way, requests: PerRequestFront) -> bool:
    """Take a request of a later revision as one of the first of its era; its answers go back the same way.

    Args:
        request: The client's, which becomes what it says there.
        way: From the client's revision to the first of the era.
        requests: Has it answered, where there is no such request.

    Returns:
        Whether there is.
    """
    crossed = way.ask(Frame(b"", "request", request.key, request.body["method"], request.body))
    body = crossed.body
    if crossed.kind == "error":
        requests.put_answer(request, body)
        return False
    request.way, request.body, request.method, request.params = way, body, body["method"], body["params"]
    request.metadata = read(request.params, (NEWER,))
    return True


def read_response(frame: Frame, method: str) -> dict[str, Any]:
    """Decode a response.

    Args:
        frame: Of the server.
        method: Of the request that it answers; a result of one that nobody knows is said to be complete, for the steps
            leave it alone.

    Raises:
        ValueError: It cannot be read, says two things, or what should be an object in it is not one.
    """
    body: dict[str, Any] = decode(frame.raw) if frame.body is None else frame.body
    kind = frame.kind
    if ("error" if kind == "result" else "result") in body:
        raise ValueError("expected either result or error, found both")
    if not isinstance(body.get(kind), dict):
        raise ValueError(f"expected {kind} to be an object")
    if kind == "result" and method not in KNOWN:
        return {**body, "result": {"resultType": "complete", **body["result"]}}
    return body


class RequestWriter:
    """Writes the requests of clients as they go over the steps, in the clients' revision."""

    __slots__ = ("_left", "_metadata")

    def __init__(self) -> None:
        self._metadata: Metadata | None = None
        self._left: Mapping[str, Any] = {}

    def write(self, request: PerRequestCall, number: int, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the body of a request under an id of ours, which is its progress token, too.

        Args:
            request: The client's.
            number: The id.
            params: Of it, or those that it goes on with; with the same `_meta`.
        """
        if request.metadata is not self._metadata:  # of two requests that have the same one, it is of one `_meta`
            self._metadata, self._left = request.metadata, take_off(params)["_meta"]
        left = self._left
        if request.method not in KNOWN:  # the steps leave alone what they do not know
            left = {name: value for name, value in left.items() if name not in _METADATA}
        if left.get("progressToken") is not None:
            left = {**left, "progressToken": number}
        body = request.body.copy()
        body["id"], body["params"] = number, {**params, "_meta": left}
        return body


def without_answers(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the params of a request that goes on from nothing, without what it brings for that."""
    if RETRY.isdisjoint(params):
        return params
    return {name: value for name, value in params.items() if name not in RETRY}


def bind(bridging: Bridging, request: PerRequestCall) -> Binding:
    """Say which request a state is to be good for.

    Raises:
        ValueError: Its params are nested deeper than can be written.
    """
    principal = request.frame.sender or bridging.principal
    return Binding(bridging.server, request.method, digest_params(request.params), principal)


@record
class VisitFirst:
    """The server wants URLs visited before it runs the call: its error says which."""

    error: Mapping[str, Any]


@dataclass(slots=True)
class Served:
    """What the parts of one session have in common.

    Attributes:
        bridging: What the bridge needs.
        front: The clients' edge.
        upstream: The server's.
        loans: What the server is at work on, and the way to ask it something.
        tools: What is known of its tools.
        path: The way between client and server.
        revision: Of the server; this and what follows is known once it has agreed to one.
        identity: Who the server is; empty where it does not say.
        capabilities: Of the server, in the form of the newest revision with a handshake.
        runs_tools: Whether it runs tools as tasks.
        downward: Translates for the clients.
    """

    bridging: Bridging
    front: PerRequestFront
    upstream: UpstreamEdge
    loans: SessionLoans
    tools: ListedTools
    path: Path
    revision: str = field(init=False)
    identity: dict[str, Any] = field(init=False)
    capabilities: Mapping[str, Any] = field(init=False)
    runs_tools: bool = field(init=False)
    downward: Adaptor = field(init=False)

    def agree(self, revision: str, initialized: Mapping[str, Any], downward: Adaptor) -> None:
        """Record what the server has answered to `initialize`."""
        self.revision = revision
        self.identity = find_object(initialized, "serverInfo")
        self.capabilities = find_object(initialized, "capabilities")
        self.runs_tools = runs_tools_as_tasks(self.capabilities)
        self.downward = downward

    def put_result(self, request: PerRequestCall, result: dict[str, Any]) -> None:
        """Answer with a result in the form of 2026-07-28; it says whose it is."""
        self.front.put_result(request, self.sign(result))

    def pass_answer(self, request: PerRequestCall, loan: SessionLoan, frame: Frame) -> None:
        """Give a client the server's answer to its request."""
        said = self.spell(loan, frame, request.key, request.id)
        if isinstance(said, Frame):
            self.front.put_frame(request, said)
        elif isinstance(said, VisitFirst):
            self._ask_to_visit(request, said.error)
        else:
            self.front.refuse(request, said.code, said.message, said.data)

    def _ask_to_visit(self, request: PerRequestCall, error: Mapping[str, Any]) -> None:
        """Have the client visit a URL first, and make the call again: nothing waits meanwhile."""
        result, bridging = None, self.bridging
        if request.method in FACTS.input_required:
            declared, binding = request.metadata.capabilities, bind(bridging, request)
            result = urls.ask_to_visit(error, bridging.keeper(), binding, declared, bridging.now(), bridging.nonce())
        if result is not None:
            self.put_result(request, result)
        else:
            said = urls.refuse_visit(error)
            self.front.refuse(request, said.code, said.message, said.data)

    def note_caller(self, loan: SessionLoan, request: PerRequestCall) -> OpenQuestions:
        """Record whose call this is, before anything is asked about it.

        Raises:
            ValueError: Its params are nested deeper than can be written.
        """
        if loan.questions is None:
            caller = CallOwner(bind(self.bridging, request), request.metadata.capabilities, self.revision)
            loan.questions = OpenQuestions(caller)
        return loan.questions

    def sign(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result of our own that says whose it is."""
        return put_identity(result, self.identity) if self.identity else result

    def pass_answers(self, questions: OpenQuestions, request: PerRequestCall) -> Sequence[Answered]:
        """Send the server what a request of the client answers; give that.

        Raises:
            RemoteProtocolError: An answer is not one to its question (-32602); then none of them counts.
        """
        answered, losses = questions.take_answers(request.params.get("inputResponses"))
        if losses:
            logger.warning("answers of the client: %d value(s) cannot be passed to the server", len(losses))
        for key, _, result in answered:
            self.upstream.send(result_frame(key, result))
        return answered

    def spell(self, loan: SessionLoan, frame: Frame, key: bytes, request_id: Any) -> Frame | Refusal | VisitFirst:
        """Return an answer under the client's own id.

        Args:
            loan: What was asked.
            frame: The server's response.
            key: What the client's request is known as.
            request_id: Its id, as the client wrote it.
        """
        method = loan.method
        try:
            body = read_response(frame, method)
        except ValueError as error:
            return refuse_garbled(str(error), method)
        if frame.kind == "error" and isinstance(errors.answer_error(body["error"], method, self.path), errors.Visit):
            return VisitFirst(body["error"])
        body, kind = body.copy(), frame.kind
        if loan.missing is not None and (kind == "error" or body["result"].get("isError") is True):
            said = errors.explain_missing(loan.missing, body[kind])
            return Refusal(said.code, said.message, said.data)
        body["id"] = request_id
        if kind == "result":
            result = body["result"]
            if method == LIST_TOOLS:
                result = body["result"] = dict(self.tools.note(result, frame.raw))
            if "_meta" in result:
                body["result"] = self.sign(leave_off_relation(result))
            elif self.identity:
                body["result"] = {**result, "_meta": {META_SERVER_INFO: self.identity.copy()}}
        adapted = self.downward.cross(kind, key, method, body)
        return adapted or Refusal(INTERNAL_ERROR, "the answer has no counterpart for the client", {})
