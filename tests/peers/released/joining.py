"""What stands between a client and a server: the proxy, and the other gateways that people put there.

A stage makes a target of a target; a target is a command, or a URL alone. A link is its stages, from the server on.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.peers.forked import interpreter
from tests.peers.visits import environment, listening_proxy, proxy_command
from tests.support.ports import free_port
from tests.support.waiting import wait_until

START_S: Final = 60


@dataclass(frozen=True, slots=True)
class Peers:
    """Where the environments are, and the packages from npm; whether peers are forked from what has imported an SDK."""

    environments: Path
    npm: Path
    forked: bool = False

    def python(self, environment: str) -> str:
        """Return the path of an environment's interpreter, or of what stands in for it."""
        real = self.environments / environment / "bin" / "python"
        return interpreter(real) if self.forked else str(real)

    def program(self, environment: str, name: str) -> str:
        """Return the path of a program of an environment."""
        return str(self.environments / environment / "bin" / name)

    def node(self) -> str:
        """Return the node that came with the packages, or else the one on the path."""
        return next((str(found) for found in sorted(self.npm.glob("node_modules/node-*/bin/node"))), "node")

    def script(self, path: str) -> list[str]:
        """Return the command of a script of a package."""
        return [self.node(), str(self.npm / "node_modules" / path)]


@dataclass(frozen=True, slots=True)
class Joint:
    """Where stages are joined: what they need, what ends them, and the log of those that listen.

    The log is in a folder of its own, which is the home of the proxy: nothing is remembered but from this visit.
    """

    peers: Peers
    stack: contextlib.ExitStack
    log: Path

    @property
    def environment(self) -> dict[str, str]:
        """What the proxy finds in its environment."""
        return environment(HOME=str(self.log.parent))

    def listening(self, command: list[str], url: str) -> list[str]:
        """Start what listens on the port of a URL, and return that as the target."""
        port = int(url.split(":")[2].split("/")[0])
        self.stack.enter_context(running([*command], port, self.log))
        return [url]


@contextlib.contextmanager
def running(command: list[str], port: int, log: Path) -> Iterator[None]:
    """Run a process that listens until the end of the block."""
    with log.open("ab") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
    try:
        wait_until(lambda: _accepts(port) or process.poll() is not None, START_S)
        yield
    finally:
        # Some gateways leave the server that they have started behind.
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_url(target: list[str]) -> bool:
    """Say whether a target is a URL."""
    return target[0].startswith("http://")


def behind(target: list[str]) -> list[str]:
    """Return the options that put a target behind the proxy."""
    return ["--url", *target] if is_url(target) else ["--", *target]


def serve(joint: Joint, target: list[str]) -> list[str]:
    """Let the server itself listen."""
    port = free_port()
    return joint.listening([*target, "--listen", str(port)], f"http://127.0.0.1:{port}/mcp")


def proxy(joint: Joint, target: list[str]) -> list[str]:
    """Put the proxy on stdio before it."""
    return proxy_command("--log-level", "info", *behind(target))


def listening(joint: Joint, target: list[str]) -> list[str]:
    """Put the proxy with `--listen` before it."""
    running_proxy = listening_proxy("http", behind(target), joint.log, environment=joint.environment)
    return [joint.stack.enter_context(running_proxy)]


def seen(joint: Joint, target: list[str]) -> list[str]:
    """Let clients of both eras visit a target, so that the proxy remembers whatever it remembers of it."""
    for options in ((), ("--revision", "2025-11-25")):  # the newest era that there is, and a handshake
        command = [sys.executable, "-m", "dragoman", "list", *options, *behind(target)]
        subprocess.run(command, env=joint.environment, stdout=subprocess.DEVNULL, check=True, timeout=START_S)
    return target


def remote(joint: Joint, target: list[str]) -> list[str]:
    """Put `mcp-remote` before a URL."""
    return [*joint.peers.script("mcp-remote/dist/proxy.js"), *target]


def supergateway(joint: Joint, target: list[str]) -> list[str]:
    """Put `supergateway` before it: a command then listens, a URL becomes a command."""
    start = joint.peers.script("supergateway/dist/index.js")
    if is_url(target):
        return [*start, "--streamableHttp", *target]
    port = free_port()
    options = ("--outputTransport", "streamableHttp", "--port", str(port))
    return joint.listening([*start, "--stdio", shlex.join(target), *options], f"http://127.0.0.1:{port}/mcp")


def gateway(joint: Joint, target: list[str]) -> list[str]:
    """Put Python's `mcp-proxy` before it: a command then listens, a URL becomes a command."""
    start = joint.peers.program("mcp-proxy", "mcp-proxy")
    if is_url(target):
        return [start, "--transport", "streamablehttp", *target]
    port = free_port()
    # As plain arguments, it would lose the `--` that stands before the proxy's server.
    options = ("--port", str(port), "--named-server", "it", shlex.join(target))
    return joint.listening([start, *options], f"http://127.0.0.1:{port}/servers/it/mcp")


Stage = Callable[[Joint, list[str]], list[str]]

PLAIN: Final[Mapping[str, tuple[Stage, ...]]] = {"direct": (), "stdio": (proxy,), "http": (listening,)}
HTTP: Final[Mapping[str, tuple[Stage, ...]]] = {
    "HTTP": (serve,),
    "HTTP, stdio": (serve, proxy),
    "HTTP, http": (serve, listening),
}
SEEN: Final[Mapping[str, tuple[Stage, ...]]] = {
    "direct, seen before, stdio": (seen, proxy),
    "direct, seen before, http": (seen, listening),
    "HTTP, seen before, stdio": (serve, seen, proxy),
}
"""What the proxy remembers must not change what a client gets."""

GATEWAYS: Final[Mapping[str, tuple[Stage, ...]]] = {
    **{
        f"{name}{where}": stages
        for name, put in (("mcp-remote", remote), ("supergateway", supergateway), ("mcp-proxy", gateway))
        for where, stages in {
            " for a URL": (serve, put),
            " for a URL, before the proxy": (listening, put),
            " for a URL, behind the proxy": (serve, put, proxy),
        }.items()
    },
    **{
        f"{name}{where}": stages
        for name, put in (("supergateway", supergateway), ("mcp-proxy", gateway))
        for where, stages in {
            " for a command": (put,),
            " for a command, before the proxy": (proxy, put),
            " for a command, behind the proxy": (put, proxy),
        }.items()
    },
}
LINKS: Final = {**PLAIN, **HTTP, **SEEN, **GATEWAYS}


def without_proxy(link: str) -> str:
    """Return the link that a link is compared with."""
    return "direct" if link in PLAIN else link.split(",")[0]


def join(joint: Joint, link: str, command: list[str]) -> list[str]:
    """Put the stages of a link before a server, and return what a client is told."""
    target = command
    for stage in LINKS[link]:
        target = stage(joint, target)
    return target
