"""Hardships that the soak puts to proxies of their own, one at a time, each with a target that it must meet.

Silent TLS connections, clients that vanish before servers that do not read, and thousands of short sessions. Not here:
the mixed load (`__main__`), how a proxy is watched (`proxies`).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.peers import Peer, listening
from tests.soak.clients import LIMIT_S, PoliteHttpPeer, SsePeer, WebSocketPeer
from tests.soak.proxies import DRAGOMAN, IDLE_S, Holding, Watched, watched_proxy
from tests.support.lines import Lines

WHOLE_MINUTES: Final = 15
"""The trials are as large as they can be from this many minutes on, and smaller in proportion below."""

SILENT: Final = 3_000
VANISHING: Final = 150
SESSIONS: Final = 5_000
WARMING: Final = 100
TOGETHER: Final = 4
CUT_WITHIN_S: Final = IDLE_S + 8
"""`--header-timeout`, and what a busy machine may add to it."""

SERVED_WITHIN_S: Final = 5
GONE_WITHIN_S: Final = IDLE_S + 18
"""`--session-idle`, the 5 s that a stubborn server may take, and what a busy machine may add to them."""

BACK_WITHIN_S: Final = 30
MEMORY_MARGIN_KB: Final = 20_000
"""What a proxy may hold more than before, thousands of sessions later: less than 5 KB for each of them."""

STDIO_SERVER: Final = (sys.executable, "-m", "bench.server", "2025-11-25")
HTTP_SERVER: Final = (sys.executable, "-m", "bench.http_server", "2025-11-25")
DEAF_SERVER: Final = (sys.executable, "-m", "tests.soak.deaf")
WAYS_TO_VANISH: Final[dict[str, tuple[Any, int]]] = {
    "HTTP": (PoliteHttpPeer, 1),
    "HTTP with more requests behind the first": (PoliteHttpPeer, 20),
    "SSE": (SsePeer, 20),
    "WebSocket": (WebSocketPeer, 20),
}
"""How a client goes in, and how many requests it sends without waiting for an answer."""

BULK: Final = {"name": "tool_1", "arguments": {"text": "x" * 400_000}}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a trial found.

    Attributes:
        trial: Its name.
        found: What was measured.
        failed: The targets that were not met, in words; none if all is well.
    """

    trial: str
    found: str
    failed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"trial {self.trial}: {self.found}: {'; '.join(self.failed) or 'as it should be'}"


def run_trials(folder: Path, minutes: int) -> Iterator[Verdict]:
    """Run each trial, as large as befits a soak of so many minutes."""
    part = min(1.0, minutes / WHOLE_MINUTES)
    trials: tuple[Callable[[Path, float], Verdict], ...] = (silent_tls, vanish_from_deaf, churn)
    for trial in trials:
        try:
            yield trial(folder, part)
        except Exception as error:  # whatever it is, it is what the soak looks for
            yield Verdict(trial.__name__, "it broke", (f"{type(error).__name__}: {error}"[:300],))


# --- connections that say nothing ------------------------------------------------------------------------------------


def silent_tls(folder: Path, part: float) -> Verdict:
    """Hold connections that never become requests: silent before the handshake, in it, and after it.

    Target: others are served meanwhile, each is cut `--header-timeout` after it was accepted, and the memory that they
    took is given back soon after.
    """
    certificate = make_certificate(folder)
    if certificate is None:
        return Verdict("silent TLS", "left out: no openssl to make a certificate")
    count = min(int(SILENT * part), raise_descriptor_limit() - 200)
    files = ("--tls-cert", str(certificate), "--max-connections", str(2 * SILENT))
    with watched_proxy(folder, "tls", *files, "--", *STDIO_SERVER, url="https://127.0.0.1:0") as proxy:
        serve_one(proxy.port)  # what the first one brings with it stays
        before = proxy.rest()
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(be_silent(proxy.port, place % 3)) for place in range(count)]
            opened_s = time.monotonic() - began
            served_s = serve_one(proxy.port)
            last_s, left = wait_for_cuts(silent, CUT_WITHIN_S)
        at_once = proxy.hold()
        after = rest_after(proxy, before)
    failed = []
    if left:
        failed.append(f"{left} were not cut within {CUT_WITHIN_S} s of the last")
    if served_s is None or served_s > SERVED_WITHIN_S:
        failed.append(f"who speaks meanwhile is not served within {SERVED_WITHIN_S} s ({served_s})")
    failed += more_than_before(before, after)
    found = (
        f"{count} connections in {opened_s:.1f} s, the last cut {last_s:.1f} s later, another served in {served_s} s"
    )
    found += f", then {at_once.memory_kb / 1000:.1f} MB"
    return Verdict("silent TLS", f"{found}, {before} -> {after}", tuple(failed))


def make_certificate(folder: Path) -> Path | None:
    """Make a certificate for this machine, with its key in the same file."""
    path, key = folder / "certificate.pem", folder / "key.pem"
    options = ["-nodes", "-days", "1", "-subj", "/CN=localhost", "-keyout", str(key), "-out", str(path)]
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", *options], check=True, stderr=-3, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    path.write_text(path.read_text("ascii") + key.read_text("ascii"), "ascii")
    return path


