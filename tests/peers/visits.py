"""Joining a peer client to a peer server, directly or through the proxy, over any link, and keeping what came of it.

Lives here: which links and pairs there are, starting servers and the proxy, reports. Not here: what a report must hold
(`expectations*.py`). Called by the tests beside it. A link is named for its front and its upstream, `http-stdio`;
`direct` and `direct-http` have no proxy.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.peers.ahead import ahead
from tests.peers.forked import FORKED, interpreter
from tests.peers.matching import PAIRS, REVISIONS, Row, look, matches
from tests.support.lines import Lines
from tests.support.waiting import wait_until

HERE: Final = Path(__file__).parent
ENVIRONMENTS: Final = os.environ.get("DRAGOMAN_PEERS")
SELECTION: Final = os.environ.get("DRAGOMAN_PEERS_PAIRS", "default")
QUICK_PAIRS: Final = (("A", "D"), ("D", "A"), ("B", "C"), ("C", "B"))
"""The reduced selection: both ends both ways, and the middle both ways."""

LINKS: Final = ("http-stdio", "stdio-http", "http-http", "sse-http", "http-sse", "ws-stdio", "stdio-ws")
"""Every way through the proxy but stdio to stdio, which has a test file of its own."""

DIRECT_LINKS: Final = ("direct-http", "direct-sse", "direct-ws")
PATHS: Final = {"http": "http://{}/mcp", "sse": "http://{}/sse", "ws": "ws://{}/ws"}
SETTLE_S: Final = "10"
"""Over HTTP, on either side, a notification may come on another stream than an answer, and later; at most so much."""

SHOWN: Final = 10
"""How many rows that do not hold are shown."""

LIMIT_S: Final = 120
START_S: Final = 60
END_S: Final = 45
"""The proxy answers for 30 s at most what is under way, and then has its servers end."""

needs_peers = pytest.mark.skipif(ENVIRONMENTS is None, reason="no peer environments: run `nox -s peers`")


def pairs_of(link: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs (client, server) that are joined this way, as far as they are selected.

    By default stdio has all 16, and each other link four, in which every revision is once a client and once a server;
    together the links have all 16 again. Without a proxy every revision is with itself over stdio, and one over each
    other link.
    """
    if link.startswith("direct"):
        over = DIRECT_LINKS.index(link) if link in DIRECT_LINKS and SELECTION != "full" else None
        return tuple((letter, letter) for place, letter in enumerate(REVISIONS) if over in (None, place - 1))
    if SELECTION == "quick":
        return QUICK_PAIRS if link == "proxy" else ()
    if SELECTION == "full" or link == "proxy":
        return PAIRS
    letters, shift = "".join(REVISIONS), LINKS.index(link)
    return tuple((client, letters[(place + shift) % 4]) for place, client in enumerate(letters))


def python_in(environment: str, forked: bool = FORKED) -> str:
    """Return the interpreter of an environment, or what stands in for it."""
    assert ENVIRONMENTS is not None
    real = Path(ENVIRONMENTS) / environment / "bin" / "python"
    return interpreter(real) if forked else str(real)


def python_of(letter: str, forked: bool = FORKED) -> str:
    """Return the interpreter of the environment whose native revision this is, or what stands in for it."""
    return python_in(REVISIONS[letter], forked)


def server_command(letter: str, *options: str, forked: bool = FORKED) -> list[str]:
    """Return the command of a peer server."""
    return [python_of(letter, forked), str(HERE / "server.py"), *options]


def client_command(letter: str) -> list[str]:
    """Return the command of a peer client, without its options."""
    return [python_of(letter), str(HERE / "client.py")]


def proxy_command(*options: str) -> list[str]:
    """Return the command of the proxy under test."""
    return [sys.executable, "-m", "dragoman", "proxy", *options]


def environment(**more: str) -> dict[str, str]:
    """Copy the environment, with more: pytest takes a variable of its own out of it whenever a test ends."""
    return {name: value for name in list(os.environ) if (value := os.environ.get(name)) is not None} | more


