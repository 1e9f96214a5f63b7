"""`/healthz` and `/readyz`: whether the process answers, and whether it can serve, for whoever watches over it.

Lives here: the answers. Must not: find out anything (`dragoman.status`). Called by `app`.

Both take GET, and need no secret: what keeps a service running has none. Whoever is let in is shown the servers too.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from dragoman.transports.http.exchange import HttpExchange, RequestRefused
from dragoman.transports.http.security import Doorkeeper

if TYPE_CHECKING:
    from dragoman.status import StatusBoard
    from dragoman.transports.http.readiness import Readiness

HEALTH: Final = "/healthz"
READY: Final = "/readyz"
_HEADERS: Final = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


async def answer_health(
    exchange: HttpExchange, path: str, board: StatusBoard, gate: Doorkeeper, readiness: Readiness | None = None
) -> None:
    """Answer a request to one of the two paths.

    Args:
        exchange: The request.
        path: Which.
        board: What there is to tell.
        gate: Knows who may see the servers.
        readiness: Asks the server, if that is in doubt; None where that is somebody else's affair.

    Raises:
        RequestRefused: It is neither GET nor HEAD.
    """
    if exchange.method not in ("GET", "HEAD"):
        raise RequestRefused(405, "expected GET", (b"allow", b"GET, HEAD"))
    status, told = 200, {"status": "ok"}
    if path == READY:
        if readiness is not None:
            await readiness.settle()
        status, told = _read(board, _is_known(exchange, gate))
    body = b"" if exchange.method == "HEAD" else json.dumps(told).encode() + b"\n"
    await exchange.reply(status, body, *_HEADERS)


def _read(board: StatusBoard, is_known: bool) -> tuple[int, Any]:
    found = board.read()
    return 200 if found.ready else 503, found.to_json() if is_known else {"ready": found.ready}


def _is_known(exchange: HttpExchange, gate: Doorkeeper) -> bool:
    try:
        gate.authenticate(exchange.headers)
    except RequestRefused:
        return False
    return True
