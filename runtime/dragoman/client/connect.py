"""Opening a session with a server from Python.

Lives here: what a target may be, and the lifetime of client, proxy and server together. Must not: speak the protocol;
the proxy does. Called as `dragoman.connect`, whose type is `dragoman_spec.clients.Connect`: it knows which models each
revision has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import dragoman_spec
from dragoman.client.client import Client
from dragoman.client.handlers import Handlers
from dragoman.client.tasks import declare_extension
from dragoman.config.model import Configuration, ServerConfig
from dragoman.config.opening import opener_of
from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.commands import Outcome
from dragoman.core.negotiation import AUTO
from dragoman.errors import (
    ConnectionClosed,
    InitializationTimeout,
    McpError,
    RemoteProtocolError,
    UnsupportedRevision,
)
from dragoman.proxy import Proxy, ProxyConfig, know_nothing
from dragoman.transports.base import Transport

if TYPE_CHECKING:
    from dragoman.core.settings import ServerMemory
    from dragoman.middleware import HeaderMiddleware
    from dragoman.router.router import Router
    from dragoman.status import ProxyStatus
    from dragoman.trace.trace import Watcher

OneTarget = str | Sequence[str] | ServerConfig | Callable[[], Transport]
"""A URL, a command with its arguments, a server of a configuration file, or what opens a transport."""

Target = OneTarget | Configuration
"""The same, or all servers of a configuration file together."""

ANY: Final = "any"


class Connection:
    """The context of one session: opened on the way in, closed on the way out."""

    def __init__(
        self, client: Client, proxy: Proxy, pinned: str | None, init_timeout_s: float, router: Router | None = None
    ) -> None:
        self._client = client
        self._router = router
        self._proxy = proxy
        self._pinned = pinned
        self._init_timeout_s = init_timeout_s
        self._running: asyncio.Task[Any] | None = None

    def owner_of(self, kind: str, name: str) -> str | None:
        """Return which server of a configuration file has something; None where there is only one server.

        Args:
            kind: `tool`, `resource`, `template` or `prompt`.
            name: What it is listed as, or its URI.
        """
        return None if self._router is None else self._router.owner_of(kind, name)

    @property
    def waited_for(self) -> list[str]:
        """The servers of a whole configuration that have not answered what all of them were asked."""
        return [] if self._router is None else self._router.waited_for

    @property
    def out_of_use(self) -> list[str]:
        """Those that cannot be used."""
        return [] if self._router is None else [*self._router.status().problems]

    async def __aenter__(self) -> Client:
        """Open the session.

        Raises:
            RemoteProtocolError: The server does not speak the revision that it has to.
            McpError: The server refused.
            InitializationTimeout: It did not answer in time.
            ConnectionClosed: It could not be reached, or is gone.
        """
        self._client.session.is_over = lambda: self._proxy.is_over
        self._client.session.silent = lambda: self.waited_for
        self._running = asyncio.create_task(self._proxy.run())
        try:
            await self._open()
        except BaseException as error:
            await self._stop("the session could not be opened")
            self._raise_timeout(error)
            raise
        return self._client

    def _raise_timeout(self, error: BaseException) -> None:
        """Raise what it means, in either era, that the proxy gave up the handshake."""
        assert self._running is not None
        if self._running.cancelled() or self._running.exception() is not None:
            return
        if self._running.result().outcome is Outcome.INITIALIZATION_TIMED_OUT:
            data = getattr(error, "data", None) or {}
            waiting_for = data.get("waitingFor", "the server's first answer")
            raise InitializationTimeout(waiting_for, self._init_timeout_s) from error

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it: what was asked is still answered, unless an exception is on its way."""
        if error is not None:
            await self._stop("the program has failed")
            return
        self._client.session.transport.end("the program has closed the client")
        assert self._running is not None
        try:
            await asyncio.shield(self._running)
        except asyncio.CancelledError:
            await self._stop("the program was stopped")
            raise

    async def _open(self) -> None:
        try:
            await self._client.open()
        except McpError as error:
            if self._pinned is not None and isinstance(error.data, dict) and "supported" in error.data:
                raise RemoteProtocolError(error.code, error.message, error.data) from error
            raise
        if self._router is not None:
            _check_usable(self._router.status())
        spoken = self._proxy.server_revision
        assert spoken is not None
        if self._pinned is not None and spoken != self._pinned:
            data = {"supported": [spoken], "requested": self._pinned}
            raise RemoteProtocolError(INVALID_PARAMS, f"expected revision {self._pinned}, found {spoken}", data)
        self._client.begin(spoken)

    async def _stop(self, reason: str) -> None:
        self._proxy.stop(reason)
        assert self._running is not None
        await asyncio.wait([self._running])


