"""Spans and figures arrive at a collector over OTLP/HTTP, in protobuf, with their names, kinds, parents and buckets."""

from __future__ import annotations

import contextlib
import importlib
import socket
from queue import Empty, Queue
from typing import Any

import pytest

from dragoman.trace.calls import SeenSession
from dragoman.trace.metrics import Metrics
from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.instances.test_several import CALL, INITIALIZED
from tests.support.collector import collector
from tests.support.waiting import PATIENCE_S

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the exporter for OTLP over HTTP is not installed")
SERVER, CLIENT = 2, 3
DELTA, WHOLE = 1, 2
KINDS = {"traces": "trace", "metrics": "metrics"}
OPENED = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def read_all(came: Queue[tuple[str, bytes]], signal: str) -> list[Any]:
    """Decode what has come of a signal; other things that have come are left out."""
    name = KINDS[signal]
    service: Any = importlib.import_module(f"opentelemetry.proto.collector.{name}.v1.{name}_service_pb2")
    decode = getattr(service, f"Export{name.capitalize()}ServiceRequest").FromString
    found = []
    with contextlib.suppress(Empty):
        while True:
            path, body = came.get_nowait()
            assert path in ("/v1/traces", "/v1/metrics")
            found += [decode(body)] if path == f"/v1/{signal}" else []
    return found


def spans_in(came: Queue[tuple[str, bytes]]) -> tuple[dict[str, str], list[Any]]:
    """Give what the resource says, and the spans."""
    resource, spans = dict[str, str](), []
    for request in read_all(came, "traces"):
        for group in request.resource_spans:
            resource |= said_by(group.resource)
            spans += [span for scope in group.scope_spans for span in scope.spans]
    return resource, spans


def figures_in(came: Queue[tuple[str, bytes]]) -> tuple[dict[str, str], dict[str, Any]]:
    """Give what the resource says, and the metrics that came last, by name."""
    (group,) = read_all(came, "metrics")[-1].resource_metrics
    (scope,) = group.scope_metrics
    assert scope.scope.name == "dragoman"
    return said_by(group.resource), {metric.name: metric for metric in scope.metrics}


def said_by(span: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in span.attributes}


def visit(proxy: Listening, params: Any = CALL["params"]) -> None:
    """Open a session, list the tools, and call one."""
    session = proxy.post(INITIALIZE)[1]["mcp-session-id"]
    proxy.post(INITIALIZED, mcp_session_id=session)
    proxy.post({"jsonrpc": "2.0", "id": 7, "method": "tools/list"}, mcp_session_id=session)
    assert "result" in proxy.post({**CALL, "params": params}, mcp_session_id=session)[2]


def test_spans_arrive_with_names_and_parents() -> None:
    params = {**CALL["params"], "_meta": {"traceparent": f"00-{TRACE}-{PARENT}-01"}}  # type: ignore[dict-item]
    with collector() as (url, came):
        environment = {
            **OPENED,
            "OTEL_EXPORTER_OTLP_ENDPOINT": url,
            "OTEL_SERVICE_NAME": "front",
        }
        with listening("--otel", **environment) as proxy:
            visit(proxy, params)
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


def point_of(metric: Any, **labels: str) -> Any:
    """Give the only point of a metric with these labels, and perhaps others; `_` stands for a dot."""
    wanted = {name.replace("_", "."): value for name, value in labels.items()}.items()
    (found,) = [one for one in getattr(metric, metric.WhichOneof("data")).data_points if wanted <= said_by(one).items()]
    return found


