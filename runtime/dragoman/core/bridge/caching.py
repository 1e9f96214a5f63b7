"""How long results may be used again, and by whom: the hints of 2026-07-28, and a cache that keeps to them.

Lives here: reading, joining and writing hints, and the cache of our own. Must not: ask servers, or put the hints of
2026-07-28 onto results of older servers, which the steps do ("0, private") before anything here raises them.

Source: 2026-07-28/server/utilities/caching. A result is good for its request alone: "Clients MUST NOT serve a cached
response for a request whose method or parameters differ", and one that was made of answers is never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from dragoman.core.bridge.names import FACTS, META_LOG_LEVEL
from dragoman.core.bridge.state import digest_params
from dragoman_spec.losses import Loss

Scope = Literal["public", "private"]

_MADE_OF_ANSWERS: Final = frozenset({"inputResponses", "requestState"})

CHANGED_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "notifications/tools/list_changed": ("tools/list",),
        "notifications/prompts/list_changed": ("prompts/list",),
        "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
        "notifications/resources/updated": ("resources/read",),
    }
)
"""The results that a notification makes stale."""


class Hint(NamedTuple):
    """How long a result may be used again, in milliseconds, and by whom."""

    ttl_ms: int = 0
    scope: Scope = "private"


def read_hint(result: Mapping[str, Any]) -> Hint:
    """Read the hint of a result; what is absent or makes no sense is the careful value: 0, and private."""
    ttl = result.get("ttlMs")
    is_good = isinstance(ttl, int | float) and not isinstance(ttl, bool) and ttl > 0
    return Hint(
        int(ttl) if is_good and ttl is not None else 0, "public" if result.get("cacheScope") == "public" else "private"
    )


def join_hints(hints: Iterable[Hint]) -> Hint:
    """Give the hint for what is made of several results: the shortest time, and private if any is."""
    found = list(hints)
    if not found:
        return Hint()
    scope: Scope = "private" if any(hint.scope == "private" for hint in found) else "public"
    return Hint(min(hint.ttl_ms for hint in found), scope)


def put_hint(result: Mapping[str, Any], method: str, hint: Hint) -> Mapping[str, Any]:
    """Give a result with this hint; the same object where results of this method, or of its type, carry none."""
    if method not in FACTS.cacheable or result.get("resultType", "complete") != "complete":
        return result
    return {**result, "ttlMs": hint.ttl_ms, "cacheScope": hint.scope}


def take_hint(result: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[Loss, ...]]:
    """Take a hint off where it has no place: a result that is not cacheable, or not complete."""
    found = [name for name in ("ttlMs", "cacheScope") if name in result]
    if not found:
        return result, ()
    losses = tuple(Loss(f"/result/{name}", "dropped", result[name], True) for name in found)
    return {name: value for name, value in result.items() if name not in found}, losses


class CacheableRequest(NamedTuple):
    """A request whose result may be kept.

    Attributes:
        server: That was asked.
        revision: That it was asked in.
        method: Of the request.
        params: Of the request.
        principal: Who asked.
    """

    server: str
    revision: str
    method: str
    params: Mapping[str, Any]
    principal: str = ""


class _Key(NamedTuple):
    server: str
    revision: str
    method: str
    digest: str
    principal: str | None
    """None is everybody."""


@dataclass(slots=True)
class ResultCache:
    """Results of per-request servers that may be used again.

    Attributes:
        most: How many are kept; what was put first goes first.
    """

    most: int = 1024
    _kept: dict[_Key, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)

    def put(self, request: CacheableRequest, result: Mapping[str, Any], now_s: float) -> None:
        """Keep a result that came now, if it may be used again; what was kept for this request is forgotten."""
        hint, keys = read_hint(result), _keys(request)
        if keys is None or result.get("resultType", "complete") != "complete":
            return
        for key in keys:
            self._kept.pop(key, None)
        if hint.ttl_ms <= 0:
            return
        mine, everybodys = keys
        self._kept[everybodys if hint.scope == "public" else mine] = now_s + hint.ttl_ms / 1000, result
        while len(self._kept) > self.most:
            del self._kept[next(iter(self._kept))]

    def get(self, request: CacheableRequest, now_s: float) -> Mapping[str, Any] | None:
        """Give a result that may be used for this request; None if there is none."""
        for key in _keys(request) or ():
            until_s, result = self._kept.get(key, (now_s, {}))
            if now_s < until_s:
                return result
        return None

    def invalidate(self, server: str, notification: str) -> None:
        """Forget what a notification of a server makes stale."""
        stale = CHANGED_BY.get(notification, ())
        self._kept = {key: kept for key, kept in self._kept.items() if key.server != server or key.method not in stale}

    def forget(self, server: str) -> None:
        """Forget everything of a server: it is another one now."""
        self._kept = {key: kept for key, kept in self._kept.items() if key.server != server}


def is_cacheable(method: str, params: Mapping[str, Any]) -> bool:
    """Whether a result of such a request may be kept at all."""
    meta = params.get("_meta")
    wants_logs = isinstance(meta, dict) and META_LOG_LEVEL in meta
    return method in FACTS.cacheable and not _MADE_OF_ANSWERS & params.keys() and not wants_logs


def _keys(request: CacheableRequest) -> tuple[_Key, _Key] | None:
    if not is_cacheable(request.method, request.params):
        return None
    try:
        digest = digest_params(request.params)
    except ValueError:
        return None
    mine = _Key(request.server, request.revision, request.method, digest, request.principal)
    return mine, mine._replace(principal=None)


@dataclass(slots=True)
class Watch:
    """Notices that a list is no longer what it was, where nobody tells: for clients that have no other way to hear it.

    Attributes:
        most: How many pages are remembered.
    """

    most: int = 1024
    _seen: dict[tuple[str, str], str] = field(default_factory=dict)

    def see(self, method: str, params: Mapping[str, Any], result: Mapping[str, Any]) -> str | None:
        """Take note of a page of a list; give the notification to send if it differs from what was there before."""
        told = next((name for name, methods in CHANGED_BY.items() if method in methods), None)
        if told is None or method not in FACTS.cacheable or method == "resources/read":
            return None
        bare, _ = take_hint(result)
        try:
            which, now = (method, digest_params(params)), digest_params(bare)
        except ValueError:
            return None
        before = self._seen.pop(which, now)
        self._seen[which] = now
        while len(self._seen) > self.most:
            del self._seen[next(iter(self._seen))]
        return told if before != now else None
