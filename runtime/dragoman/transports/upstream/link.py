"""From messages of a server to frames for the receiver.

Lives here: making one line of a message, whatever its form (pretty-printed, an array, without id), finding the request
that it answers, and writing the errors for requests that will not be answered. Must not: do I/O. Shared by the
three clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from dragoman.core.calls import UNANSWERED, cancelled_key
from dragoman.core.codes import ASKED_IN_VAIN, CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR
from dragoman.core.envelope import Frame, Malformed, decoded, error_frame, rewrite, twin_of
from dragoman.core.exact_json import decode, encode_line, outline
from dragoman.core.known_lists import LISTED_BYTES, KnownList
from dragoman.core.lines import Overlong, show
from dragoman.core.methods import CANCELLED, PING
from dragoman.core.peek import peek, read_beginning, read_line, read_unseen, with_id
from dragoman.core.wholeness import GLANCED_BYTES, PIECE_BYTES, Brackets, parses, pieces_of, read_broken, seems_whole
from dragoman.errors import FrameTooLarge, TransportError
from dragoman.transports.base import Receiver
from dragoman.transports.secrecy import Secrets

logger = logging.getLogger("dragoman.upstream")

_PROBE: Final = b'"dragoman-discover-'
"""How the id of a request begins that asks a server what it is: what comes of it is said by whoever opens a session."""

_OF_AN_ERROR: Final = frozenset({"jsonrpc", "id", "error"})
_SHOWN_BYTES: Final = 16 * 1024
"""How much of a line may get into the log."""

Watch = Callable[[Frame], bool]
"""Sees a response before it is handed on; whether to keep it."""


class Link:
    """The receiving end of a connection to a server.

    Args:
        receiver: Who is told.
        peer: The server, as a person would name it.
        restore_ids: Whether an answer counts whose id came back as another type.

    Attributes:
        reading: Set while something may be handed on; whoever reads looks.
        on_response: Called with the id of each response before it is handed on, and whether it is a result.
        on_question: Called with the id of each request of the server before it is handed on, with that of the request
            on whose stream it came, and with whether a request may wait for the answer, as none does for that to a
            ping. Gives the id that it is to have here, where that is another one.
        on_withdrawn: Called with the id of a request of the server that it wants no answer to any more. Gives the id
            that it has here, where that is another one.
        secrets: What the server was sent: what it repeats of that in errors is told nobody.
    """

    def __init__(self, receiver: Receiver, peer: str, restore_ids: bool = True) -> None:
        self.peer = peer
        self._restore_ids = restore_ids
        self.on_response: Callable[[bytes, bool], object] | None = None
        self.on_question: Callable[[bytes, bytes | None, bool], bytes | None] | None = None
        self.on_withdrawn: Callable[[bytes], bytes | None] | None = None
        self._receiver = receiver
        self.reading = asyncio.Event()
        self.reading.set()
        self._over = False
        self._known = KnownList()
        self.secrets = Secrets()

    async def take(
        self, message: bytes, owed: bytes | None = None, watch: Watch | None = None, framed: bool = True
    ) -> bool:
        """Hand on one message, if it is whole.

        Args:
            message: JSON text as it came.
            owed: The id of the request that it may answer, in canonical JSON.
            watch: Sees the response to that request first.
            framed: Whether the transport has seen where it ends.

        Returns:
            Whether it answers that request.

        Raises:
            TransportError: It would answer that request, and is not whole.
        """
        message = message.strip()
        bare = message if len(message) <= GLANCED_BYTES else self._outline(message)
        has_lines = b"\n" in message or b"\r" in message
        if message.startswith(b"{"):  # arrays are decoded in any case
            seems_so = framed and not has_lines and seems_whole(message, bare)
            if not seems_so and not await _search(message):
                reason = "it sent a message that is not one whole JSON object"
                return self._blame(read_broken(message, PARSE_ERROR, reason), TransportError(self.peer, reason), owed)
        return self._take(self._to_lines(message, has_lines), owed, watch, b"" if bare is message else bare)

    def read(self, message: bytes) -> tuple[bytes, bytes] | None:
        """Return a message as a line, if it is plainly one JSON object without line ends; else `take` is to see it.

        With it comes the same without its long strings; empty where it has none.
        """
        message = message.strip()
        bare = message if len(message) <= GLANCED_BYTES else self._outline(message)
        if not message.startswith(b"{") or b"\n" in message or b"\r" in message or not seems_whole(message, bare):
            return None
        return message + b"\n", b"" if bare is message else bare

    def _outline(self, message: bytes) -> bytes:
        return (len(message) > LISTED_BYTES and self._known.shorten(message)) or outline(message)

    def hand_on(self, line: bytes, bare: bytes, owed: bytes) -> bool:
        """Hand on one line of JSON, as `read` gives it.

        Args:
            line: With its end.
            bare: The same without its long strings; empty where it has none.
            owed: The id of the request that it may answer, in canonical JSON.

        Returns:
            Whether it answers that request.
        """
        if len(line) > LISTED_BYTES:
            return self._take([line], owed, None, bare)
        seen = peek(line, bare)
        if seen is None or seen.kind != "result" or seen.key != owed:
            return self._take_read([(line, read_unseen(line) if seen is None else seen)], owed, None)
        if self.on_response is not None:  # from here on as `_take_read` does, for nearly all
            self.on_response(owed, True)
        if not self._over:
            self._receiver.received((seen,))
        return True

    def take_overlong(self, event: Overlong, owed: bytes | None = None) -> bool:
        """Deal with a message that is too long: tell who waits for it, if its beginning says who.

        Returns:
            Whether it answers the request with the id `owed`: never.

        Raises:
            FrameTooLarge: It would answer that request.
        """
        error = FrameTooLarge(self.peer, event.limit_bytes)
        found = read_beginning(event.head, INVALID_REQUEST, error.reason)
        return self._blame([found], error, owed)

    def fail(self, key: bytes, reason: str, code: int = CONNECTION_CLOSED, data: Any = None) -> None:
        """Answer a request of the client in the server's place, with an error that says why."""
        reason, data = self._clean(code, reason, data)
        if self.on_response is not None:
            self.on_response(key, False)
        is_quiet = key.startswith(_PROBE) and ASKED_IN_VAIN not in (data or ())
        logger.log(
            logging.DEBUG if is_quiet else logging.WARNING,
            "request %s failed: %s",
            key[:60].decode(errors="replace"),
            reason,
            extra={"same": reason},
        )
        if not self._over:
            self._receiver.failed(error_frame(key, code, reason, {UNANSWERED: True} if data is None else data))

    def refuse(self, key: bytes, reason: str) -> None:
        """Answer a request that the server has never got, as if it had refused it."""
        if not self._over:
            self._receiver.received([error_frame(key, CONNECTION_CLOSED, reason)])

    def lose_session(
        self, frame: Frame | None, renewed: bool, told: str = "", code: int = CONNECTION_CLOSED, data: Any = None
    ) -> None:
        """Say that the server has forgotten the session.

        Args:
            frame: What it has not looked at, if it was about a frame.
            renewed: Whether there is a newer session already.
            told: What it said, for whoever waits for an answer if that frame is not sent again.
            code: Of that answer.
            data: The same.
        """
        told, data = self._clean(code, told, data)
        is_request = frame is not None and frame.kind == "request"
        error = error_frame(frame.key, code, told, data) if frame is not None and is_request else None
        if not self._over:
            self._receiver.session_lost(frame, error, renewed)

    def give_back(self, frames: list[Frame]) -> None:
        """Give back what was still to be sent when the session ended."""
        if frames and not self._over:
            self._receiver.unsent(frames)

    def end(self, reason: str) -> None:
        """Say that the server is gone."""
        if not self._over:
            self._over = True
            self._receiver.ended(self.secrets.take_out(reason))

    def mute(self) -> None:
        """Tell nobody anything any more."""
        self._over = True

    def _take(self, lines: list[bytes], owed: bytes | None, watch: Watch | None, bare: bytes) -> bool:
        return self._take_read([(line, read_line(line, bare)) for line in lines], owed, watch)

    def _take_read(
        self, read: list[tuple[bytes, Frame | Malformed | None]], owed: bytes | None, watch: Watch | None
    ) -> bool:
        answered = False
        frames: list[Frame | Malformed] = []
        for line, frame in read:
            if frame is None:
                continue
            if len(line) > LISTED_BYTES and isinstance(frame, Frame) and frame.kind == "result" and not frame.bare:
                self._known.note(line)
            if isinstance(frame, Frame) and frame.kind == "error":
                frame = self._without_secrets(frame)
                if owed is not None and frame.key is None:
                    frame = self._give_id(frame, owed)
            if frame.key is not None and _is_response(frame):
                if self.on_response is not None:
                    self.on_response(frame.key, isinstance(frame, Frame) and frame.kind == "result")
                if owed is not None and self.is_same(frame.key, owed):
                    answered = True
                    if watch is not None and isinstance(frame, Frame) and not watch(frame):
                        continue
            if isinstance(frame, Malformed):
                frame = frame._replace(line=self._hide(line))
            elif frame.method is not None:
                if self.on_question is not None and frame.kind == "request":
                    frame = _rename(frame, self.on_question(frame.key or b"", owed, frame.method != PING))
                elif self.on_withdrawn is not None and frame.method == CANCELLED:
                    frame = _rename(frame, self.on_withdrawn(cancelled_key(frame) or b""))
                if owed is not None:
                    frame = frame._replace(stream=owed)
            frames.append(frame)
        if frames and not self._over:
            self._receiver.received(frames)
        return answered

    def _blame(self, found: list[Malformed], error: TransportError, owed: bytes | None) -> bool:
        """Tell who waits for what cannot be handed on, and raise for the request with the id `owed`."""
        keys = dict.fromkeys(one.key for one in found if one.is_response and one.key is not None)
        for key in keys:
            if owed is None or not self.is_same(key, owed):
                self.fail(key, str(error))
        if owed is not None and any(self.is_same(key, owed) for key in keys):
            raise error
        if not keys:
            logger.warning("%s", error)
        return False

    def _to_lines(self, message: bytes, has_lines: bool) -> list[bytes]:
        """Make lines of a message. Arrays are split, whoever may send them: the core puts batches together."""
        if has_lines:
            if not message.startswith(b"{"):
                try:
                    decode(message)
                except ValueError as error:
                    logger.warning("%s sent a message that is %s: %s", self.peer, error, self._show(message))
                    return []
            # A line break inside a JSON string would not have been read: all that are left are white space.
            message = message.replace(b"\r", b" ").replace(b"\n", b" ")
        if message.startswith(b"["):
            try:
                return [encode_line(member) for member in decode(message)]
            except ValueError as error:
                logger.warning("%s sent an array that is %s: %s", self.peer, error, self._show(message))
                return []
        return [message + b"\n"] if message else []

    def is_same(self, key: bytes, asked: bytes) -> bool:
        """Whether the id of an answer is that of a request."""
        return key == asked or (self._restore_ids and twin_of(key) == asked)

    def _clean(self, code: int, reason: str, data: Any) -> tuple[str, Any]:
        """Return the message and the data of an error without what they repeat of secrets."""
        error = self.secrets.take_out_of({"code": code, "message": reason, "data": data})
        return error["message"], error.get("data")

    def _without_secrets(self, frame: Frame) -> Frame:
        if not self.secrets:
            return frame
        try:
            frame = decoded(frame)
        except ValueError:  # which is said where it is read
            return frame
        body: dict[str, Any] = frame.body
        error = body.get("error")
        if not isinstance(error, dict):
            return frame
        shown = self.secrets.take_out_of(error)
        beside = {name: member for name, member in body.items() if name not in _OF_AN_ERROR}
        kept = {} if beside and self.secrets.are_in(beside) else beside
        if shown is error and len(kept) == len(beside):
            return frame
        named = {name: member for name, member in body.items() if name in _OF_AN_ERROR}
        return rewrite(frame, {**named, **kept, "error": shown})

    def _hide(self, line: bytes) -> bytes:
        """Return what the log shows of a line that is no frame."""
        said = line[:_SHOWN_BYTES].decode(errors="replace")
        shown = self.secrets.take_out(said)
        return line if shown is said else shown.encode()

    def _show(self, message: bytes) -> str:
        return show(self._hide(message))

    def _give_id(self, frame: Frame, key: bytes) -> Frame:
        """Put the id on an error that answers a POST: what it is about is known, whatever the server could read."""
        return rewrite(frame, {**decoded(frame).body, "id": decode(key)})._replace(key=key)


def _rename(frame: Frame, key: bytes | None) -> Frame:
    """Give a question, or what takes it back, another id of that."""
    if key is None:
        return frame
    if frame.kind == "request":
        return frame._replace(raw=with_id(frame, key), key=key, body=None)
    body = decoded(frame).body
    return rewrite(frame, {**body, "params": {**body["params"], "requestId": decode(key)}})


def _is_response(frame: Frame | Malformed) -> bool:
    return frame.is_response if isinstance(frame, Malformed) else frame.kind in ("result", "error")


async def _search(message: bytes) -> bool:
    """Find out for certain whether a message is one whole JSON object, and serve others in between if it is long."""
    if parses(message):
        return True
    brackets = Brackets()
    for piece in pieces_of(message):
        brackets.feed(bytes(piece))
        if len(message) > PIECE_BYTES:
            await asyncio.sleep(0)
    return brackets.is_whole() and message.rstrip().endswith(b"}")
