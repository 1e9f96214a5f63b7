"""Spans arrive at a collector over OTLP/HTTP, in protobuf, with their names, kinds and parents."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from typing import Any

import pytest

from tests.cli.test_listen import INITIALIZE, listening
from tests.instances.test_several import CALL, INITIALIZED
from tests.support.waiting import PATIENCE_S

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the exporter for OTLP over HTTP is not installed")
SERVER, CLIENT = 2, 3
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, Queue[tuple[str, bytes]]]]:
    """Take what is exported; give where, and what has come: paths and bodies."""
    came: Queue[tuple[str, bytes]] = Queue()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            came.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        server.server_close()
        serving.join(PATIENCE_S)


def spans_in(came: Queue[tuple[str, bytes]]) -> tuple[dict[str, str], list[Any]]:
    """Decode what has come; give what the resource says, and the spans."""
    service: Any = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    resource, spans = dict[str, str](), []
    with contextlib.suppress(Empty):
        while True:
            path, body = came.get_nowait()
            assert path == "/v1/traces"
            for group in service.ExportTraceServiceRequest.FromString(body).resource_spans:
                resource |= said_by(group.resource)
                spans += [span for scope in group.scope_spans for span in scope.spans]
    return resource, spans


def said_by(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def test_spans_arrive_with_names_and_parents() -> None:
    params = {**CALL["params"], "_meta": {"traceparent": f"00-{TRACE}-{PARENT}-01"}}  # type: ignore[dict-item]
    with collector() as (url, came):
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "front",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "none",
        }
        with listening("--otel", **environment) as proxy:
            session = proxy.post(INITIALIZE)[1]["mcp-session-id"]
            proxy.post(INITIALIZED, mcp_session_id=session)
            assert "result" in proxy.post({**CALL, "params": params}, mcp_session_id=session)[2]
            proxy.end()
        resource, spans = spans_in(came)
    assert resource["service.name"] == "front"
    by_kind = {span.kind: span for span in spans if span.name == "tools/call tool_1"}
    front, behind = by_kind[SERVER], by_kind[CLIENT]
    assert {span.trace_id.hex() for span in (front, behind)} == {TRACE}
    assert front.parent_span_id.hex() == PARENT
    assert behind.parent_span_id == front.span_id
    said = said_by(front)
    assert (said["mcp.method.name"], said["gen_ai.tool.name"]) == ("tools/call", "tool_1")
    assert said["mcp.protocol.version"] == "2025-06-18"
    assert (said["network.transport"], said_by(behind)["network.transport"]) == ("tcp", "pipe")
    assert not [name for name in said if name.startswith("server.")]
    assert not [name for name in said_by(behind) if name.startswith("client.")]
