"""One visit of a client with its SDK's default settings to a released server, and whether the proxy made it worse.

Lives here: the table of servers (`servers.toml`), the clients, joining them, and comparing two reports. A server's
start can be delayed, as `npx -y` delays it on its first day.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.peers.released.joining import GATEWAYS, HTTP, PLAIN, SEEN, Joint, Peers, join
from tests.peers.visits import environment

HERE: Final = Path(__file__).parent
LIMIT_S: Final = 200

PYTHON_CLIENTS: Final = {
    "mcp-1": "2025-11-25",
    "mcp-2": "current",
    "fastmcp-4": "fastmcp-4",
    "mcp-2-pinned": "current",
}
"""Each client and its environment."""

CLIENTS: Final[Mapping[str, str]] = {
    "mcp-1": "`mcp` 1.30",
    "mcp-2": "`mcp` 2.3",
    "fastmcp-4": "FastMCP 4.0",
    "typescript-1": "TypeScript 1.32",
    "typescript-2": "TypeScript 2.4",
    "typescript-2-auto": "TypeScript 2.4, `auto`",
    "mcp-2-pinned": "`mcp` 2.3, 2026-07-28",
    "typescript-2-pinned": "TypeScript 2.4, 2026-07-28",
    "inspector-0": "Inspector 0.22",
    "inspector-1": "Inspector 1.0",
    "inspector-2": "Inspector 2.12",
    "inspector-2-auto": "Inspector 2.12, `auto`",
}
INSPECTORS: Final = {
    "inspector-0": ("inspector-0/cli/build/cli.js", "--cli"),
    "inspector-1": ("inspector-1/cli/build/cli.js", "--cli"),
    "inspector-2": ("@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli"),
    "inspector-2-auto": (
        *("@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli"),
        *("--protocol-era", "auto"),
    ),
}
"""The Inspector's command line in its three lines, one start for each operation."""

AT_GATEWAYS: Final = ("mcp-1", "mcp-2", "typescript-1", "typescript-2-auto")
DELAYS_S: Final = (0, 8)

LATE: Final = 'echo >> "$0"; sleep "$1"; shift; exec "$@"'
"""A shell's program that notes a start and begins later."""

Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Server:
    """An entry of the table."""

    name: str
    sdk: str
    npm: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    small: bool = False
    listens: bool = False
    gateways: bool = False
    asks: bool = False
    calls: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, Any] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()

    def plan(self) -> str:
        """Say what a client tries."""
        plan = {"calls": self.calls, "prompts": self.prompts, "reads": self.reads, "asks": self.asks}
        return json.dumps(plan)

    def command(self, peers: Peers) -> list[str]:
        """Return the command that starts it."""
        if self.npm:
            script = self.npm[0] if self.npm[0].startswith("{") else f"{{npm}}/node_modules/{self.npm[0]}"
            command = [peers.node(), script, *self.npm[1:]]
        else:
            where, program, *arguments = self.python
            start = [peers.python(where), f"{{here}}/{program}"]
            command = [*(start if program.endswith(".py") else [peers.program(where, program)]), *arguments]
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        return [*(("env", *variables) if variables else ()), *command]


ENTRIES: Final = tomllib.loads((HERE / "servers.toml").read_text("utf-8"))["server"]
SERVERS: Final[Mapping[str, Server]] = {entry["name"]: Server(**entry) for entry in ENTRIES}


def ways(server: str, client: str) -> Iterator[tuple[str, int]]:
    """Give the links, and by how many seconds the server is late, that a client is tried with at a server."""
    if SERVERS[server].asks:
        links = [link for link in (*PLAIN, *HTTP, *SEEN) if SERVERS[server].listens or not link.startswith("HTTP")]
        yield from () if client in INSPECTORS else ((link, 0) for link in links)
        return
    for delay_s in () if client in INSPECTORS else DELAYS_S:
        if not (delay_s and client.endswith("pinned")):
            yield from ((link, delay_s) for link in PLAIN)
    if SERVERS[server].listens:
        yield from ((link, 0) for link in (*(PLAIN if client in INSPECTORS else ()), *HTTP))
    if SERVERS[server].gateways and client in AT_GATEWAYS:
        yield from ((link, 0) for link in GATEWAYS)


def client_command(client: str, peers: Peers) -> list[str]:
    """Return the command of a client, without its plan and target."""
    if client in INSPECTORS:
        script, *options = INSPECTORS[client]
        return [peers.node(), str(HERE / "inspector.mjs"), *peers.script(script), *options, "--"]
    if client in PYTHON_CLIENTS:
        return [peers.python(PYTHON_CLIENTS[client]), "-W", "ignore", str(HERE / "client.py"), client]
    return [peers.node(), str(HERE / "client.mjs"), str(peers.npm), client]


@contextlib.contextmanager
def home(server: Server) -> Iterator[Path]:
    """Make the folder that a server works in."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        (folder / "hello.txt").write_text("hello\n", "utf-8")
        if "git" in server.name:
            subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True, timeout=LIMIT_S)
        yield folder


def visit(name: str, client: str, link: str, delay_s: int, peers: Peers) -> Report:
    """Visit once; the report has how often the server was started, the end of the proxy's log, and what `failed`."""
    report: Report = {}
    with tempfile.TemporaryDirectory() as place:
        try:
            _visit(SERVERS[name], client, link, delay_s, peers, Path(place), report)
        except Exception as error:  # the other visits are made all the same
            report.setdefault("open", {"raised": "the visit failed"})
            report["failed"] = f"the visit failed: {type(error).__name__}"
            report["log"] = f"{report.get('log', '')}{error}"
    return report


