"""Bodies of answers: decompressed as they come, never larger than allowed, and read as fast as the client takes them.

Lives here: content codings, and reading a body whole within a limit, or event by event. Must not: know what a body
means. Called by `streamable`, `following`, `legacy` and `failures`.

We ask for no compression (`Accept-Encoding: identity`), because compression delays event streams. If a server
compresses nevertheless, the body is decompressed piece by piece, so that a small body cannot become a large one
unnoticed.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from dragoman import system
from dragoman.core.lines import Overlong
from dragoman.core.pieces import Pieces
from dragoman.errors import FrameTooLarge, TransportError
from dragoman.transports.upstream.allowance import FREE_BYTES, Allowance, Lease
from dragoman.transports.upstream.events import EventParser, SseEvent

if TYPE_CHECKING:
    from dragoman.transports.upstream.answers import HttpResponse
    from dragoman.transports.upstream.link import Link

_PIECE_BYTES: Final = 256 * 1024
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}

FREE_UNFOLDED_BYTES: Final = 16 * 1024 * 1024
"""As long as a body is no longer than this, it may be compressed as well as it likes."""

RATIO: Final = 200
"""How many times as long as what came a longer body may be. Tables whose rows differ in a number get to 16 or 50,
listings of tools to 40; only where the same is said over and over it is 300, and deflate cannot do more than 1032."""

_AT_ONCE_BYTES: Final = 4 * 1024 * 1024

_FED_BYTES: Final = 16 * 1024
"""How much is looked at together: what follows a member is copied, and a member may have 20 bytes."""

_SLICE_BYTES: Final = 4 * 1024
_EVENTS_AT_ONCE: Final = 50
"""How much of a stream of tiny events, and how many of them, may pass before others have a turn."""

_RECEIPT_BYTES: Final = 64 * 1024
_RECEIPT_S: Final = 1.0


class Inflater:
    """Undoes one content coding.

    Args:
        peer: Whose body it is.
        coding: What `Content-Encoding` says.
        free_bytes: See `FREE_UNFOLDED_BYTES`.
    """

    def __init__(self, peer: str, coding: str, free_bytes: int = FREE_UNFOLDED_BYTES) -> None:
        if coding not in _WINDOWS:
            raise TransportError(peer, f"its answer is compressed in a way that nobody asked for: {coding[:40]!r}")
        self._peer = peer
        self._free_bytes = free_bytes
        self._window = _WINDOWS[coding]
        self._inflate = zlib.decompressobj(self._window)
        self._came = self._unfolded = 0
        self._in_member = False

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Give what a chunk holds, in pieces of bounded size; some are empty, and are there for others to be served."""
        self._came += len(chunk)
        for start in range(0, len(chunk), _FED_BYTES):
            yield from self._unfold(chunk[start : start + _FED_BYTES])

    def _unfold(self, chunk: bytes) -> Iterator[bytes]:
        while chunk:
            self._in_member = True
            try:
                piece = self._inflate.decompress(chunk, _PIECE_BYTES)
            except zlib.error as error:
                raise TransportError(self._peer, f"its compressed answer cannot be read: {error}") from None
            self._unfolded += len(piece)
            if self._unfolded > max(self._free_bytes, RATIO * self._came):
                reason = f"its compressed answer unfolds to more than {RATIO} times its length"
                raise TransportError(self._peer, reason)
            ended = self._inflate.eof
            if piece or ended:
                yield piece
            chunk = self._inflate.unconsumed_tail
            if ended:  # one body may be several members, one after the other
                chunk = self._inflate.unused_data
                self._inflate = zlib.decompressobj(self._window)
                self._in_member = False

    def finish(self) -> None:
        """Check that what is compressed has come to its end.

        Raises:
            TransportError: It has not: the body was cut.
        """
        if self._in_member:
            raise TransportError(self._peer, "its compressed answer ends in the middle")


