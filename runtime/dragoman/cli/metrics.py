"""`--metrics-listen`, `--otel` and `--access-log`: who is told of calls, and where what is counted is read or sent.

Lives here: the address, and what is looked at only when somebody reads. Must not: count (`dragoman.trace.metrics`),
which is imported only once metrics are wanted, or know exporters (`cli.otel`). Called by `cli.proxy` and `cli.listen`.
"""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

from dragoman import system
from dragoman.cli.names import own_names
from dragoman.cli.otel import find_exporters, make_resource
from dragoman.cli.trace import is_stdout

if TYPE_CHECKING:
    from dragoman.status import StatusBoard
    from dragoman.trace.calls import CallWatch, Sink
    from dragoman.trace.metrics import Gauges, Labels
    from dragoman.transports.http.app import HttpFront
    from dragoman.transports.http.site import Site


class CannotCount(Exception):
    """The figures cannot be served: why."""


def watch_calls(args: argparse.Namespace) -> CallWatch | None:
    """Return what sees calls, if anybody wants to know of them; open the access log, and the socket of the metrics.

    Raises:
        CannotCount: Nothing can listen there.
    """
    args.exporters = find_exporters(args, "metrics") if args.otel else []
    if args.access_log is None and args.metrics_listen is None and not args.exporters:
        return None
    from dragoman.trace.calls import CallWatch

    sinks = [*_open_access_log(args), *_open_metrics(args)]
    return CallWatch(tuple(sinks), args.server_name or "")


def _open_access_log(args: argparse.Namespace) -> Iterator[Sink]:
    if args.access_log is None:
        return
    from dragoman.trace.access import STDOUT, AccessLog

    if args.listen is None and (args.access_log == STDOUT or is_stdout(args.access_log)):
        args.usage_error("--access-log: stdout carries the protocol; name another file or pipe")
    try:
        log = AccessLog(args.access_log, args.log_format == "json")
    except OSError as error:
        args.usage_error(f"--access-log: cannot write to {args.access_log}: {system.explain(error)}")
        raise
    args.files.append(log)
    yield log


def _open_metrics(args: argparse.Namespace) -> Iterator[Sink]:
    if args.metrics_listen is not None:
        _bind(args)
    elif not args.exporters:
        return
    from dragoman.trace.metrics import Metrics

    server = "" if args.config is not None else "pipe" if args.command else "tcp"
    args.metrics = Metrics(("pipe" if args.listen is None else "tcp", server))
    yield args.metrics


def _bind(args: argparse.Namespace) -> None:
    if args.metrics_listen[2] != "http":
        args.usage_error("--metrics-listen serves no https; expected http://HOST:PORT")
    from dragoman.errors import TransportClosed
    from dragoman.transports.http.serve import Address, bind

    try:
        args.metrics_socket = bind(Address(*args.metrics_listen[:2]))
    except TransportClosed as error:
        raise CannotCount(f"--metrics-listen: {error}") from None


@contextlib.asynccontextmanager
async def serve_metrics(
    args: argparse.Namespace, board: StatusBoard | None, places: Gauges | None = None
) -> AsyncIterator[None]:
    """Serve the figures, and send them, as far as that is wanted, as long as this is open.

    Args:
        args: With what is counted, its socket, and its exporters.
        board: How the servers are.
        places: Which places are taken, of a front.
    """
    if args.metrics is None or board is None:
        yield
        return
    args.metrics.gauges += [lambda: _read_servers(board), *([] if places is None else [places])]
    async with contextlib.AsyncExitStack() as opened:
        if args.exporters:
            from dragoman.trace.otlp import Export

            await opened.enter_async_context(Export(args.metrics, args.exporters, make_resource(args)).running())
        if args.metrics_listen is not None:
            from dragoman.trace.metrics import CONTENT_TYPE
            from dragoman.trace.port import served_at

            hosts = (*own_names(args.metrics_listen[0]), *args.allow_host)
            serving = served_at(args.metrics_socket, hosts, args.metrics.write, CONTENT_TYPE)
            await opened.enter_async_context(serving)
        yield


def _read_servers(board: StatusBoard) -> Iterator[tuple[str, Labels, float]]:
    found = board.read()
    for (server, state), count in Counter((server.name, server.state) for server in found.servers).items():
        yield "dragoman.servers", (*([("server", server)] if server else []), ("state", state)), count
    yield "dragoman.parked_calls", (), board.count_parked()
    for option, turned in found.turned_away.items():
        yield "dragoman.refusals", (("option", option),), turned


def read_places(front: HttpFront, site: Site) -> Gauges:
    """Return what says how many places of a front are taken, and how many there are."""
    limits = front.config.limits

    def read() -> Iterator[tuple[str, Labels, float]]:
        for option, taken, limit in (
            ("--max-sessions", len(front.sessions), limits.sessions),
            ("--max-connections", len(site.connections), limits.connections),
            ("--max-memory", front.budget.taken, limits.memory_bytes),
        ):
            yield "dragoman.places", (("option", option),), taken
            yield "dragoman.places.limit", (("option", option),), limit

    return read
