"""What works between every two peers, operation by operation, and the page that says so: `docs/pairs.md`.

Lives here: reading the reports of both kinds of client in one way, what is expected of each pair, and writing the page
(`python -m tests.peers.pairs`). Not here: the visits. A peer is named by a letter: A to D for the releases that speak
one revision with a handshake, E for Python's SDK and T for TypeScript's where they speak only the revision without; a
`+` behind it for the release as it comes, which speaks both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.peers.matching import REVISIONS
from tests.peers.released.page import render_section
from tests.peers.released.visiting import DELAYS_S
from tests.peers.visits import LINKS
from website.drawing import grids

PAGE: Final = Path(__file__).parents[2] / "docs" / "pairs.md"
PICTURE: Final = PAGE.parent / "images" / "pairs.svg"

HANDSHAKE: Final = tuple(REVISIONS)
PEERS: Final[Mapping[str, str]] = {
    **{letter: f"{revision}" for letter, revision in REVISIONS.items()},
    "E": "2026-07-28 (Python)",
    "T": "2026-07-28 (TypeScript)",
}

OPERATIONS: Final[Mapping[str, str]] = {
    "tools": "list tools",
    "call": "call a tool",
    "failing": "a tool that fails",
    "at once": "five calls at once",
    "structure": "structured content",
    "read": "read a resource",
    "nowhere": "a resource that is not there",
    "prompt": "get a prompt",
    "changes": "hear of changes",
    "progress": "progress",
    "logs": "log messages from a level on",
    "roots": "the server asks for roots",
    "sampling": "the server asks for a completion",
    "form": "the server asks the user",
    "three": "three questions in a row",
    "two": "two questions at once",
    "survey": "a question inside of `prompts/get`",
}

Outcome = Mapping[str, bool]


def read_modern(report: Any) -> dict[str, bool]:
    """Say what worked for a client without a handshake: `modern.py` or `npm/modern.mjs`."""
    calls, asked, heard = report["calls"], report["asked"], report["heard"]
    questions = {
        "roots": (asked["ask_roots"].get("all") or asked["ask_roots"].get("once"), 1),
        "sampling": (asked["ask_sampling"].get("text"), 1),
        "form": (asked["ask_user"].get("form"), 1),
        "three": (asked["ask_user"].get("three"), 3),
        "two": (asked["ask_user"].get("two"), 2),
        "survey": (report["survey"], 1),
    }
    return {
        "tools": "echo" in report["tools"],
        "call": "hello" in _text(calls["echo"]),
        "failing": calls["failing"].get("isError") is True,
        "at once": [said[-1:] for said in report["at once"]] == list("01234"),
        "structure": "structuredContent" in calls["weather"],
        "read": report["read"].get("contents", [{}])[0].get("text") == "Once upon a time",
        "nowhere": report["nowhere"].get("error", {}).get("code") == -32602,
        "prompt": bool(report["prompt"].get("messages")),
        "changes": heard == ["ResourceUpdated", "ToolsListChanged"],
        # The TypeScript SDK drops progress that comes in one piece with the result.
        "progress": bool(report["progress"]) and report["progress"] == [1, 2, 3][: len(report["progress"])],
        "logs": {"warning", "error"} <= set(report["logged"]) and "debug" not in report["logged"],
        **{name: _was_asked(found, times) for name, (found, times) in questions.items()},
    }


def _was_asked(found: Any, times: int) -> bool:
    answer = found["answer"] if found else {}
    return bool(found) and len(found["asked"]) == times and "error" not in answer and not answer.get("isError")


def _text(result: Any) -> str:
    return str(result["content"][0]["text"]) if "content" in result else ""


def read_handshake(report: Any, server: str) -> dict[str, bool]:
    """Say what worked for a client with a handshake: `client.py`."""
    calls = {name: found.get("result", {}) for name, found in report["calls"].items()}
    asks, read = report["asks"], report["reads"]["document"].get("result", {})
    answers = {
        "roots": _first(asks.get("ask_roots", {}), "all", "once"),
        "sampling": _first(asks.get("ask_sampling", {}), "text"),
        **{kind: _first(asks.get("ask_user", {}), kind) for kind in ("form", "three", "two")},
    }
    survey = report["prompts"]["survey" if server in HANDSHAKE else "gallery"].get("result", {})
    levels = [note["level"] for note in report["levels"]["warning"]]
    return {
        "tools": "echo" in report["tools"],
        "call": "hello" in _text(calls["echo"]),
        "failing": calls["failing"].get("isError") is True,
        "at once": [said[-1:] for said in report["at_once"]] == list("01234"),
        "structure": "structuredContent" in calls["weather"],
        "read": read.get("contents", [{}])[0].get("text") == "Once upon a time",
        "nowhere": report["reads"]["nowhere"].get("error", {}).get("code") == -32002,
        "prompt": bool(report["prompts"]["greet"].get("result", {}).get("messages")),
        "changes": len(report["lists"]) == 3 and len(report["watch"]["during"]) == 1,
        "progress": [note["progress"] for note in report["progress"]["progress"]] == [1, 2, 3],
        "logs": {"warning", "error"} <= set(levels) and "debug" not in levels,
        **{name: _has_answer(found) for name, found in answers.items()},
        "survey": "accept" in str(survey),
    }


def _first(kinds: Any, *names: str) -> Any:
    return next((kinds[name] for name in names if name in kinds), None)


def _has_answer(found: Any) -> bool:
    answer = found.get("answer") if found else None
    return bool(found and found.get("asked")) and answer is not None and "refused" not in str(answer)


ASKING_USERS: Final = ("form", "three", "two", "survey")

REASONS: Final[tuple[tuple[str, str, Callable[[str, str, str], bool]], ...]] = (
    ("a", "There is no structured content before 2025-06-18.", lambda client, server, what: what == "structure"),
    (
        "b",
        "There are no questions to the user before 2025-06-18: a server of those revisions has none, and a client of "
        "theirs reads the question in the tool's failed result or in the error.",
        lambda client, server, what: what in ASKING_USERS,
    ),
)
"""Why something does not work: a mark, a sentence, and where it is so, where one of both is older than 2025-06-18."""


def find_reason(client: str, server: str, what: str) -> str | None:
    """Give the mark of the reason why an operation does not work between two peers; None where it does."""
    if not {client[0], server[0]} & {"A", "B"}:
        return None
    return next((mark for mark, _, applies in REASONS if applies(client, server, what)), None)


def expected(client: str, server: str) -> dict[str, bool]:
    """Say what works between two peers."""
    return {what: find_reason(client, server, what) is None for what in OPERATIONS}


HEAD: Final = """\
# What works between released SDKs

