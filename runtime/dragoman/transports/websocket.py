"""One WebSocket connection, of either side: messages in and out, pings, and how it ends.

Lives here: everything that touches the frames of `websockets`, whose sans-IO half reads and writes them; waiting for
room in either direction; bounds for what has come and was not taken. Must not: know JSON, or how a connection is opened
(`upstream.upgrade`, `http.websocket_asgi`).

Theory of operation: what comes is parsed in short pieces, and no further while enough messages wait to be taken: then
the socket is not read. So a peer that sends faster than it is served is held back, and the event loop never is.
A connection ends once, for one reason, which is reported after the last message.

Source: RFC 6455.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from websockets.exceptions import PayloadTooBig
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.protocol import CLIENT, OPEN, Protocol, Side

from dragoman.errors import FrameTooLarge, TransportError
from dragoman.transports.countdown import Countdown

_WAITING_BYTES: Final = 256 * 1024
_WEIGHT: Final = 64
"""How much of what has come may wait to be taken, and what each message counts beside its bytes."""

_AT_ONCE_BYTES: Final = 1024
"""How much is parsed at once: 500 frames at most; twice as much each time where that was part of one."""

_FRAMES_AT_ONCE: Final = 50
"""How many frames may pass before others have a turn. Pings and empty fragments count towards no other limit."""

_FRAGMENTS: Final = 10_000
"""Of how many frames a message may be made: empty ones count towards no other limit."""

_LINGER_S: Final = 5.0
"""How long a peer is read on that is still sending when it is told why it must not. Were the connection closed with
something left to read, the system would reset it (RFC 9293, 3.6.1), and the peer would never read why."""

_WORDS: Final = 200
_PONG: Final = 0x80 | Opcode.PONG


class WebSocketConnection(asyncio.Protocol):
    """A connection that is open.

    Args:
        peer: Who is there, as a person would name it.
        limit_bytes: The longest message accepted.
        side: Which of the two we are.
        ping_s: How long a peer may be silent before it is pinged.
        pong_s: How long after that it is gone; not while it is we who do not read.

    Attributes:
        on_bytes: Called whenever something has come.
        on_full: Called when the peer does not take what is written.
        on_room: Called when it does again.
        whole: How many messages have come as a whole.
    """

    def __init__(
        self, peer: str, limit_bytes: int, side: Side = CLIENT, ping_s: float = 30.0, pong_s: float = 60.0
    ) -> None:
        self._peer = peer
        self._limit_bytes = limit_bytes
        self.on_bytes: Callable[[], None] = _nothing
        self.on_full: Callable[[], None] = _nothing
        self.on_room: Callable[[], None] = _nothing
        self._frames = Protocol(side, max_size=limit_bytes)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._lost = self._loop.create_future()
        self._lost_by = "it closed the connection"
        # Reading.
        self._unparsed: memoryview = memoryview(b"")
        self._at_eof = False
        self.held_back = False
        self._at_once_bytes = _AT_ONCE_BYTES
        self._started: bytearray | None = None  # the message whose first fragments have come
        self._fragments = 0
        self._is_text = True
        self.whole = 0
        self._messages: deque[bytes | None] = deque()
        self.waiting_bytes = 0
        self._reader: asyncio.Future[None] | None = None
        # Made where it is raised: with its traceback it would be a circle, which stays until somebody looks for such.
        self._end: Callable[[], TransportError] | None = None
        self._failed = False
        # Writing.
        self._room = asyncio.Event()
        self._room.set()
        self._closing = False
        # Patience.
        self._ping_s, self._pong_s = ping_s, pong_s
        self._heard_at = 0.0
        self._pulse = Countdown()

    @property
    def unfinished_bytes(self) -> int:
        """How much has come of a message that is not complete."""
        return len(self._frames.reader.buffer) + len(self._started or b"")

    @property
    def close_code(self) -> int:
        """The code of the close frame that came, or else was sent."""
        close = self._frames.close_rcvd or self._frames.close_sent
        return CloseCode.NO_STATUS_RCVD if close is None else close.code

    async def receive(self) -> bytes | None:
        """Return the next text message; None for a binary one, which is not kept.

        Raises:
            TransportError: There is none: the connection has ended. It says how.
        """
        if self._messages and not len(self._messages) % _FRAMES_AT_ONCE:
            await asyncio.sleep(0)
        while not self._messages:
            if self._unparsed:
                await asyncio.sleep(0)
                self._parse()
            elif self._end is not None:
                raise self._end()
            else:
                self._read_on()
                self._reader = self._loop.create_future()
                try:
                    await self._reader
                finally:
                    self._reader = None
        message = self._messages.popleft()
        self.waiting_bytes -= len(message or b"") + _WEIGHT
        return message

    def write(self, message: bytes) -> None:
        """Send a text message; nothing is sent after the end."""
        if self._frames.state is OPEN:
            self._frames.send_text(message)
            self._flush()

    async def until_room(self) -> None:
        """Wait until the peer takes what is written."""
        await self._room.wait()

    def say_goodbye(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        """Send a close frame behind all messages. What the peer still sends is dropped."""
        self._closing = True
        self._messages.clear()
        self.waiting_bytes = 0
        if self._frames.state is OPEN:
            self._frames.send_close(code, reason)
            self._flush()
        self._wake()

    def fail(self, code: int, reason: str) -> None:
        """End because of what the peer did, and tell it."""
        if self._end is None:
            self._frames.fail(code, reason)
            self._failed, self._end = True, partial(TransportError, self._peer, reason)
            self._flush()
            self._wake()

    async def until_end(self) -> None:
        """Drop what still comes until the connection has ended."""
        while self._end is None:
            try:
                await self.receive()
            except TransportError:
                return

    async def leave(self, patience_s: float = _LINGER_S) -> None:
        """Close the connection, once it has ended: when everything is written, and a peer that we fail knows why."""
        if self._transport is None:
            return
        if self._failed:
            self._read_on()
            if self._transport.can_write_eof() and not self._transport.is_closing():
                self._transport.write_eof()
        else:
            self._transport.close()
        await asyncio.wait({self._lost}, timeout=_LINGER_S if self._failed else patience_s)
        self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # What the event loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are of no class of asyncio's
        self._heard_at = self._loop.time()
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._heard_at = self._loop.time()
        self._unparsed = memoryview(b"".join((self._unparsed, data)) if self._unparsed else data)
        self._parse()
        self.on_bytes()

    def eof_received(self) -> None:
        """The peer sends no more; that is told after what is left."""
        self._at_eof = True
        self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        self._transport = None
        self._at_eof = True
        self._room.set()
        self._pulse.stop()
        if not self._lost.done():
            self._lost.set_result(None)
        if isinstance(exc, ConnectionResetError):
            self._lost_by = "it reset the connection"
        elif exc is not None:
            self._lost_by = f"the connection broke: {str(exc) or type(exc).__name__}"[:_WORDS]
        self._parse()

    def pause_writing(self) -> None:
        """The peer does not take it as fast as we write."""
        self._room.clear()
        self.on_full()

    def resume_writing(self) -> None:
        """There is room again."""
        self._room.set()
        self.on_room()

    def _parse(self) -> None:
        """Take in what has come, until enough waits or others are due: then whoever reads goes on with the rest."""
        frames = 0
        while self._unparsed and (self.waiting_bytes <= _WAITING_BYTES or self._end is not None):
            if frames >= _FRAMES_AT_ONCE and self._end is None:
                self.hold_back()
                break
            size = self._at_once_bytes
            piece, self._unparsed = self._unparsed[:size], self._unparsed[size:]
            self._frames.receive_data(cast(bytes, piece))
            found = self._take_events()
            frames += found
            self._at_once_bytes = _AT_ONCE_BYTES if found else 2 * size
        if self._at_eof and not self._unparsed:
            self._frames.receive_eof()
            self._take_events()
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _take_events(self) -> int:
        """Take in what the parser made of what has come; return how many frames that was."""
        frames = cast(list[Frame], self._frames.events_received())
        for frame in frames:
            if frame.opcode is Opcode.CLOSE:
                self._finish(f"it closed the connection{_describe(self._frames.close_rcvd)}")
            elif frame.opcode is not Opcode.PING and frame.opcode is not Opcode.PONG:
                self._take_data(frame)
        if self._frames.parser_exc is not None:
            self._end_by(self._frames.parser_exc)
        self._flush()
        return len(frames)

    def _take_data(self, frame: Frame) -> None:
        if frame.opcode is not Opcode.CONT:
            self._is_text, self._fragments = frame.opcode is Opcode.TEXT, 0
        self._fragments += 1
        if self._fragments > _FRAGMENTS:
            self.fail(CloseCode.MESSAGE_TOO_BIG, f"a message has more than {_FRAGMENTS} fragments")
        if self._started is not None:
            self._started += frame.data
        elif not frame.fin:
            self._started = bytearray(frame.data)
        if frame.fin:
            started, self._started = self._started, None
            self._take_message(bytes(frame.data if started is None else started), self._is_text)

    def _take_message(self, message: bytes, is_text: bool) -> None:
        self.whole += 1
        if self._end is not None or self._closing:
            return
        if is_text and not message.isascii():
            try:
                message.decode()  # RFC 6455, 8.1
            except UnicodeDecodeError:
                self.fail(CloseCode.INVALID_DATA, "what it sent is not WebSocket: a text message is not UTF-8")
                return
        self._messages.append(message if is_text else None)
        self.waiting_bytes += _WEIGHT + (len(message) if is_text else 0)
        if self.waiting_bytes > _WAITING_BYTES:
            self.hold_back()

    def _end_by(self, error: Exception) -> None:
        """End because of what the peer sent, which the parser has told it."""
        if isinstance(error, EOFError):
            self._finish(self._lost_by)
        elif self._end is None:
            self._failed = True
            too_long = isinstance(error, PayloadTooBig)
            reason = f"what it sent is not WebSocket: {str(error)[:_WORDS]}"
            self._end = (
                partial(FrameTooLarge, self._peer, self._limit_bytes)
                if too_long
                else partial(TransportError, self._peer, reason)
            )

    def _finish(self, reason: str) -> None:
        if self._end is None:
            self._end = partial(TransportError, self._peer, reason)

    def _flush(self) -> None:
        """Write what the frames say; pongs only where there is room, or a peer that reads none would pile them up."""
        for data in self._frames.data_to_send():
            if data and self._transport is not None and (self._room.is_set() or data[0] != _PONG):
                self._transport.write(data)

    def _arm(self) -> None:
        self._pulse.set(min(self._ping_s, self._pong_s), self._ask)

    def _ask(self) -> None:
        """Ask a silent peer whether it is there; one that does not answer is gone.

        One that nobody listens to may have answered; then the system notices when there is nobody to take the ping.
        """
        silent_s = self._loop.time() - self._heard_at
        if silent_s >= self._ping_s + self._pong_s and not self.held_back:
            self.fail(CloseCode.INTERNAL_ERROR, "it does not answer pings")
        elif silent_s >= self._ping_s and self._frames.state is OPEN:
            self._frames.send_ping(b"")
            self._flush()
        self._arm()

    def hold_back(self) -> None:
        """Read nothing more, until somebody waits for it."""
        if not self.held_back and self._transport is not None and not self._transport.is_closing():
            self.held_back = True
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self.held_back and self._transport is not None and not self._transport.is_closing():
            self.held_back, self._heard_at = False, self._loop.time()
            self._transport.resume_reading()


def _describe(close: Close | None) -> str:
    """Say with which code and words a peer closed."""
    if close is None or close.code == CloseCode.NO_STATUS_RCVD:
        return ""
    words = close.reason[:_WORDS]
    return f" with {int(close.code)}{f': {words}' if words and words.isprintable() else ''}"


def _nothing() -> None:
    """What follows where nobody waits for it."""
