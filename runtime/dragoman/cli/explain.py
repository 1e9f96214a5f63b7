"""`dragoman explain`: what works between a client and a server, what is emulated, and what is lost.

Only prints what `core.rules.explain` says. Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from dragoman.cli.ink import REVISIONS, Style, complain, write_painted
from dragoman.cli.options import revision
from dragoman.cli.screen import columns, fit, print_json
from dragoman.core.rules.explain import Explanation, explain
from dragoman.core.rules.features import Status
from dragoman.options import SCOPES
from dragoman_spec import REVISIONS as KNOWN
from dragoman_spec import era

TRANSPORTS: Final = ("stdio", "http", "sse", "websocket")

_OF_PER_REQUEST: Final = ("stdio", "http")
EXIT_USAGE: Final = 2

REVISIONS_OF: Final = {
    transport: [one for one in KNOWN if era(one) != "per_request" or transport in _OF_PER_REQUEST]
    for transport in TRANSPORTS
}
"""Which revisions a transport can carry."""

_MARKS: Final = {
    rf"^{Status.LOST.value}\b": Style.LOSS,
    rf"^{Status.EMULATED.value}\b": Style.FAINT,
    rf"^{Status.WORKS.value}\b": Style.GOOD,
    **REVISIONS,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of `explain`."""
    parser.add_argument(
        "--client", metavar="REV", type=revision, help="the revision of the client (default: a table of all)"
    )
    parser.add_argument("--server", metavar="REV", type=revision, help="the revision of the server (default: the same)")
    for side in ("client", "server"):
        parser.add_argument(
            f"--{side}-transport",
            choices=TRANSPORTS,
            default="stdio",
            help=f"how the {side} is reached; http is Streamable HTTP (default: %(default)s)",
        )
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default="client",
        help="who shares a session of the server, as for `dragoman proxy` (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print what there is between the two; 2 where a revision has no such transport."""
    for side in ("client", "server"):
        spoken, transport = getattr(args, side), getattr(args, f"{side}_transport")
        if spoken is not None and spoken not in REVISIONS_OF[transport]:
            complain(f"dragoman explain: {spoken} has no {transport}; it has {' and '.join(_OF_PER_REQUEST)}")
            return EXIT_USAGE
    transports = (args.client_transport, args.server_transport)
    clients, servers = (
        [one for one in REVISIONS_OF[over] if asked in (None, one)]
        for over, asked in zip(transports, (args.client, args.server), strict=True)
    )
    pairs: dict[tuple[str, str], Explanation] = {
        (client, server): explain(
            client, server, client_transport=transports[0], server_transport=transports[1], scope=args.scope
        )
        for client in clients
        for server in servers
    }
    if args.client is None or args.server is None:
        if args.json:
            print_json([describe(one, *transports) for one in pairs.values()])
        else:
            write_painted(lay_out_pairs(pairs, *transports))
        return 0
    found = pairs[args.client, args.server]
    if args.json:
        print_json(describe(found, *transports))
    else:
        write_painted(lay_out(found, *transports, columns()), _MARKS)
    return 0


def lay_out_pairs(pairs: Mapping[tuple[str, str], Explanation], client_transport: str, server_transport: str) -> str:
    """Return a table of pairs as text: how many features of each kind there are for a client with a server."""
    servers = dict.fromkeys(server for _, server in pairs)
    kinds = "/".join(status.value for status in Status)
    lines = [
        f"Clients over {client_transport}, servers over {server_transport}: how many features {kinds}.",
        "",
        "  ".join(["client    ", *servers]),
    ]
    for client in dict.fromkeys(client for client, _ in pairs):
        cells = ("/".join(str(len(pairs[client, one].select(status))) for status in Status) for one in servers)
        lines.append("  ".join([client, *(f"{cell:<10}" for cell in cells)]).rstrip())
    return "\n".join([*lines, "", "One pair in full: dragoman explain --client REV --server REV", ""])


def describe(found: Explanation, client_transport: str, server_transport: str) -> dict[str, Any]:
    """Return an explanation as a JSON object."""
    return {
        "client": found.path.client,
        "clientTransport": client_transport,
        "server": found.path.server,
        "serverTransport": server_transport,
        "scope": found.path.scope,
        "features": [{"feature": row.feature, "status": row.status.value, "why": row.why} for row in found.rows],
    }


def lay_out(found: Explanation, client_transport: str, server_transport: str, width: int | None = None) -> str:
    """Return an explanation as text: a table, and how many features there are of each kind."""
    path = found.path
    head = f"A client of {path.client} over {client_transport}, a server of {path.server} over {server_transport}."
    column = max(len(row.feature) for row in found.rows)
    hang = column + 12 if width is None or width - column >= 40 else 12
    lines = [fit(f"{row.status.value:<8}  {row.feature:<{column}}  {row.why}", hang, width) for row in found.rows]
    counts = ", ".join(f"{status.value}: {len(found.select(status))}" for status in Status)
    return "\n".join([fit(head, 0, width), "", *lines, "", counts, ""])
