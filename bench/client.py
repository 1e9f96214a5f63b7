"""What a call costs with the typed client, beside the client of the official SDK: the same server, in turns.

The SDK has a Python of its own, because it does not go together with the one that we measure the models of: that of
the peers, whose folder `DRAGOMAN_PEERS` names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

CALLS = 200
SERVER = [sys.executable, "-m", "bench.server", "2025-11-25"]
PROGRAM = str(Path(__file__).parent / "client_calls.py")


def measure_client(rounds: int) -> None:
    """Measure and print."""
    print("\na call of a tool over stdio, one after another, with a result as a model")
    folder = os.environ.get("DRAGOMAN_PEERS")
    if folder is None:
        print("  not measured: DRAGOMAN_PEERS does not name the environments that `nox -s peers` makes")
        return
    with ExitStack() as stack:
        clients = {
            "SDK 2.3": stack.enter_context(_started(str(Path(folder) / "current" / "bin" / "python"), "sdk")),
            "typed client": stack.enter_context(_started(sys.executable, "ours")),
        }
        times: dict[str, list[float]] = {name: [] for name in clients}
        for round_number in range(rounds + 1):
            for name, client in clients.items():
                taken_us = _ask(client) / CALLS * 1e6
                if round_number:  # the first one warms up
                    times[name].append(taken_us)
        base = times["SDK 2.3"]
        for name, taken in times.items():
            ratio = median(one / other for one, other in zip(taken, base, strict=True))
            print(f"  {name:<14}{median(taken):>9.1f} µs  {ratio:>5.2f} x")
        for client in clients.values():
            assert client.stdin is not None
            client.stdin.close()  # it closes its session then


def _started(python: str, which: str) -> subprocess.Popen[str]:
    command = [python, PROGRAM, which, *SERVER]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert client.stdout is not None
    assert client.stdout.readline() == "ready\n", f"{which} has not opened its session"
    return client


def _ask(client: subprocess.Popen[str]) -> float:
    assert client.stdin is not None
    assert client.stdout is not None
    print(CALLS, file=client.stdin, flush=True)
    return float(client.stdout.readline())
