"""A server with a handshake wants a URL visited before it runs a call: its client is asked, and nothing waits.

Lives here: carrying out what `bridge.urls` says. Must not: keep anything. Called by `open_session` and `asking`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.core.bridge import urls
from dragoman.core.bridge.inputs import failed_tool
from dragoman.core.bridge.names import FACTS
from dragoman.core.bridge.state import State
from dragoman.core.bridge.to_session.reading import bind
from dragoman.core.codes import INTERNAL_ERROR
from dragoman.core.edges.per_request_front import PerRequestFront, Request
from dragoman.core.wiring import Bridging

Answer = Callable[[Request, dict[str, Any]], None]
"""Answers a request with a result in the form of 2026-07-28."""


def ask_to_visit(
    request: Request, error: Mapping[str, Any], bridging: Bridging, front: PerRequestFront, answer: Answer
) -> None:
    """Answer a request that needs a URL visited first."""
    result = None
    if request.method in FACTS.input_required:
        declared, binding = request.metadata.capabilities, bind(bridging, request)
        now_s, nonce = bridging.now(), bridging.nonce()
        result = urls.ask_to_visit(error, bridging.keeper(), binding, declared, now_s, nonce)
    if result is not None:
        answer(request, result)
    else:
        said = urls.refuse_visit(error)
        front.refuse(request, said.code, said.message, said.data)


def go_on_after_visit(
    request: Request,
    state: State,
    front: PerRequestFront,
    answer: Answer,
    start: Callable[[Request, Mapping[str, Any]], None],
) -> None:
    """Make a call again, or say that it cannot be made.

    Args:
        request: The retry.
        state: That it brought.
        front: The client's edge.
        answer: Answers it.
        start: Sends the server a request with these params.

    Raises:
        RemoteProtocolError: An answer is missing or is not one (-32602).
    """
    params, _ = urls.resume_visit(state, request.params)
    if params is not None:
        start(request, params)
    elif request.method == "tools/call":
        answer(request, failed_tool("The URL that this tool needs visited was not visited."))
    else:
        front.refuse(request, INTERNAL_ERROR, "the URL that this needs visited was not visited")
