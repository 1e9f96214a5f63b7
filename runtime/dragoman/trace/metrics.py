"""What is counted of calls and sessions, and its text for Prometheus.

Lives here: the cells, and their text. Must not: serve them (`port`), or send them (`otlp`). The names are those of
OpenTelemetry for MCP; what it does not name begins with `dragoman.`. Prometheus writes them in its own way.

How many series there are has a bound: methods are those that a revision has, a tool is named if its server has listed
it, and of tools, codes and both together so many are told apart; all others are one series. Nothing
says who a client is.

Source: OpenTelemetry, Semantic conventions for the Model Context Protocol, Metrics.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from dragoman.core.methods import CALL_TOOL
from dragoman.trace.calls import ASKS, CANCELLED, OK, TOOL_ERROR, UNREADABLE, SeenCall, SeenSession
from dragoman_spec import REVISIONS, load
from dragoman_spec.losses import LossGroup

BUCKETS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_FIRST_S: Final = BUCKETS_S[0]
"""Most calls are no longer, and need no search."""

MOST_TOOLS: Final = 1000
LONGEST_TOOL: Final = 256
"""How many characters a tool's name may have that is a label: each of its series says it seventeen times."""

MOST_CODES: Final = 50
MOST_CELLS: Final = 5000
"""From here on no tool is told apart that was not before."""

OTHER: Final = "_OTHER"
"""Stands for what is not told apart, as OpenTelemetry has it."""

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

_INTERNAL_ERROR: Final = -32603
_SERVER_ERRORS: Final = range(-32099, -31999)
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

KeyT = TypeVar("KeyT", bound="tuple[str | None, ...]")
Labels = tuple[tuple[str, str], ...]
Gauges = Callable[[], Iterable[tuple[str, Labels, float]]]
"""Reads what is looked at only when somebody asks: the name of a family, labels, and the value."""

FAMILIES: Final = {
    "mcp.server.operation.duration": ("histogram", "How long a client waits for its answer."),
    "mcp.client.operation.duration": ("histogram", "How long a request is with whoever serves it."),
    "mcp.server.session.duration": ("histogram", "How long sessions of clients last."),
    "mcp.client.session.duration": ("histogram", "How long sessions with servers last."),
    "dragoman.losses": ("counter", "What translations could not carry."),
    "dragoman.questions": ("counter", "What clients are asked, by the method."),
    "dragoman.restarts": ("counter", "How often a server is started again."),
    "dragoman.refusals": ("counter", "Requests that a limit turned away, by the option that sets it."),
    "dragoman.parked_calls": ("gauge", "Calls that have asked their client something."),
    "dragoman.servers": ("gauge", "Servers, by their state."),
    "dragoman.places": ("gauge", "Places that are taken, by the option that sets how many there are."),
    "dragoman.places.limit": ("gauge", "Places that there are."),
}
"""By name: its kind, and what is counted. Durations are in seconds, everything else has no unit."""

_ENDINGS: Final = {"histogram": "_seconds", "counter": "_total", "gauge": ""}
"""What Prometheus adds to a name."""


