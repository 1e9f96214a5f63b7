"""Streams of what changes at a server: `async with client.listen(...) as changes`, in each era.

Lives here: which notifications belong to a stream, and how the server is told to send them. Must not: read frames
(`client`), or keep more than `notices` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import dragoman_spec
from dragoman.client.notices import Notices
from dragoman.core.methods import LISTEN, UPDATED
from dragoman.errors import CapabilityNotSupported, ConnectionClosed, RequestTimeout

if TYPE_CHECKING:
    from dragoman.client.client import Client
    from dragoman.client.eras import ByRequests

KINDS: Final = ("tools", "prompts", "resources")


class Listening:
    """The context of one stream.

    Args:
        client: Whose.
        uris: The resources whose changes are wanted.
        kinds: The lists whose changes are wanted: tools, prompts, resources.

    Raises:
        CapabilityNotSupported: The server did not declare that it tells of such changes.
    """

    def __init__(self, client: Client, uris: tuple[str, ...], kinds: frozenset[str]) -> None:
        self.notices = Notices(client.announcements.discard)
        self.uris = uris
        self._client = client
        self._kinds = kinds
        self._entered: ByCalls | ByStream | None = None
        wanted = {f"notifications/{kind}/list_changed" for kind in kinds} | ({UPDATED} if uris else set())
        announced = dragoman_spec.facts(client.revision).announced
        for method in sorted(wanted):
            if not client.declares(announced[method]):
                raise CapabilityNotSupported("listen", announced[method])
        self.methods = frozenset(wanted)

    async def __aenter__(self) -> Notices:
        """Begin to listen: what changes from here on is told."""
        by_requests = self._client.by_requests
        self._entered = (
            ByCalls(self._client, self) if by_requests is None else ByStream(self._client, self, by_requests)
        )
        await self._entered.begin()
        return self.notices

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        self.notices.end()
        if self._entered is not None:
            await self._entered.end()

    @property
    def kinds(self) -> frozenset[str]:
        """The lists whose changes are wanted."""
        return self._kinds


class ByCalls:
    """Listens to a server with a handshake: it tells of lists unasked, and of resources when it was asked to."""

    def __init__(self, client: Client, listening: Listening) -> None:
        self._client = client
        self._listening = listening
        self._subscribed: list[str] = []
        self._entry = listening.methods, listening.uris, listening.notices

    async def begin(self) -> None:
        """Ask for what has to be asked for; the first stream for a resource does."""
        streams = self._client.announcements.streams
        streams.by_calls.append(self._entry)
        try:
            for uri in self._listening.uris:
                if not streams.subscribed[uri]:
                    await self._client.subscribe(uri)
                streams.subscribed[uri] += 1
                self._subscribed.append(uri)
        except BaseException:
            await self.end()
            raise

    async def end(self) -> None:
        """Take it back; the last stream for a resource does."""
        streams = self._client.announcements.streams
        if self._entry in streams.by_calls:
            streams.by_calls.remove(self._entry)
        subscribed, self._subscribed = self._subscribed, []
        for uri in subscribed:
            streams.subscribed[uri] -= 1
            if not streams.subscribed[uri]:
                del streams.subscribed[uri]
                try:
                    await self._client.unsubscribe(uri)
                except ConnectionClosed:
                    return


class ByStream:
    """Listens to a server without a handshake: a request that is not answered as long as the stream goes on."""

    def __init__(self, client: Client, listening: Listening, era: ByRequests) -> None:
        self.listening = listening
        self._client = client
        self._era = era
        self._id = client.session.new_id()
        self._acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asking: asyncio.Task[Any] | None = None

    async def begin(self) -> None:
        """Ask for the stream, and wait until the server says that it has begun."""
        told: dict[str, Any] = {f"{kind}ListChanged": True for kind in KINDS if kind in self.listening.kinds}
        if self.listening.uris:
            told["resourceSubscriptions"] = list(self.listening.uris)
        self._client.announcements.streams.by_id[self._id] = self.take, self.listening.notices
        params = self._era.stamp({"notifications": told})
        self._asking = asyncio.create_task(self._client.session.ask(LISTEN, params, number=self._id))
        self._asking.add_done_callback(self._ended)
        timeout_s = self._client.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self._acknowledged
        except TimeoutError:
            await self.end()
            raise RequestTimeout(LISTEN, timeout_s or 0.0) from None
        except BaseException:
            await self.end()
            raise

    def take(self, body: Mapping[str, Any], notice: Any) -> None:
        """Take what came on the stream."""
        if body["method"] == "notifications/subscriptions/acknowledged":
            if not self._acknowledged.done():
                self._acknowledged.set_result(None)
        else:
            self.listening.notices.put(notice)

    async def end(self) -> None:
        """Cancel the request."""
        self._client.announcements.streams.by_id.pop(self._id, None)
        if self._asking is not None and not self._asking.done():
            self._asking.cancel()
            await asyncio.wait([self._asking])

    def _ended(self, asking: asyncio.Task[Any]) -> None:
        self.listening.notices.end()
        error = None if asking.cancelled() else asking.exception()
        if not self._acknowledged.done():
            self._acknowledged.set_exception(error or ConnectionClosed("the stream ended before it began"))
            self._acknowledged.exception()  # it may be that nobody waits any more
