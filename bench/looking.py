"""How quick the page of `--inspect` is with 100,000 messages, in a real Chromium: frames a second while the list is
scrolled, how soon a filter answers, and memory.

Needs what `nox -s browser` brings: DRAGOMAN_CHROMIUM names the browser, DRAGOMAN_BROWSER_NPM the folder of packages.
On a busy machine the times of a clock say little; what the page's thread takes of a processor is counted as well.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REVISIONS = {"client": "2024-11-05", "server": "2025-11-25"}
SESSIONS = 8
WORDS = "the quick brown fox jumps over a lazy dog while nobody looks at what it carries home for supper"
COUNT = 100_000
WITHIN_S = 600

LEFT_OUT = "\nlooking: left out; it needs Chromium and packages of npm, which `nox -s bench -- looking` brings"

Line = dict[str, Any]


def measure_looking(rounds: int) -> None:
    """Measure and print, in a third of the rounds."""
    program, packages = os.environ.get("DRAGOMAN_CHROMIUM"), os.environ.get("DRAGOMAN_BROWSER_NPM")
    node = shutil.which("node")
    if not (program and packages and node):
        print(LEFT_OUT)
        return
    print(f"\nlooking: the page of --inspect with {COUNT:,} messages", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        with trace.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in Talk().make_lines(COUNT))
        options = ("--at", "http://127.0.0.1:0", "--inspect-memory", "512m")
        viewer = [sys.executable, "-m", "dragoman", "inspect", str(trace), *options]
        with subprocess.Popen(viewer, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            try:
                assert process.stderr is not None
                url = process.stderr.readline().decode().split()[-1]
                person = [node, str(Path(__file__).with_suffix(".mjs")), packages, program, url]
                subprocess.run([*person, str(COUNT), str(max(1, rounds // 3))], check=True, timeout=WITHIN_S)
            finally:
                process.terminate()


class Talk:
    """What several clients of an old revision say to their servers, as a trace has it; always the same."""

    def __init__(self) -> None:
        self._choose = random.Random(5)
        self._time_s = 0.0
        self._made = 0

    def make_lines(self, count: int) -> Iterator[Line]:
        """Yield the lines of so many messages: calls, with progress, losses and errors."""
        choose, key = self._choose, 0
        while self._made < count:
            key += 1
            session = choose.randrange(SESSIONS)
            asked = {"name": choose.choice(("search", "read_file", "query")), "arguments": {"q": self._words(6)}}
            yield from self._cross(session, "client", id=key, method="tools/call", params=asked)
            if choose.random() < 0.2:
                progress = {"progressToken": key, "progress": 1, "total": 3}
                yield from self._cross(session, "server", method="notifications/progress", params=progress)
            result = {"content": [{"type": "text", "text": self._words(12)}]}
            if choose.random() < 0.05:
                yield from self._cross(session, "server", id=key, error={"code": -32603, "message": "it broke"})
            elif choose.random() < 0.5:
                yield from self._cross(session, "server", id=key, result=result)
            else:
                more = {"structuredContent": {"rows": key}}
                yield from self._cross(session, "server", more, id=key, result=result)

    def _words(self, count: int) -> str:
        return " ".join(self._choose.choices(WORDS.split(), k=count))

    def _cross(self, session: int, sender: str, lost: Line | None = None, /, **said: Any) -> Iterator[Line]:
        """Yield the lines of one message, whose result has more that is lost, if there is."""
        self._made += 1
        receiver = "server" if sender == "client" else "client"
        ends = {"client": 10 + 2 * session, "server": 11 + 2 * session}
        after = {"jsonrpc": "2.0", **said}
        before = after if lost is None else after | {"result": said["result"] | lost}
        one, other = ({"connection": ends[side], "revision": REVISIONS[side]} for side in (sender, receiver))
        yield self._line(session, sender, "received", **one, frame=before)
        if lost is not None:
            loss = {"kind": "dropped", "bytes": 12, "cosmetic": self._choose.random() < 0.8}
            losses = [{"pointer": f"/result/{name}", **loss} for name in lost]
            crossing = {"revision": REVISIONS[sender], "to": REVISIONS[receiver], "method": "tools/call"}
            yield self._line(session, sender, "translated", **crossing, before=before, after=after, losses=losses)
        yield self._line(session, receiver, "sent", **other, frame=after)

    def _line(self, session: int, side: str, direction: str, **said: Any) -> Line:
        self._time_s += self._choose.random() / 500
        minutes, seconds = divmod(self._time_s, 60)
        label = {"process": 1, "session": f"session {session + 1}", "side": side, "direction": direction}
        return {"time": f"2026-01-31T09:{int(minutes):02}:{seconds:09.6f}Z"} | label | said
