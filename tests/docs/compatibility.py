"""Write `docs/compatibility.md` from what `dragoman explain` says: `python -m tests.docs.compatibility`."""

from __future__ import annotations

from pathlib import Path

from dragoman.core.rules.explain import Explanation, explain
from dragoman.core.rules.features import Status
from dragoman_spec import REVISIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"

HEAD = """\
# Every client with every server

Which pairs of revisions `dragoman proxy` joins, and whether each feature works. This page is generated from the output
of [`dragoman explain`](cli.md#dragoman-explain), which shows one pair, for any transport and [scope](sessions.md).
Here both sides use Streamable HTTP, and each client has its own server.

A feature that *works* is passed on. For an *emulated* one, the proxy does something else with the same effect. A *lost*
one cannot be used. The pages of [the steps](steps/index.md) show what happens to the fields of messages.

"""


def render() -> str:
    """Give the page."""
    found = {
        (client, server): explain(client, server, client_transport="http", server_transport="http")
        for client in REVISIONS
        for server in REVISIONS
    }
    return HEAD + _grid(found) + _fates(found, Status.LOST) + _fates(found, Status.EMULATED)


def _grid(found: dict[tuple[str, str], Explanation]) -> str:
    lines = ["| client \\ server | " + " | ".join(REVISIONS) + " |", "|---|" + "---|" * len(REVISIONS)]
    for client in REVISIONS:
        cells = [_cell(found[client, server]) for server in REVISIONS]
        lines.append(f"| {client} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n"


def _cell(explanation: Explanation) -> str:
    counts = [f"{status.value}: {len(rows)}" for status in Status if (rows := explanation.select(status))]
    return ", ".join(counts)


def _fates(found: dict[tuple[str, str], Explanation], status: Status) -> str:
    """List what becomes of features in some pairs only, the pairs with one reason together."""
    pairs: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (client, server), explanation in found.items():
        for row in explanation.select(status):
            pairs.setdefault((row.feature, row.why), {}).setdefault(client, []).append(server)
    if not pairs:
        return ""
    lines = ["| feature | client | server | why |", "|---|---|---|---|"]
    for (feature, why), servers in pairs.items():
        together: dict[tuple[str, ...], list[str]] = {}
        for client, its_servers in servers.items():
            together.setdefault(tuple(its_servers), []).append(client)
        lines += [
            f"| {feature} | {', '.join(clients)} | {', '.join(its_servers)} | {why} |"
            for its_servers, clients in together.items()
        ]
    return f"## {status.value.capitalize()}\n\n" + "\n".join(lines) + "\n\n"


def text() -> str:
    """Give the page as the file has it."""
    return render().rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
