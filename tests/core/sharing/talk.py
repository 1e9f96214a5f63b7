"""A hub, its members and its server, without transports: what each of them hears, by name."""

from __future__ import annotations

from typing import Any

from dragoman.core.envelope import Frame, error_frame
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.core.sharing.calls import Member
from dragoman.core.sharing.desk import Deliveries, SharingSettings
from dragoman.core.sharing.hub import Hub
from dragoman.transports.lines import LineFramer
from tests.proxy.conversation import READY, initialize, initialized
from tests.support.frames import heard

Heard = list[tuple[str, Any]]


class Talk:
    """Members are known by letters, the server as `server`."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES, **settings: Any) -> None:
        self.hub = Hub(SharingSettings(**settings))
        self.limit_bytes = limit_bytes
        self.framers: dict[str, LineFramer] = {}
        self.members: dict[str, Member] = {}
        self.now = 0.0

    def says(self, name: str, *frames: Any) -> Heard:
        """Give what everybody hears when somebody says this."""
        data = b"".join(frame if isinstance(frame, bytes) else encode_line(frame) for frame in frames)
        read = self._framer(name).feed(data)
        if name == "server":
            return self._heard(self.hub.receive_server(read, self.now))
        if name not in self.members:
            self.members[name] = self.hub.join()
        return self._heard(self.hub.receive(self.members[name], read, self.now))

    def streams(self, related: int, frame: Any) -> Heard:
        """The server says something on the stream of a request."""
        [read] = heard(encode_line(frame))
        assert isinstance(read, Frame)
        return self._heard(self.hub.receive_server([read._replace(stream=str(related).encode())], self.now))

    def fails(self, number: int, reason: str) -> Heard:
        """The transport gives up a request."""
        return self._heard(self.hub.fail(error_frame(b"%d" % number, -32000, reason), self.now))

    def server_ends(self) -> Heard:
        return self._heard(self.hub.receive_server(self._framer("server").finish(), self.now))

    def leaves(self, name: str) -> Heard:
        return self._heard(self.hub.leave(self.members[name], self.now))

    def time_passes(self, seconds: float) -> Heard:
        self.now += seconds
        return self._heard(self.hub.expire(self.now))

    def opens(self, *names: str, **capabilities: Any) -> int:
        """Let members open their sessions; give the number of the next request that the server gets."""
        revision = "2025-11-25"
        for name in names:
            heard = self.says(name, initialize(revision, key="open", **capabilities))
            if heard[0][0] == "server":
                number = heard[0][1]["id"]
                self.says("server", initialized(revision, number, tools={}))
            self.says(name, READY)
        return self.hub._desk.calls._last + 1

    def _framer(self, name: str) -> LineFramer:
        return self.framers.setdefault(name, LineFramer(self.limit_bytes))

    def _heard(self, deliveries: Deliveries) -> Heard:
        names = {member: name for name, member in self.members.items()}
        return [("server" if member is None else names[member], decode(frame.raw)) for member, frame in deliveries]
