"""Sending a stream over the connection that carries it.

Lives here: the loop that takes events and sends them, comments while it is quiet, the end of a connection by either
side, and asking a client to come back later. Called by the fronts of Streamable HTTP and HTTP+SSE.
"""

from __future__ import annotations

import asyncio
import logging

from dragoman.transports.http.config import Patience
from dragoman.transports.http.exchange import HttpExchange
from dragoman.transports.http.sse import COMMENT, encode_retry
from dragoman.transports.http.streams import Stream, StreamConnection

logger = logging.getLogger("dragoman.http")


async def pump(
    exchange: HttpExchange, stream: Stream, connection: StreamConnection, patience: Patience, polls: bool = False
) -> None:
    """Send a stream until it is finished, its connection is lost, or the client is to come back later.

    Args:
        exchange: Whose answer has begun as a stream.
        stream: Attached to the connection.
        connection: This one.
        patience: How long to wait for what.
        polls: Whether the client knows how to come back for more.
    """
    loop = asyncio.get_running_loop()
    watch = loop.create_task(_watch(exchange, connection))
    closes_at = loop.time() + patience.poll_s if polls and patience.poll_s is not None else None
    try:
        while await _send_next(exchange, stream, connection, patience):
            if closes_at is not None and loop.time() >= closes_at:
                await exchange.send_within(encode_retry(patience.retry_s), patience.stall_s)
                break
            await _wait(exchange, connection, patience, closes_at)
        await exchange.send_part(b"", more=False)
    except TimeoutError:
        logger.warning("a client took nothing from its stream for %g s: its connection is cut", patience.stall_s)
        exchange.abort()
    except OSError as error:  # how ASGI servers may say that the client has gone
        logger.debug("a stream's connection is lost: %s", error)
    finally:
        watch.cancel()
        stream.detach(connection)


async def _send_next(exchange: HttpExchange, stream: Stream, connection: StreamConnection, patience: Patience) -> bool:
    """Send what there is; False when nothing more will come over this connection."""
    connection.wake.clear()
    while not connection.gone:
        finished = stream.finished
        data = stream.take(connection)
        if not data:
            return not finished
        try:
            await exchange.send_within(data, patience.stall_s)
        finally:
            stream.settle(len(data))
    return False


async def _wait(
    exchange: HttpExchange, connection: StreamConnection, patience: Patience, closes_at: float | None
) -> None:
    """Wait until there is something to do; a comment keeps the connection alive if there is not."""
    loop = asyncio.get_running_loop()
    left = patience.keepalive_s if closes_at is None else min(patience.keepalive_s, closes_at - loop.time())
    timer = loop.call_later(max(left, 0.0), connection.wake.set)
    await connection.wake.wait()
    timer.cancel()
    quiet = loop.time() >= timer.when() and not connection.gone
    if quiet and (closes_at is None or loop.time() < closes_at):
        await exchange.send_within(COMMENT, patience.stall_s)


async def _watch(exchange: HttpExchange, connection: StreamConnection) -> None:
    await exchange.wait_for_disconnect()
    connection.drop()
