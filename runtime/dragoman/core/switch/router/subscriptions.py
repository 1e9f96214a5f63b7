"""The streams of notices of a client whose requests speak for themselves, made of those of every server.

Lives here: `subscriptions/listen`. Must not: be loaded where the client has a handshake.

Each server has one listen request of ours, for all streams of the client together. Its filter cannot be changed: so a
new request is made with the new filter, and the old one is taken back when the new one is acknowledged. A stream of the
client is acknowledged when all servers have acknowledged what it wants of them, or are late. Notices go to the streams
that want them, under their ids, each kind at most twice a second: only the latest of a kind is kept meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dragoman.core.envelope import Frame, key_of, notification_frame, read_params
from dragoman.core.methods import ACKNOWLEDGED, CANCELLED, LISTEN
from dragoman.core.rules.names import FACTS, META_SUBSCRIPTION_ID
from dragoman.core.rules.notifications import (
    RESOURCE_FILTER,
    UPDATED,
    Backlog,
    Filter,
    read_filter,
    wants,
    write_filter,
)
from dragoman.core.serving.subscriptions import Subscriptions
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.router.gathering import Gathering
from dragoman.core.switch.router.member import Member, MemberState
from dragoman.core.switch.router.names import NameKind, NameOwner
from dragoman.core.switch.router.routes import Routes
from dragoman.core.unchecked import find_object, with_meta

_PATIENCE_S: Final = 4.0
_PAUSE_S: Final = 0.5
_NO_MORE: Final = "it is not listened to any more"


class _Stream:
    """One listen request of the client."""

    def __init__(
        self,
        frame: Frame,
        asked: Mapping[str, Any],
        meta: Mapping[str, Any],
        opening: Gathering[Member],
    ) -> None:
        self.key = frame.key or b"null"
        self.id = frame.body["id"]
        self.sender, self.origin = frame.sender, frame.origin
        wanted = read_filter(asked)
        self.uris = sorted(uri for name, uri in wanted if name == RESOURCE_FILTER)
        self.known: dict[tuple[Member, str], list[str]] = {}  # its URIs, by what servers call them
        self.lists: Filter = frozenset(one for one in wanted if one[0] != RESOURCE_FILTER)
        self.meta = meta
        self.opening = opening
        self.agreed: dict[str, Any] = {name: True for name in FACTS.subscriptions if (name, "") in self.lists}
        self.has_more = any(name not in FACTS.subscriptions for name, _ in self.lists)  # than is known to be told
        self.waiting = Backlog()


class _Ear:
    """What is wanted of one server, in its words: under `current`, and under `opening` until that is acknowledged."""

    def __init__(self) -> None:
        self.subscriptions: Subscriptions[_Stream] = Subscriptions()
        self.asked: Filter = frozenset()
        self.current: bytes | None = None
        self.opening: bytes | None = None
        self.granted: Filter = frozenset()
        self.senders: set[str] = set()  # whose streams this was ever for


class MemberStreams:
    """The listen requests of one client.

    Args:
        common: What all parts know.
        routes: Know whose a resource is.
    """

    def __init__(self, common: Common, routes: Routes) -> None:
        self._common = common
        self._routes = routes
        self._streams: dict[bytes, _Stream] = {}
        self._ears: dict[Member, _Ear] = {}
        self._is_quiet = False

    def open(self, frame: Frame, params: Mapping[str, Any]) -> None:
        """Take a listen request."""

        def acknowledge(_: object) -> None:
            self._acknowledge(stream)

        asked = find_object(params, "notifications")
        stream = _Stream(frame, asked, self._common.meta_of(params) or {}, Gathering(acknowledge))
        self._streams[stream.key] = stream
        members = list(self._common.members.values())
        stream.opening.pending.update(members)  # before they are asked: they may acknowledge at once
        for member in members:
            self._listen(stream, member)
        if stream.opening.pending:
            self._common.outside.remind(_PATIENCE_S, stream.opening.finish)
        else:
            stream.opening.finish()

    def _go_on(self) -> None:
        self._is_quiet = False
        self._flush()

    def join(self, member: Member) -> None:
        """Listen to a server that was not there."""
        for stream in list(self._streams.values()):
            self._listen(stream, member)

    def _listen(self, stream: _Stream, member: Member) -> None:
        own: list[str] = []
        for uri in stream.uris:
            at_server = self._own_uri(stream, member, uri)
            if at_server is not None:
                own.append(at_server)
                known = stream.known.setdefault((member, at_server), [])
                known += [] if uri in known else [uri]
        ear = self._ears.setdefault(member, _Ear())
        ear.senders.add(stream.sender)
        for item in (*stream.lists, *((RESOURCE_FILTER, uri) for uri in own)):
            ear.subscriptions.add(stream, item)
        self._follow(member)
        self._settle(stream, member)

    def _own_uri(self, stream: _Stream, member: Member, uri: str) -> str | None:
        owner = self._routes.find_owner(NameKind.RESOURCE, uri)
        asked = owner or NameOwner(member.name, uri)
        may = None if stream.origin is None else stream.origin.may
        if may is not None and not may(NameKind.RESOURCE.value, asked.server, asked.name):
            return None
        if owner is None:
            return uri
        self._routes.note_watched(owner, uri)
        return owner.name if owner.server == member.name else None

    def _follow(self, member: Member) -> None:
        """Listen to what all streams want of a server; where a request is under way, when it is acknowledged."""
        ear = self._ears[member]
        wanted = ear.subscriptions.wanted
        if member.state is MemberState.FAILED or not wanted:
            del self._ears[member]
            for key in filter(None, (ear.current, ear.opening)):
                self._common.withdraw(member, key, _NO_MORE)
        elif wanted != ear.asked and ear.opening is None:
            key = ear.opening = self._common.next_key()
            ear.asked = wanted
            meta = next(reversed(self._streams.values())).meta
            params = {"notifications": write_filter(wanted)}
            whose = next(iter(ear.senders)) if member.tells and len(ear.senders) == 1 else ""
            self._common.ask(member, LISTEN, params, lambda _: self._end(member, key), meta, key, whose)

    def hear(self, member: Member, frame: Frame) -> bool:
        """Take a notice of a server; False where it belongs to no stream."""
        params = read_params(frame)
        meta = params.get("_meta")
        named = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else params.get("requestId")
        key = key_of(named) or frame.stream or b""
        ear = self._ears.get(member)
        if ear is None or key not in (ear.current, ear.opening):
            return frame.stream is not None
        if frame.method == ACKNOWLEDGED:
            self._take_agreed(member, ear, key, params.get("notifications"))
        elif frame.method == CANCELLED:
            self._common.withdraw(member, key, _NO_MORE)
            self._end(member, key)
        else:
            self._tell(member, ear, frame.method or "", params)
        return True

    def _take_agreed(self, member: Member, ear: _Ear, key: bytes, agreed: object) -> None:
        if key != ear.opening:
            return
        before, ear.current, ear.opening = ear.current, key, None
        ear.granted = read_filter(agreed)
        if before is not None:
            self._common.withdraw(member, before, _NO_MORE)
        self._follow(member)
        for stream in list(self._streams.values()):
            self._settle(stream, member)

    def _settle(self, stream: _Stream, member: Member) -> None:
        """Record what a server has agreed to of a stream; acknowledge the stream, if it was the last."""
        ear = self._ears.get(member)
        if member not in stream.opening.pending or (ear is not None and ear.opening is not None):
            return
        for name, uri in sorted(ear.subscriptions.filter_of(stream) & ear.granted if ear is not None else ()):
            if name == RESOURCE_FILTER:
                agreed = stream.agreed.setdefault(name, [])
                agreed += [one for one in stream.known[member, uri] if one not in agreed]
            else:
                stream.agreed[name] = True
        stream.opening.settle(member)

    def _tell(self, member: Member, ear: _Ear, method: str, params: dict[str, Any]) -> None:
        uri = params.get("uri")
        if method in FACTS.subscriptions.values():
            streams = [*ear.subscriptions.listeners(method, uri)]
        else:  # nothing says on whose account it is, where several principals listen
            streams = [one for one in self._streams.values() if one.has_more and len(ear.senders) == 1]
        for stream in streams:
            if method != UPDATED or not isinstance(uri, str):
                stream.waiting.put(method, params)
                continue
            for known in stream.known.get((member, uri)) or (self._routes.show_uri(member, uri),):
                stream.waiting.put(method, {**params, "uri": known})
        self._flush()

    def tell_changed(self, method: str) -> None:
        """Say that a list has changed, to each stream that asked for it."""
        for stream in self._streams.values():
            if wants(stream.lists, method, None):
                stream.waiting.put(method, {})
        self._flush()

    def _flush(self) -> None:
        """Tell what waits; what comes within the next half second, or while the client does not read, waits in turn."""
        if self._is_quiet:
            return
        if not self._common.outside.is_paused:
            for stream in [one for one in self._streams.values() if one.opening.is_over]:
                for method, params in stream.waiting.take_all():
                    self._is_quiet = True
                    self._say(stream, method, params or {})
        self._is_quiet |= self._common.outside.is_paused
        if self._is_quiet:
            self._common.outside.remind(_PAUSE_S, self._go_on)

    def _say(self, stream: _Stream, method: str, params: Mapping[str, Any]) -> None:
        notice = notification_frame(method, with_meta(params, META_SUBSCRIPTION_ID, stream.id))
        self._common.outside.tell_client(notice._replace(stream=stream.key))

    def _acknowledge(self, stream: _Stream) -> None:
        if self._streams.get(stream.key) is stream:
            self._say(stream, ACKNOWLEDGED, {"notifications": stream.agreed})
            self._flush()

    def _end(self, member: Member, key: bytes) -> None:
        """A server has ended its stream, or refused it: the others go on, and it is asked again for something else."""
        ear = self._ears.get(member)
        if ear is None:
            return
        if key == ear.opening:
            ear.opening = None
        elif key == ear.current:
            ear.current, ear.granted = None, frozenset()
        self._follow(member)
        for stream in list(self._streams.values()):
            self._settle(stream, member)

    def cancel(self, key: bytes) -> bool:
        """Record that the client does not listen any more; False where this is not a stream."""
        stream = self._streams.pop(key, None)
        if stream is None:
            return False
        for member, ear in list(self._ears.items()):
            ear.subscriptions.remove_all(stream)
            self._follow(member)
        return True
