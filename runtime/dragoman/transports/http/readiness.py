"""Whether the next client would find a server: asked where something speaks against it, when somebody wants to know.

Lives here: opening a session of our own, as a client does, and ending it. Servers may be dear to start, so nobody is
asked as long as all goes well; and while a supervisor sends no clients, nothing else would show that all is well again.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.label import LABEL
from dragoman.transports.base import Transport
from dragoman.transports.http.sessions import Caller, Runner
from dragoman_spec import LATEST

if TYPE_CHECKING:
    from dragoman.status import StatusBoard

_AGAIN_S: Final = 5.0
"""For how long an answer counts, where it is that there is no server to be had."""

_PATIENCE_S: Final = 10.0


class Readiness:
    """Settles doubts of a board.

    Args:
        serve: Makes what runs a session.
        board: Knows whether there is a doubt, and is told what came of it.
    """

    def __init__(self, serve: Callable[[Transport, Caller], Runner], board: StatusBoard) -> None:
        self._serve = serve
        self._board = board
        self._asked_at = -math.inf
        self._asking: asyncio.Task[None] | None = None

    async def settle(self) -> None:
        """Find out whether a session can be opened, if that is in doubt and was not found out just now."""
        if self._asking is None:
            now = asyncio.get_running_loop().time()
            if not self._board.is_doubted or now - self._asked_at < _AGAIN_S:
                return
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask())
        await asyncio.wait({self._asking})

    async def _ask(self) -> None:
        from dragoman.transports.memory import connect_pair  # hardly ever needed

        LABEL.set("readyz")
        ours, theirs = connect_pair("/readyz", "the proxy")
        client = _Client()
        runner = self._serve(theirs, Caller("", "readyz"))
        running: asyncio.Future[Any] = asyncio.ensure_future(runner.run())
        ours.start_raw(client)
        ours.write(_INITIALIZE)
        await asyncio.wait({client.answer, running}, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        said = client.answer.result() if client.answer.done() else {}
        if "result" in said:
            self._board.trust()
        else:
            reason = said.get("error", {}).get("message") or f"no answer to initialize within {_PATIENCE_S:g} s"
            self._board.note_problem("", reason)
        runner.stop("only /readyz wanted to know whether a session can be opened")
        await asyncio.wait({running})
        self._asking = None


_INITIALIZE: Final = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": LATEST,
            "capabilities": {},
            "clientInfo": {"name": "dragoman-readyz", "version": "1"},
        },
    }
).encode() + b"\n"  # fmt: skip


class _Client:
    """Hears the first answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._said = b""

    def data_received(self, data: bytes) -> None:
        self._said += data
        for line in self._said.split(b"\n")[:-1]:
            frame = json.loads(line)
            if frame.get("id") == 1 and "method" not in frame and not self.answer.done():
                self.answer.set_result(frame)

    def ended(self, reason: str) -> None:
        if not self.answer.done():
            self.answer.set_result({"error": {"message": reason}})

    broken = ended

    def pause_writing(self) -> None:
        pass

    def resume_writing(self) -> None:
        pass
