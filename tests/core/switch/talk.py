"""A shared switch, its clients and its server, without transports: what each of them hears, by name."""

from __future__ import annotations

from typing import Any

from dragoman.core.calls import UNANSWERED
from dragoman.core.commands import Finish, Send
from dragoman.core.edges.front import FrontEdge
from dragoman.core.envelope import Frame, error_frame
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.core.settings import RestartPolicy, Settings
from dragoman.core.switch.shared.desk import SharingSettings
from dragoman.core.switch.shared.switch import Shared
from dragoman.transports.lines import LineFramer
from tests.proxy.conversation import READY, initialize, initialized
from tests.support.frames import heard
from tests.support.wired import wiring

Heard = list[tuple[str, Any]]


class Talk:
    """Clients are known by letters, the server as `server`; it is offered what the first client asks for."""

    def __init__(
        self,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        rules: Any = None,
        restart: RestartPolicy | None = None,
        **settings: Any,
    ) -> None:
        restore_ids = rules is None or "restore-id-type" in rules
        self.switch = Shared(
            wiring(Settings(expect_echo=False, restore_ids=restore_ids, restart=restart)), SharingSettings(**settings)
        )
        self.limit_bytes = limit_bytes
        self.framers: dict[str, LineFramer] = {}
        self.fronts: dict[str, FrontEdge] = {}
        self.ended: dict[str, str] = {}
        self.now = 0.0

    def says(self, name: str, *frames: Any) -> Heard:
        """Give what everybody hears when somebody says this."""
        data = b"".join(frame if isinstance(frame, bytes) else encode_line(frame) for frame in frames)
        if name != "server" and name not in self.fronts:
            self.fronts[name] = self.switch.join(name)
        edge = self.switch.upstream if name == "server" else self.fronts[name]
        for frame in self._framer(name).feed(data):
            edge.take(frame)
        return self._heard()

    def streams(self, related: int, frame: Any) -> Heard:
        """The server says something on the stream of a request."""
        [read] = heard(encode_line(frame))
        assert isinstance(read, Frame)
        self.switch.upstream.take(read._replace(stream=str(related).encode()))
        return self._heard()

    def says_beside(self, frame: Any, *numbers: int) -> Heard:
        """The server says it where it can be about these requests alone."""
        [read] = heard(encode_line(frame))
        assert isinstance(read, Frame)
        self.switch.upstream.take(read._replace(source=("server", *(b"%d" % number for number in numbers))))
        return self._heard()

    def fails(self, number: int, reason: str) -> Heard:
        """The transport gives up a request."""
        self.switch.upstream.take(error_frame(b"%d" % number, -32000, reason, {UNANSWERED: True}))
        return self._heard()

    def server_ends(self) -> Heard:
        """The server's last line ends without a line feed."""
        for frame in self._framer("server").finish():
            self.switch.upstream.take(frame)
        return self._heard()

    def leaves(self, name: str) -> Heard:
        self.switch.leave(self.fronts[name])
        return self._heard()

    def time_passes(self, seconds: float) -> Heard:
        self.now += seconds
        self.switch.expire(self.now)
        return self._heard()

    def opens(self, *names: str, **capabilities: Any) -> int:
        """Let clients open their sessions; give the number of the next request that the server gets."""
        revision = "2025-11-25"
        for name in names:
            heard = self.says(name, initialize(revision, key="open", **capabilities))
            if heard[0][0] == "server":
                number = heard[0][1]["id"]
                self.says("server", initialized(revision, number, tools={}))
            self.says(name, READY)
        return self.switch._desk.loans.latest + 1

    def _framer(self, name: str) -> LineFramer:
        return self.framers.setdefault(name, LineFramer(self.limit_bytes))

    def _heard(self) -> Heard:
        self.switch.set_clock(self.now)
        names: dict[Any, str] = {front: name for name, front in self.fronts.items()}
        names[self.switch.upstream] = "server"
        heard: Heard = []
        for command in self.switch.outbox.take_all():
            if isinstance(command, Send):
                heard += [(names[command.edge], decode(frame.raw)) for frame in command.frames]
            elif isinstance(command, Finish):
                self.ended[names[command.edge]] = command.reason
        return heard
