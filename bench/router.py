"""What a router costs: 20 servers with 100 tools each, beside one server with 2,000 behind the proxy, in turns."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.peers import Peer
from bench.proxy import PROXY, connect

SERVERS: Final = 20
TOOLS: Final = 2000
REVISION: Final = "2025-11-25"
OLD_REVISION: Final = "2025-06-18"

CALL: Final = ("tools/call", {"name": "tool_1042", "arguments": {"text": "x" * 200}}, 200)
PREFIXED: Final = ("tools/call", {"name": "s10_tool_1042", "arguments": {"text": "x" * 200}}, 200)
LIST: Final[tuple[str, dict[str, Any], int]] = ("tools/list", {}, 10)


def measure_router(rounds: int) -> None:
    """Measure and print; all on one CPU where the system lets us."""
    if sys.platform == "linux":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(
        f"\n{SERVERS} servers with {TOOLS // SERVERS} tools each behind the router; one with {TOOLS} behind the proxy"
    )
    for words, revision in (("same revision", REVISION), ("translating", OLD_REVISION)):
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory()))
            one = connect(stack, "s", (*PROXY, "--", *_server(revision, TOOLS, 0)), REVISION)
            plain = connect(
                stack, "s", (*PROXY, "--config", _write(folder / "plain.json", revision, "clash")), REVISION
            )
            prefixed = connect(
                stack, "s", (*PROXY, "--config", _write(folder / "all.json", revision, "always")), REVISION
            )
            _compare(f"{words:<13}  tools/list          ", one, LIST, plain, LIST, rounds)
            _compare(f"{words:<13}  tools/list, prefixed", one, LIST, prefixed, LIST, rounds)
            _compare(f"{words:<13}  call                ", one, CALL, plain, CALL, rounds)
            _compare(f"{words:<13}  call, prefixed      ", one, CALL, prefixed, PREFIXED, rounds)


def _server(revision: str, count: int, first: int) -> tuple[str, ...]:
    return sys.executable, "-m", "bench.server", revision, str(count), str(first)


def _write(path: Path, revision: str, prefix: str) -> str:
    servers = {}
    for number in range(SERVERS):
        command, *arguments = _server(revision, TOOLS // SERVERS, number * TOOLS // SERVERS)
        servers[f"s{number}"] = {"command": command, "args": arguments}
    path.write_text(json.dumps({"mcpServers": servers, "dragoman": {"prefix": prefix}}), encoding="utf-8")
    return str(path)


def _compare(
    title: str,
    one: Peer,
    asked_of_one: tuple[str, dict[str, Any], int],
    router: Peer,
    asked_of_router: tuple[str, dict[str, Any], int],
    rounds: int,
) -> None:
    times = []
    for _ in range(rounds + 1):  # the first round is for what is done once only
        times.append((one.p50_us(*asked_of_one), router.p50_us(*asked_of_router)))
    behind_proxy, behind_router = (median(column) for column in zip(*times[1:], strict=True))
    ratio = median(after / before for before, after in times[1:])
    print(
        f"  {title}  one server {behind_proxy:>9.1f} µs  router {behind_router:>9.1f} µs  ratio {ratio:>5.2f}",
        flush=True,
    )
