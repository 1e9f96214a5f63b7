"""`--otel`: spans by OpenTelemetry, exported as its own variables say.

Lives here: finding out whether the packages are there, and which exporter is wanted. Must not: record
(`dragoman.trace.spans`). Nothing of OpenTelemetry is imported without the option. Called by `cli.proxy`.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.trace.spans import Tracing

HINT: Final = "--otel takes packages: pip install 'dragoman[otel]'"
_EXPORTERS: Final = {"otlp": ("otlp_proto_http", "otlp_proto_grpc", "otlp")}
_GROUP: Final = "opentelemetry_traces_exporter"


def open_tracing(args: argparse.Namespace) -> Tracing | None:
    """Return what records spans, if that is wanted; what is missing for it is wrong with the command line."""
    if not args.otel:
        return None
    try:
        from opentelemetry import trace

        from dragoman.trace.spans import Peer, Tracing, find_peer

        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):  # else somebody has set one up
            args.files.append(_Export(_set_up(args)))
    except ImportError:
        args.usage_error(HINT)
        raise
    server = Peer() if args.config is not None else find_peer(args.url)
    return Tracing(Peer("pipe" if args.listen is None else "tcp"), server)


def _set_up(args: argparse.Namespace) -> Any:
    """Make the provider of the process: its sampler, limits and resource come from the variables, too."""
    from importlib.metadata import entry_points, version

    from opentelemetry import trace
    from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    ours = {SERVICE_VERSION: version("dragoman")}
    if "OTEL_SERVICE_NAME" not in os.environ:
        ours[SERVICE_NAME] = "dragoman"
    provider = TracerProvider(resource=Resource.create(ours), shutdown_on_exit=False)
    there = {found.name: found for found in entry_points(group=_GROUP)}
    for wanted in os.environ.get("OTEL_TRACES_EXPORTER", "otlp").split(","):
        if (name := wanted.strip()) in ("", "none"):
            continue
        found = next((there[one] for one in _EXPORTERS.get(name, (name,)) if one in there), None)
        if found is None:
            args.usage_error(f"--otel: there is no exporter {name!r}; there are: {', '.join(there) or 'none'}. {HINT}")
            continue
        provider.add_span_processor(BatchSpanProcessor(found.load()()))
    trace.set_tracer_provider(provider)
    return provider


class _Export:
    """What is opened and closed with the files of a proxy."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def reopen(self) -> None:
        """Send what waits."""
        self._provider.force_flush(0)

    def close(self) -> None:
        """Send what waits, and stop."""
        self._provider.shutdown()
