"""How the service grows, in one run: with workers, with sessions, with a hop, and with what guards and watches it.

Lives here: proxies that listen, before one bare server over HTTP, and what a call costs them. CPU time is that of the
proxies with their children, the least of short turns that those compared take one after the other: who else is busy on
this machine shows little. Each start of a process has a layout of its own in memory, which makes calls up to a fifth
dearer or cheaper; so what an option adds is the median over several starts.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from subprocess import Popen

from bench.crowd import CALLS as CALLS_EACH
from bench.crowd import Crowd, children_of, open_and_call, resident
from bench.flight import cpu_us
from bench.peers import HttpPeer, Peer, over_stdio, started
from bench.proxy import LISTEN, NEW_REVISION, PROXY, REQUESTS, server_command

WORKERS = (1, 2, 3)
AT_ONCE = 64
SESSIONS = (10, 100, 500, 2000)
LEVEL = 1.3
"""How many times the cheapest a call may cost, however many sessions are open."""

CALLS = 2000
"""How many a figure is of: of 2,000 sessions one each."""

STARTS = 7
"""How often a proxy is started with each option, at most."""

METHOD, PARAMS, _ = REQUESTS["call"]
SECRET = "secret-of-the-bench-0001"
ISSUER, AUDIENCE = "https://login.example", "https://tools.example/mcp"


def measure_growth(rounds: int) -> None:
    """Measure and print."""
    with started(server_command("h", NEW_REVISION)) as (_, port):
        proxy = (*PROXY, *LISTEN, "--max-sessions", "10000", "--url", f"http://127.0.0.1:{port}/mcp")
        measure_workers(proxy, min(rounds, 10))
        measure_sessions(proxy, min(rounds, 10))
        starts = min(rounds, STARTS)
        measure_hop(proxy, starts)
        measure_options(proxy, starts)


def measure_workers(proxy: tuple[str, ...], rounds: int) -> None:
    """Print how many calls a second workers get through, beside the clients and the server, and what one costs them."""
    print(f"\nWorkers: {AT_ONCE} sessions that call at once, over HTTP on both sides")
    for number in WORKERS:
        with started((*proxy, "--workers", str(number))) as (process, port), Crowd(process.pid, port, AT_ONCE) as crowd:
            crowd.measure()
            pids = (process.pid, *children_of(process.pid))
            before = sum(map(cpu_us, pids))
            rates = [crowd.measure().calls_per_s for _ in range(rounds)]
            each = (sum(map(cpu_us, pids)) - before) / (rounds * AT_ONCE * CALLS_EACH)
        print(f"  {number}: {median(rates):6.0f} calls a second, {each:5.0f} µs of CPU a call", flush=True)


def measure_sessions(proxy: tuple[str, ...], rounds: int) -> None:
    """Print what a session holds of the whole process, and what a call costs, made in all of them in turn."""
    print("\nSessions: memory of each, and CPU of the proxy for a call of theirs in turn")
    with ExitStack() as stack:
        found = [fill(*stack.enter_context(started(proxy)), number) for number in reversed(SESSIONS)]
        costs = [[cost_us((pid,), peers) for pid, peers, _ in found] for _ in range(rounds)]
        for _, peers, _ in found:
            peers[0].close()
    cheapest = [min(column) for column in zip(*costs, strict=True)]
    for cost, (_, peers, kb) in reversed(list(zip(cheapest, found, strict=True))):
        print(f"  {len(peers):4}: {kb:6.1f} KB a session, {cost:5.0f} µs of CPU a call")
    ratio = max(cheapest) / min(cheapest)
    print(f"  dearest ÷ cheapest: {ratio:.2f}, {'level' if ratio <= LEVEL else 'not level'} within {LEVEL}", flush=True)


def fill(process: Popen[bytes], port: int, number: int) -> tuple[int, list[HttpPeer], float]:
    """Open so many sessions, which share a connection; give the process, them, and the KB that each has added."""
    open_and_call(port, 100)  # what is made once is not what a session costs
    before = resident(process.pid)
    peers = [opened(port)]
    for _ in range(number - 1):
        peers.append(opened(port))
        peers[-1].share_connection(peers[0])
    return process.pid, peers, (resident(process.pid) - before) / number


def measure_hop(proxy: tuple[str, ...], starts: int) -> None:
    """Print what a call costs that comes to another instance than that of its session."""
    here: list[tuple[float, float]] = []
    through: list[tuple[float, float]] = []
    for _ in range(starts):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            key = folder / "keys"
            key.write_text("5a" * 32 + "\n", "ascii")
            key.chmod(0o600)
            command = (*proxy, "--state-key-file", str(key), "--store", str(folder / "store"))
            (owner, port), (other, other_port) = (stack.enter_context(started(command)) for _ in range(2))
            peer = opened(port)
            by_other = peer.at(other_port)
            pids = (owner.pid, other.pid)
            for rows, one in ((here, peer), (through, by_other)):
                rows.append((cost_us(pids, [one], CALLS // 2), one.p50_us(METHOD, PARAMS, 200)))
            peer.close()
            by_other.close()
    print("\nA hop: a call that comes to another instance than its session's; CPU of both, p50")
    for name, rows in (("at its own", here), ("at another", through)):
        cpu, p50 = (median(column) for column in zip(*rows, strict=True))
        print(f"  {name}: {cpu:5.0f} µs of CPU, {p50:5.0f} µs")


def measure_options(proxy: tuple[str, ...], starts: int) -> None:
    """Print what a call costs with the guard, the log and metrics, each alone and all together."""
    with tempfile.TemporaryDirectory() as folder:
        secrets, keys, log = (Path(folder) / name for name in ("secrets", "keys", "log"))
        secrets.write_text(f"{SECRET}\n", "ascii")
        secrets.chmod(0o600)
        tokens = ("--auth-issuer", ISSUER, "--auth-audience", AUDIENCE, "--auth-jwks", str(keys))
        token = make_token(keys)
        watching = ("--access-log", str(log), "--metrics-listen", "http://127.0.0.1:0")
        alone: dict[str, tuple[tuple[str, ...], str]] = {
            "nothing": ((), ""),
            "--access-log": (watching[:2], ""),
            "--metrics-listen": (watching[2:], ""),
        }
        guarded: dict[str, tuple[tuple[str, ...], str]] = {
            "--auth-token-file": (("--auth-token-file", str(secrets)), SECRET),
            "--auth-issuer": (tokens, token),
            "all, with --auth-issuer": ((*tokens, *watching), token),
        }

        def over_http(stack: ExitStack, options: tuple[str, ...], secret: str) -> tuple[int, Peer]:
            process, port = stack.enter_context(started((*proxy, *options)))
            peer = opened(port, secret)
            stack.callback(peer.close)
            return process.pid, peer

        def over_pipes(stack: ExitStack, options: tuple[str, ...], _: str) -> tuple[int, Peer]:
            command = (*PROXY, *options, "--", *server_command("s", NEW_REVISION))
            peer = stack.enter_context(over_stdio(command, NEW_REVISION))
            return peer.pid, peer

        print_added("over HTTP", alone | guarded, over_http, starts)
        print_added("over stdio on both sides", alone, over_pipes, starts)


def print_added(
    how: str,
    candidates: dict[str, tuple[tuple[str, ...], str]],
    begin: Callable[[ExitStack, tuple[str, ...], str], tuple[int, Peer]],
    starts: int,
) -> None:
    """Print what each of these, options with a secret, adds to the first; `begin` starts a proxy and its client."""
    costs: list[list[float]] = []
    for _ in range(starts):
        with ExitStack() as stack:
            found = [begin(stack, *candidate) for candidate in candidates.values()]
            turns = [[cost_us((pid,), [peer], CALLS // 10) for pid, peer in found] for _ in range(10)]
            costs.append([min(column) for column in zip(*turns, strict=True)])
    print(f"\nWhat an option adds to the CPU of a call {how}")
    for name, column in zip(candidates, zip(*costs, strict=True), strict=True):
        added = median(cost - one[0] for cost, one in zip(column, costs, strict=True))
        print(f"  {name:<24} {median(column):5.0f} µs  {added:+5.1f}   of {starts} starts")


def make_token(keys: Path) -> str:
    """Give a token that counts for an hour, and write the public key that it is signed with."""
    from joserfc import jwk, jwt  # with the extra `guard`

    key = jwk.ECKey.generate_key("P-256", {"kid": "bench"})
    keys.write_text(json.dumps({"keys": [key.as_dict(private=False)]}), "utf-8")
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "client_id": "bench", "iat": now, "exp": now + 3600}
    return jwt.encode({"alg": "ES256", "kid": "bench", "typ": "at+jwt"}, claims, key)


def opened(port: int, secret: str = "") -> HttpPeer:
    """Open a session and call once in it."""
    peer = HttpPeer(port, NEW_REVISION, secret=secret)
    peer.open()
    peer.p50_us(METHOD, PARAMS, 1)
    return peer


def cost_us(pids: tuple[int, ...], peers: Sequence[Peer], calls: int = CALLS) -> float:
    """Give the CPU time of a call for these processes, made in turn, in microseconds."""
    before = sum(map(cpu_us, pids))
    for number in range(calls):
        peers[number % len(peers)].p50_us(METHOD, PARAMS, 1)
    return (sum(map(cpu_us, pids)) - before) / calls
