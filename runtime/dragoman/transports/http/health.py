"""`/healthz` and `/readyz`: whether the process answers, and whether it can serve, for whoever watches over it.

Lives here: the answers. Must not: find out anything (`dragoman.status`). Called by `app`.

Both take GET, and need no secret: what keeps a service running has none. Whoever is let in is shown the servers too.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from dragoman.transports.http.exchange import HttpRequest, RequestRefused, Routine, Waits
from dragoman.transports.http.security import Doorkeeper

if TYPE_CHECKING:
    from dragoman.status import StatusBoard
    from dragoman.transports.http.readiness import Readiness

HEALTH: Final = "/healthz"
READY: Final = "/readyz"
_HEADERS: Final = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


def answer_health(request: HttpRequest, path: str, board: StatusBoard, readiness: Readiness | None = None) -> Routine:
    """Answer a request to one of the two paths.

    Args:
        request: It.
        path: Which.
        board: What there is to tell.
        readiness: Asks the server, if that is in doubt; None where that is somebody else's affair.

    Raises:
        RequestRefused: It is neither GET nor HEAD.
    """
    if request.method not in ("GET", "HEAD"):
        raise RequestRefused(405, "expected GET", (b"allow", b"GET, HEAD"))
    status, told = 200, {"status": "ok"}
    if path == READY:
        if readiness is not None:
            yield readiness.settle()
        is_known = yield from _is_known(request)
        status, told = _read(board, is_known)
    body = b"" if request.method == "HEAD" else json.dumps(told).encode() + b"\n"
    yield request.reply(status, body, *_HEADERS)


def _read(board: StatusBoard, is_known: bool) -> tuple[int, Any]:
    found = board.read()
    return 200 if found.ready else 503, found.to_json() if is_known else {"ready": found.ready}


def _is_known(request: HttpRequest) -> Generator[Waits, Any, bool]:
    if not isinstance(request.gate, Doorkeeper):
        return False  # whoever does not know us by a name of ours is shown no servers
    try:
        yield from request.gate.identify(request)
    except RequestRefused:
        return False
    return True
