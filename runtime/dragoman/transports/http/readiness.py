"""Whether the next client would find a server: asked where something speaks against it, when somebody wants to know.

Lives here: opening a session of our own, as a client does, and ending it. Servers may be dear to start, so nobody is
asked as long as all goes well; and while a supervisor sends no clients, nothing else would show that all is well again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dragoman.core.envelope import Frame, decoded, request_frame
from dragoman.core.label import LABEL
from dragoman.transports.base import Transport
from dragoman.transports.frame_link import FrameLink
from dragoman.transports.http.sessions import Caller, Runner
from dragoman_spec import LATEST

if TYPE_CHECKING:
    from dragoman.status import StatusBoard

_AGAIN_S: Final = 5.0
"""For how long an answer counts, where it is that there is no server to be had."""

_PATIENCE_S: Final = 10.0

_ABOUT_US: Final = {
    "protocolVersion": LATEST,
    "capabilities": {},
    "clientInfo": {"name": "dragoman-readyz", "version": "1"},
}


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
        LABEL.set("readyz")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def hear(frame: Frame) -> None:
            if frame.key == b"1" and frame.method is None and not answer.done():
                answer.set_result(decoded(frame).body)

        link = FrameLink(hear)
        runner = self._serve(link, Caller("", "readyz"))
        running: asyncio.Future[Any] = asyncio.ensure_future(runner.run())
        link.say(request_frame(b"1", "initialize", _ABOUT_US))
        await asyncio.wait({answer, running}, timeout=_PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
        said = answer.result() if answer.done() else {}
        if "result" in said:
            self._board.trust()
        else:
            reason = said.get("error", {}).get("message") or f"no answer to initialize within {_PATIENCE_S:g} s"
            self._board.note_problem("", reason)
        runner.stop("only /readyz wanted to know whether a session can be opened")
        await asyncio.wait({running})
        self._asking = None
