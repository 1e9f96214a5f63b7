"""Spans of OpenTelemetry: two a call, named as it does for MCP, in the trace that they belong to."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dragoman.config import ServerConfig, parse_config
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.router import Router
from dragoman.router.router import before_router
from dragoman.trace.spans import Peer, Tracing
from dragoman.transports.base import Transport
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.http.serve import Address, HttpServer, bind
from dragoman.transports.http.sessions import Caller, Runner
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.cli.test_listen import INITIALIZE, listening
from tests.guard.test_rules import Client
from tests.router.made import HANDSHAKE, PER_REQUEST, MadeServer
from tests.support.waiting import until
from tests.transports.http.stage import on_loop
from tests.transports.http.wire import hang_up, request
from tests.transports.upstream.stage import Reply, Request, server, shake_hands

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "1bf7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
FILE = '{"mcpServers": {"files": {"command": "x"}, "far": {"url": "https://far.example/mcp"}}}'


class Watched:
    """A proxy over HTTP whose spans are kept."""

    def __init__(self, port: int, exporter: InMemorySpanExporter, made: list[MadeServer]) -> None:
        self.port, self.exporter, self.made = port, exporter, made

    async def client(self, revision: str, **headers: str) -> Client:
        client = Client(self.port, "", revision)
        client.headers |= headers
        await client.open()
        return client

    def heard(self, method: str) -> list[Any]:
        return [frame for one in self.made for frame in one.of(method)]

    def spans(self, method: str) -> list[ReadableSpan]:
        found = [
            span
            for span in self.exporter.get_finished_spans()
            if (span.attributes or {}).get("mcp.method.name") == method
        ]
        return sorted(found, key=lambda span: span.kind.value)

    async def pair(self, method: str) -> tuple[ReadableSpan, ReadableSpan]:
        """The server span of a call and its child, the client span."""
        await until(lambda: len(self.spans(method)) >= 2)
        first, second = self.spans(method)[-2:]
        assert (first.kind, second.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
        assert second.parent is not None
        assert second.parent.span_id == first.context.span_id
        assert second.context.trace_id == first.context.trace_id
        return first, second


def own(span: ReadableSpan) -> str:
    context = span.context
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


@contextlib.asynccontextmanager
async def watching(
    servers_revision: str, has_router: bool = False, url: str = "", scope: Scope = Scope.CLIENT
) -> AsyncIterator[Watched]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    made: list[MadeServer] = []

    def connect() -> Transport:
        if url:
            return open_upstream(UpstreamConfig(url))
        made.append(MadeServer(servers_revision, tools=["t", "fails"], prompts=["p"], resources=["memo:1"]))
        made[-1].answers["prompts/get"] = lambda frame: {
            "error": {"code": -32602, "message": "no such token=abcdefghij1234567890"}
        }
        made[-1].answers["resources/read"] = lambda frame: {"error": {"code": -32603, "message": "broken"}}
        result = {"content": [], "isError": True}
        usual = made[-1].result
        made[-1].answers["tools/call"] = lambda frame: (
            result if frame["params"]["name"] == "fails" else usual("tools/call", frame)
        )
        return made[-1].connect()

    spans = Tracing(Peer("tcp"), Peer() if has_router else Peer("tcp", "server.example", 443), provider=provider)
    config = ProxyConfig(spans=spans)
    open_transport: Callable[[], Transport] = connect
    if has_router:

        def open_server(server: ServerConfig) -> Callable[[], Transport]:
            return connect

        router = Router(
            parse_config(FILE, {}), ProxyConfig(spans=spans, shares_server=scope is Scope.SHARED), open_server
        )
        config, open_transport = before_router(config), router.connect
    pool = UpstreamPool(scope, open_transport)

    def serve(transport: Transport, caller: Caller) -> Runner:
        return pool.proxy(config, transport, caller.principal or None, is_per_request=caller.is_per_request)

    front = HttpFront(
        serve, FrontConfig(admission=Admission(notes_origins=True), shares_requests=scope is Scope.SHARED)
    )
    listener = bind(Address())
    http = HttpServer(front, listener, Address())
    ready = asyncio.Event()
    task = asyncio.create_task(http.run(ready.set, pool.close))
    await ready.wait()
    try:
        yield Watched(listener.getsockname()[1], exporter, made)
    finally:
        await hang_up()
        http.stop("the test is over")
        await task


PAIRS = pytest.mark.parametrize(
    ("revision", "servers"),
    [(one, other) for one in (HANDSHAKE, PER_REQUEST) for other in (HANDSHAKE, PER_REQUEST)],
)


@PAIRS
@pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED])
@on_loop
async def test_a_call_has_two_spans_in_the_trace_of_its_client(revision: str, servers: str, scope: Scope) -> None:
    async with watching(servers, scope=scope) as proxy:
        client = await proxy.client(revision, traceparent=PARENT, tracestate="a=b")
        assert await client.may("t")
        first, second = await proxy.pair("tools/call")
        assert first.name == second.name == "tools/call t"
        assert f"{first.context.trace_id:032x}" == TRACE
        assert first.parent is not None
        assert f"{first.parent.span_id:016x}" == "b7ad6b7169203331"
        assert not first.links
        (called,) = proxy.heard("tools/call")
        assert called["params"]["_meta"]["traceparent"] == own(second)
        assert called["params"]["_meta"]["tracestate"] == "a=b"
        attributes = dict(first.attributes or {}), dict(second.attributes or {})
        port = attributes[0].pop("client.port")
        assert isinstance(port, int)
        both = {
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": "t",
            "gen_ai.operation.name": "execute_tool",
            "network.transport": "tcp",
            "network.protocol.name": "http",
        }
        for one in attributes:
            assert one.pop("jsonrpc.request.id")
        assert attributes[0] == {**both, "client.address": "127.0.0.1", "mcp.protocol.version": revision}
        spoken = attributes[1].pop("mcp.protocol.version")
        assert spoken in (servers, revision)
        assert attributes[1] == {**both, "server.address": "server.example", "server.port": 443}


@PAIRS
@on_loop
async def test_what_meta_says_comes_first_and_headers_are_a_link(revision: str, servers: str) -> None:
    async with watching(servers) as proxy:
        client = await proxy.client(revision, traceparent=f"00-{OTHER}-b7ad6b7169203331-01")
        meta = {"traceparent": PARENT, "baggage": "user=ada", "x": 1}
        answer = await client.ask("tools/call", name="t", arguments={}, _meta=meta)
        assert "result" in answer
        first, second = await proxy.pair("tools/call")
        assert f"{first.context.trace_id:032x}" == TRACE
        assert [f"{link.context.trace_id:032x}" for link in first.links] == [OTHER]
        (called,) = proxy.heard("tools/call")
        assert called["params"]["_meta"]["traceparent"] == own(second)
        assert called["params"]["_meta"]["baggage"] == "user=ada"


@on_loop
async def test_without_a_trace_one_begins() -> None:
    async with watching(HANDSHAKE) as proxy:
        client = await proxy.client(HANDSHAKE, traceparent="nonsense")
        assert await client.may("t")
        first, second = await proxy.pair("tools/call")
        assert first.parent is None
        assert proxy.heard("tools/call")[0]["params"]["_meta"]["traceparent"] == own(second)


@on_loop
async def test_errors_are_told_as_each_side_sees_them() -> None:
    async with watching(HANDSHAKE) as proxy:
        client = await proxy.client(HANDSHAKE)
        await client.ask("tools/call", name="fails", arguments={})
        for span in await proxy.pair("tools/call"):
            assert (span.attributes or {})["error.type"] == "tool_error"
            assert span.status.status_code is StatusCode.ERROR
        await client.ask("resources/read", uri="memo:1")
        for span in await proxy.pair("resources/read"):
            assert span.name == "resources/read", "never with the URI"
            assert (span.attributes or {})["mcp.resource.uri"] == "memo:1"
            assert (
                (span.attributes or {})["error.type"] == (span.attributes or {})["rpc.response.status_code"] == "-32603"
            )
            assert span.status.description == "broken"
        await client.ask("prompts/get", name="p")
        first, second = await proxy.pair("prompts/get")
        assert "error.type" not in (first.attributes or {}), "a client's own mistake is no error of the server"
        assert (first.attributes or {})["rpc.response.status_code"] == "-32602"
        assert first.status.status_code is StatusCode.UNSET
        assert (second.attributes or {})["error.type"] == "-32602"
        assert "abcdefghij1234567890" not in str(second.status.description)


@PAIRS
@on_loop
async def test_behind_a_router_each_server_has_its_client_span(revision: str, servers: str) -> None:
    async with watching(servers, has_router=True) as proxy:
        client = await proxy.client(revision, traceparent=PARENT)
        (await client.ask("tools/list"))["result"]
        assert "result" in await client.ask("tools/call", name="far_t", arguments={})
        first, second = await proxy.pair("tools/call")
        assert f"{first.context.trace_id:032x}" == TRACE
        assert (first.name, second.name) == ("tools/call far_t", "tools/call t")
        assert (second.attributes or {})["server.address"] == "far.example"
        assert "server.address" not in (first.attributes or {})
        (called,) = proxy.heard("tools/call")
        assert called["params"]["_meta"]["traceparent"] == own(second)


HEARD: list[tuple[str, str, Any]] = []


async def serve_http(request: Request, reply: Reply) -> None:
    if request.body and "params" in request.frame:
        meta = request.frame["params"].get("_meta", {})
        HEARD.append((request.rpc or "", request.headers.get("traceparent", ""), meta.get("traceparent")))
    if not await shake_hands(request, reply):
        await reply.result(request, {"content": [], "tools": []})


@on_loop
async def test_over_http_a_header_says_the_same() -> None:
    HEARD.clear()
    async with server(serve_http) as url, watching(HANDSHAKE, url=url) as proxy:
        client = await proxy.client(HANDSHAKE)
        assert "result" in await client.ask("tools/call", name="t", arguments={"traceparent": "in an argument"})
        _, second = await proxy.pair("tools/call")
        assert [(header, meta) for method, header, meta in HEARD if method == "tools/call"] == [
            (own(second), own(second))
        ]


@on_loop
async def test_a_call_that_is_cancelled_ends_its_spans() -> None:
    async with watching(HANDSHAKE) as proxy:
        client = await proxy.client(HANDSHAKE)
        await client.tools()
        proxy.made[0].silent.add("tools/call")
        call = asyncio.create_task(client.send("tools/call", {"name": "t", "arguments": {}}))
        await until(lambda: proxy.heard("tools/call"))
        gone = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": client.last}}
        await request(proxy.port, "POST", "/mcp", client.headers, gone)
        for span in await proxy.pair("tools/call"):
            assert (span.attributes or {})["error.type"] == "cancelled"
        call.cancel()


def test_without_the_option_nothing_of_it_is_imported() -> None:
    code = (
        "import sys, dragoman.cli.proxy, dragoman.router, dragoman.transports.http.app;"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'joserfc'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_process_exports_as_the_variables_say() -> None:
    with listening("--otel", OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="ours") as proxy:
        _, headers, _ = proxy.post(INITIALIZE)
        given = {"mcp_session_id": headers["mcp-session-id"]}
        proxy.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **given)
        proxy.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, **given)
        assert proxy.end()[0] == 128 + 15
    with listening("--otel", OTEL_TRACES_EXPORTER="none-such") as proxy:
        assert proxy.process.wait(60) == 2
