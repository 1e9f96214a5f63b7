"""What `nox -s peers -- servers` saw, kept in `seen.json`, as a section of `docs/pairs.md`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.peers.released.visiting import CLIENTS, SERVERS

SEEN: Final = Path(__file__).parent / "seen.json"

HEAD: Final = """\
## Servers as people install them

`nox -s peers -- servers` lets clients with the default settings of their SDK visit {servers} released servers from npm
and PyPI, directly, through `dragoman proxy` on stdio, and through `dragoman proxy --listen`; then again with a server
whose start takes {late} s longer, as `npx -y` takes on its first day. A client that stands here with 2026-07-28 speaks
nothing else; it is not tried with late servers.

Each client opens, lists tools, prompts, resources and templates, calls tools, gets prompts and reads resources. A
number says how many of these gave a result: `7` both directly and through the proxy, `0 → 7` none directly and seven
through the proxy, on both ways. What a client gets directly is there through the proxy, too, word for word, on
{fine} of {pairs} pairs; {only} pairs work only through the proxy.
"""

Counts = Mapping[str, int]


def read_seen() -> dict[str, dict[str, dict[str, Any]]]:
    """Return what was seen: for each server and client the `worked` operations of each way, and what is `worse`."""
    seen: dict[str, dict[str, dict[str, Any]]] = json.loads(SEEN.read_text("utf-8"))
    return seen


def keep_seen(found: Mapping[tuple[str, str], Any]) -> None:
    """Write what was seen of some pairs, and keep what was seen of others that are still in the table."""
    seen = read_seen()
    for (server, client), about in found.items():
        seen.setdefault(server, {})[client] = about
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
    pairs = [about for clients in seen.values() for about in clients.values()]
    head = HEAD.format(
        servers=len(seen),
        late=late_s,
        pairs=len(pairs),
        fine=sum(not about["worse"] for about in pairs),
        only=sum(_opens(about["worked"]) == (False, True) for about in pairs),
    )
    tables = [_table(seen, 0, ""), _table(seen, late_s, f" that is {late_s} s late")]
    return "\n".join([head, *tables, *_complaints(seen)])


def _opens(worked: Counts) -> tuple[bool, bool]:
    """Say whether more than opening works directly, and through the proxy."""
    return worked["direct 0"] > 1, min(worked["stdio 0"], worked["http 0"]) > 1


def _table(seen: Mapping[str, Any], late_s: int, words: str) -> str:
    clients = [
        client
        for client in CLIENTS
        if any(f"direct {late_s}" in about.get(client, {}).get("worked", ()) for about in seen.values())
    ]
    lines = [
        f"| server{words} | SDK | " + " | ".join(CLIENTS[client] for client in clients) + " |",
        "|---" * (len(clients) + 2) + "|",
    ]
    for server, about in seen.items():
        cells = [_cell(about.get(client, {}).get("worked", {}), late_s) for client in clients]
        lines.append(f"| {server} | {SERVERS[server].sdk} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(worked: Counts, late_s: int) -> str:
    ways = [worked.get(f"{link} {late_s}") for link in ("direct", "stdio", "http")]
    if None in ways:
        return ""
    direct, *through = [count or 0 for count in ways]
    return str(direct) if {direct} == set(through) else f"{direct} → {min(through)}"


def _complaints(seen: Mapping[str, Any]) -> list[str]:
    lines = [
        f"- {server}, {CLIENTS[client]}: {'; '.join(about['worse'])}"
        for server, clients in seen.items()
        for client, about in clients.items()
        if about["worse"]
    ]
    return ["Worse than directly:\n", *lines, ""] if lines else []
