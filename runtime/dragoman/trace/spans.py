"""Spans of OpenTelemetry: two for each request of a client, one for each side.

Lives here: what a span says, and how the trace that it is part of goes on. Must not: export (`cli.otel`), or be
imported where nobody wants spans: then OpenTelemetry is not loaded either. It is middleware: a span has to begin before
the request goes on, because its context goes along.

The parent of our server span is what `params._meta` says, else what the HTTP headers of the request say; the other one
is a link. Of what goes on to the server, `_meta` says our client span, and over HTTP a header does, too.

Source: OpenTelemetry, Semantic conventions for the Model Context Protocol, Spans and Context propagation (SEP-414).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagate import extract, inject
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from dragoman.core.envelope import Frame, id_of, read_params
from dragoman.core.methods import CALL_TOOL
from dragoman.core.unchecked import find, find_object
from dragoman.middleware import Answer, Direction, Message, Proceed
from dragoman.trace.calls import CANCELLED, TOOL_ERROR
from dragoman.trace.redact import redact_text
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import origin_of

CARRIED: Final = ("traceparent", "tracestate", "baggage")
"""What says of which trace something is, in `_meta` and in headers: W3C's names, without a prefix in `_meta`."""

_INTERNAL_ERROR: Final = -32603
_SERVER_ERRORS: Final = range(-32099, -31999)
_WITH_URI: Final = frozenset({"resources/read", "resources/subscribe", "resources/unsubscribe"})
_SHOWN: Final = 200
"""How much of a name is said that a peer chose."""


class Peer(NamedTuple):
    """How a side is reached.

    Attributes:
        transport: `pipe` or `tcp`; empty: both occur.
        address: Its host, where that is known.
        port: Its port, where there is one.
    """

    transport: str = ""
    address: str = ""
    port: int | None = None


class Tracing:
    """Records spans around requests of clients.

    Args:
        client: How clients are reached.
        server: How the server is.
        is_front: Whether the clients are ours, and not a router: then there is a server span.
        is_back: Whether the server is: then there is a client span.
        provider: Makes the tracer; None for the one of the process.
    """

    def __init__(
        self,
        client: Peer,
        server: Peer,
        *,
        is_front: bool = True,
        is_back: bool = True,
        provider: TracerProvider | None = None,
    ) -> None:
        self._tracer: Tracer = trace.get_tracer("dragoman", tracer_provider=provider)
        self._provider = provider
        self._client = client
        self._server = server
        self._is_front = is_front
        self._is_back = is_back
        self._behind: dict[Peer, Tracing] = {}

    def before_router(self) -> Tracing:
        """Return the same for the proxy between the clients and a router."""
        return Tracing(self._client, self._server, is_back=False, provider=self._provider)

    def behind_router(self, url: str | None) -> Tracing:
        """Return the same for a proxy between a router and the server with this URL; None for a command."""
        server = find_peer(url)
        if server not in self._behind:  # settings that follow from it are made once
            self._behind[server] = Tracing(self._client, server, is_front=False, provider=self._provider)
        return self._behind[server]

    async def around_request(self, call: Message, proceed: Proceed) -> Answer:
        """Record what a client asks; what a server asks of its client goes by."""
        if call.direction is Direction.TO_CLIENT:
            return await proceed(call)
        meta = find_object(call.params, "_meta")
        said = {name: meta[name] for name in CARRIED if isinstance(meta.get(name), str)}
        parent, links = extract(said), list[Link]()
        if self._is_front:
            heard = extract(call.origin.carrier)
            parent, links = (parent, _link(heard)) if _names(parent) else (heard, _link(parent))
        named = dict(_describe(call))
        title = " ".join((call.method[:_SHOWN], *(str(named[key]) for key in _NAMES if key in named)))
        spans: list[tuple[Span, bool]] = []
        context = parent
        if self._is_front:
            about = {**named, **_reached("client", self._find_client(call)), **_speaks(call.sender_revision)}
            server_span = self._tracer.start_span(title, parent, SpanKind.SERVER, about, links)
            context = trace.set_span_in_context(server_span, context)
            spans.append((server_span, True))
        if self._is_back:
            about = {**named, **_reached("server", self._server), **_speaks(call.revision)}
            client_span = self._tracer.start_span(title, context, SpanKind.CLIENT, about)
            context = trace.set_span_in_context(client_span, context)
            spans.append((client_span, False))
        carrier: dict[str, str] = {}
        inject(carrier, context)
        rest = {name: value for name, value in meta.items() if name not in CARRIED}
        try:
            answer = await proceed(call.with_params({**call.params, "_meta": {**rest, **carrier}}))
        except asyncio.CancelledError:
            for span, _ in reversed(spans):
                span.set_attribute("error.type", CANCELLED)
            raise
        else:
            for span, is_server in reversed(spans):
                _conclude(span, call, answer, is_server)
            return answer
        finally:
            for span, _ in reversed(spans):
                span.end()

    def _find_client(self, call: Message) -> Peer:
        address = call.origin.address
        return Peer(self._client.transport, *address[:2]) if len(address) > 1 else self._client


