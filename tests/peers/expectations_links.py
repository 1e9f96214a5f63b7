"""What the table of expectations says differently over a network: rows that speak about a release's way to end.

Not here: the table itself (`expectations.py`, `expectations_back.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tests.peers.matching import Row

DYING: Final = ("answer to the cancelled", "cancelled")
"""A cancelled running call kills the session of a 1.6.0 or 1.9.4 server. Over stdio the process ends with it, which is
something to tell; over a network the server goes on without that session and says nothing, or cuts the connection."""


UNANSWERED: Final = "answer to the cancelled"
"""Over Streamable HTTP the front ends the stream of a cancelled request: the specification wants no answer, and a
server that obeys would leave the stream open for ever."""


def dies_with_a_call(link: str, server: str) -> bool:
    """Say whether a cancelled call ends the session, and not the process."""
    return server in "AB" and link.split("-")[1] != "stdio"


def until_death(record: list[dict[str, Any]], link: str, server: str) -> list[dict[str, Any]]:
    """Return a record without the cut connection at its end, which is no frame that anybody sent."""
    if dies_with_a_call(link, server):
        return [entry for entry in record if "unreadable" not in entry.get("got", {})]
    return record


def on_link(rows: Sequence[Row], link: str, client: str, server: str) -> Iterator[Row]:
    """Yield the rows that hold for this pair on this link."""
    route = "direct" if link.startswith("direct") else "proxy"
    for row in rows:
        if row.topic in DYING and dies_with_a_call(link, server):
            continue
        if row.topic == UNANSWERED and link.startswith("http") and client != "A":
            continue
        if row.covers(client, server, route):
            yield row
