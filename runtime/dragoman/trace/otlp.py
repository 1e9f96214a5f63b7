"""What is counted, sent by an exporter of OpenTelemetry's SDK.

Lives here: the cells of `metrics` as OpenTelemetry's data, and when they are sent. Must not: count, or choose exporters
(`cli.otel`). Imported only where there is one.

The instruments of the SDK are not used: one of their histograms costs as much for a call as all that is counted of it
here. What an exporter takes is data of public types, which is made when it is sent. Cells are read in the event loop,
which writes them; a thread sends.

Source: OpenTelemetry, Metrics Data Model; Environment Variable Specification, Periodic exporting MetricReader, and
OTLP Exporter, Temporality.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.metadata import version
from typing import Any, Final

from opentelemetry.sdk.metrics import export
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from dragoman.trace.metrics import BUCKETS_S, FAMILIES, Histogram, Labels, Metrics
from dragoman.transports.aside import do_aside

logger = logging.getLogger("dragoman.otel")

LAST_S: Final = 5.0
"""How long the last figures may take at the end of the process."""

_PREFERENCE: Final = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"


class Export:
    """Sends what is counted, each minute or as the variables say, and at the end.

    Args:
        cells: What is counted.
        exporters: Who takes it.
        resource: Who we are.
        now_ns: Gives the time.
    """

    def __init__(
        self,
        cells: Metrics,
        exporters: Sequence[export.MetricExporter],
        resource: Resource,
        now_ns: Callable[[], int] = lambda: int(time.time() * 1e9),
    ) -> None:
        self._cells = cells
        self._exporters = exporters
        self._resource = resource
        self._now_ns = now_ns
        self._since_ns = now_ns()
        self._is_delta = os.environ.get(_PREFERENCE, "").strip().lower() in ("delta", "lowmemory")
        self._before: dict[tuple[str, Labels], tuple[float, ...]] = {}
        self._interval_s = _read_seconds("OTEL_METRIC_EXPORT_INTERVAL", 60.0)
        self._timeout_s = _read_seconds("OTEL_METRIC_EXPORT_TIMEOUT", 30.0)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send as long as this is open, and once more."""
        ending = asyncio.Event()
        sending = asyncio.create_task(self._repeat(ending))
        try:
            yield
        finally:
            ending.set()
            await asyncio.wait([sending], timeout=LAST_S)
            sending.cancel()
            for exporter in self._exporters:
                exporter.shutdown(timeout_millis=0)

    async def _repeat(self, ending: asyncio.Event) -> None:
        while not ending.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await ending.wait()
            await self._send(self.read())

    async def _send(self, data: export.MetricsData) -> None:
        def send() -> None:
            for exporter in self._exporters:  # it says itself what fails, as a rule
                exporter.export(data, timeout_millis=self._timeout_s * 1000)

        try:
            await do_aside(send)
        except Exception as error:
            logger.warning("what is counted cannot be sent: %s: %s", type(error).__name__, error)

    def read(self) -> export.MetricsData:
        """Return what is counted now; with deltas, what was counted since it was read the last time."""
        now_ns, found = self._now_ns(), self._cells.read()
        metrics = [self._show_family(name, found[name], now_ns) for name in FAMILIES if name in found]
        if self._is_delta:
            self._since_ns = now_ns
        scope = InstrumentationScope("dragoman", version("dragoman"))
        scopes = [export.ScopeMetrics(scope, [one for one in metrics if one.data.data_points], "")]
        return export.MetricsData([export.ResourceMetrics(self._resource, scopes, "")])

    def _show_family(self, name: str, cells: Sequence[tuple[Labels, Histogram | float]], now_ns: int) -> export.Metric:
        kind, about = FAMILIES[name]
        points = []
        for labels, cell in cells:
            value = (*cell.counts, cell.sum_s) if isinstance(cell, Histogram) else (cell,)
            if self._is_delta and kind != "gauge":
                before = self._before.get((name, labels), (0,) * len(value))
                self._before[name, labels] = value
                value = tuple(now - then for now, then in zip(value, before, strict=True))
                if not any(value):
                    continue
            points.append(_show_point(dict(labels), self._since_ns, now_ns, value))
        delta, whole = export.AggregationTemporality.DELTA, export.AggregationTemporality.CUMULATIVE
        temporality = delta if self._is_delta else whole
        data: Any = export.Gauge(points)
        if kind == "histogram":
            data = export.Histogram(points, temporality)
        elif kind == "counter":
            data = export.Sum(points, temporality, is_monotonic=True)
        return export.Metric(name, about, "s" if kind == "histogram" else "1", data)


def _show_point(labels: dict[str, str], since_ns: int, now_ns: int, value: tuple[float, ...]) -> Any:
    if len(value) == 1:
        return export.NumberDataPoint(labels, since_ns, now_ns, value[0])
    *counts, sum_s = value
    nothing: Any = None  # the shortest and the longest are not kept; both may be left out
    return export.HistogramDataPoint(
        labels, since_ns, now_ns, int(sum(counts)), sum_s, [int(one) for one in counts], BUCKETS_S, nothing, nothing
    )


def _read_seconds(name: str, default_s: float) -> float:
    """Return what a variable says in milliseconds; what it must not say counts as nothing, as the SDK has it."""
    said = os.environ.get(name, "")
    try:
        value_s = float(said or default_s * 1000) / 1000
    except ValueError:
        value_s = 0.0
    if not 0 < value_s < float("inf"):
        logger.warning("%s=%s: expected milliseconds; %g s are taken", name, said, default_s)
        return default_s
    return value_s
