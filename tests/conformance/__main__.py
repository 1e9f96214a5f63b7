"""The official conformance suite against released SDKs, and against the same through the proxy, side by side.

`python -m tests.conformance NODE-FOLDER PEER-PYTHON CURRENT-PYTHON [server|client|auth]`; `nox -s conformance` knows
the first three; `auth` runs when it is named (`sign_ins`). Prints a line a scenario, for a revision with a handshake
and for the one without: the peer of the same era directly and through the proxy, and the peer of the other era
through the proxy; in the half `server` that is the server, in the half `client` the client. Exits with 1 if anything
that passes without the proxy does not pass with it and is not in `across.py`, or if a frame of the proxy is not valid
for who gets it (`frames`). The suite is the judge; which checks there are and what they mean is its own affair.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.across import ACROSS, explain
from tests.conformance.frames import Traces
from tests.conformance.sign_ins import EXTENSIONS, SIGN_INS, find_faults
from tests.peers.visits import listening_proxy, proxy_command, started

HERE: Final = Path(__file__).parent
SUITE: Final = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
STDIO_CANNOT: Final = frozenset({"server-sse-polling"})
"""What a server can only ask of a network transport."""

OLDER: Final = "2025-11-25"
NEWER: Final = "2026-07-28"
CLIENT_SCENARIOS: Final = {
    OLDER: (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ),
    NEWER: (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}
"""Those without OAuth, which `sign_ins` has."""

SAY_NOTHING: Final = "tasks-"
"""How the scenarios begin that a server passes which only says that it has no tasks: they are left out."""

STREAMS: Final = ("--answers", "sse")
"""The SDK answers on streams, and the suite looks at those only."""

LIMIT_S: Final = 300
Checks = dict[str, dict[str, str]]
"""By scenario, the worst status of each check."""

RANKS: Final = ("FAILURE", "WARNING", "INFO", "SKIPPED", "SUCCESS")


class Suite:
    """The suite and the SDK's environment, as nox has installed them."""

    def __init__(self, folder: Path, python: str, current: str) -> None:
        nodes = sorted(folder.glob("node_modules/node-*/bin/node"))
        self.command = [str(nodes[0]) if nodes else "node", str(folder / SUITE)]
        self.server = [python, str(HERE / "server.py")]
        self.newer_server = [current, str(HERE / "modern_server.py")]
        self.sdk_sign_in = [current, str(HERE / "sdk_sign_in.py")]
        self.clients = {OLDER: [python, str(HERE / "client.py")], NEWER: [current, str(HERE / "modern_client.py")]}

    def judge_server(self, url: str, revision: str) -> Checks:
        """Run every server scenario of a revision against a URL."""
        with tempfile.TemporaryDirectory() as folder:
            self._run("server", "--url", url, "--requirements", revision, "--output-dir", folder)
            found = checks_in(Path(folder))
        return {name: checks for name, checks in found.items() if not name.startswith(SAY_NOTHING)}

    def judge_client(self, command: list[str], revision: str, scenarios: Sequence[str] = ()) -> Checks:
        """Run client scenarios of a revision against a command that takes a URL; those without OAuth, or the named."""
        found: Checks = {}
        version = () if revision == EXTENSIONS else ("--spec-version", revision)
        for scenario in scenarios or CLIENT_SCENARIOS[revision]:
            with tempfile.TemporaryDirectory() as folder:
                judged = ("--scenario", scenario, *version, "--output-dir", folder)
                chosen = ("--command", shlex.join(command), *judged)
                self._run("client", *chosen)
                for checks in checks_in(Path(folder), "name").values():
                    found[scenario] = checks
        return found

    def _run(self, *arguments: str) -> None:
        # Its exit code says whether everything passed, which is not the question here.
        subprocess.run([*self.command, *arguments], capture_output=True, timeout=LIMIT_S, check=False)


def checks_in(folder: Path, member: str = "id") -> Checks:
    """Read what the suite has written: a folder a scenario, named for it and the time.

    Args:
        folder: What it has written to.
        member: What tells the checks of a scenario apart. Many of a client have one id.
    """
    found: Checks = {}
    for file in sorted(folder.rglob("checks.json")):
        name = re.sub(r"^(server|client)-|-\d{4}-\d\d-\d\dT.*$", "", file.parent.name)
        checks = found.setdefault(name, {})
        for check in json.loads(file.read_text("utf-8")):
            known = checks.get(check[member], "SUCCESS")
            checks[check[member]] = min(known, check["status"], key=RANKS.index)
    return found