def raise_descriptor_limit() -> int:
    """Let this process, and what it starts, open as many files as they may; give how many that is."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(most, 20_000) if most != resource.RLIM_INFINITY else 20_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return most


@contextlib.contextmanager
def be_silent(port: int, stage: int) -> Iterator[socket.socket]:
    """Connect and fall silent: at once, in the handshake, or after it."""
    connection = socket.create_connection(("127.0.0.1", port), LIMIT_S)
    try:
        if stage == 1:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a ClientHello
        elif stage == 2:
            connection = shake_hands(connection)
        connection.setblocking(False)
        yield connection
    finally:
        connection.close()


def shake_hands(connection: socket.socket) -> socket.socket:
    """Finish the handshake; give a connection that is cut already where it is refused, as beyond the limit."""
    try:
        return unverified().wrap_socket(connection)
    except OSError:
        connection.close()  # `wrap_socket` may have taken what it stood for
        cut, other = socket.socketpair()
        other.close()
        return cut


def unverified() -> ssl.SSLContext:
    """Trust anybody: the certificate is our own."""
    return ssl._create_unverified_context()


def serve_one(port: int) -> float | None:
    """Ask for something that costs nothing; give the seconds until it was answered, or nothing if it was not."""
    began = time.monotonic()
    try:
        plain = socket.create_connection(("127.0.0.1", port), SERVED_WITHIN_S)
        with plain, unverified().wrap_socket(plain) as connection:
            connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            if not connection.recv(1024).startswith(b"HTTP/1.1"):
                return None
    except OSError:
        return None
    return round(time.monotonic() - began, 2)


def wait_for_cuts(connections: list[socket.socket], patience_s: float) -> tuple[float, int]:
    """Wait until the other side has closed every connection; give the seconds to the last, and how many were left."""
    began, last = time.monotonic(), 0.0
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while selector.get_map() and (left_s := began + patience_s - time.monotonic()) > 0:
            for key, _ in selector.select(left_s):
                if is_cut(key.fileobj):
                    selector.unregister(key.fileobj)
                    last = time.monotonic() - began
        return last, len(selector.get_map())


def is_cut(connection: Any) -> bool:
    """Whether the other side has closed; what it says before is of no interest."""
    try:
        return not connection.recv(4096)
    except (ssl.SSLWantReadError, BlockingIOError):
        return False
    except OSError:
        return True


# --- clients that vanish ---------------------------------------------------------------------------------------------


def vanish_from_deaf(folder: Path, part: float) -> Verdict:
    """Fill the way to servers that do not read, and vanish: over every front, and by closing stdin alone.

    Target: the servers end, sessions and all they held with them, `--session-idle` and a server's 5 s later.
    """
    count = max(2, int(VANISHING * part) // len(WAYS_TO_VANISH))
    gone: dict[str, float | None] = {}
    failed: list[str] = []
    with watched_proxy(folder, "deaf", "--drain-timeout", "1", "--", *DEAF_SERVER) as proxy:
        fill_and_vanish(PoliteHttpPeer, 1, proxy.port)  # what the first server brings with it stays
        before = proxy.rest()
        for name, (make, requests) in WAYS_TO_VANISH.items():
            left = proxy.hold().children
            with ThreadPoolExecutor(TOGETHER) as pool:
                list(pool.map(lambda _: fill_and_vanish(make, requests, proxy.port), range(count)))  # noqa: B023
            gone[name] = wait_until(lambda: proxy.hold().children <= left, GONE_WITHIN_S)  # noqa: B023
        after = rest_after(proxy, before)
    stdio = [close_stdin_alone() for _ in range(max(1, count // 5))]
    gone["stdin closed alone"] = None if None in stdio else max(seconds for seconds in stdio if seconds is not None)
    failed += [f"servers are left after {GONE_WITHIN_S} s: {name}" for name, seconds in gone.items() if seconds is None]
    failed += more_than_before(before, after)
    found = ", ".join(f"{name} {shown_s(seconds)}" for name, seconds in gone.items())
    return Verdict(
        "vanishing before deaf servers",
        f"{count} clients each way, the last server gone after: {found}; {before} -> {after}",
        tuple(failed),
    )


def fill_and_vanish(make: Any, requests: int, port: int) -> None:
    """Open a session, send as much of some requests as is taken, and close the connection without a word."""
    with contextlib.closing(make(port, "2025-06-18")) as peer:
        peer.open()
        if hasattr(peer, "_socket"):
            peer._socket.settimeout(0.2)
        with contextlib.suppress(OSError, AssertionError, TimeoutError):
            for _ in range(requests):
                send_only(peer, peer.request("tools/call", BULK))


def send_only(peer: Peer, frame: bytes) -> None:
    """Send a request and wait for nothing."""
    if isinstance(peer, PoliteHttpPeer):
        peer.send(frame)
    elif isinstance(peer, SsePeer):
        peer._writing.sock.settimeout(0.2)
        peer.notify(frame)
    else:
        peer.notify(frame)


def close_stdin_alone() -> float | None:
    """Fill a proxy over stdio, close its input and go on holding its output; give the seconds until it ended."""
    line = [*DRAGOMAN, "--drain-timeout", "1", "--", *DEAF_SERVER]
    info = {"name": "soak", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(hello).encode() + b"\n")
        Lines(process.stdout).read()
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        fill(process.stdin.fileno())
        process.stdin.close()
        began = time.monotonic()
        try:
            process.wait(GONE_WITHIN_S)
        except subprocess.TimeoutExpired:
            for pid in (*children_of(process.pid), str(process.pid)):
                os.kill(int(pid), signal.SIGKILL)
            return None
        return time.monotonic() - began


def fill(descriptor: int) -> None:
    """Write requests until nobody has taken any for a second."""
    os.set_blocking(descriptor, False)
    began = last = time.monotonic()
    number, rest = 0, b""
    while (now := time.monotonic()) < min(last + 1, began + LIMIT_S):
        if not rest:
            number += 1
            call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": BULK}
            rest = json.dumps(call).encode() + b"\n"
        try:
            rest, last = rest[os.write(descriptor, rest) :], now
        except BlockingIOError:
            time.sleep(0.05)


# --- many short sessions ---------------------------------------------------------------------------------------------


def churn(folder: Path, part: float) -> Verdict:
    """Open and end thousands of short sessions over Streamable HTTP and WebSocket, large answers among them.

    Target: after a pause the proxy holds what it held after the first hundred, and no more memory than a margin.
    """
    count = int(SESSIONS * part)
    with listening(HTTP_SERVER) as server_port:
        most = ("--max-sessions", str(SESSIONS))  # many leave without a word, and stay until they are idle
        behind = (*most, "--url", f"http://127.0.0.1:{server_port}/mcp")
        with watched_proxy(folder, "churn", *behind) as proxy, ThreadPoolExecutor(TOGETHER) as pool:
            list(pool.map(lambda place: short_session(proxy.port, place), range(min(WARMING, count))))
            before = proxy.rest()
            began = time.monotonic()
            wrong = [said for said in pool.map(lambda place: short_session(proxy.port, place), range(count)) if said]
            took_s = time.monotonic() - began
            at_once = proxy.hold()
            after = rest_after(proxy, before)
    failed = more_than_before(before, after)
    failed += [f"{len(wrong)} sessions went wrong, such as {wrong[0]}"] if wrong else []
    found = f"{count} sessions in {took_s:.0f} s, then {at_once.memory_kb / 1000:.1f} MB, {before} -> {after}"
    return Verdict("churn", found, tuple(failed))


def short_session(port: int, place: int) -> str:
    """Open a session, ask once or twice, and end it as is polite or without a word; say what went wrong."""
    make: Any = WebSocketPeer if place % 3 == 0 else PoliteHttpPeer
    try:
        with contextlib.closing(make(port, "2025-06-18")) as peer:
            peer.open()
            peer.p50_us("tools/call", {"name": "tool_1", "arguments": {}}, calls=1)
            if place % 5 == 0:
                peer.p50_us("tools/call", {"name": "tool_1", "arguments": {"text": "x" * 1_000_000}}, calls=1)
            if place % 2:
                getattr(peer, "delete", getattr(peer, "goodbye", lambda: None))()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return ""


# --- what all of them ask --------------------------------------------------------------------------------------------


def rest_after(proxy: Watched, before: Holding) -> Holding:
    """Wait until a proxy rests, and has given back what it needed no more: it does so 5 s after the last session."""
    wait_until(lambda: proxy.hold().memory_kb <= before.memory_kb + MEMORY_MARGIN_KB, BACK_WITHIN_S)
    return proxy.rest()


def more_than_before(before: Holding, after: Holding) -> list[str]:
    """Say what a proxy holds more than before its trial; memory may be more by the margin."""
    found = [
        f"{getattr(after, name)} {name} instead of {getattr(before, name)}"
        for name in ("descriptors", "children", "tasks", "shared")
        if getattr(after, name) > getattr(before, name)
    ]
    grown_kb = after.memory_kb - before.memory_kb
    if grown_kb > MEMORY_MARGIN_KB:
        found.append(f"{grown_kb / 1000:.1f} MB more than before, where {MEMORY_MARGIN_KB / 1000:.0f} are allowed")
    return found


def children_of(pid: int) -> list[str]:
    """Give the processes that a process has started."""
    return [pid for path in Path(f"/proc/{pid}/task").glob("*/children") for pid in path.read_text("utf-8").split()]


def wait_until(condition: Callable[[], bool], patience_s: float) -> float | None:
    """Wait for something; give the seconds that it took, or nothing if it did not come."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > patience_s:
            return None
        time.sleep(0.25)
    return time.monotonic() - began


def shown_s(seconds: float | None) -> str:
    """Say how long something took."""
    return "never" if seconds is None else f"{seconds:.1f} s"