class Histogram:
    """Counts durations, by how long they are."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def add(self, duration_s: float) -> None:
        """Count one."""
        self.counts[0 if duration_s <= _FIRST_S else bisect_left(BUCKETS_S, duration_s)] += 1
        self.sum_s += duration_s


class Metrics:
    """The cells of one proxy.

    Args:
        transports: What clients are reached over and what servers are: `pipe` or `tcp`; empty: both occur.

    Attributes:
        gauges: Read when somebody asks.
    """

    def __init__(self, transports: tuple[str, str] = ("", "")) -> None:
        self.gauges: list[Gauges] = []
        self._transports = transports
        self._methods = frozenset(name for revision in REVISIONS for name in load(revision).METHODS)
        self._tools: set[tuple[str, str]] = set()
        self._codes: set[str] = set()
        self._front: dict[tuple[str, str, str, str | None], Histogram] = {}
        self._back: dict[tuple[str, str, str, str | None, str], Histogram] = {}
        self._found: dict[tuple[object, bool, bool], tuple[Histogram | None, Histogram | None]] = {}
        self._sessions: dict[tuple[str, str, str], Histogram] = {}
        self._losses: Counter[tuple[str, str, str]] = Counter()
        self._questions: Counter[str] = Counter()
        self._restarts = 0

    def take_call(self, call: SeenCall, is_front: bool, is_back: bool) -> None:
        """Count how long it took."""
        server_s = call.server_s
        is_back = is_back and server_s is not None
        key = (call[3:8], is_front, is_back)
        cells = self._found.get(key)
        if cells is None:
            if len(self._found) >= MOST_CELLS:
                self._found.clear()
            cells = self._found[key] = self._find(call, is_front, is_back)
        front, back = cells
        if front is not None:
            front.add(call.ours_s + (server_s or 0.0))
        if back is not None and server_s is not None:
            back.add(server_s)

    def _find(self, call: SeenCall, is_front: bool, is_back: bool) -> tuple[Histogram | None, Histogram | None]:
        """Return the cells for a call, at its client and at its server."""
        method = call.method if call.method in self._methods else OTHER
        tool = call.tool
        if tool and (call.server, tool) not in self._tools:
            tool = OTHER
        outcome = call.outcome
        if outcome != OK and outcome not in self._codes:
            outcome = self._bound(outcome)
        ours, theirs = call.revisions
        front = back = None
        if is_front:
            here = self._fold(self._front, (method, tool, outcome, ours))
            front = self._front.setdefault(here, Histogram())
        if is_back:
            there = self._fold(self._back, (method, tool, outcome, theirs, call.server))
            back = self._back.setdefault(there, Histogram())
        return front, back

    def take_session(self, session: SeenSession) -> None:
        """Count how long it was open, once it is over."""
        if session.outcome:
            side = "client" if session.client is None else "server"
            outcome = "" if session.outcome in ("over", "client_closed", "stopped") else session.outcome
            self._sessions.setdefault((side, session.revision, outcome), Histogram()).add(session.lasted_s)

    def take_losses(self, source: str, target: str, losses: Sequence[LossGroup]) -> None:
        """Count them by kind and pair."""
        for group in losses:
            self._losses[group.kind, source, target] += len(group.values)

    def take_question(self, method: str) -> None:
        """Count it."""
        self._questions[method if method in self._methods else OTHER] += 1

    def take_restart(self) -> None:
        """Count it."""
        self._restarts += 1

    def take_tools(self, server: str, names: Sequence[str]) -> None:
        """Remember them: they may be named."""
        known = len(self._tools)
        for name in names[: max(0, MOST_TOOLS - known)]:
            if len(name) <= LONGEST_TOOL and name.isprintable():  # half of a character is not
                self._tools.add((server, name))
        if len(self._tools) > known:
            self._found.clear()  # what had no name may have one now

    def _bound(self, outcome: str) -> str:
        if outcome not in (ASKS, CANCELLED, TOOL_ERROR, UNREADABLE) and len(self._codes) >= MOST_CODES:
            return OTHER
        self._codes.add(outcome)
        return outcome

    def _fold(self, cells: Mapping[KeyT, Histogram], key: KeyT) -> KeyT:
        """Return a key without its tool, where there are as many as may be."""
        return key if key in cells or len(cells) < MOST_CELLS else (key[0], key[1] and OTHER, *key[2:])  # type: ignore[return-value]

    def write(self) -> bytes:
        """Return all of it, in Prometheus' text format 0.0.4."""
        found = self.read()
        lines = [line for name in FAMILIES for line in _write_family(name, found.get(name, []))]
        return "".join(f"{line}\n" for line in lines).encode()

    def read(self) -> Mapping[str, list[tuple[Labels, Histogram | float]]]:
        """Return the cells of each family, with their labels."""
        found: dict[str, list[tuple[Labels, Histogram | float]]] = {}
        client, server = self._transports
        for (method, tool, outcome, revision), cell in self._front.items():
            labels = _name_call(method, tool, outcome, revision, client, is_server=True)
            found.setdefault("mcp.server.operation.duration", []).append((labels, cell))
        for (method, tool, outcome, revision, name), cell in self._back.items():
            labels = _name_call(method, tool, outcome, revision, server, is_server=False) + _given({"server": name})
            found.setdefault("mcp.client.operation.duration", []).append((labels, cell))
        for (side, revision, outcome), cell in self._sessions.items():
            labels = _given({"mcp.protocol.version": revision, "error.type": outcome})
            labels += _given({"network.transport": client if side == "server" else server})
            found.setdefault(f"mcp.{side}.session.duration", []).append((labels, cell))
        for (kind, source, target), count in self._losses.items():
            labels = _given({"kind": kind, "source": source, "target": target})
            found.setdefault("dragoman.losses", []).append((labels, count))
        for method, asked in self._questions.items():
            found.setdefault("dragoman.questions", []).append((_given({"mcp.method.name": method}), asked))
        found["dragoman.restarts"] = [((), self._restarts)]
        for gauges in self.gauges:
            for name, labels, value in gauges():
                found.setdefault(name, []).append((labels, value))
        return found


def _name_call(
    method: str, tool: str, outcome: str, revision: str | None, transport: str, *, is_server: bool
) -> Labels:
    """Return the labels of an operation. For a server, only what it is to blame for is an error."""
    code = outcome if outcome.lstrip("-").isdigit() else ""
    is_blamed = not code or not is_server or int(code) == _INTERNAL_ERROR or int(code) in _SERVER_ERRORS
    is_error = outcome not in (OK, ASKS) and is_blamed
    return _given(
        {
            "mcp.method.name": method,
            "gen_ai.operation.name": "execute_tool" if method == CALL_TOOL else "",
            "gen_ai.tool.name": tool,
            "error.type": outcome if is_error else "",
            "rpc.response.status_code": code,
            "mcp.protocol.version": revision or "",
            "network.transport": transport,
        }
    )


def _given(labels: Mapping[str, str]) -> Labels:
    return tuple((name, value) for name, value in labels.items() if value)


def _write_family(name: str, cells: Sequence[tuple[Labels, Histogram | float]]) -> Iterable[str]:
    if not cells:
        return
    kind, about = FAMILIES[name]
    name = name.replace(".", "_") + _ENDINGS[kind]
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    for labels, cell in cells:
        if not isinstance(cell, Histogram):
            yield f"{name}{_show(labels)} {cell:g}"
            continue
        total = 0
        for limit, count in zip((*map("{:g}".format, BUCKETS_S), "+Inf"), cell.counts, strict=True):
            total += count
            yield f"{name}_bucket{_show((*labels, ('le', limit)))} {total}"
        yield f"{name}_sum{_show(labels)} {cell.sum_s!r}"
        yield f"{name}_count{_show(labels)} {total}"


def _show(labels: Labels) -> str:
    said = ",".join(f'{name.replace(".", "_")}="{value.translate(_ESCAPES)}"' for name, value in labels)
    return f"{{{said}}}" if said else ""