def find_peer(url: str | None) -> Peer:
    """Say how a server is reached: by a URL, or as a child."""
    if url is None:
        return Peer("pipe")
    _, host, port = origin_of(url)
    return Peer("tcp", host, port)


_NAMES: Final = ("gen_ai.tool.name", "gen_ai.prompt.name")


def with_carrier(connect: Callable[[], Transport]) -> Callable[[], Transport]:
    """Return what opens a transport that says of which trace a request is, where it has a place for that."""

    def open_transport() -> Transport:
        transport: Any = connect()
        if hasattr(transport, "trace_of"):
            transport.trace_of = read_carrier
        return cast(Transport, transport)

    return open_transport


def read_carrier(frame: Frame) -> dict[str, str]:
    """Return the headers that say of which trace a request to a server is: what its `_meta` says."""
    if frame.kind != "request" or b'"traceparent"' not in frame.raw:
        return {}
    meta = find_object(read_params(frame), "_meta")
    return {name: meta[name] for name in CARRIED if isinstance(meta.get(name), str) and meta[name].isprintable()}


def _names(context: Context) -> bool:
    return trace.get_current_span(context).get_span_context().is_valid


def _link(context: Context) -> list[Link]:
    """Return a link to what a context names, if it names something."""
    return [Link(trace.get_current_span(context).get_span_context())] if _names(context) else []


def _describe(call: Message) -> Iterator[tuple[str, str]]:
    """Say what is asked."""
    yield "mcp.method.name", call.method[:_SHOWN]
    key, params = call.frame.key, call.params
    if key is not None and key != b"null":
        yield "jsonrpc.request.id", str(id_of(key))[:_SHOWN]
    name = params.get("name")
    if isinstance(name, str) and call.method in (CALL_TOOL, "prompts/get"):
        yield _NAMES[call.method != CALL_TOOL], name[:_SHOWN]
    if call.method == CALL_TOOL:
        yield "gen_ai.operation.name", "execute_tool"
    uri = params.get("uri")
    if isinstance(uri, str) and call.method in _WITH_URI:
        yield "mcp.resource.uri", redact_text(uri[:_SHOWN])


def _speaks(revision: str | None) -> dict[str, str]:
    return {} if revision is None else {"mcp.protocol.version": revision}


def _reached(side: str, peer: Peer) -> dict[str, Any]:
    """Say how a side is reached; of a span only one is: `client.*` and `server.*` never stand together."""
    protocol = "http" if peer.transport == "tcp" else ""
    said = {"network.transport": peer.transport, "network.protocol.name": protocol, f"{side}.address": peer.address}
    found: dict[str, Any] = {name: value for name, value in said.items() if value}
    return found if peer.port is None else {**found, f"{side}.port": peer.port}


def _conclude(span: Span, call: Message, answer: Answer, is_server: bool) -> None:
    """Say how a request ended; a client's own mistake is no error of a server."""
    error = answer.error
    if error is not None:
        code = error.get("code")
        span.set_attribute("rpc.response.status_code", str(code))
        if not is_server or code == _INTERNAL_ERROR or code in _SERVER_ERRORS:
            span.set_attribute("error.type", str(code))
            span.set_status(Status(StatusCode.ERROR, redact_text(str(error.get("message"))[:_SHOWN])))
    elif call.method == CALL_TOOL and find(answer.result, "isError") is True:
        span.set_attribute("error.type", TOOL_ERROR)
        span.set_status(Status(StatusCode.ERROR))
