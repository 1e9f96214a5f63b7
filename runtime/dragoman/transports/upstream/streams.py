"""Event streams of a server, read as fast as the client takes them.

Lives here: joining an answer's bytes, the event parser and the receiver's pauses. Must not: open streams or know why
they are read. Called by `streamable` and `legacy`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from dragoman.core.lines import Overlong
from dragoman.transports.upstream.allowance import Lease
from dragoman.transports.upstream.answers import HttpResponse
from dragoman.transports.upstream.bodies import pieces_of
from dragoman.transports.upstream.events import EventParser, SseEvent
from dragoman.transports.upstream.link import Link

EVENT_STREAM = "text/event-stream"


async def events_of(
    answer: HttpResponse, parser: EventParser, link: Link, lease: Lease
) -> AsyncGenerator[SseEvent | Overlong, None]:
    """Return the events of a stream, each only once the receiver takes more.

    Raises:
        TransportError: The stream broke.
    """
    async for piece in pieces_of(answer):
        for event in parser.feed(piece):
            await link.reading.wait()
            yield event
        await lease.hold(parser.pending)
        await link.reading.wait()
