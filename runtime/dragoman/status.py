"""The state of a running proxy: which servers it has, what they speak, and whether it can serve.

Lives here: the values, and the board on which hosts put up what they have. Must not: ask anybody anything; the board is
read when somebody looks. Shown by `/readyz` (`transports.http.health`), by a socket (`host.board`) and by
`dragoman status`.

    board = StatusBoard()
    proxy = Proxy(ProxyConfig(board=board), front, connect)
    board.read().servers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

from dragoman.core.edges.lifecycle import UpstreamState
from dragoman_spec import HANDSHAKE_REVISIONS
from dragoman_spec.record import record

if TYPE_CHECKING:
    from dragoman.core.edges.upstream import UpstreamEdge

_CONNECTING: Final = (UpstreamState.IDLE, UpstreamState.OPENING)
_OPEN: Final = (UpstreamState.ACCEPTED, UpstreamState.READY)


@record
class ServerStatus:
    """One server.

    Attributes:
        name: What the user calls it; empty where there is only one.
        state: `connecting`, `from memory` (it is starting, and what it said the last time is told meanwhile), `ready`,
            `reopening` (its session is gone, and it is there), `restarting` or `lost`.
        revision: What it speaks; None until that is known.
        era: `handshake` or `per-request`; None until that is known.
        clients: How many clients it serves.
        restarts: How often it has been started again.
        trouble: Why it was lost last; empty if it never was.
    """

    name: str
    state: str
    revision: str | None = None
    era: str | None = None
    clients: int = 0
    restarts: int = 0
    trouble: str = ""


@record
class ProxyStatus:
    """A proxy.

    Attributes:
        ready: Whether it serves: it is not being stopped, and not all of its servers are out of reach.
        servers: Those that run or should.
        problems: Why a server could not be started or reached, or was lost, when it was tried last, by its name.
        turned_away: How often each limit of the HTTP side has turned somebody away, by the option that sets it.
    """

    ready: bool
    servers: tuple[ServerStatus, ...]
    problems: dict[str, str]
    turned_away: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self)


class _HasServers(Protocol):
    """A switch, as far as its servers go."""

    @property
    def servers(self) -> Iterable[UpstreamEdge]:
        """Those that it has."""


class StatusBoard:
    """Where hosts put up the servers that they have; it may be that of several proxies.

    Attributes:
        turned_away: As in `ProxyStatus`; set by the front.
        is_doubted: Whether something has failed since a session was opened last: the next client may find no server.
    """

    def __init__(self) -> None:
        self._hosts: dict[object, tuple[str, _HasServers, Sized]] = {}
        self._problems: dict[str, str] = {}
        self._unreached: set[str] = set()
        self._before: dict[str, WeakSet[UpstreamEdge]] = {}  # what was open already when a server had a problem
        self._expected: frozenset[str] = frozenset()
        self._left_out: Mapping[str, str] = {}
        self._stopping = False
        self.turned_away: Mapping[str, int] = {}
        self.is_doubted = False

    def expect(self, names: Iterable[str], left_out: Mapping[str, str] | None = None) -> None:
        """Say what all servers are called, where there are several: what is known of others does not count any more.

        Args:
            names: Of those that are to be used.
            left_out: Those whose entry in the configuration file cannot be used, with the reason.
        """
        self._expected = frozenset(names)
        self._left_out = left_out or {}
        self._problems = {name: problem for name, problem in self._problems.items() if name in self._expected}
        self._unreached &= self._expected

    def put_up(self, host: object, name: str, switch: _HasServers, clients: Sized) -> None:
        """Add the servers of a host: what the user calls them, who has them, and whom they serve."""
        self._hosts[host] = name, switch, clients

    def take_down(self, host: object) -> None:
        """Remove them: the host is closed."""
        self._hosts.pop(host, None)

    def note_problem(self, name: str, reason: str) -> None:
        """Record that a server could not be started or reached; it counts until one is ready that was not then."""
        up = [edge for other, switch, _ in self._hosts.values() if other == name for edge in switch.servers]
        self._before[name] = WeakSet(edge for edge in up if edge.state in _OPEN)
        self._problems[name] = reason
        self._unreached.add(name)
        self.is_doubted = True

    def doubt(self) -> None:
        """Record that something has failed at a server, which may or may not be there for the next client."""
        self.is_doubted = True

    def trust(self) -> None:
        """Record that a session has just been opened."""
        self.is_doubted = False
        self.note_ready("")

    def note_ready(self, name: str) -> None:
        """Record that a new session has a server of several: so the next one may well have it."""
        self._before.pop(name, None)
        self._problems.pop(name, None)
        self._unreached.discard(name)

    def note_loss(self, name: str, reason: str) -> None:
        """Record that a server is gone that was there: the next session may well have it."""
        self._problems[name] = reason

    def stop(self) -> None:
        """Record that the proxy serves nobody new."""
        self._stopping = True

    def count_parked(self) -> int:
        """Return how many calls have asked their client something, and wait for it to come back."""
        return sum(getattr(switch, "parked", 0) for _, switch, _ in self._hosts.values())

    def read(self) -> ProxyStatus:
        """Look at everything that is up."""
        hosts = list(self._hosts.values())
        edges = [(name, edge, len(clients)) for name, switch, clients in hosts for edge in switch.servers]
        servers = tuple(_describe(*one) for one in edges)
        for name, edge, _ in edges:
            # What an old session has, the next may not get. Of several servers, `note_ready` says it.
            if edge.state in _OPEN and name not in self._expected and edge not in self._before.get(name, ()):
                self.note_ready(name)
        names = {server.name for server in servers}
        troubled = {name for name in names if all(one.state == "restarting" for one in servers if one.name == name)}
        bad = self._unreached | troubled
        ready = not self._stopping and (not bad or bool(self._expected - bad))
        return ProxyStatus(ready, servers, {**self._left_out, **self._problems}, dict(self.turned_away))


def _describe(name: str, edge: UpstreamEdge, clients: int) -> ServerStatus:
    """Say how a server is."""
    state, revision = edge.state, edge.revision
    era = None if revision is None else "handshake" if revision in HANDSHAKE_REVISIONS else "per-request"
    if state in _CONNECTING:
        word = "connecting"
    elif edge.is_recalled is not None and edge.is_recalled():
        word = "from memory"
    elif state in _OPEN:
        word = "ready"
    elif state is UpstreamState.RECOVERING:
        word = "restarting" if edge.recovery.is_paused else "reopening"
    else:
        word = state.value
    return ServerStatus(name, word, revision, era, clients, edge.recovery.restarts, edge.recovery.trouble)
