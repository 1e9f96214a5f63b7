"""What a server of the per-request era says, and what it is said: frames for conversations across the eras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dragoman_spec
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from tests.proxy.conversation import (
    READY,
    Step,
    client,
    error,
    expect_to_client,
    expect_to_server,
    initialize,
    request,
    result,
    server,
)

NEWER = REVISIONS[-1]
META = "io.modelcontextprotocol/"
IDENTITY = {META + "serverInfo": {"name": "stateless", "version": "2"}}
NO_HANDSHAKE = {"code": -32022, "message": "no handshake here", "data": {"supported": [NEWER], "requested": "x"}}


def be_impatient(monkeypatch: pytest.MonkeyPatch, silence_s: float) -> None:
    """Have a silent server asked the other question after so many seconds."""
    for name in ("SILENCE_S", "READ_SILENCE_S"):
        monkeypatch.setattr(f"dragoman.core.edges.upstream.{name}", silence_s)


def discovered(key: Any, **capabilities: Any) -> dict[str, Any]:
    """The server's result to `server/discover`."""
    told = {"supportedVersions": [NEWER], "capabilities": capabilities, "instructions": "Be brief"}
    return complete(key, **told, ttlMs=0, cacheScope="private", _meta=IDENTITY)


def complete(key: Any, **members: Any) -> dict[str, Any]:
    return result(key, {"resultType": "complete", **members})


def asks(key: Any, state: str | None = None, **questions: Any) -> dict[str, Any]:
    """A result that wants input: questions by name."""
    members: dict[str, Any] = {"inputRequests": questions} if questions else {}
    return result(
        key, {"resultType": "input_required", **members, **({} if state is None else {"requestState": state})}
    )


def stamped(key: Any, method: str, has: dict[str, Any] | None = None, **params: Any) -> Callable[[Any], bool]:
    """Match a request to the server: valid, stamped with the client's name and capabilities, and with these params."""

    def matches(frame: Any) -> bool:
        if not method.startswith("tasks/"):  # they are of an extension, which the schemas do not have
            dragoman_spec.validate(frame, NEWER)
        meta = frame["params"].get("_meta", {})
        found = {name: value for name, value in frame["params"].items() if name != "_meta"}
        assert (frame["id"], frame["method"], found) == (key, method, params), frame
        assert meta[META + "protocolVersion"] == NEWER
        assert meta[META + "clientInfo"] == {"name": "test", "version": "1"}
        return has is None or bool(meta[META + "clientCapabilities"] == has) or not print(meta)

    matches.__name__ = f"stamped({key!r}, {method}, {has}, {params})"
    return matches


def valid(frame: Any, revision: str, method: str | None = None) -> bool:
    """Whether a frame is one of the revision; raises where it is not."""
    dragoman_spec.validate(frame, revision, method)
    return True


def opening(
    revision: str = HANDSHAKE_REVISIONS[-1], client_has: dict[str, Any] | None = None, **server_has: Any
) -> list[Step]:
    """A client with a handshake opens its session at a server that has none."""
    server_has = server_has or {"tools": {}}
    return [
        client(initialize(revision, **(client_has or {}))),
        expect_to_server(lambda frame: frame["method"] == "initialize"),
        server({"jsonrpc": "2.0", "id": 0, "error": NO_HANDSHAKE}),
        expect_to_server(lambda frame: frame["method"] == "server/discover" and valid(frame, NEWER)),
        server(discovered("dragoman-discover-1", **server_has)),
        expect_to_client(
            lambda frame: frame["result"]["protocolVersion"] == revision and valid(frame, revision, "initialize")
        ),
        client(READY),
    ]


__all__ = [
    "IDENTITY",
    "META",
    "NEWER",
    "NO_HANDSHAKE",
    "asks",
    "complete",
    "discovered",
    "error",
    "opening",
    "request",
    "stamped",
    "valid",
]
