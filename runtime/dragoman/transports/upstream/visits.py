"""Asking whoever is behind a client to visit a page, in the server's place: URL elicitation.

Lives here: the question, on the stream of the call that needs it, and its answer, which is not for the server. Who may
be asked, and in which words of which revision, is decided where questions of servers are. Called by `streamable`.

Source: 2025-11-25/client/elicitation, URL Mode Elicitation Requests; 2026-07-28/basic/patterns/mrtr.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

from dragoman.core.envelope import Frame, decoded, rewrite
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import ELICITATION, ELICITED
from dragoman.core.unchecked import find, find_object
from dragoman.transports.upstream.link import Link
from dragoman_spec import PER_REQUEST_REVISIONS, facts

Visitor = Callable[[str, str], Awaitable[str]]
"""Asks for a visit to a URL, for a reason; gives `accept`, `decline` or `cancel`, and nothing where nobody is asked."""

VISITOR: Final[ContextVar[Visitor | None]] = ContextVar("dragoman.visitor", default=None)
"""For the call that is carried out; None where its client cannot be asked."""

COME_BACK: Final[ContextVar[Callable[[str, str], str] | None]] = ContextVar("dragoman.come_back", default=None)
"""For a call of the era without sessions, whose client is asked by its answer, and calls again: gives what it says
then. Raises `AskedToVisit` before; gives nothing where it cannot be asked."""

_NAME: Final = "dragoman-visit-"
MARK: Final = f'"{_NAME}'.encode()
"""What a frame holds that may say something to a question of ours."""

_INPUT: Final = ("inputResponses", "requestState")


class Visits:
    """The visits that clients are asked for.

    Args:
        link: Where the questions go, as if the server had asked.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._asked: dict[bytes, asyncio.Future[str]] = {}
        self._accepted: dict[bytes, str] = {}

    @property
    def is_asking(self) -> bool:
        """Whether a client has not said yet whether it shows a page."""
        return any(not answer.done() for answer in self._asked.values())

    async def ask(self, call: bytes, url: str, message: str) -> str:
        """Ask for a visit.

        Args:
            call: The id of the call that needs it, in canonical JSON.
            url: Of the page.
            message: What for.

        Returns:
            What the client says: `accept`, `decline` or `cancel`; nothing where it cannot be asked.
        """
        name = f"{_NAME}{uuid.uuid4()}"
        about = {"mode": "url", "elicitationId": name, "url": url, "message": message}
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._asked[f'"{name}"'.encode()] = answer
        try:
            await self._tell({"id": name, "method": ELICITATION, "params": about}, call)
            action = await answer
        finally:
            del self._asked[f'"{name}"'.encode()]
        if action == "accept":
            self._accepted[call] = name
        return action

    def drops(self, frame: Frame) -> bool:
        """Whether a response answers one of these questions: then it is not for the server."""
        if frame.key is None or not frame.key.startswith(MARK):
            return False
        asked = self._asked.get(frame.key)
        if asked is not None and not asked.done():
            asked.set_result(str(find(decoded(frame).body, "result", "action") or ""))
        return True

    async def end(self, call: bytes) -> None:
        """Say that the visit that a call needed is over."""
        if (name := self._accepted.pop(call, None)) is not None:
            await self._tell({"method": ELICITED, "params": {"elicitationId": name}}, call)

    async def _tell(self, frame: dict[str, object], call: bytes) -> None:
        await self._link.reading.wait()
        await self._link.take(encode_line({"jsonrpc": "2.0", **frame}), call)


class AskedToVisit(Exception):
    """A call is to be answered with a question.

    Args:
        result: That answer.
    """

    def __init__(self, result: dict[str, object]) -> None:
        super().__init__("the client is asked for a visit")
        self.result = result


class Round:
    """What a call of the era without sessions says to questions of ours, which its server must not see.

    What it says to its server's own questions is in the state that it carries meanwhile.

    Args:
        frame: The call.

    Attributes:
        frame: The same, as its server should get it.
    """

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self._action = ""
        if MARK in (frame.bare or frame.raw):
            body = decoded(frame).body
            params = find_object(body, "params")
            own = next((name for name in find_object(params, _INPUT[0]) if name.startswith(_NAME)), "")
            self._action = str(find(params, _INPUT[0], own, "action") or "")
            rest = {name: value for name, value in params.items() if name not in _INPUT}
            with contextlib.suppress(ValueError):
                theirs = decode(str(params.get("requestState")).encode())
                rest |= {name: theirs[name] for name in _INPUT if isinstance(theirs, dict) and name in theirs}
            self.frame = rewrite(frame, {**body, "params": rest}) if own else frame

    def ask(self, url: str, message: str) -> str:
        """Ask for a visit; give what the client says.

        Raises:
            AskedToVisit: It has to be asked first.
        """
        params = find_object(decoded(self.frame).body, "params")
        known = facts(PER_REQUEST_REVISIONS[-1])
        can = find(params, "_meta", known.request_meta["clientCapabilities"], "elicitation", "url") is not None
        if self._action or not can or self.frame.method not in known.input_required:
            return self._action
        question = {"method": ELICITATION, "params": {"mode": "url", "url": url, "message": message}}
        state = encode_line({name: params[name] for name in _INPUT if name in params}).decode().strip()
        asked = {f"{_NAME}{uuid.uuid4()}": question}
        raise AskedToVisit({"resultType": "input_required", "inputRequests": asked, "requestState": state})
