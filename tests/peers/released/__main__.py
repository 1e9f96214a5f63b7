"""Every default client before every released server, directly and through the proxy: `nox -s peers -- servers`.

Writes what came of it into `seen.json` and the page `docs/pairs.md`, and fails if a pair is worse off through the
proxy. `--server PART`, `--client PART` and `--delay S` choose among them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.peers.pairs import PAGE, render
from tests.peers.released.page import keep_seen
from tests.peers.released.visiting import (
    CLIENTS,
    DELAYS_S,
    LINKS,
    SERVERS,
    Peers,
    Report,
    visit,
    worked,
    worse,
)

TOGETHER: Final = 3 * (os.cpu_count() or 1)
"""Most of a visit is waiting, above all for a server whose start is delayed."""

Visit = tuple[str, str, str, int]
"""The server's and the client's name, the link, and by how many seconds the server is late."""


def chosen(arguments: argparse.Namespace) -> list[Visit]:
    """Return the visits, those with a delay first: they take longest."""
    return [
        (server, client, link, delay_s)
        for delay_s in sorted(arguments.delay or DELAYS_S, reverse=True)
        for server in SERVERS
        for client in CLIENTS
        if arguments.server in server and arguments.client in client and not (delay_s and client.endswith("pinned"))
        for link in LINKS
    ]


def visit_all(visits: Iterable[Visit], peers: Peers, together: int = TOGETHER) -> dict[Visit, Report]:
    """Make the visits beside each other."""

    def one(about: Visit) -> tuple[Visit, Report]:
        print(*about, sep=" | ", file=sys.stderr)
        return about, visit(*about, peers)

    with ThreadPoolExecutor(together) as pool:
        return dict(pool.map(one, visits))


def judge(visits: Iterable[Visit], reports: dict[Visit, Report]) -> dict[Visit, list[str]]:
    """Return what is worse than directly, by visit."""
    found = {}
    for about in visits:
        server, client, _, delay_s = about
        found[about] = list(worse(SERVERS[server], reports[server, client, "direct", delay_s], reports[about]))
    return {about: lost for about, lost in found.items() if lost}


def again(bad: Iterable[Visit]) -> dict[Visit, None]:
    """Return what to visit once more, with the direct visits that it is compared with."""
    direct = [(server, client, "direct", delay_s) for server, client, _, delay_s in bad]
    return dict.fromkeys([*direct, *bad])


def main() -> int:
    """Visit, tell, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers.released", description=__doc__)
    parser.add_argument("environments", type=Path)
    parser.add_argument("npm", type=Path)
    parser.add_argument("--server", default="")
    parser.add_argument("--client", default="")
    parser.add_argument("--delay", type=int, action="append")
    parser.add_argument("--keep", type=Path, help="write all reports into this file")
    arguments = parser.parse_args()
    peers = Peers(arguments.environments, arguments.npm)
    visits = chosen(arguments)
    reports = visit_all(visits, peers)
    bad = judge(visits, reports)
    if bad:
        # A busy machine makes clients lose patience; what is worse is worse without company, too.
        reports |= visit_all(again(bad), peers, together=2)
        bad = judge(bad, reports)
    keep_seen(
        {
            pair: summary(*pair, reports, bad)
            for pair in dict.fromkeys((server, client) for server, client, *_ in visits)
        }
    )
    PAGE.write_text(render(), "utf-8")
    if arguments.keep:
        arguments.keep.write_text(
            json.dumps({" | ".join(map(str, k)): v for k, v in reports.items()}, indent=1), "utf-8"
        )
    for about, lost in bad.items():
        print(" | ".join(map(str, about)), *lost, sep="\n    ")
    print(f"{len(visits)} visits, {len(bad)} worse than directly")
    return 1 if bad else 0


def summary(server: str, client: str, reports: dict[Visit, Report], bad: dict[Visit, list[str]]) -> dict[str, Any]:
    """Return for a pair how many operations worked on each way, how often the server was started, and what is worse."""
    of_pair = {f"{about[2]} {about[3]}": report for about, report in reports.items() if about[:2] == (server, client)}
    return {
        "worked": {way: worked(report) for way, report in of_pair.items()},
        "starts": {way: report.get("starts", 0) for way, report in of_pair.items()},
        "worse": [lost for about, found in bad.items() if about[:2] == (server, client) for lost in found],
    }


if __name__ == "__main__":
    sys.exit(main())
