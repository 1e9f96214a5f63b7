"""What a frame holds on its way between a per-request client and a server with a handshake.

Lives here: reading. Must not: decide anything. Called by `switch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.bridge.names import FACTS
from dragoman.core.envelope import Frame, decoded

_METADATA: Final = frozenset(name for name in FACTS.request_meta.values() if "/" in name)


def read_response(frame: Frame) -> dict[str, Any]:
    """Decode a response.

    Raises:
        ValueError: It cannot be read, or what should be an object in it is not one.
    """
    body: dict[str, Any] = decoded(frame).body
    if not isinstance(body.get(frame.kind), dict):
        raise ValueError(f"expected {frame.kind} to be an object")
    return body


def without_metadata(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the params of a request without what it says of its client."""
    meta = {name: value for name, value in params["_meta"].items() if name not in _METADATA}
    return {**params, "_meta": meta}