def _visit(server: Server, client: str, link: str, delay_s: int, peers: Peers, place: Path, report: Report) -> None:
    with home(server) as folder, contextlib.ExitStack() as stack:
        starts, log = place / "starts", place / "log"
        places = {"{folder}": str(folder), "{npm}": str(peers.npm), "{here}": str(HERE)}
        late = ["/bin/sh", "-c", LATE, str(starts), str(delay_s), *server.command(peers)]
        target = join(Joint(peers, stack, log), link, [_filled(part, places) for part in late])
        command = [*client_command(client, peers), _filled(server.plan(), places), *target]
        said = _report(command, log, environment(HOME=str(place)))
        if starts.exists():
            said["starts"] = len(starts.read_text("utf-8").splitlines())
        report.update(json.loads(json.dumps(said).replace(str(folder), "{folder}")))


def _report(command: list[str], log: Path, environment: Mapping[str, str]) -> Report:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
    except subprocess.TimeoutExpired:
        return {"open": {"raised": f"the client did not end within {LIMIT_S} s"}}
    lines = [line for line in done.stdout.split("\n") if line]  # JSON may have what else Python takes for ends of lines
    report: Report = (
        json.loads(lines[-1]) if lines else {"open": {"raised": f"the client crashed: {done.stderr[-800:]}"}}
    )
    report["log"] = (done.stderr + (log.read_text("utf-8", "replace") if log.exists() else ""))[-3000:]
    return report


def _filled(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text


OPERATIONS_ASIDE: Final = ("starts", "log", "failed")
SAME_AS_ABSENT: Final[tuple[Any, ...]] = (None, {}, [], "", {"taskSupport": "forbidden"})
COSMETIC: Final = ("/revision", "/execution", "/capabilities/experimental", "/capabilities/tasks", "/_meta")
"""What a client may miss: a default that is written out, and what its revision does not have."""

OF_PER_REQUEST: Final = ("/resultType", "/ttlMs", "/cacheScope")
"""What results have in 2026-07-28 alone. A client asks a late server for that revision for ten seconds, and then opens
with a handshake: which it is of the two can be a matter of one second."""


def operations(report: Report) -> dict[str, Any]:
    """Return the outcome of each operation."""
    return {name: found for name, found in report.items() if name not in OPERATIONS_ASIDE}


def worked(report: Report) -> int:
    """Count the operations that gave a result."""
    return sum("result" in found for found in operations(report).values())


def revision(report: Report) -> str:
    """Return the revision in which the client has opened."""
    return str(report["open"].get("result", {}).get("revision", ""))


def worse(server: Server, direct: Report, through: Report, delay_s: int = 0) -> Iterator[str]:
    """Say what a client had directly and does not have through the proxy; first, that the visit failed, if it did."""
    if "failed" in through:
        yield through["failed"]
    fell_back = delay_s > 0 and revision(direct) != revision(through)
    for name, found in operations(direct).items():
        if "result" not in found:
            continue
        other = through.get(name, {"raised": "not reached"})
        if "result" not in other:
            yield f"{name}: {other['raised']}"
            if name == "open":
                return
        elif name not in server.changing:
            yield from (f"{name}: {lost}" for lost in _lost(found["result"], other["result"], "", fell_back))


def _lost(direct: Any, through: Any, at: str, fell_back: bool) -> Iterator[str]:
    if direct == through or direct in SAME_AS_ABSENT or at.endswith(COSMETIC):
        return
    if fell_back and at.endswith(OF_PER_REQUEST):
        return
    if isinstance(direct, bool) and (through is True or fell_back) and at.startswith("/capabilities/"):
        return  # a server of both eras declares more in the newer one, in which the proxy asks it
    if isinstance(direct, dict) and isinstance(through, dict):
        for name, value in direct.items():
            yield from _lost(value, through.get(name), f"{at}/{name}", fell_back)
    elif isinstance(direct, list) and isinstance(through, list) and at.endswith("/content"):
        if len(through) < len(direct):
            yield f"{at} has {len(through)} of {len(direct)} blocks"
        for place, (value, other) in enumerate(zip(direct, through, strict=False)):
            yield from _lost(value, other, f"{at}/{place}", fell_back)  # the proxy may add what helps
    elif isinstance(direct, list) and isinstance(through, list) and _names(direct) != _names(through):
        missing, added = _names(direct) - _names(through), _names(through) - _names(direct)
        yield f"{at} lacks {sorted(missing)}, has {sorted(added)} in addition"
    elif isinstance(direct, list) and isinstance(through, list) and len(direct) == len(through):
        for place, (value, other) in enumerate(zip(direct, through, strict=True)):
            yield from _lost(value, other, f"{at}/{place}", fell_back)
    else:
        yield f"{at} was {_short(direct)}, is {_short(through)}"


def _names(items: list[Any]) -> set[str]:
    return {str(item.get("name", item.get("uri"))) for item in items if isinstance(item, dict)}


def _short(value: Any) -> str:
    said = json.dumps(value)
    return said if len(said) <= 160 else f"{said[:157]}…"
