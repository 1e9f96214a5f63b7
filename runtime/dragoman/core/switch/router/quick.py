"""Handing on a call without reading more of it than its name.

Lives here: the shortest way to a server, and the names that it is known for. Must not: answer anything: what is not
clear from its first bytes goes the usual way (`catalogue`).
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.core.envelope import Frame
from dragoman.core.exact_json import encode_line
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.switch.router.names import NameKind, NameOwner

_CALLS: Final = b'"params":{"name":"'
_HEAD_BYTES: Final = 200
"""How the params of a call begin as most clients write them, and how far into it they may do so."""

_CALLED = re.compile(
    rb'\s*\{(?:\s*"(?:jsonrpc|id|method)"\s*:\s*(?:"[^"\\]*"|-?\d+)\s*,)+\s*'
    rb'"params"\s*:\s*\{\s*"name"\s*:\s*"([ !#-\[\]-~]*)"'
)
"""The same with white space: a request that says first of all what it calls. Then nothing else of it is read."""

_TOKEN: Final = b"progressToken"


class QuickCalls:
    """Finds the server of a call by the bytes of its name.

    Args:
        common: What all parts know.
    """

    def __init__(self, common: Common) -> None:
        self._common = common
        self._names = common.names
        self._routes: dict[bytes, tuple[Member, bytes | None, NameOwner]] = {}
        self._version = -1

    def clear(self) -> None:
        """Forget who has which name."""
        self._routes.clear()

    def forward(self, frame: Frame) -> bool:
        """Hand on a call; False where more of it has to be read."""
        raw, kind, key, method, _, stream, headers, sender, source, origin, _ = frame
        start = raw.find(_CALLS, 0, _HEAD_BYTES) + len(_CALLS)
        if start < len(_CALLS) or raw.count(b"{", 0, start) != 2:  # what comes before has no object in it
            found = _CALLED.match(raw)
            if found is None:
                return False
            start = found.start(1)
        end = raw.find(b'"', start)
        if self._version != self._names.version:
            self._routes.clear()
            self._version = self._names.version
        name = raw[start:end]
        route = self._routes.get(name) or self._find(name)
        if route is None or key is None:
            return False
        member, other, owner = route
        if member.state is MemberState.FAILED or (
            origin is not None and origin.may is not None and origin.judged != owner
        ):
            return False
        if other is not None:
            line = b"%b%b%b" % (raw[:start], other, raw[end:])
            frame = Frame(line, kind, key, method, None, stream, headers, sender, source, origin)
        member.owed[key] = None
        if _TOKEN in raw:
            self._common.tokens.note(member, frame)
        self._common.outside.tell_member(member, frame)
        return True

    def _find(self, name: bytes) -> tuple[Member, bytes | None, NameOwner] | None:
        owner = self._names.find(NameKind.TOOL, name.decode()) if name.isascii() else None
        member = None if owner is None else self._common.members.get(owner.server)
        if owner is None or member is None or member.has_filter:
            return None
        other = None if owner.name == name.decode() else encode_line(owner.name)[1:-2]
        self._routes[name] = (member, other, owner)
        return self._routes[name]
