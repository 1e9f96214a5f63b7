"""The official conformance suite against a released SDK, and against the same through the proxy, side by side.

`python -m tests.conformance NODE-FOLDER PEER-PYTHON [server|client]`; `nox -s conformance` knows both. Prints a line a
scenario; exits with 1 if anything that passes without the proxy does not pass with it. The suite is the judge; which
checks there are and what they mean is its own affair.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.peers.visits import listening_proxy, proxy_command, started

HERE: Final = Path(__file__).parent
SUITE: Final = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
CLIENT_SCENARIOS: Final = ("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry")
"""Those without OAuth: a proxy of loopback carries no client's credentials."""

STDIO_CANNOT: Final = frozenset({"server-sse-polling"})
"""What a server can only ask of a network transport."""

STREAMS: Final = ("--answers", "sse")
"""The SDK answers on streams, and the suite looks at those only."""

LIMIT_S: Final = 300
Checks = dict[str, dict[str, str]]
"""By scenario, the worst status of each check."""

RANKS: Final = ("FAILURE", "WARNING", "INFO", "SKIPPED", "SUCCESS")


class Suite:
    """The suite and the SDK's environment, as nox has installed them."""

    def __init__(self, folder: Path, python: str) -> None:
        nodes = sorted(folder.glob("node_modules/node-*/bin/node"))
        self.command = [str(nodes[0]) if nodes else "node", str(folder / SUITE)]
        self.server = [python, str(HERE / "server.py")]
        self.client = [python, str(HERE / "client.py")]

    def judge_server(self, url: str) -> Checks:
        """Run every server scenario against a URL."""
        with tempfile.TemporaryDirectory() as folder:
            self._run("server", "--url", url, "--suite", "all", "--output-dir", folder)
            return checks_in(Path(folder))

    def judge_client(self, command: list[str]) -> Checks:
        """Run the client scenarios against a command that takes a URL."""
        found: Checks = {}
        for scenario in CLIENT_SCENARIOS:
            with tempfile.TemporaryDirectory() as folder:
                chosen = ("--command", shlex.join(command), "--scenario", scenario, "--output-dir", folder)
                self._run("client", *chosen)
                for checks in checks_in(Path(folder)).values():
                    found[scenario] = checks
        return found

    def _run(self, *arguments: str) -> None:
        # Its exit code says whether everything passed, which is not the question here.
        subprocess.run([*self.command, *arguments], capture_output=True, timeout=LIMIT_S, check=False)


def checks_in(folder: Path) -> Checks:
    """Read what the suite has written: a folder a scenario, named for it and the time."""
    found: Checks = {}
    for file in sorted(folder.rglob("checks.json")):
        name = re.sub(r"^(server|client)-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        checks = found.setdefault(name, {})
        for check in json.loads(file.read_text("utf-8")):
            known = checks.get(check["id"], "SUCCESS")
            checks[check["id"]] = min(known, check["status"], key=RANKS.index)
    return found


def judge_servers(suite: Suite, log: Path) -> dict[str, Checks]:
    """Judge the server directly, and through the proxy's HTTP front over either of its own transports."""
    columns: dict[str, Checks] = {}
    with started(suite.server, log) as line:
        url = line.split()[-1]
        columns["direct"] = suite.judge_server(url)
        with listening_proxy("http", ["--url", url], log, *STREAMS) as front:
            columns["http to http"] = suite.judge_server(front)
    with listening_proxy("http", ["--", *suite.server, "stdio"], log, *STREAMS) as front:
        columns["http to stdio"] = suite.judge_server(front)
        for scenario in STDIO_CANNOT:
            columns["http to stdio"][scenario] = columns["direct"].get(scenario, {})
    return columns


def judge_clients(suite: Suite, log: Path) -> dict[str, Checks]:
    """Judge the client directly, and the proxy as the client that it speaks through."""
    proxied = [*suite.client, *proxy_command("--log-level", "error", "--url")]
    return {"direct": suite.judge_client(suite.client), "stdio to http": suite.judge_client(proxied)}


def lost(direct: dict[str, str], through: dict[str, str]) -> list[str]:
    """Name the checks that pass directly and not through the proxy."""
    return [name for name, status in direct.items() if status == "SUCCESS" and through.get(name) != "SUCCESS"]


def show(columns: dict[str, Checks]) -> Iterator[str]:
    """Print a line a scenario, and yield what the proxy loses."""
    direct, *others = columns
    width = max(len(scenario) for scenario in columns[direct])
    print(f"\n  {'':<{width}}  " + "  ".join(f"{name:>13}" for name in columns))
    for scenario, checks in sorted(columns[direct].items()):
        print(
            f"  {scenario:<{width}}  "
            + "  ".join(f"{count(found.get(scenario, {})):>13}" for found in columns.values())
        )
        for column in others:
            for name in lost(checks, columns[column].get(scenario, {})):
                yield f"{column}: {scenario}: {name}"
    print(f"  {'passed':<{width}}  " + "  ".join(f"{total(found):>13}" for found in columns.values()))


def count(checks: dict[str, str]) -> str:
    """Say how many checks passed, of those that can."""
    judged = [status for status in checks.values() if status in ("SUCCESS", "FAILURE", "WARNING")]
    return f"{judged.count('SUCCESS')}/{len(judged)}"


def total(found: Checks) -> int:
    """Count the checks that passed."""
    return sum(list(checks.values()).count("SUCCESS") for checks in found.values())


def main() -> int:
    """Run both halves of the suite, or the one named."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the suite is installed")
    parser.add_argument("python", help="interpreter with the newest SDK")
    parser.add_argument("parts", nargs="*", choices=["server", "client", []], help="server, client; default: both")
    args: Any = parser.parse_args()
    suite = Suite(args.folder, args.python)
    losses: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        parts = {"server": judge_servers, "client": judge_clients}
        for part in args.parts or parts:
            losses += show(parts[part](suite, log))
        if losses:
            with contextlib.suppress(FileNotFoundError):
                print(log.read_text("utf-8")[-4000:], file=sys.stderr)
    print(
        "\n"
        + ("\n".join(["Passed without the proxy, lost with it:", *losses]) if losses else "The proxy loses nothing.")
    )
    return 1 if losses else 0


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore"
    sys.exit(main())
