"""A server made of Python functions.

Lives here: the way in for programs: handlers, notifications, and where clients come from. Must not: speak the protocol
(`session`), or have transports of its own: every client comes through `dragoman.proxy`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

from dragoman.core.commands import Finish
from dragoman.server.context import Context
from dragoman.server.definition import RequestHandler, ServerDefinition
from dragoman.server.session import ServerSession
from dragoman.transports.base import Transport
from dragoman.transports.memory import connect_pair
from dragoman_spec import HANDSHAKE_REVISIONS, REVISIONS
from dragoman_spec.errors import UnsupportedRevision

if TYPE_CHECKING:
    from dragoman.proxy import ProxyConfig
    from dragoman.transports.http.app import HttpFront
    from dragoman.transports.http.config import FrontConfig

_INTERRUPTED: Final = 130
"""The exit code of a program that Ctrl-C ended, as shells give it."""

P = TypeVar("P", covariant=True)
R = TypeVar("R")
H = TypeVar("H", bound=Callable[..., Any])


class MethodModel(Protocol[P]):
    """The model of a request or notification: `v.CallToolRequest`."""

    @property
    def params(self) -> P:
        """Its params."""


class Server:
    """A server.

    Args:
        name: Of it.
        version: Of it.
        revision: Whose models its handlers take and give. Clients of every revision are served; see `serve`.
        about: What else it says of itself, with the names of the protocol: `{"title": …, "icons": […]}`.
        instructions: For whoever uses it.
        handlers: By method; `on` adds more.
        notifies: The notifications that it sends on its own account, `notifications/tools/list_changed`. What they need
            is declared: `notifications/message` means logging, `notifications/resources/updated` subscriptions.
        declares: Capabilities beside those that follow from handlers and `notifies`, or members of them.
        parked_s: How long a question to a client waits, in a revision without server requests, in seconds.
        plain: Whether handlers take params and give results as plain JSON, which nobody checks: no model is loaded, so
            the server starts in a tenth of a second less, and it can break rules on purpose.

    Raises:
        UnsupportedRevision: There is no such revision.
        ValueError: There is a handler for what the revision has not, or a notification.
    """

    def __init__(
        self,
        name: str,
        version: str,
        *,
        revision: str = HANDSHAKE_REVISIONS[-1],
        about: Mapping[str, Any] | None = None,
        instructions: str | None = None,
        handlers: Mapping[str, RequestHandler] | None = None,
        notifies: Collection[str] = (),
        declares: Mapping[str, Any] | None = None,
        parked_s: float = 600.0,
        plain: bool = False,
    ) -> None:
        if revision not in REVISIONS:
            raise UnsupportedRevision(revision, REVISIONS)
        said = name, version, revision, about or {}, instructions
        self._definition = ServerDefinition(*said, notifies, declares or {}, parked_s, plain)
        for method in notifies:
            entry = self._definition.methods.get(method)
            if entry is None or entry.kind != "notification" or "server" not in entry.sender:
                raise ValueError(f"{revision} has no notification {method!r} of a server")
        for method, handler in (handlers or {}).items():
            self._definition.add(method, handler)
        self._sessions: set[ServerSession] = set()

    @property
    def revision(self) -> str:
        """Whose models its handlers take and give."""
        return self._definition.revision

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What it declares, as it follows from its handlers and notifications."""
        return self._definition.capabilities

    @overload
    def on(self, request: type[MethodModel[P]]) -> Callable[[Callable[[P, Context], R]], Callable[[P, Context], R]]: ...

    @overload
    def on(self, request: str) -> Callable[[H], H]: ...

    def on(self, request: Any) -> Any:
        """Let a function answer a request, or take a notification, as a decorator.

        The function takes the params as a model (None where a request has none) and a `Context`. It gives the result as
        a model or a dict; it may be a coroutine function. `McpError` answers with an error.

        Args:
            request: Its model in the server's revision, `v.CallToolRequest`, or its method.

        Raises:
            ValueError: The revision has no such method that a client sends, or it has a handler already.
        """
        method = request if isinstance(request, str) else request.model_fields["method"].default
        if not isinstance(method, str):
            method = request.model_fields["method"].annotation.__args__[0]

        def keep(handler: H) -> H:
            self._definition.add(method, handler)
            return handler

        return keep

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification to every client that wants it.

        Args:
            method: One of `notifies`.
            params: Of it, `{"uri": …}`.

        Raises:
            ValueError: It is not one of `notifies`.
        """
        self._definition.check_notice(method)
        for session in list(self._sessions):
            session.announce(method, dict(params or {}))

    # Where clients come from

    def connect(self) -> Transport:
        """Open a session: give the transport to this server, for a proxy, a router or a check; no port is needed."""
        near, far = connect_pair("the proxy", self._definition.name)
        self._open(far, self._sessions.discard)
        return near

    async def serve_directly(self, client: Transport) -> None:
        """Serve one client of the server's own revision to the end of its session, with no proxy in between.

        Nothing is translated: a client of another revision finds out that the server has not its revision.

        Args:
            client: The transport to it.
        """
        is_over = asyncio.Event()

        def end(session: ServerSession) -> None:
            self._sessions.discard(session)
            is_over.set()

        self._open(client, end)
        try:
            await is_over.wait()
        finally:
            await client.close()

    def _open(self, client: Transport, on_end: Callable[[ServerSession], None]) -> None:
        session = ServerSession(self._definition, client, on_end)
        self._sessions.add(session)
        client.start(session)

    async def serve(self, front: Transport, config: ProxyConfig | None = None) -> Finish:
        """Serve one client, of any revision, to the end of its session.

        Args:
            front: The transport to it.
            config: What the proxy between it and the server does; None for what `configure` says.
        """
        from dragoman.proxy import Proxy

        return await Proxy(self.configure(config), front, self.connect).run()

    def configure(self, config: ProxyConfig | None = None) -> ProxyConfig:
        """Return the configuration of a proxy that knows which revision the server speaks.

        Args:
            config: What else the proxy does. None: what other revisions cannot carry is counted and not logged, since
                it follows from the revision that the server was given, for every client alike.
        """
        import dataclasses

        from dragoman.core.translate import OnLoss
        from dragoman.proxy import ProxyConfig

        return dataclasses.replace(config or ProxyConfig(on_loss=OnLoss.SILENT), server_revision=self.revision)

    def run(self, config: ProxyConfig | None = None) -> None:
        """Serve the client at our stdin and stdout, to the end of its session.

        Args:
            config: As for `serve`.

        Raises:
            SystemExit: The user interrupted it.
        """
        from dragoman.transports.stdio import take_standard_streams

        async def work() -> None:
            await self.serve(take_standard_streams(), config)

        try:
            asyncio.run(work())
        except KeyboardInterrupt:
            raise SystemExit(_INTERRUPTED) from None

    def app(self, front: FrontConfig | None = None, config: ProxyConfig | None = None) -> HttpFront:
        """Return an ASGI application that serves clients of any revision, over every transport there is over HTTP.

        Args:
            front: What is decided about HTTP.
            config: As for `serve`.
        """
        from dragoman.proxy import Proxy
        from dragoman.transports.http.app import HttpFront

        chosen = self.configure(config)
        return HttpFront(lambda transport, caller: Proxy(chosen, transport, self.connect), front)