def _check_usable(status: ProxyStatus) -> None:
    """Make sure that at least one of several servers can be used.

    Raises:
        ConnectionClosed: None can.
    """
    if not status.ready:
        told = "; ".join(f"{name}: {reason}" for name, reason in status.problems.items())
        raise ConnectionClosed(f"none of the servers can be used ({told})")


def connect(
    target: Target,
    revision: str = ANY,
    *,
    policy: Literal["pinned", "translate"] = "pinned",
    sampling: Callable[[Any], Awaitable[Any]] | None = None,
    elicitation: Callable[[Any], Awaitable[Any]] | None = None,
    roots: Callable[[], Awaitable[Any]] | None = None,
    capabilities: Mapping[str, Any] | None = None,
    on_notification: Callable[[Any], Any] | None = None,
    timeout_s: float | None = None,
    headers: Mapping[str, str] | HeaderMiddleware | None = None,
    ca_file: str | None = None,
    client_cert: str | None = None,
    client_key: str | None = None,
    proxy: str | None = None,
    init_timeout_s: float = 60.0,
    reconnects: int = 0,
    tasks: bool = False,
    know: Callable[[ServerConfig | None], ServerMemory | None] = know_nothing,
    open_server: Callable[[ServerConfig], Callable[[], Transport]] = opener_of,
    trace: Watcher | None = None,
) -> Connection:
    """Open a session with a server, as a context.

    Args:
        target: A URL (http, https, ws, wss), a command with its arguments, a server of a configuration file, a whole
            configuration, whose servers are one then, or what opens a transport.
        revision: Whose models go in and come out; `any` for the newest.
        policy: What becomes of a server that does not speak that revision: `pinned` makes it an error, `translate`
            lets the proxy translate. A server of `any` revision is always translated, and so are those of a whole
            configuration.
        sampling: Answers the server's requests for a completion of a language model.
        elicitation: Answers its questions to a person.
        roots: Answers which folders it may use.
        capabilities: What else to declare: each entry stands in for what the handler's presence declares.
        on_notification: Called with each notification of the server; what it returns is awaited if it can be.
        timeout_s: How long a request may go without an answer or progress, in seconds; None for no limit.
        headers: Sent along with each request to a URL; a function is asked for them before each.
        ca_file: Who signs the certificate of a URL, as PEM; by default who the system trusts.
        client_cert: Our own certificate for a URL, as PEM.
        client_key: Its key, if that is in a file of its own.
        proxy: The URL of an HTTP proxy on the way to a URL, or `none`; by default what `HTTPS_PROXY` and the like say.
        init_timeout_s: How long each half of the handshake may take.
        reconnects: How often in a row a server that is lost is started again, or connected to again, after pauses that
            grow. Requests that it had fail; later ones wait for it.
        tasks: Whether a server may make tasks of calls, by the extension of the revisions without a handshake.
        know: Gives what is remembered of each server, or of the only one (None), as `dragoman.host.known` keeps it.
        open_server: Gives what opens a transport to a server of a whole configuration.
        trace: Told what crosses, before and after it is translated, such as a `dragoman.trace.trace.Trace`.

    Raises:
        UnsupportedRevision: There is no such revision.
        LocalProtocolError: There is a handler that the revision has no use for.
        ValueError: The target is not a URL that names a server.
    """
    spoken, config = _configure(target, revision, policy, init_timeout_s, reconnects, trace)
    client = _make_client(spoken, (sampling, elicitation, roots), capabilities, tasks, timeout_s, on_notification)
    network = {"ca_file": ca_file, "client_cert": client_cert, "client_key": client_key, "proxy": proxy}
    return _connect(target, client, config, know, open_server, headers or {}, network)


