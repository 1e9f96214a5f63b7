"""Every default client before every released server, directly and through the proxy: `nox -s peers -- servers`.

Writes what came of it into `seen.json` and the page `docs/pairs.md`, and fails if a pair is worse off through the
proxy, or a visit failed. `--server PART`, `--client PART`, `--link PART` and `--delay S` choose among them, and
`--missing` those that the page does not have yet.
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
from tests.peers.released.joining import Peers, without_proxy
from tests.peers.released.page import keep_seen, read_seen
from tests.peers.released.visiting import (
    CLIENTS,
    DELAYS_S,
    SERVERS,
    Report,
    visit,
    ways,
    worked,
    worse,
)

TOGETHER: Final = 3 * (os.cpu_count() or 1)
"""Most of a visit is waiting, above all for a server whose start is delayed."""

SLOW: Final = "not open after"
"""What clients say when they have waited as long as they may."""

Visit = tuple[str, str, str, int]
"""The server's and the client's name, the link, and by how many seconds the server is late."""


def chosen(arguments: argparse.Namespace) -> list[Visit]:
    """Return the visits, those with a delay first: they take longest."""
    visits = [
        (server, client, *way)
        for server in SERVERS
        for client in CLIENTS
        if arguments.server in server and arguments.client in client
        for way in ways(server, client)
    ]
    wanted = [about for about in visits if about[3] in (arguments.delay or DELAYS_S) and arguments.link in about[2]]
    if arguments.missing:
        seen = read_seen()
        wanted = [about for about in wanted if f"{about[2]} {about[3]}" not in seen.get(about[0], {}).get(about[1], {})]
    return sorted(dict.fromkeys([*map(base, wanted), *wanted]), key=lambda about: -about[3])


def base(about: Visit) -> Visit:
    """Return the visit without the proxy that a visit is compared with."""
    server, client, link, delay_s = about
    return server, client, without_proxy(link), delay_s


def visit_all(visits: Iterable[Visit], peers: Peers, together: int) -> dict[Visit, Report]:
    """Make the visits beside each other."""

    def one(about: Visit) -> tuple[Visit, Report]:
        print(*about, sep=" | ", file=sys.stderr)
        return about, visit(*about, peers)

    with ThreadPoolExecutor(together) as pool:
        return dict(pool.map(one, visits))


def judge(visits: Iterable[Visit], reports: dict[Visit, Report]) -> dict[Visit, list[str]]:
    """Return what is worse than directly, by visit."""
    found = {about: list(worse(SERVERS[about[0]], reports[base(about)], reports[about], about[3])) for about in visits}
    return {about: lost for about, lost in found.items() if lost}


def main() -> int:
    """Visit, tell, write."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers.released", description=__doc__)
    parser.add_argument("environments", type=Path)
    parser.add_argument("npm", type=Path)
    parser.add_argument("--server", default="")
    parser.add_argument("--client", default="")
    parser.add_argument("--link", default="")
    parser.add_argument("--delay", type=int, action="append")
    parser.add_argument("--missing", action="store_true", help="make only the visits that are not on the page yet")
    parser.add_argument("--together", type=int, default=TOGETHER, help="how many visits at once, %(default)s")
    parser.add_argument("--keep", type=Path, help="write all reports into this file")
    arguments = parser.parse_args()
    peers = Peers(arguments.environments, arguments.npm)
    visits = chosen(arguments)
    reports = visit_all(visits, peers, arguments.together)
    bad = judge(visits, reports)
    keep(visits, reports, bad)
    # A busy machine makes clients lose patience; what is worse is worse without company, too.
    doubtful = [about for about in visits if about in bad or SLOW in reports[base(about)]["open"].get("raised", "")]
    if doubtful:
        reports |= visit_all(dict.fromkeys([*map(base, doubtful), *doubtful]), peers, together=2)
        bad = judge(visits, reports)
        keep(visits, reports, bad)
    if arguments.keep:
        arguments.keep.write_text(
            json.dumps({" | ".join(map(str, k)): v for k, v in reports.items()}, indent=1), "utf-8"
        )
    for about, lost in bad.items():
        log = [reports[about]["log"]] if "failed" in reports[about] else []
        print(" | ".join(map(str, about)), *lost, *log, sep="\n    ")
    print(f"{len(visits)} visits, {len(bad)} worse than directly")
    return 1 if bad else 0


def keep(visits: Iterable[Visit], reports: dict[Visit, Report], bad: dict[Visit, list[str]]) -> None:
    """Write down what was seen, and the page that shows it."""
    keep_seen({(*about[:2], f"{about[2]} {about[3]}"): summary(reports[about], bad.get(about)) for about in visits})
    PAGE.write_text(render(), "utf-8")


def summary(report: Report, lost: list[str] | None) -> dict[str, Any]:
    """Return what is kept of a visit."""
    return {"worked": worked(report), "starts": report.get("starts", 0), "worse": lost or []}


if __name__ == "__main__":
    sys.exit(main())
