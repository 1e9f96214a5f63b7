"""What `nox -s peers -- servers` saw, kept in `seen.json`, as a section of `docs/pairs.md`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.peers.released.joining import LINKS, PLAIN, without_proxy
from tests.peers.released.visiting import CLIENTS, SERVERS

SEEN: Final = Path(__file__).parent / "seen.json"

HEAD: Final = """\
## Servers as people install them

`nox -s peers -- servers` lets clients with the default settings of their SDK visit {servers} released servers from npm
and PyPI, directly, through `dragoman proxy` on stdio, and through `dragoman proxy --listen`; then again with a server
whose start takes {late} s longer, as `npx -y` takes on its first day. A client that stands here with 2026-07-28 speaks
nothing else; it is not tried with late servers. Other current clients give a late server ten seconds to answer in
2026-07-28, and then open with a handshake; on the way through the proxy this may be so where it was not without it, or
the other way round. The last table has other gateways, which make a command of a URL or a
URL of a command: `mcp-remote`, `supergateway` and `mcp-proxy`, before the proxy and behind it. The tools of servers
called `asking` ask their client: `confirm` and `summarize` in the middle of a call, `choose` by its answer. Their
clients answer, and come a second time when clients of both eras have been there.

Each client opens, lists tools, prompts, resources and templates, calls tools, gets prompts and reads resources. A
number says how many of these gave a result: `7` both without the proxy and through it, `0 → 7` none without and seven
with it, on each way. What a client gets without the proxy it gets through it, too, but for fields that its revision
does not have, on {fine} of {ways} ways; {only} of {pairs} pairs work only through the proxy.
"""

Way = Mapping[str, Any]
"""How many operations `worked`, how often the server `starts`, and what is `worse` than without the proxy."""


def read_seen() -> dict[str, dict[str, dict[str, Way]]]:
    """Return what was seen of each server and client on each way."""
    seen: dict[str, dict[str, dict[str, Way]]] = json.loads(SEEN.read_text("utf-8"))
    return seen


def keep_seen(found: Mapping[tuple[str, str, str], Way]) -> None:
    """Write what was seen on some ways, and keep what was seen on others, if the server is still in the table."""
    seen = read_seen()
    for (server, client, way), about in found.items():
        seen.setdefault(server, {}).setdefault(client, {})[way] = about
    known = {
        server: {client: seen[server][client] for client in CLIENTS if client in seen[server]}
        for server in SERVERS
        if server in seen
    }
    SEEN.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


def render_section(late_s: int) -> str:
    """Return the section."""
    seen = read_seen()
    if not seen:
        return ""
    pairs = [ways for clients in seen.values() for ways in clients.values()]
    through = [about for ways in pairs for way, about in ways.items() if without_proxy(_link(way)) != _link(way)]
    head = HEAD.format(
        servers=len(seen),
        late=late_s,
        ways=len(through),
        fine=sum(not about["worse"] for about in through),
        pairs=sum("direct 0" in ways for ways in pairs),
        only=sum(_works_only_through(ways) for ways in pairs),
    )
    tables = [_table(seen, 0, ""), _table(seen, late_s, f" that is {late_s} s late"), _gateways(seen)]
    return "\n".join([head, *tables, *_complaints(seen)])


def _link(way: str) -> str:
    return way.rpartition(" ")[0]


def _fewest(ways: Mapping[str, Way], link: str, late_s: int) -> int | None:
    """Return how many operations worked on the worst of the ways that a link is compared with; None without any."""
    through = [f"{other} {late_s}" for other in LINKS if without_proxy(other) == link != other]
    counts = [ways[way]["worked"] for way in through if way in ways]
    return min(counts, default=None)


def _works_only_through(ways: Mapping[str, Way]) -> bool:
    """Say whether a pair does more than open through the proxy alone."""
    return "direct 0" in ways and ways["direct 0"]["worked"] <= 1 < (_fewest(ways, "direct", 0) or 0)


def _table(seen: Mapping[str, Any], late_s: int, words: str) -> str:
    rows = {f"{server} | {SERVERS[server].sdk}": (about, "direct") for server, about in seen.items()}
    return "\n".join(_lines(f"server{words} | SDK", rows, late_s))


def _gateways(seen: Mapping[str, Any]) -> str:
    links = dict.fromkeys(base for link in LINKS if (base := without_proxy(link)) not in PLAIN)
    rows = {f"{link} | {server}": (about, link) for link in links for server, about in seen.items()}
    return "\n".join(_lines("before and behind the proxy | server", rows, 0))


def _lines(head: str, rows: Mapping[str, tuple[Mapping[str, Any], str]], late_s: int) -> Iterator[str]:
    cells = {
        name: {client: _cell(about.get(client, {}), link, late_s) for client in CLIENTS}
        for name, (about, link) in rows.items()
    }
    cells = {name: of for name, of in cells.items() if any(of.values())}
    clients = [client for client in CLIENTS if any(of[client] for of in cells.values())]
    if cells:
        yield f"| {head} | " + " | ".join(CLIENTS[client] for client in clients) + " |"
        yield "|---" * (len(clients) + 2) + "|"
        yield from (f"| {name} | " + " | ".join(of[client] for client in clients) + " |" for name, of in cells.items())
        yield ""


def _cell(ways: Mapping[str, Way], link: str, late_s: int) -> str:
    through = _fewest(ways, link, late_s)
    if through is None:
        return ""
    direct = ways[f"{link} {late_s}"]["worked"]
    return str(direct) if direct == through else f"{direct} → {through}"


def _complaints(seen: Mapping[str, Any]) -> Iterator[str]:
    lines = [
        f"- {server}, {CLIENTS[client]}, {_link(way)}: {about['worse'][0]}"
        for server, clients in seen.items()
        for client, ways in clients.items()
        for way, about in ways.items()
        if about["worse"]
    ]
    if lines:
        advice = "[what to do about `supergateway`](trouble.md#it-works-and-something-is-missing)"
        yield "\n".join([f"Worse through the proxy (the first difference of each; {advice}):", "", *lines, ""])
