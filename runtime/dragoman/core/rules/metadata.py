"""What every request of the per-request era says of its client, and every result of its server.

Lives here: stamping `_meta` onto what goes to a peer of that era, reading it off what comes, taking it off before the
steps. Must not: know which peer it is (`core.edges`), or which capabilities may be declared (`discovery`).

"Requests are self-contained": version and capabilities are required on each request, name and log level are not
(2026-07-28/basic/index, Per-request protocol fields). Results name their server in the same way. What the bridge
has used comes off before the steps, so it is no loss.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.exact_json import escape
from dragoman.core.rules.names import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_VERSION,
    UNSUPPORTED_VERSION,
)
from dragoman.core.unchecked import MOST_LEVELS, find, find_object, is_deeper, with_meta, without_meta
from dragoman.errors import RemoteProtocolError
from dragoman_spec import facts

_OF_REQUESTS: Final = frozenset({META_VERSION, META_CLIENT_INFO, META_CLIENT_CAPABILITIES, META_LOG_LEVEL})


class Metadata(NamedTuple):
    """What one request says of its client.

    Attributes:
        revision: It is written in.
        capabilities: Of the client, for this request, as 2026-07-28 has them.
        client_info: Name and version of the client, if it says them.
        log_level: From which level on it wants log messages of this request; None for none at all.
    """

    revision: str
    capabilities: Mapping[str, Any]
    client_info: Mapping[str, Any] | None = None
    log_level: str | None = None


def stamp(params: Mapping[str, Any] | None, metadata: Metadata) -> dict[str, Any]:
    """Return params with the metadata in `_meta`; what else is in `_meta` stays, metadata of somebody else does not.

    Args:
        params: Of a request, or None where it has none; not changed.
        metadata: What to say.
    """
    return stamp_spelled(params, spell(metadata))


def spell(metadata: Metadata) -> dict[str, Any]:
    """Return metadata as `_meta` has it: what `stamp_spelled` takes, where many requests say the same."""
    meta = {META_VERSION: metadata.revision, META_CLIENT_CAPABILITIES: dict(metadata.capabilities)}
    if metadata.client_info is not None:
        meta[META_CLIENT_INFO] = dict(metadata.client_info)
    if metadata.log_level is not None:
        meta[META_LOG_LEVEL] = metadata.log_level
    return meta


def stamp_spelled(params: Mapping[str, Any] | None, spelled: Mapping[str, Any]) -> dict[str, Any]:
    """Do what `stamp` does, with metadata that is spelled already: it is shared, and must not change."""
    meta = params.get("_meta") if params else None
    if isinstance(meta, dict) and not meta.keys() <= spelled.keys():
        return {**(params or {}), "_meta": {**_without(meta, _OF_REQUESTS), **spelled}}
    return {**(params or {}), "_meta": spelled}


def read(params: object, supported: Collection[str]) -> Metadata:
    """Read what a request says of its client, and check it.

    Args:
        params: Of the request, as they came.
        supported: The revisions that may be used here, in the order in which to name them.

    Raises:
        RemoteProtocolError: Something required is missing or malformed (-32602), or the revision is not supported
            (-32022, with `supported` and `requested`).
    """
    meta = params.get("_meta") if isinstance(params, dict) else None
    if not isinstance(meta, dict):
        raise _malformed("/params/_meta", "an object with the metadata that every request carries")
    revision = meta.get(META_VERSION)
    if not isinstance(revision, str):
        raise _malformed(_pointer(META_VERSION), "a protocol version")
    if revision not in supported:  # before anything else is judged by rules that it may not have
        data = {"supported": list(supported), "requested": revision}
        raise RemoteProtocolError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    capabilities = meta.get(META_CLIENT_CAPABILITIES)
    if not isinstance(capabilities, dict):
        raise _malformed(_pointer(META_CLIENT_CAPABILITIES), "an object")
    if is_deeper(meta):
        raise _malformed("/params/_meta", f"at most {MOST_LEVELS} levels")
    client_info = meta.get(META_CLIENT_INFO)
    if client_info is not None and not isinstance(client_info, dict):
        raise _malformed(_pointer(META_CLIENT_INFO), "an object")
    level = meta.get(META_LOG_LEVEL)
    if level is not None and level not in facts(revision).log_levels:
        raise _malformed(_pointer(META_LOG_LEVEL), f"one of {', '.join(facts(revision).log_levels)}")
    return Metadata(revision, capabilities, client_info, level)


class MetadataReader:
    """Reads what the requests of one connection say of their client: most say what the one before has said.

    Args:
        supported: As for `read`.
    """

    __slots__ = ("_meta", "_metadata", "_supported")

    def __init__(self, supported: Collection[str]) -> None:
        self._supported = supported
        self._meta: dict[str, Any] | None = None
        self._metadata: Metadata | None = None

    def read(self, params: object) -> Metadata:
        """Do what `read` does; gives the same object for the same `_meta`, which nobody may change."""
        meta = params.get("_meta") if isinstance(params, dict) else None
        if self._metadata is not None and meta == self._meta:
            return self._metadata
        metadata = read(params, self._supported)
        self._meta, self._metadata = (meta, metadata) if _is_told_apart(meta) else (None, None)
        return metadata


def _is_told_apart(value: object, levels: int = 8) -> bool:
    """Whether what equals this says the same: 1, 1.0 and true are equal, and three things to say."""
    if type(value) is dict and levels:
        return all(_is_told_apart(inner, levels - 1) for inner in value.values())
    return type(value) is str


def claims_per_request(params: object) -> bool:
    """Whether params claim to be of the per-request era: they name a version in `_meta`, whichever it is."""
    return META_VERSION in find_object(params, "_meta")


def take_off(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return params without the metadata that has been used up; the same object where there is none in it.

    Of version and capabilities the form stays: a request without it is not one of 2026-07-28; the steps take it off.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return params
    left = meta.copy()
    left.pop(META_CLIENT_INFO, None)
    left.pop(META_LOG_LEVEL, None)
    if left.get(META_CLIENT_CAPABILITIES):
        left[META_CLIENT_CAPABILITIES] = {}
    elif len(left) == len(meta):
        return params
    return {**params, "_meta": left}


def take_identity(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Take the server's name and version off a result.

    Returns:
        The result without them, the same object where they are not in it; and what they are, None if not known.
    """
    info = find(result, "_meta", META_SERVER_INFO)
    return without_meta(result, META_SERVER_INFO), info if isinstance(info, dict) else None


def put_identity(result: Mapping[str, Any], server_info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result that names the server; what else is in its `_meta` stays."""
    return with_meta(result, META_SERVER_INFO, dict(server_info))


def _without(meta: object, keys: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in keys} if isinstance(meta, dict) else {}


def _malformed(pointer: str, expected: str) -> RemoteProtocolError:
    return RemoteProtocolError(INVALID_PARAMS, f"expected {expected} at {pointer}", {"pointer": pointer})


def _pointer(key: str) -> str:
    return "/params/_meta/" + escape(key)
