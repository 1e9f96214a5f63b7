"""Streams of what changes at a server: `async with client.listen(...) as changes`, in each era.

Lives here: which notifications belong to a stream, and how the server is told to send them. Must not: read frames
(`client`), or keep more than `notices` does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import dragoman_spec
from dragoman.client.notices import Notices
from dragoman.core.methods import LISTEN, UPDATED
from dragoman.core.rules.notifications import covers
from dragoman.errors import CapabilityNotSupported, ConnectionClosed, RequestTimeout

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.eras import ByRequests


def listen(client: Client, uris: tuple[str, ...], kinds: Collection[str]) -> AbstractAsyncContextManager[Notices]:
    """Return the context of one stream.

    Args:
        client: Whose.
        uris: The resources whose changes are wanted.
        kinds: The lists whose changes are wanted: tools, prompts, resources.

    Raises:
        CapabilityNotSupported: The server did not declare that it tells of such changes.
    """
    wanted = {client.called(f"notifications/{kind}/list_changed") for kind in kinds} | ({UPDATED} if uris else set())
    announced = dragoman_spec.facts(client.revision).announced
    for method in sorted(wanted):
        if not client.declares(announced[method]):
            raise CapabilityNotSupported("listen", announced[method])
    if client.by_requests is None:
        return _listen_by_calls(client, uris, wanted)
    return _listen_by_stream(client, client.by_requests, uris, kinds)


@contextlib.asynccontextmanager
async def _listen_by_calls(client: Client, uris: tuple[str, ...], wanted: Collection[str]) -> AsyncIterator[Notices]:
    """Listen to a server with a handshake: it tells of lists unasked, and of resources when it was asked to.

    The first stream for a resource asks for it, and the last one takes that back.
    """

    def takes(body: Mapping[str, Any], subscription: object) -> bool:
        return body["method"] in wanted and _concerns(body, uris)

    notices, subscribed = client.announcements.read(takes), client.announcements.subscribed
    counted: list[str] = []
    try:
        for uri in uris:
            if not subscribed[uri]:
                await client.subscribe(uri)
            subscribed[uri] += 1
            counted.append(uri)
        yield notices
    finally:
        client.announcements.forget(notices)
        with contextlib.suppress(ConnectionClosed):
            for uri in counted:
                subscribed[uri] -= 1
                if not subscribed[uri]:
                    del subscribed[uri]
                    await client.unsubscribe(uri)


@contextlib.asynccontextmanager
async def _listen_by_stream(
    client: Client, era: ByRequests, uris: tuple[str, ...], kinds: Collection[str]
) -> AsyncIterator[Notices]:
    """Listen to a server without a handshake: a request that is not answered as long as the stream goes on.

    It has begun when the server says so.
    """
    told: dict[str, Any] = {f"{kind}ListChanged": True for kind in kinds}
    if uris:
        told["resourceSubscriptions"] = list(uris)
    number = client.session.new_id()
    begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def takes(body: Mapping[str, Any], subscription: object) -> bool:
        if subscription != number or body["method"] != "notifications/subscriptions/acknowledged":
            return subscription == number
        if not begun.done():
            begun.set_result(None)
        return False

    notices = client.announcements.read(takes)
    asking = asyncio.create_task(
        client.session.ask(client.called(LISTEN), era.stamp({"notifications": told}), number=number)
    )
    asking.add_done_callback(lambda _: notices.end())
    try:
        await asyncio.wait((asking, begun), timeout=client.timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if asking.done() and not begun.done():
            asking.result()
            raise ConnectionClosed("the stream ended before it began")
        if not begun.done():
            raise RequestTimeout(LISTEN, client.timeout_s or 0.0)
        yield notices
    finally:
        client.announcements.forget(notices)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


def _concerns(body: Mapping[str, Any], uris: tuple[str, ...]) -> bool:
    """Whether a notification is about a list, or about one of these resources or a part of it."""
    if body["method"] != UPDATED:
        return True
    changed = (body.get("params") or {}).get("uri")
    return isinstance(changed, str) and covers(uris, changed)
