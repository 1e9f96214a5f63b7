"""Bodies of answers: decompressed as they come, and never larger than allowed.

Lives here: content codings, and reading a body whole within a limit. Must not: know what a body means. Called by
`streamable`, `legacy` and `streams`.

We ask for no compression (`Accept-Encoding: identity`): a compressed event stream is a delayed one. What a server
compresses all the same is decompressed piece by piece, so that a small body cannot become a large one unnoticed.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

from dragoman.errors import FrameTooLarge, TransportError

if TYPE_CHECKING:
    from dragoman.transports.upstream.answers import Answer

_PIECE_BYTES: Final = 256 * 1024
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class Inflater:
    """Undoes one content coding.

    Args:
        peer: Whose body it is.
        coding: What `Content-Encoding` says.
    """

    def __init__(self, peer: str, coding: str) -> None:
        if coding not in _WINDOWS:
            raise TransportError(peer, f"its answer is compressed in a way that nobody asked for: {coding[:40]!r}")
        self._peer = peer
        self._window = _WINDOWS[coding]
        self._inflate = zlib.decompressobj(self._window)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Give what a chunk holds, in pieces of bounded size."""
        while chunk:
            try:
                piece = self._inflate.decompress(chunk, _PIECE_BYTES)
            except zlib.error as error:
                raise TransportError(self._peer, f"its compressed answer cannot be read: {error}") from None
            if piece:
                yield piece
            chunk = self._inflate.unconsumed_tail
            if self._inflate.eof:  # one body may be several members, one after the other
                chunk = self._inflate.unused_data
                self._inflate = zlib.decompressobj(self._window)


async def pieces_of(answer: Answer) -> AsyncIterator[bytes]:
    """Give the bytes of a body as they come."""
    coding = answer.header("Content-Encoding").strip().lower()
    inflater = None if coding in ("", "identity") else Inflater(answer.peer, coding)
    while chunk := await answer.some():
        if inflater is None:
            yield chunk
        else:
            for piece in inflater.feed(chunk):
                yield piece


async def read_body(answer: Answer, limit_bytes: int) -> bytes:
    """Read a body whole.

    Raises:
        FrameTooLarge: It is longer than allowed; the rest is not read.
    """
    if answer.length is not None:
        if answer.length > limit_bytes:
            raise FrameTooLarge(answer.peer, limit_bytes)
        if not answer.header("Content-Encoding"):
            return await answer.whole()  # the common case: nothing can come that was not announced
    parts: list[bytes] = []
    size = 0
    async for piece in pieces_of(answer):
        size += len(piece)
        if size > limit_bytes:
            raise FrameTooLarge(answer.peer, limit_bytes)
        parts.append(piece)
    return parts[0] if len(parts) == 1 else b"".join(parts)
