"""The streams of notices of a client whose requests speak for themselves, made of those of every server.

Lives here: `subscriptions/listen`. Must not: be loaded where the client has a handshake.

One listen request of the client becomes one at each server that may have something of it. It is acknowledged when all
of these have acknowledged theirs, or are late; notices come back on the client's stream, under its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.bridge.names import FACTS, META_SUBSCRIPTION_ID
from dragoman.core.bridge.notices import RESOURCE_FILTER, UPDATED
from dragoman.core.envelope import Frame, key_of, read_params
from dragoman.core.exact_json import encode_line
from dragoman.core.methods import ACKNOWLEDGED, CANCELLED, LISTEN
from dragoman.core.switch.catalogue.member import Member, MemberState

if TYPE_CHECKING:
    from dragoman.core.switch.catalogue.catalogue import Catalogue

_PATIENCE_S: Final = 4.0


class _Stream:
    """One listen request of the client."""

    def __init__(self, frame: Frame, asked: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        self.key = frame.key or b"null"
        self.id = frame.body["id"]
        self.asked = asked
        self.meta = meta
        self.agreed: dict[str, Any] = {}
        self.pending: set[bytes] = set()
        self.parts: dict[bytes, Member] = {}
        self.is_acknowledged = False
        self.waiting: dict[tuple[str, Any], dict[str, Any]] = {}


class Late:
    """What a reminder is about."""

    def __init__(self, key: bytes) -> None:
        self.key = key


class MemberStreams:
    """The listen requests of one client.

    Args:
        catalogue: Whose.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._streams: dict[bytes, _Stream] = {}
        self._parts: dict[bytes, _Stream] = {}

    def open(self, frame: Frame, params: Mapping[str, Any]) -> None:
        """Take a listen request."""
        asked = params.get("notifications")
        asked = asked if isinstance(asked, dict) else {}
        stream = _Stream(frame, asked, self._catalogue.meta_of(params) or {})
        self._streams[stream.key] = stream
        for name in FACTS.subscriptions:  # of the lists we know ourselves when a server comes or goes
            if name != RESOURCE_FILTER and asked.get(name) is True:
                stream.agreed[name] = True
        stream.pending.add(stream.key)  # until all have been asked
        for member in self._catalogue.members.values():
            self._listen(stream, member)
        stream.pending.discard(stream.key)
        if stream.pending:
            self._catalogue.outside.remind(_PATIENCE_S, Late(stream.key))
        else:
            self._acknowledge(stream)

    def expire(self, late: object) -> None:
        """Take note that some servers have not acknowledged in time."""
        stream = self._streams.get(late.key) if isinstance(late, Late) else None
        if stream is not None:
            self._acknowledge(stream)

    def join(self, member: Member) -> None:
        """Listen to a server that was not there."""
        for stream in list(self._streams.values()):
            self._listen(stream, member)

    def _listen(self, stream: _Stream, member: Member) -> None:
        if member.state is MemberState.FAILED:
            return
        wanted: dict[str, Any] = {
            name: True for name, value in stream.asked.items() if name != RESOURCE_FILTER and value is True
        }
        uris = stream.asked.get(RESOURCE_FILTER)
        own = [self._own_uri(member, uri) for uri in uris] if isinstance(uris, list) else []
        own = [uri for uri in own if uri is not None]
        if own:
            wanted[RESOURCE_FILTER] = own
        if not wanted:
            return
        key = self._catalogue.own.next_key()
        stream.parts[key] = member  # before it is asked: it may acknowledge at once
        stream.pending.add(key)
        self._parts[key] = stream
        params = {"notifications": wanted}
        self._catalogue.own.ask(member, LISTEN, params, lambda _: self._end_part(key), stream.meta, key)

    def _own_uri(self, member: Member, uri: object) -> str | None:
        if not isinstance(uri, str):
            return None
        owner = self._catalogue.routes.find_resource(uri)
        if owner is None:
            return uri
        self._catalogue.routes.note_watched(owner, uri)
        return owner.name if owner.server == member.name else None

    def hear(self, member: Member, frame: Frame) -> bool:
        """Take a notice of a server; False where it belongs to no stream."""
        params = read_params(frame)
        meta = params.get("_meta")
        named = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else params.get("requestId")
        key = key_of(named) or frame.stream or b""
        stream = self._parts.get(key)
        if stream is None or stream.parts.get(key) is not member:
            return frame.stream is not None
        if frame.method == ACKNOWLEDGED:
            self._note_agreed(stream, member, params.get("notifications"))
            stream.pending.discard(key)
            if not stream.pending:
                self._acknowledge(stream)
        elif frame.method != CANCELLED:
            self._tell(stream, frame.method or "", self._show(member, frame.method, params))
        return True

    def _show(self, member: Member, method: str | None, params: dict[str, Any]) -> dict[str, Any]:
        uri = params.get("uri")
        if method != UPDATED or not isinstance(uri, str):
            return params
        return {**params, "uri": self._catalogue.routes.show_uri(member, uri)}

    def _note_agreed(self, stream: _Stream, member: Member, agreed: object) -> None:
        for name, value in (agreed if isinstance(agreed, dict) else {}).items():
            if name == RESOURCE_FILTER and isinstance(value, list):
                known = stream.agreed.setdefault(name, [])
                shown = [self._catalogue.routes.show_uri(member, uri) for uri in value if isinstance(uri, str)]
                known += [uri for uri in dict.fromkeys(shown) if uri not in known]
            elif value is True:
                stream.agreed[name] = True

    def tell_changed(self, method: str) -> None:
        """Say that a list has changed, to each stream that asked for it."""
        for stream in self._streams.values():
            if any(
                stream.asked.get(name) is True and FACTS.subscriptions[name] == method for name in FACTS.subscriptions
            ):
                self._tell(stream, method, {})

    def _tell(self, stream: _Stream, method: str, params: dict[str, Any]) -> None:
        meta = params.get("_meta")
        tagged = {**params, "_meta": {**(meta if isinstance(meta, dict) else {}), META_SUBSCRIPTION_ID: stream.id}}
        if not stream.is_acknowledged and method != ACKNOWLEDGED:
            uri = params.get("uri")
            stream.waiting[method, uri if isinstance(uri, str) else None] = tagged
            return
        body = {"jsonrpc": "2.0", "method": method, "params": tagged}
        self._catalogue.outside.tell_client(Frame(encode_line(body), "notification", None, method, body, stream.key))

    def _acknowledge(self, stream: _Stream) -> None:
        if stream.is_acknowledged:
            return
        self._tell(stream, ACKNOWLEDGED, {"notifications": stream.agreed})
        stream.is_acknowledged = True
        waiting, stream.waiting = stream.waiting, {}
        for (method, _), params in waiting.items():
            self._tell(stream, method, params)

    def _end_part(self, key: bytes) -> None:
        """A server has ended its stream: the others go on."""
        stream = self._parts.pop(key)
        del stream.parts[key]
        stream.pending.discard(key)
        if not stream.pending:
            self._acknowledge(stream)

    def cancel(self, key: bytes) -> bool:
        """Take note that the client does not listen any more; False where this is not a stream."""
        stream = self._streams.pop(key, None)
        if stream is None:
            return False
        for part in stream.parts:
            del self._parts[part]
            self._catalogue.own.withdraw(part, "the client has stopped listening")
        return True
