"""What a frame holds on its way between a per-request client and a server with a handshake.

Lives here: reading and writing it, and whose it is. Must not: decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import dragoman_spec
from dragoman.core.bridge.capabilities import Path
from dragoman.core.bridge.discovery import to_initialize_params
from dragoman.core.bridge.metadata import Metadata, take_off
from dragoman.core.bridge.names import FACTS, NEWER, OLDER
from dragoman.core.bridge.state import Binding, digest_params
from dragoman.core.edges.greeting import IDENTITY, Greeting
from dragoman.core.edges.per_request_front import Request
from dragoman.core.envelope import Frame, decoded, request_frame
from dragoman.core.exact_json import decode
from dragoman.core.wiring import Bridging

_OPENING_KEY: Final = b'"dragoman-initialize"'
_METADATA: Final = frozenset(name for name in FACTS.request_meta.values() if "/" in name)
KNOWN: Final = frozenset(dragoman_spec.load(NEWER).METHODS)
"""Methods of the client's revision: of others, the steps know nothing."""

RETRY: Final = frozenset({"inputResponses", "requestState"})
"""What params have that go on from an earlier request."""


def write_greeting(request: Request, path: Path, declared: Mapping[str, Any]) -> Greeting:
    """Write the `initialize` that opens the server's session in the name of a request's client."""
    params = to_initialize_params(request.metadata._replace(capabilities=declared), path, IDENTITY)
    frame = decoded(request_frame(_OPENING_KEY, "initialize", params))
    return Greeting(frame, _OPENING_KEY, OLDER, OLDER, params["capabilities"])


def read_response(frame: Frame, method: str) -> dict[str, Any]:
    """Decode a response.

    Args:
        frame: Of the server.
        method: Of the request that it answers; a result of one that nobody knows is said to be complete, for the steps
            leave it alone.

    Raises:
        ValueError: It cannot be read, says two things, or what should be an object in it is not one.
    """
    body: dict[str, Any] = decode(frame.raw) if frame.body is None else frame.body
    kind = frame.kind
    if ("error" if kind == "result" else "result") in body:
        raise ValueError("expected either result or error, found both")
    if not isinstance(body.get(kind), dict):
        raise ValueError(f"expected {kind} to be an object")
    if kind == "result" and method not in KNOWN:
        return {**body, "result": {"resultType": "complete", **body["result"]}}
    return body


class RequestWriter:
    """Writes the requests of clients as they go over the steps, in the clients' revision."""

    __slots__ = ("_left", "_metadata")

    def __init__(self) -> None:
        self._metadata: Metadata | None = None
        self._left: Mapping[str, Any] = {}

    def write(self, request: Request, number: int, params: Mapping[str, Any]) -> dict[str, Any]:
        """Give the body of a request under an id of ours, which is its progress token, too.

        Args:
            request: The client's.
            number: The id.
            params: Of it, or those that it goes on with; with the same `_meta`.
        """
        if request.metadata is not self._metadata:  # of two requests that have the same one, it is of one `_meta`
            self._metadata, self._left = request.metadata, take_off(params)["_meta"]
        left = self._left
        if request.method not in KNOWN:  # the steps leave alone what they do not know
            left = {name: value for name, value in left.items() if name not in _METADATA}
        if left.get("progressToken") is not None:
            left = {**left, "progressToken": number}
        body = request.body.copy()
        body["id"], body["params"] = number, {**params, "_meta": left}
        return body


def without_answers(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the params of a request that goes on from nothing, without what it brings for that."""
    if RETRY.isdisjoint(params):
        return params
    return {name: value for name, value in params.items() if name not in RETRY}


def bind(bridging: Bridging, request: Request) -> Binding:
    """Say which request a state is to be good for.

    Raises:
        ValueError: Its params are nested deeper than can be written.
    """
    return Binding(bridging.server, request.method, digest_params(request.params), find_principal(bridging, request))


def find_principal(bridging: Bridging, request: Request) -> str:
    """Say whose a request is."""
    return request.frame.sender or bridging.principal
