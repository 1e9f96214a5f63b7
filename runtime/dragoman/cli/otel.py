"""`--otel`: spans and figures by OpenTelemetry, exported as its own variables say.

Lives here: finding out whether the packages are there, which exporters are wanted, and who we are. Must not: record
(`dragoman.trace.spans`), or send figures (`dragoman.trace.otlp`). Nothing of OpenTelemetry is imported without the
option. Called by `cli.proxy` and `cli.metrics`.
"""

from __future__ import annotations

import argparse
import os
import threading
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.trace.spans import Tracing

LAST_S: Final = 5.0
"""How long the last spans may take at the end of the process."""

HINT: Final = "--otel takes packages: pip install 'dragoman[otel]'"
_PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
_OVER: Final = {"http/protobuf": ("otlp_proto_http",), "grpc": ("otlp_proto_grpc",)}
_OTLP: Final = ("otlp_proto_http", "otlp_proto_grpc", "otlp")
"""Which of the exporters for OTLP is taken where no variable names a protocol: the first that is installed."""


def open_tracing(args: argparse.Namespace) -> Tracing | None:
    """Return what records spans, if that is wanted; what is missing for it is wrong with the command line."""
    if not args.otel:
        return None
    try:
        from opentelemetry import trace

        from dragoman.trace.spans import Peer, Tracing, find_peer

        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):  # else somebody has set one up
            exporters = find_exporters(args, "traces")
            if not exporters:
                return None
            args.files.append(_Export(_set_up(exporters, make_resource(args))))
    except ImportError:
        args.usage_error(HINT)
        raise
    server = Peer() if args.config is not None else find_peer(args.url)
    return Tracing(Peer("pipe" if args.listen is None else "tcp"), server)


def find_exporters(args: argparse.Namespace, signal: str) -> list[Any]:
    """Make the exporters that the variables name for a signal; what is missing for it is wrong with the command line.

    Args:
        args: With `usage_error`.
        signal: `traces` or `metrics`.
    """
    from importlib.metadata import entry_points

    there = {found.name: found for found in entry_points(group=f"opentelemetry_{signal}_exporter")}
    protocol = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL") or os.environ.get(_PROTOCOL, "")
    known = {"otlp": _OVER.get(protocol, () if protocol else _OTLP)}
    exporters = []
    for wanted in os.environ.get(f"OTEL_{signal.upper()}_EXPORTER", "otlp").split(","):
        if (name := wanted.strip()) in ("", "none"):
            continue
        found = next((there[one] for one in known.get(name, (name,)) if one in there), None)
        try:
            made = None if found is None else found.load()()
        except ImportError:  # an exporter whose own packages are not there
            made = None
        if not hasattr(made, "export"):
            over = f" over {protocol}" if name == "otlp" and protocol else ""
            several = ", ".join(there) or "none"
            args.usage_error(f"--otel: there is no exporter {name!r}{over} of {signal}; there are: {several}. {HINT}")
        exporters.append(made)
    return [] if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" else exporters


def make_resource(args: argparse.Namespace) -> Any:
    """Say who exports: as the variables do, and what they leave out. Two processes are never one to a collector."""
    if args.resource is None:
        import uuid
        from importlib.metadata import version

        from opentelemetry.sdk import resources

        ours = {
            resources.SERVICE_NAME: "dragoman",
            resources.SERVICE_VERSION: version("dragoman"),
            resources.SERVICE_INSTANCE_ID: str(uuid.uuid4()),
        }
        args.resource = resources.Resource.create(ours).merge(resources.OTELResourceDetector().detect())
    return args.resource


def _set_up(exporters: list[Any], resource: Any) -> Any:
    """Make the provider of the process: its sampler and limits come from the variables, too."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
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
        """Send what waits, and stop; a collector that is away or silent does not hold that up for long."""
        ending = threading.Thread(target=self._provider.shutdown, name="dragoman-otel", daemon=True)
        ending.start()
        ending.join(LAST_S)