def judge_servers(suite: Suite, log: Path, traces: Traces) -> Iterator[tuple[str, dict[str, Checks]]]:
    """Judge the servers of both eras: give each revision's columns."""
    servers = {OLDER: suite.server, NEWER: suite.newer_server}
    for revision, other in ((OLDER, NEWER), (NEWER, OLDER)):
        columns: dict[str, Checks] = {}
        options = STREAMS if revision == OLDER else ()
        with started(servers[revision], log) as line:
            url = url_in(line)
            columns["direct"] = suite.judge_server(url, revision)
            traced = traces.begin(f"server of {revision}, http to http")
            with listening_proxy("http", ["--url", url], log, *options, *traced) as front:
                columns["http to http"] = suite.judge_server(front, revision)
        traced = traces.begin(f"server of {revision}, http to stdio")
        with listening_proxy("http", ["--", *servers[revision], "stdio"], log, *options, *traced) as front:
            columns["http to stdio"] = suite.judge_server(front, revision)
        for scenario in STDIO_CANNOT & columns["direct"].keys():
            columns["http to stdio"][scenario] = columns["direct"][scenario]
        traced = traces.begin(f"server of {revision}, {ACROSS}")
        with (
            started(servers[other], log) as line,
            listening_proxy("http", ["--url", url_in(line)], log, *options, *traced) as front,
        ):
            columns[ACROSS] = suite.judge_server(front, revision)
        yield revision, columns


def url_in(line: str) -> str:
    """Read where a server listens."""
    where = line.split()[-1]
    return where if where.startswith("http") else f"http://{where}/mcp"


def judge_clients(suite: Suite, log: Path, traces: Traces) -> Iterator[tuple[str, dict[str, Checks]]]:
    """Judge the clients of both eras directly, and the proxy as the client that each speaks through."""
    for revision, other in ((OLDER, NEWER), (NEWER, OLDER)):
        columns = {"direct": suite.judge_client(suite.clients[revision], revision)}
        for column, client in {"stdio to http": revision, ACROSS: other}.items():
            proxy = proxy_command("--log-level", "error", *traces.begin(f"client of {revision}, {column}"), "--url")
            columns[column] = suite.judge_client([*suite.clients[client], *proxy], revision)
        yield revision, columns


def judge_sign_ins(suite: Suite, log: Path, traces: Traces) -> Iterator[tuple[str, dict[str, Checks]]]:
    """Judge the SDK's own sign-in, and the proxy's for a client that has none."""
    plain = [sys.executable, "-m", "tests.conformance.signing_in"]
    clients = {"SDK": suite.sdk_sign_in, "stdio to http": [*plain, "stdio"], "http to http": [*plain, "http"]}
    for revision, scenarios in SIGN_INS.items():
        yield (
            revision,
            {name: suite.judge_client(command, revision, scenarios) for name, command in clients.items()},
        )


def lost(direct: dict[str, str], through: dict[str, str]) -> list[str]:
    """Name the checks that pass directly and not through the proxy.

    INFO is no judgement: the proxy itself comes back for the rest of a stream that the server closes, for example.
    """
    return [
        name for name, status in direct.items() if status == "SUCCESS" and through.get(name) not in ("SUCCESS", "INFO")
    ]


def show(title: str, columns: dict[str, Checks], explain: Callable[[str, str], str | None]) -> Iterator[str]:
    """Print a line a scenario, and yield what the proxy loses; across the eras, what nobody has explained.

    Args:
        title: Which half it is, and which revision.
        columns: What was found; the first column is without the proxy.
        explain: Gives the sentence that explains the loss of a scenario's check across the eras.
    """
    direct, *others = columns
    print(f"\n  {title}")
    width = max(len(scenario) for scenario in columns[direct])
    print(f"\n  {'':<{width}}  " + "  ".join(f"{name:>13}" for name in columns))
    for scenario, checks in sorted(columns[direct].items()):
        print(
            f"  {scenario:<{width}}  "
            + "  ".join(f"{count(found.get(scenario, {})):>13}" for found in columns.values())
        )
        for column in others:
            for name in lost(checks, columns[column].get(scenario, {})):
                why = explain(scenario, name) if column == ACROSS else None
                if why is None:
                    yield f"{title}, {column}: {scenario}: {name}"
                else:
                    print(f"    {name} is lost across the eras: {why}")
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
    parser.add_argument("python", help="interpreter with the newest SDK that has a handshake alone")
    parser.add_argument("current", help="interpreter with the newest SDK")
    choices = ["server", "client", "auth", []]
    parser.add_argument("parts", nargs="*", choices=choices, help="server, client, auth; default: the first two")
    args: Any = parser.parse_args()
    suite = Suite(args.folder, args.python, args.current)
    losses: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        traces = Traces(Path(folder))
        parts = {"server": judge_servers, "client": judge_clients, "auth": judge_sign_ins}
        for part in args.parts or ("server", "client"):
            for revision, columns in parts[part](suite, log, traces):
                found = list(show(f"{part} of {revision}", columns, functools.partial(explain, revision)))
                losses += find_faults(revision, columns) if part == "auth" else found
        invalid = list(traces.judge())
        if losses:
            with contextlib.suppress(FileNotFoundError):
                print(log.read_text("utf-8")[-4000:], file=sys.stderr)
    print(
        "\n"
        + ("\n".join(["Passed without the proxy, lost with it:", *losses]) if losses else "The proxy loses nothing.")
    )
    print("\n".join(["Not valid for who got it:", *invalid]) if invalid else "Every frame of the proxy is valid.")
    return 1 if losses or invalid else 0


if __name__ == "__main__":
    os.environ["PYTHONWARNINGS"] = "ignore"
    sys.exit(main())