async def pieces_of(answer: HttpResponse) -> AsyncIterator[bytes]:
    """Return the bytes of a body as they come.

    Raises:
        TransportError: It did not come whole.
    """
    coding = answer.header("Content-Encoding").strip().lower()
    if coding in ("", "identity"):
        while chunk := await answer.some():
            yield chunk
        return
    inflater = Inflater(answer.peer, coding)
    while chunk := await answer.some():
        for piece in inflater.feed(chunk):
            yield piece
            await asyncio.sleep(0)  # of one chunk there may be hundreds, and others wait
    inflater.finish()


async def read_events(
    answer: HttpResponse,
    parser: EventParser,
    link: Link,
    allowance: Allowance,
    take: Callable[[SseEvent | Overlong], Awaitable[None]],
) -> None:
    """Hand on the events of a stream, each only once the receiver takes more.

    Raises:
        TransportError: The stream broke.
    """
    with allowance.lease() as lease:
        async for piece in pieces_of(answer):
            for part in _cut_often(piece):
                for number, event in enumerate(parser.feed(part), 1):
                    await link.reading.wait()
                    await take(event)
                    if not number % _EVENTS_AT_ONCE:
                        await asyncio.sleep(0)
                if part is not piece:
                    await asyncio.sleep(0)
            await lease.hold(parser.pending)
            await link.reading.wait()


def _cut_often(piece: bytes) -> Iterable[bytes]:
    """Cut what has very many lines: each takes time, however short it is, and others wait."""
    if piece.count(b"\n") + piece.count(b"\r") <= 2 * _EVENTS_AT_ONCE:  # each of them ends a line, or both together
        return (piece,)
    return (piece[start : start + _SLICE_BYTES] for start in range(0, len(piece), _SLICE_BYTES))


async def read_message(answer: HttpResponse, limit_bytes: int, link: Link, allowance: Allowance) -> bytes:
    """Read a body whole that is a message to the client; what is long is left in its socket while nobody may take it.

    Raises:
        FrameTooLarge: It is longer than allowed; the rest is not read.
        TransportError: It did not come whole.
    """
    if answer.length is not None:
        if answer.length > limit_bytes:
            raise FrameTooLarge(answer.peer, limit_bytes)
        if answer.length <= FREE_BYTES and not answer.header("Content-Encoding"):
            return await answer.whole()  # the common case: nothing can come that was not announced
    system.keep_freed_memory()
    with allowance.lease() as lease:
        if _may_come_at_once(answer, link, allowance):
            await lease.hold(answer.length or 0)
            return await answer.whole()
        return await read_body(answer, limit_bytes, link, lease)


def _may_come_at_once(answer: HttpResponse, link: Link, allowance: Allowance) -> bool:
    """Whether a body need not be read piece by piece: it is not very long, and nobody is in the way."""
    if answer.length is None or answer.length > _AT_ONCE_BYTES or answer.header("Content-Encoding"):
        return False
    return link.reading.is_set() and allowance.held + answer.length <= allowance.limit_bytes


async def read_body(
    answer: HttpResponse, limit_bytes: int, link: Link | None = None, lease: Lease | None = None
) -> bytes:
    """Read a body whole, as fast as the receiving end and the allowance let us, if there are such.

    Raises:
        FrameTooLarge: It is longer than allowed; the rest is not read.
        TransportError: It did not come whole.
    """
    parts = Pieces()
    async for piece in pieces_of(answer):
        parts.add(piece)
        if parts.size > limit_bytes:
            raise FrameTooLarge(answer.peer, limit_bytes)
        if lease is not None:
            await lease.hold(parts.size)
        if link is not None:
            await link.reading.wait()
    return parts.take()


async def discard(answer: HttpResponse) -> None:
    """Read what should be empty, so that the connection can be used again; and close the answer."""
    if not answer.complete:
        with contextlib.suppress(TransportError, TimeoutError):
            async with asyncio.timeout(_RECEIPT_S):
                await read_body(answer, _RECEIPT_BYTES)
    answer.close()