def test_figures_arrive_with_their_names_buckets_and_labels() -> None:
    with collector() as (url, came):
        attributes = "service.name=ours,deployment.environment.name=test"
        given = {**OPENED, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_RESOURCE_ATTRIBUTES": attributes}
        with listening("--otel", **given, OTEL_TRACES_EXPORTER="none") as proxy:
            visit(proxy)
            proxy.end()
        resource, figures = figures_in(came)
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("ours", "test")
    assert len(resource["service.instance.id"]) == 36
    front, behind = (figures[f"mcp.{side}.operation.duration"] for side in ("server", "client"))
    assert (front.unit, front.histogram.aggregation_temporality) == ("s", WHOLE)
    tool = {"gen_ai.tool.name": "tool_1", "gen_ai.operation.name": "execute_tool", "network.transport": "tcp"}
    here = point_of(front, mcp_method_name="tools/call")
    assert tool.items() <= said_by(here).items()
    assert list(here.explicit_bounds) == [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
    assert (here.count, sum(here.bucket_counts), len(here.bucket_counts)) == (1, 1, 15)
    assert not here.HasField("max")
    there = point_of(behind, mcp_method_name="tools/call")
    assert said_by(there)["network.transport"] == "pipe"
    assert 0 < there.sum <= here.sum
    assert 0 < here.start_time_unix_nano < here.time_unix_nano
    assert point_of(figures["mcp.server.session.duration"], mcp_protocol_version="2025-06-18").count == 1
    assert figures["dragoman.restarts"].sum.is_monotonic
    assert point_of(figures["dragoman.places.limit"], option="--max-sessions").as_int > 0


def test_figures_arrive_while_the_proxy_runs_and_spans_alone_if_that_is_wanted() -> None:
    with collector() as (url, came):
        given = {**OPENED, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_METRIC_EXPORT_INTERVAL": "50"}
        with listening("--otel", **given, OTEL_TRACES_EXPORTER="none") as proxy:
            assert {came.get(timeout=PATIENCE_S)[0] for _ in range(3)} == {"/v1/metrics"}
            proxy.end()
    with collector() as (url, came):
        given["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
        with listening("--otel", **given, OTEL_METRICS_EXPORTER="none") as proxy:
            visit(proxy)
            proxy.end()
        assert {path for path, _ in came.queue} == {"/v1/traces"}


def test_of_deltas_each_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    from opentelemetry.sdk.resources import Resource

    from dragoman.trace.otlp import Export

    cells, times = Metrics(), iter(range(100, 200, 10))
    cells.gauges.append(lambda: [("dragoman.parked_calls", (), 3)])
    export = Export(cells, [], Resource.get_empty(), lambda: next(times))
    seen = []
    for news in (2, 0, 1):
        for _ in range(news):
            cells.take_question("elicitation/create")
            cells.take_session(SeenSession("s", "", None, "2025-06-18", "over", 2.0))
        (group,) = export.read().resource_metrics
        named = {metric.name: metric.data for metric in group.scope_metrics[0].metrics}
        seen.append(
            [
                [(one.start_time_unix_nano, one.time_unix_nano, getattr(one, what)) for one in named[name].data_points]
                if name in named
                else []
                for name, what in (("dragoman.questions", "value"), ("mcp.client.session.duration", "count"))
            ]
        )
        assert named["dragoman.parked_calls"].data_points[0].value == 3
    assert seen == [[[(100, 110, 2)], [(100, 110, 2)]], [[], []], [[(120, 130, 1)], [(120, 130, 1)]]]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "carrier-pigeon"}, "'otlp' over carrier-pigeon of metrics"),
        ({"OTEL_METRICS_EXPORTER": "none-such"}, "'none-such' of metrics"),
        ({"OTEL_METRICS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none-such"}, "'none-such' of traces"),
    ],
)
def test_an_exporter_that_is_not_there_is_wrong_with_the_command_line(variables: dict[str, str], said: str) -> None:
    with listening("--otel", **variables) as proxy:
        assert proxy.process.wait(PATIENCE_S) == 2
        _, rest = proxy.lines.rest(proxy.process, PATIENCE_S)
        assert said in proxy.first_line + rest.decode()


def test_a_collector_that_is_silent_holds_up_no_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        given = {**OPENED, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        with listening("--otel", **given, OTEL_TRACES_EXPORTER="none", OTEL_EXPORTER_OTLP_TIMEOUT="600") as proxy:
            visit(proxy)
            assert proxy.end()[0] == 128 + 15