def _configure(
    target: Target, revision: str, policy: str, init_timeout_s: float, reconnects: int, trace: Watcher | None
) -> tuple[str, ProxyConfig]:
    """Return the revision whose models go in and come out, and how the proxy within a client works."""
    known = dragoman_spec.REVISIONS
    spoken = known[-1] if revision == ANY else revision
    if spoken not in known:
        raise UnsupportedRevision(revision, known)
    is_pinned = revision != ANY and policy == "pinned" and not isinstance(target, Configuration)
    return spoken, ProxyConfig(
        client_revision=spoken if spoken in dragoman_spec.HANDSHAKE_REVISIONS else AUTO,
        server_revision=spoken if is_pinned else AUTO,
        retry_older=not is_pinned,
        init_timeout_s=init_timeout_s,
        names_server=True,
        restarts=reconnects,
        trace=trace,
    )


def _make_client(
    spoken: str,
    answers: tuple[Callable[..., Awaitable[Any]] | None, ...],
    capabilities: Mapping[str, Any] | None,
    tasks: bool,
    timeout_s: float | None,
    on_notification: Callable[[Any], Any] | None,
) -> Client:
    handlers = Handlers(spoken, dict(zip(("sampling", "elicitation", "roots"), answers, strict=True)))
    declared = declare_extension(handlers.declare(capabilities)) if tasks else handlers.declare(capabilities)
    identity = {"name": "dragoman", "version": version("dragoman")}
    return Client(spoken, handlers, identity, declared, timeout_s, on_notification)


def _connect(
    target: Target,
    client: Client,
    config: ProxyConfig,
    know: Callable[[ServerConfig | None], ServerMemory | None],
    open_server: Callable[[ServerConfig], Callable[[], Transport]],
    headers: Mapping[str, str] | HeaderMiddleware,
    network: Mapping[str, str | None],
) -> Connection:
    """Put a proxy between a client and its target."""
    transport = client.session.transport
    if not isinstance(target, Configuration):
        opener = open_target(target, headers, **network)
        config = replace(config, known=know(None), server_name=target.name if isinstance(target, ServerConfig) else "")
        pinned = None if config.server_revision == AUTO else config.server_revision
        return Connection(client, Proxy(config, transport, opener), pinned, config.init_timeout_s)
    from dragoman.router.router import Router, before_router

    router = Router(target, config, open_server, know)
    before = Proxy(before_router(config), transport, router.connect)
    return Connection(client, before, None, config.init_timeout_s, router)


def open_target(
    target: OneTarget, headers: Mapping[str, str] | HeaderMiddleware, **network: str | None
) -> Callable[[], Transport]:
    """Return what opens a transport to a target.

    Args:
        target: As for `connect`.
        headers: As for `connect`.
        network: What else `connect` is told of a URL, by the names that `UpstreamConfig` has for it.

    Raises:
        ValueError: It is not a URL that names a server, or there is no command.
    """
    if isinstance(target, str):
        from dragoman.transports.upstream.config import UpstreamConfig, check_url
        from dragoman.transports.upstream.connect import open_upstream

        config = replace(UpstreamConfig(check_url(target)), **cast(Any, network))
        if callable(headers):
            config = replace(config, header_middleware=(headers,))
        else:
            config = replace(config, headers=tuple(headers.items()))
        return lambda: open_upstream(config)
    if isinstance(target, ServerConfig):
        return opener_of(target)
    if callable(target):
        return target
    from dragoman.transports.spawn import spawn
    from dragoman.transports.stdio import ChildTransport

    command = list(target)
    if not command:
        raise ValueError("expected a command, found an empty list")
    return lambda: ChildTransport(spawn(command))
