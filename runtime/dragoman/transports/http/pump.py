"""Sending a stream over the connection that carries it.

Lives here: the loop that takes events and sends them, comments while it is quiet, the end of a connection by either
side, and asking a client to come back later. All three kinds of streams are sent by it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from dragoman.core.label import speak_for
from dragoman.transports.http.config import Patience
from dragoman.transports.http.exchange import HttpRequest
from dragoman.transports.http.sse import COMMENT, encode_retry

logger = logging.getLogger("dragoman.http")


class StreamSource(Protocol):
    """Where the events of a stream come from.

    Attributes:
        wake: Set when there is something new.
    """

    wake: asyncio.Event

    @property
    def is_over(self) -> bool:
        """Whether nothing comes but what can be taken now."""

    def take_part(self) -> tuple[bytes, int]:
        """Take the next events to send, and what they count; nothing when there are none."""


async def pump(
    request: HttpRequest,
    source: StreamSource,
    settle: Callable[[int], None],
    patience: Patience,
    polls: bool = False,
) -> bool:
    """Send a stream until it is over, its client has gone, or the client is to come back later.

    Args:
        request: Whose answer has begun as a stream.
        source: What is sent.
        settle: Told how much of it has gone out.
        patience: How long to wait for what.
        polls: Whether the client knows how to come back for more.

    Returns:
        Whether the client took what it was sent; else it is cut off.
    """
    loop = asyncio.get_running_loop()
    request.wire.watch(source.wake.set)
    closes_at = loop.time() + patience.poll_s if polls and patience.poll_s is not None else None
    try:
        while await _send_next(request, source, settle, patience):
            if closes_at is not None and loop.time() >= closes_at:
                await request.send_within(encode_retry(patience.retry_s), patience.stall_s)
                break
            await _wait(request, source, patience, closes_at)
        await request.send_part(b"", more=False)
    except TimeoutError:
        if request.principal:  # whoever made room for it may be somebody else
            speak_for(request.principal)
        logger.warning("a client took nothing from its stream for %g s: its connection is cut", patience.stall_s)
        request.wire.abort()
        return False
    except OSError as error:  # how ASGI servers may say that the client has gone
        logger.debug("a stream's connection is lost: %s", error)
    return True


async def _send_next(
    request: HttpRequest,
    source: StreamSource,
    settle: Callable[[int], None],
    patience: Patience,
) -> bool:
    """Send what there is; False when nothing more will come over this connection."""
    source.wake.clear()
    while not request.wire.is_gone:
        is_over = source.is_over
        data, size = source.take_part()
        if not data:
            return not is_over
        try:
            await request.send_within(data, patience.stall_s)
        finally:
            settle(size)
    return False


async def _wait(request: HttpRequest, source: StreamSource, patience: Patience, closes_at: float | None) -> None:
    """Wait until there is something to do; a comment keeps the connection alive if there is not."""
    loop = asyncio.get_running_loop()
    left = patience.keepalive_s if closes_at is None else min(patience.keepalive_s, closes_at - loop.time())
    timer = loop.call_later(max(left, 0.0), source.wake.set)
    await source.wake.wait()
    timer.cancel()
    now = loop.time()
    if now >= timer.when() and not source.is_over and (closes_at is None or now < closes_at):
        await request.send_within(COMMENT, patience.stall_s)
