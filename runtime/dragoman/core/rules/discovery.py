"""How a server introduces itself, across the eras: an `initialize` result from a discover result, and the reverse.

Lives here: both results, and what the proxy says for itself when it opens a session for clients that never do. Must
not: judge the era (`verdict`), or decide which capabilities are told (`capabilities`).

Results with a handshake are in the form of the newest such revision: the steps take them to and from older ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from dragoman.core.rules.capabilities import Path, declare_down, declare_up
from dragoman.core.rules.metadata import Metadata, put_identity, take_identity
from dragoman.core.rules.names import OLDER
from dragoman.core.unchecked import find_object
from dragoman_spec import HANDSHAKE_REVISIONS, PER_REQUEST_REVISIONS
from dragoman_spec.losses import Loss

UNKNOWN_VERSION: Final = "0"
"""The version of a server that does not say it; one with a handshake has to."""


class Introduced(NamedTuple):
    """A result in the other era's form, and what it cannot carry or had to make up; pointers begin at `/result`."""

    result: dict[str, Any]
    losses: tuple[Loss, ...]


def to_initialize_result(discovered: Mapping[str, Any], path: Path, name: str) -> Introduced:
    """Answer `initialize` of a client with a handshake from what its server told of itself.

    Args:
        discovered: The server's result of `server/discover`.
        path: The way between the two.
        name: What the user calls the server; used where it does not say its own name.
    """
    rest, info = take_identity(discovered)
    told = declare_down(find_object(rest, "capabilities"), path)
    losses = _below_result(told.losses)
    if info is None or "name" not in info or "version" not in info:
        info = {"name": name, "version": UNKNOWN_VERSION, **(info or {})}
        losses.append(Loss("/result/serverInfo", "added", dict(info)))
    result: dict[str, Any] = {"protocolVersion": OLDER, "capabilities": told.capabilities, "serverInfo": dict(info)}
    return Introduced({**result, **_common(rest)}, tuple(losses))


def to_discover_result(initialized: Mapping[str, Any], path: Path) -> Introduced:
    """Answer `server/discover` of a per-request client from what a server said in its handshake.

    Args:
        initialized: The server's result of `initialize`, in the form of the newest revision with a handshake.
        path: The way between the two.
    """
    told = declare_down(find_object(initialized, "capabilities"), path)
    result: dict[str, Any] = {
        "resultType": "complete",
        "supportedVersions": list(served_versions()),  # so that the client may choose
        "capabilities": told.capabilities,
        **_common(initialized),
        "ttlMs": 0,
        "cacheScope": "private",
    }
    return Introduced(put_identity(result, find_object(initialized, "serverInfo")), tuple(_below_result(told.losses)))


def to_initialize_params(metadata: Metadata, path: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """Open the session that a request of a per-request client needs.

    Args:
        metadata: Of the first request that needs it.
        path: The way between the two.
        own: Name and version of the proxy, which speaks for itself where a session serves everybody, or a client that
            does not say its name.

    Returns:
        The params of `initialize`, in the form of the newest revision with a handshake.
    """
    info = own if path.scope == "shared" or metadata.client_info is None else metadata.client_info
    told = declare_up(metadata.capabilities, path)
    return {"protocolVersion": OLDER, "capabilities": told.capabilities, "clientInfo": dict(info)}


def read_initialize(
    params: Mapping[str, Any], path: Path, *, wants_task: bool = False
) -> tuple[Metadata, tuple[Loss, ...]]:
    """Read off `initialize` what is stamped onto each request that follows to a per-request server.

    Args:
        params: Of the client's request, in its own revision.
        path: The way between the two.
        wants_task: Whether it is for a request that asks for a task.

    Returns:
        The metadata, in which the log level is still absent; and what of the capabilities cannot be told.
    """
    told = declare_up(find_object(params, "capabilities"), path, wants_task=wants_task)
    info = params.get("clientInfo")
    named = info if isinstance(info, dict) and "name" in info and "version" in info else None
    losses = tuple(Loss("/params" + loss.pointer, loss.kind, loss.value) for loss in told.losses)
    return Metadata(path.server, told.capabilities, named), losses


def served_versions() -> tuple[str, ...]:
    """Every revision that an endpoint for both eras serves, the newest first."""
    return (*reversed(PER_REQUEST_REVISIONS), *reversed(HANDSHAKE_REVISIONS))


def offer_served(result: Mapping[str, Any]) -> dict[str, Any]:
    """Name every revision that a server is served in here, in front of the others that it names."""
    named = result.get("supportedVersions")
    served = served_versions()
    others = [revision for revision in named if revision not in served] if isinstance(named, list) else []
    return {**result, "supportedVersions": [*served, *others]}


def _common(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what both forms have: instructions, and what stands in `_meta` for whoever understands it."""
    return {name: result[name] for name in ("instructions", "_meta") if name in result}


def _below_result(losses: Sequence[Loss]) -> list[Loss]:
    return [Loss("/result" + loss.pointer, loss.kind, loss.value) for loss in losses]
