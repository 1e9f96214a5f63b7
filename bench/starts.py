"""What a person waits for, and what stays: starting a proxy, until a client has seen the tools, and its memory then.

A server is started directly, and behind the proxy, in turns. `bare` is one in Python that costs nothing, and
`BENCH_SERVERS` names real ones, a command a line. With `BENCH_AGAINST`, the root of another checkout, its proxy takes
turns with ours.
On one CPU all of our start is added; on two, most of it passes while a real server starts.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.peers import ADDRESS, HttpPeer, StdioPeer
from bench.proxy import LISTEN, server_command

REVISION = "2025-06-18"
_OURS = Path(__file__).parents[1]
_SCRIPT = "import sys; sys.argv[0] = 'dragoman'; from dragoman.{} import main; sys.exit(main())"


class Start(NamedTuple):
    """One start: milliseconds until the tools were seen, CPU until then, and MB: resident, and its own."""

    time_ms: float
    cpu_ms: float
    resident_mb: float
    private_mb: float


def measure_starts(rounds: int) -> None:
    """Measure and print."""
    trees = {"proxy": _OURS} | ({"against": Path(there)} if (there := os.environ.get("BENCH_AGAINST")) else {})
    real = [shlex.split(line) for line in os.environ.get("BENCH_SERVERS", "").splitlines() if line.strip()]
    print("\nstarts: until a client has seen the tools, and what a proxy holds then (Linux)")
    cpus = os.sched_getaffinity(0) if sys.platform == "linux" else {0}
    for count in sorted({1, min(2, len(cpus))}):
        if sys.platform == "linux":
            os.sched_setaffinity(0, set(sorted(cpus)[:count]))
        _measure(f"bare, {count} CPU", list(server_command("s", REVISION)), trees, LISTEN, rounds)
        for command in real if count > 1 else []:
            _measure(command[-1], command, trees, (), max(3, rounds // 3))


def _measure(title: str, server: list[str], trees: dict[str, Path], listen: tuple[str, ...], rounds: int) -> None:
    ways: dict[str, tuple[Path, list[str]]] = {"directly": (_OURS, [])}
    for name, tree in trees.items():
        ways[name] = (tree, ["proxy", "--log-level", "error", "--no-greeting", "--no-era-cache", "--"])
        if listen:
            ways[f"{name} --listen"] = (tree, ["proxy", *listen, "--"])
    starts: dict[str, list[Start]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, (tree, words) in ways.items():
            start = _start(tree, words, server)
            starts[name] += [start] if turn else []  # the first time, modules are compiled
    direct = starts["directly"]
    for name, taken in starts.items():
        middle = Start(*map(median, zip(*taken, strict=True)))
        added = median(one.time_ms - bare.time_ms for one, bare in zip(taken, direct, strict=True))
        ratio = median(one.cpu_ms / bare.cpu_ms for one, bare in zip(taken, direct, strict=True))
        print(
            f"  {title:<14}  {name:<17}  {middle.time_ms:>7.1f} ms  added {added:>7.1f}  CPU {middle.cpu_ms:>6.1f}"
            f"  ÷ directly {ratio:>5.2f}  RSS {middle.resident_mb:>5.1f} MB  private {middle.private_mb:>5.1f}",
            flush=True,
        )


def _start(tree: Path, words: list[str], server: list[str]) -> Start:
    """Start it, see the tools, and end it: the CPU is that of all that was started, and nothing is told from memory."""
    command = server
    if words:
        entry = "start" if (tree / "runtime/dragoman/start.py").exists() else "cli"
        command = [sys.executable, "-c", _SCRIPT.format(entry), *words, *server]
    paths = os.pathsep.join([str(tree / "runtime"), str(tree / "generated"), str(_OURS)])
    before = _spent_s()
    began = time.perf_counter()
    listens = "--listen" in words
    pipe = subprocess.DEVNULL if listens else subprocess.PIPE
    errors = subprocess.PIPE if listens else None
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, bufsize=0, env=environment) as process:
        peer: Any
        if listens:
            assert process.stderr is not None
            found = ADDRESS.search(process.stderr.readline().decode())
            assert found is not None
            peer = HttpPeer(int(found[1]), REVISION)
        else:
            peer = StdioPeer(process, REVISION)
        peer.open()
        _see_tools(peer)
        taken = time.perf_counter() - began
        held = _memory(process.pid)
        if listens:
            peer.close()
            process.send_signal(signal.SIGTERM)
        elif process.stdin is not None:
            process.stdin.close()
        process.wait()
    return Start(taken * 1000, (_spent_s() - before) * 1000, *held)


def _see_tools(peer: Any) -> None:
    """List them; some servers say something before they answer."""
    said = peer.exchange(peer.request("tools/list", {}))
    while not (answers := [one for one in map(json.loads, said.splitlines()) if "id" in one]):
        said = peer.read()
        while not said.endswith(b"\n"):
            said += peer.read()
    assert answers[0]["result"]["tools"]


def _spent_s() -> float:
    """Give the CPU of all processes that were started here and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _memory(pid: int) -> tuple[float, float]:
    """Give what a process holds, in MB: resident, and its own alone; 0 where the system does not say."""
    try:
        said = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0, 0.0
    sizes = {name: int(size) / 1024 for name, size in re.findall(r"(\w+): +(\d+) kB", said)}
    return sizes["Rss"], sizes["Private_Clean"] + sizes["Private_Dirty"]