`nox -s peers` lets clients and servers of the official SDKs visit each other through the proxy, and holds what they
report against this page, which `python -m tests.peers.pairs` writes. Revisions with a handshake are spoken by the
release of Python's SDK that was made for each; 2026-07-28 by Python's `mcp` 2.3 and by TypeScript's
`@modelcontextprotocol/client` and `server` 2.4, made to speak nothing else. As they come, these speak both eras; what
works then is what works here. On each of these visits, every frame that leaves the proxy is valid in the schema of
the revision that its receiver speaks.

![Grids of clients and servers for each link](images/pairs.svg)

`nox -s peers -- full` visits every cell; without `full`, all pairs over stdio and some over each other link. A letter
in the tables says why something does not work.
"""


def render() -> str:
    """Give the page."""
    parts = [HEAD]
    for server, about in PEERS.items():
        clients = list(PEERS)
        lines = [
            f"## Servers of {about}",
            "",
            "| operation \\ client | " + " | ".join(PEERS[c] for c in clients) + " |",
        ]
        lines.append("|---|" + "---|" * len(clients))
        for what, words in OPERATIONS.items():
            cells = [find_reason(client, server, what) or "yes" for client in clients]
            lines.append(f"| {words} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines) + "\n")
    parts.append("\n".join(["## Why not", "", *(f"- **{mark}**: {sentence}" for mark, sentence, _ in REASONS)]) + "\n")
    parts.append(render_section(DELAYS_S[-1]))
    return "\n".join(parts)


LINK_NAMES: Final = {"stdio": "stdio", "http": "HTTP", "sse": "HTTP+SSE", "ws": "WebSocket"}
CELLS: Final = {
    f"all {len(OPERATIONS)} operations work": "a",
    "all that the older revision has": "b",
    "no such link, or not visited": "none",
}


def draw() -> str:
    """Draw which pairs are visited over which link, the client's first, and how much works."""
    peers = [*HANDSHAKE, "E"]
    panels = {}
    for link in ("stdio-stdio", *LINKS):
        ends = link.split("-")
        known = HANDSHAKE if {"sse", "ws"} & set(ends) else peers
        panels[" to ".join(LINK_NAMES[end] for end in ends)] = [
            [cell(client, server) if {client, server} <= set(known) else "none" for client in peers] for server in peers
        ]
    return grids(
        "Clients (columns) and servers (rows) of each revision, joined",
        CELLS,
        [PEERS[letter][2:7] for letter in peers],
        panels,
    )


def cell(client: str, server: str) -> str:
    """Return how a pair looks."""
    return "a" if all(expected(client, server).values()) else "b"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    PICTURE.write_text(draw(), encoding="utf-8")
