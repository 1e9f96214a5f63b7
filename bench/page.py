"""What watching costs the calls that are seen: the same proxy without the page of `--inspect`, with it, and with a
browser; with a trace; and with metrics.

Calls go one after the other, and at a steady 1,000 a second, which are 2,000 frames a second on each side. The figures
are the processor time of the proxy for a call, and p50 of a call.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.flight import cpu_us
from bench.peers import StdioPeer
from bench.proxy import PROXY, REQUESTS, server_command

REVISION = "2025-06-18"
PAGE = ("--inspect", "http://127.0.0.1:0")
METRICS = ("--metrics-listen", "http://127.0.0.1:0")
CALLS_PER_S = 1000
STEADY_S = 2.0


def measure_page(rounds: int) -> None:
    """Measure and print what is added to a proxy over stdio that looks at nothing."""
    print("\npage of --inspect: what it adds to a call over stdio")
    with contextlib.ExitStack() as stack:
        trace = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "trace"
        peers = {
            "nothing": stack.enter_context(watched(())),
            "--inspect": stack.enter_context(watched(PAGE)),
            "--inspect, and a browser": stack.enter_context(watched(PAGE, reads=True)),
            "--metrics-listen": stack.enter_context(watched(METRICS)),
            "--access-log": stack.enter_context(watched(("--access-log", str(trace.with_name("access"))))),
            "--trace": stack.enter_context(watched(("--trace", str(trace)))),
        }
        method, params, calls = REQUESTS["call"]
        for peer in peers.values():
            peer.p50_us(method, params, calls)
        figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in peers}
        for _ in range(rounds):
            for name, peer in peers.items():
                before = cpu_us(peer.pid)
                p50 = peer.p50_us(method, params, calls)
                figures[name].append(((cpu_us(peer.pid) - before) / calls, p50, steady(peer)))
    bare = [median(column) for column in zip(*figures["nothing"], strict=True)]
    for name, rows in figures.items():
        cpu, p50, paced = (median(column) for column in zip(*rows, strict=True))
        ratios = f"÷ nothing {cpu / bare[0]:.2f}, {p50 / bare[1]:.2f}, {paced / bare[2]:.2f}"
        print(f"  {name:<25} CPU {cpu:6.1f} µs  p50 {p50:6.1f}  at {CALLS_PER_S} a second {paced:6.1f}  {ratios}")


def steady(peer: StdioPeer) -> float:
    """Give the median time of a call, in microseconds, where they come at their times."""
    method, params, _ = REQUESTS["call"]
    times = []
    start = time.perf_counter()
    for number in range(int(CALLS_PER_S * STEADY_S)):
        time.sleep(max(0.0, start + number / CALLS_PER_S - time.perf_counter()))
        began = time.perf_counter()
        peer.exchange(peer.request(method, params))
        times.append((time.perf_counter() - began) * 1e6)
    return median(times)


@contextlib.contextmanager
def watched(options: Sequence[str], reads: bool = False) -> Iterator[StdioPeer]:
    """Open a session through a proxy with these options, whose page is read if there is one to be."""
    command = (*PROXY, *options, "--server-revision", REVISION, "--", *server_command("s", REVISION))
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
        try:
            if options[:1] == PAGE[:1]:
                assert process.stderr is not None
                url = process.stderr.readline().decode().split()[-1]
                if reads:
                    threading.Thread(target=read_events, args=(url,), daemon=True).start()
            peer = StdioPeer(process, REVISION)
            peer.open()
            yield peer
        finally:
            assert process.stdin is not None
            process.stdin.close()


def read_events(url: str) -> None:
    """Read what a browser would be sent."""
    base, _, key = url.partition("/?key=")
    cookie = f"dragoman_inspect_{base.rpartition(':')[2]}={key}"
    with urllib.request.urlopen(urllib.request.Request(f"{base}/events", headers={"Cookie": cookie})) as events:
        while events.read1():
            pass


if __name__ == "__main__":
    measure_page(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
