"""Visits of clients to five servers of the five revisions behind one router.

Lives here: the servers, the configuration file, the visits and what of the tables holds there. Not here: the tests.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.peers.ahead import ahead
from tests.peers.matching import ABSENT, REVISIONS, look
from tests.peers.modern_visits import NPM, node, server_of
from tests.peers.traces import SPOKEN as REVISION_OF
from tests.peers.visits import (
    HERE,
    LIMIT_S,
    SETTLE_S,
    frames_in,
    listening_proxy,
    listening_server,
    native,
    proxy_command,
    python_of,
    visit,
)

RELEASES: Final = {"D": "sdk-1.32"}
LETTERS: Final = {f"r{revision[:4]}{letter}": letter for letter, revision in REVISIONS.items()} | {"r2026": "E"}
LISTENING: Final = "BDE"
"""The servers by name: each has the letter of its revision, as in the tables."""

SPOKEN: Final = {name: REVISION_OF[letter] for name, letter in LETTERS.items()}
"""The revision of each."""

OTHERS: Final = tuple(name.lower() for name in LETTERS)
MERGED: Final = (
    ("pages/0", "resources", "uri"),
    ("templates", "resourceTemplates", "uriTemplate"),
    ("prompts/list", "prompts", "name"),
)
"""The lists in which every server has a part, as `client.py` reports them."""

DIFFERENT: Final = {
    "server's name": "the router has one of its own",
    "instructions": "those of all servers, each under its name",
    "capability completions": "what any of the servers can do is declared",
    "unknown tool's name": "nobody is asked for a tool that is on no list",
    "unknown resource": "every server is asked for a resource that is on no list, and the last one's answer counts",
    "cursor": "the pages of all servers make one list",
    "second page": "the same",
    "last page": "the same",
    "answer to the cancelled": "what answers a cancelled request is dropped",
}
"""Topics of the table that are otherwise behind a router, and why."""

NOT_LISTED: Final = ("blob contents", "name of another URI", "name of a blob")
"""Topics about resources that a server on release 1.6.0 has on its later pages, which it never gives."""


def commands(folder: Path) -> dict[str, list[str]]:
    """Give the commands of the servers; each records its frames in a file of its name."""
    return {name: [*server_of(letter), "--record", str(folder / name)] for name, letter in LETTERS.items()}


def write_config(path: Path, named: dict[str, Any], **options: Any) -> str:
    """Write a configuration file whose lists wait for servers as slow as those of a busy machine."""
    entries = {name: about if isinstance(about, dict) else _entry(about) for name, about in named.items()}
    path.write_text(
        json.dumps({"mcpServers": entries, "dragoman": {"listTimeout": 60, "openTimeout": 60, **options}}),
        encoding="utf-8",
    )
    return str(path)


def _entry(command: list[str]) -> dict[str, Any]:
    return {"command": command[0], "args": command[1:]}


@ahead
def routed_report(client: str, link: str) -> dict[str, Any]:
    """Send a client to all the servers in one session; give its report, and the frames that it got and sent.

    A client is named as in `pairs`, and `TD` is TypeScript's of 2025-11-25. Over a network every other server listens.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        record, log = Path(folder) / "record", Path(folder) / "log"
        named: dict[str, Any] = dict(commands(Path(folder)))
        for name in [name for name in named if link != "stdio" and LETTERS[name] in LISTENING]:
            named[name] = {"url": stack.enter_context(listening_server(named[name], "http", log))}
        over = native(link, client)
        target = joined_by_router(stack, over, named, log)
        report = _visit(client, over, target, record)
        report["frames"] = {"client": frames_in(record), **{name: frames_in(Path(folder) / name) for name in LETTERS}}
        report["log"] = log.read_text("utf-8", "replace")[-3000:] if log.exists() else ""
    return report


def joined_by_router(stack: contextlib.ExitStack, front: str, named: dict[str, Any], log: Path) -> list[str]:
    """Put a router before servers, each with its command or its entry; say where a client goes."""
    config = ["--config", write_config(log.with_suffix(".json"), named, prefix="always")]
    return proxy_command(*config) if front == "stdio" else [stack.enter_context(listening_proxy(front, config, log))]


def _visit(client: str, over: str, target: list[str], record: Path) -> dict[str, Any]:
    is_late = {name: over != "stdio" or letter == "E" for name, letter in LETTERS.items()}
    servers = ("--servers", json.dumps({name: float(SETTLE_S) * late for name, late in is_late.items()}))
    if client == "E":
        where = ["--", *target] if over == "stdio" else ["--url", *target]
        command = [*server_of("E")[:1], "-W", "ignore", str(HERE / "modern.py"), *servers, *where]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {"crashed": done.stderr[-3000:]}
    command = [python_of(client[-1]), str(HERE / "among.py")]
    if client[0] == "T":
        command = [node(), str(HERE / "npm" / "client.mjs"), str(NPM), RELEASES[client[-1]]]
    options = ("--record", str(record), "--over", over, "--settle", SETTLE_S, *servers)
    return visit(command, target, *options)


def part_of(report: dict[str, Any], server: str) -> dict[str, Any]:
    """Give what concerns one server, as a report of `client.py` or `modern.py` would say it: under its own names.

    What belongs to another server is left out of lists, and stands under that one's name anywhere else.
    """
    told = json.dumps(report[server])
    for start in (f"{server}_", f"{server}: ", f"{server}:", f"{server.lower()}+"):
        told = told.replace(start, "")
    part: dict[str, Any] = {name: report[name] for name in ("initialize", "ping") if name in report} | json.loads(told)
    for place, member, key in MERGED:
        result = look(part, f"{place}/result")
        if result is not ABSENT:
            result[member] = [one for one in result[member] if not one[key].lower().startswith(OTHERS)]
    return part