def visit(client: list[str], target: list[str], *options: str) -> dict[str, Any]:
    """Run a peer client with this server command or URL and return its report; `crashed` tells what cut it short."""
    try:
        done = subprocess.run(
            [*client, *options, "--", *target], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {"crashed": f"no report within {LIMIT_S} s"}
    report: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {"crashed": done.stderr[-2000:]}
    return report


@ahead
def report_of(client: str, server: str, link: str) -> dict[str, Any]:
    """Visit a pair once and keep the report, with the frames that each side got and sent, and the log."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        client_log, server_log, log = (Path(folder) / name for name in ("client", "server", "log"))
        command = server_command(server, "--record", str(server_log))
        over, target = _joined(stack, link, client, server, command, log)
        options = ("--record", str(client_log), "--over", over, "--settle", settle_s(link))
        report = visit(client_command(client), target, *options)
        report["frames"] = {"client": frames_in(client_log), "server": frames_in(server_log)}
        report["log"] = log.read_text("utf-8", "replace")[-3000:] if log.exists() else ""
    return report


def _joined(
    stack: contextlib.ExitStack, link: str, client: str, server: str, command: list[str], log: Path
) -> tuple[str, list[str]]:
    """Start what stands between, and say over what a client goes where."""
    if link in ("direct", "proxy"):
        return "stdio", command if link == "direct" else [*proxy_command("--"), *command]
    front, upstream = link.split("-")
    if front == "direct":
        over = native(upstream, server)
        return over, [stack.enter_context(listening_server(command, over, log))]
    return joined_by_proxy(stack, native(front, client), native(upstream, server), command, log)


def joined_by_proxy(
    stack: contextlib.ExitStack, front: str, upstream: str, command: list[str], log: Path, trace: Path | None = None
) -> tuple[str, list[str]]:
    """Put the proxy before a server, which listens if its transport wants that; say over what a client goes where.

    The proxy writes down what passes, if it is told where; all of it is there once it has ended.
    """
    behind = ["--", *command]
    if upstream != "stdio":
        behind = ["--url", stack.enter_context(listening_server(command, upstream, log))]
    if trace is not None:
        behind = ["--trace", str(trace), *behind]
    if front == "stdio":
        return front, proxy_command(*behind)
    return front, [stack.enter_context(listening_proxy(front, behind, log))]


def settle_s(link: str) -> str:
    """Return how many seconds a client waits for what may come later than an answer."""
    return SETTLE_S if "http" in link or "sse" in link else "0"


def native(transport: str, letter: str) -> str:
    """Return the transport, or HTTP+SSE for a release that has no Streamable HTTP."""
    return "sse" if transport == "http" and letter == "A" else transport


@contextlib.contextmanager
def listening_server(command: list[str], over: str, log: Path) -> Iterator[str]:
    """Start a peer server that listens, and give its URL for a transport."""
    with started([*command, "--listen"], log) as line:
        yield PATHS[over].format(line.split()[-1])


@contextlib.contextmanager
def listening_proxy(
    front: str, behind: list[str], log: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Start the proxy with its network front, and give the URL of one of its transports."""
    command = proxy_command("--listen", "http://127.0.0.1:0", *options, *behind)
    with started(command, log, announced_on_stderr=True, environment=environment) as line:
        found = re.search(r"listening on http://([^/\s]+)", line)
        assert found, f"the proxy did not start: {line or log.read_text('utf-8')}"
        yield PATHS[front].format(found[1])


@contextlib.contextmanager
def started(
    command: list[str], log: Path, announced_on_stderr: bool = False, environment: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Run a process until the end of the block, its stderr into a log; give the line that says where it listens."""
    with log.open("ab") as sink:
        out = subprocess.DEVNULL if announced_on_stderr else subprocess.PIPE
        start = sink.tell()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=sink, env=environment)
    try:
        yield _line_in(log, start, process) if announced_on_stderr else Lines(process.stdout, START_S).read().decode()
    finally:
        if announced_on_stderr:
            process.terminate()
        else:
            # A peer server would wait for streams that nobody closes; the proxy has to end by itself.
            process.kill()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise
        finally:
            if process.stdout is not None:
                process.stdout.close()


def _line_in(log: Path, start: int, process: subprocess.Popen[bytes]) -> str:
    # A server before which the proxy stands may write into the same log, and in words like these.
    def said() -> list[str]:
        lines = log.read_bytes()[start:].decode("utf-8", "replace").splitlines(keepends=True)
        return [line for line in lines if "listening on http" in line and line.endswith("\n")]

    with contextlib.suppress(TimeoutError):
        wait_until(lambda: said() or process.poll() is not None, START_S)
    return next(iter(said()), "")


def frames_in(log: Path) -> list[dict[str, Any]]:
    """Return a peer's record of frames; empty if the peer was never started."""
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def check(report: dict[str, Any], rows: Iterable[Row]) -> None:
    """Assert the rows about a visit, with everything that a reader needs to judge a failure; there must be some."""
    said = [(row, look(report, row.at)) for row in rows]
    assert said, "the table says nothing of this visit"
    wrong = [
        f"{row.topic}: at {row.at}\nexpected {row.expected!r}\nfound    {found!r}\nbecause  {row.why}"
        for row, found in said
        if not matches(found, row.expected)
    ]
    if wrong:
        crash = [f"visit cut short: {report['crashed']}"] if "crashed" in report else []
        log = [f"log: {report['log']}"] if report.get("log") else []
        pytest.fail("\n\n".join([*wrong[:SHOWN], f"{len(wrong)} of {len(said)} rows", *crash, *log]), pytrace=False)
