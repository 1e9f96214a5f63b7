"""A scripted server over a memory transport: says what the test has it say, and keeps what it was told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from dragoman.transports.base import Transport
from dragoman.transports.memory import MemoryTransport, connect_pair

Answer = Callable[["ScriptedServer", dict[str, Any]], None]
ALL = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "logging": {},
    "completions": {},
}


class ScriptedServer:
    """The peer of a client. `answers` has what it does about each method; give the class to `dragoman.connect`."""

    def __init__(
        self,
        answers: dict[str, Any] | None = None,
        revision: str | None = None,
        capabilities: dict[str, Any] = ALL,
    ) -> None:
        self.answers = answers or {}
        self.revision = revision
        self.capabilities = capabilities
        self.told: list[dict[str, Any]] = []
        self._changed = asyncio.Event()
        self._end: MemoryTransport | None = None

    def __call__(self) -> Transport:
        ours, theirs = connect_pair("server", "proxy")
        self._end = ours
        ours.start_raw(self)
        return theirs

    def say(self, **frame: Any) -> None:
        assert self._end is not None
        self._end.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")

    def say_raw(self, line: bytes) -> None:
        assert self._end is not None
        self._end.write(line + b"\n")

    def hang_up(self) -> None:
        assert self._end is not None
        self._end.end()

    async def wait_for(self, matches: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until the client has said something, or give what it has said already."""
        async with asyncio.timeout(20):
            while True:
                for frame in self.told:
                    if matches(frame):
                        return frame
                self._changed.clear()
                await self._changed.wait()

    async def wait_for_method(self, method: str) -> dict[str, Any]:
        return await self.wait_for(lambda frame: frame.get("method") == method)

    # What the transport tells

    def data_received(self, data: bytes) -> None:
        for line in data.splitlines():
            frame = json.loads(line)
            self.told.append(frame)
            self._changed.set()
            if "id" in frame and "method" in frame:
                self._answer(frame)

    def _answer(self, frame: dict[str, Any]) -> None:
        answer = self.answers.get(frame["method"])
        if callable(answer):
            answer(self, frame)
        elif answer is not None:
            self.say(id=frame["id"], result=answer)
        elif frame["method"] == "initialize":
            revision = self.revision or frame["params"]["protocolVersion"]
            info = {"name": "scripted", "version": "1"}
            result = {"protocolVersion": revision, "capabilities": self.capabilities, "serverInfo": info}
            self.say(id=frame["id"], result=result)
        elif frame["method"] == "server/discover":
            self.say(id=frame["id"], error={"code": -32601, "message": "there is no server/discover"})

    def ended(self, reason: str) -> None:
        self.hang_up()

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
