"""The ASGI application: one front for every HTTP transport, to be run by itself or mounted in another application.

Lives here: finding the part that serves a request, once it has been let in. Must not: import a server. Called by
`serve`, or by whatever ASGI server an embedder has:

    front = HttpFront(lambda transport, caller: Proxy(ProxyConfig(), transport, connect))

Sessions outlive requests: whoever mounts it calls `await front.close()` when the application ends; an ASGI server that
runs it as its main application does so by the lifespan protocol.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from dragoman.core.label import LABEL
from dragoman.transports.base import Transport
from dragoman.transports.http.config import Admission, FrontConfig
from dragoman.transports.http.exchange import (
    HANDED_BACK,
    HOLD,
    RELAYED,
    RETRY_AFTER,
    Disconnected,
    HttpRequest,
    Message,
    Receive,
    RequestRefused,
    Routine,
    Scope,
    Send,
    Waits,
    Wire,
    read_headers,
)
from dragoman.transports.http.health import HEALTH, READY, answer_health
from dragoman.transports.http.legacy import LegacyFront
from dragoman.transports.http.pages import Pages, serve_page
from dragoman.transports.http.readiness import Readiness
from dragoman.transports.http.refusals import Refusals, shorten
from dragoman.transports.http.resource import METADATA, find_path
from dragoman.transports.http.security import Doorkeeper
from dragoman.transports.http.sessions import NO_SESSION, Caller, Runner, Sessions
from dragoman.transports.http.site import Budget, Hold
from dragoman.transports.http.streamable import StreamableFront
from dragoman.transports.http.websocket import WebSocketFront, refuse

if TYPE_CHECKING:
    from dragoman.status import StatusBoard

logger = logging.getLogger("dragoman.http")

_CLIENT_LEFT: Final = 499
"""What nobody reads any more."""


class HttpFront:
    """An ASGI application that serves MCP.

    Args:
        serve: Makes what runs a session, from its transport and who opened it: a `Proxy`, say.
        config: What was decided.
        tidy: Called a few seconds after sessions have ended, or many connections where `serve` runs it, for whoever
            wants to give memory back then.
        board: The state of the servers, told at `/healthz` and `/readyz`; None: there are no such paths.
        pages: For people in browsers; None: there are none.
    """

    def __init__(
        self,
        serve: Callable[[Transport, Caller], Runner],
        config: FrontConfig | None = None,
        tidy: Callable[[], None] | None = None,
        board: StatusBoard | None = None,
        pages: Pages | None = None,
    ) -> None:
        self.board = board
        self._pages = pages
        self.config = config or FrontConfig()
        self.sessions = Sessions(self.config, serve, tidy)
        self.budget = Budget(self.config.limits.memory_bytes, self.config.limits.body_bytes)
        self.refusals = Refusals()
        if board is not None:
            board.turned_away = self.refusals.by_option
        self._readiness = None if board is None else Readiness(serve, board)
        self.gate = Doorkeeper(self.config.admission, self.config.paths.mcp)
        self.streamable = StreamableFront(self.config, self.sessions)
        self._legacy = LegacyFront(self.config, self.sessions)
        self._websocket = WebSocketFront(self.config, self.sessions)
        self._by_server: dict[str, StreamableFront] = {}
        self._services = self._list_services()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, as ASGI 3 has it."""
        match scope["type"]:
            case "http":
                LABEL.set("")  # a task of the request before, on the same connection, may have begun this one
                request = HttpRequest(Wire(scope, receive, send), self._find_hold(scope))
                request.routine = self._serve(request)
                await self.finish(request)
            case "websocket":
                await self._serve_websocket(scope, receive, send)
            case "lifespan":
                await self._live(receive, send)

    def admit(self, admission: Admission) -> int:
        """Let in whom this says, from now on; what was opened with a secret that is gone ends.

        Returns:
            How many principals had one.
        """
        before, self.gate = self.gate, Doorkeeper(admission, self.config.paths.mcp)
        revoked = before.find_revoked(self.gate)
        self.sessions.revoke(revoked)
        return len(revoked)

    def offer(self, servers: Collection[str]) -> None:
        """Serve each of these at a path of its own, beside all of them together; what is at another's path ends."""
        own = self._list_services()
        gone = self._by_server.keys() - set(servers)
        self._by_server = {
            name: self._by_server.get(name) or StreamableFront(self.config, self.sessions, name) for name in servers
        }
        by_path = {self.path_of(name): front.serve for name, front in self._by_server.items()}
        for path in by_path.keys() & own.keys():
            logger.warning("the path %s has another meaning here: the server of this name has no path of its own", path)
        self._services = {**by_path, **own}
        self.sessions.stop_those_of(gone)

    def path_of(self, server: str) -> str:
        """Return the path of a server that has one of its own."""
        return f"/{server}{self.config.paths.mcp}"

    def find_streamable(self, request: HttpRequest) -> StreamableFront:
        """Return what serves the sessions of the path of a request."""
        path = find_path(request.scope)
        return next((one for name, one in self._by_server.items() if path == self.path_of(name)), self.streamable)

    def give_notice(self) -> None:
        """Say at `/readyz` that nobody new should come; whoever comes is served."""
        if self.board is not None:
            self.board.stop()

    async def drain(self, reason: str) -> None:
        """Take no new sessions, and wait until those that are open have ended with what they have under way."""
        self.give_notice()
        await self.sessions.drain(reason)

    async def close(self, reason: str = "the server is stopping") -> None:
        """End every session, and wait until everything of theirs is gone."""
        self.give_notice()
        await self.sessions.close(reason)
        await self._websocket.close()
        self.refusals.close()

    def serve_at_once(self, request: HttpRequest) -> None:
        """Serve a request, at once as far as that goes."""
        request.begin(self._serve(request))

    async def finish(self, request: HttpRequest, waits: Waits = None) -> None:
        """Serve a request to its end, and say so if it is refused.

        Args:
            request: It, with its routine.
            waits: What that has yielded last.
        """
        answer = None
        try:
            await request.run(waits)
        except RequestRefused as refused:
            self._note(request, refused)
            answer = request.refuse(self._hand_back(request, refused))
        except Disconnected:
            logger.debug("a client left before it was answered")
            answer = request.reply(_CLIENT_LEFT)  # middleware around us may insist on one
        finally:
            request.hold.release()
            request.wire.leave()
        if answer is not None:
            with contextlib.suppress(OSError):
                await answer

    def _hand_back(self, request: HttpRequest, refused: RequestRefused) -> RequestRefused:
        """Tell an instance that has handed a request on that it is to serve it itself, since this one is ending."""
        is_relayed = RELAYED in request.scope.get("extensions", {})
        if is_relayed and self.sessions.closing and refused.reason == NO_SESSION:
            return RequestRefused(421, "this instance of the proxy is ending", (HANDED_BACK, b"1"))
        if self.sessions.relay is not None and self.sessions.closing and refused.reason == NO_SESSION:
            return RequestRefused(503, "the server is stopping", RETRY_AFTER)  # after 404 a client would give it up
        return refused

    def _serve(self, request: HttpRequest) -> Routine:
        path = find_path(request.scope)
        service = self._services.get(path)
        if self._pages is not None and service is None and path in self._pages.paths:
            request.headers = read_headers(request.scope, self.config.limits)
            yield from serve_page(request, self._pages, self.gate)
            return
        is_check = self.board is not None and service is None and path in (HEALTH, READY)
        if self._let_in(request, is_check):
            yield request.reply(204, b"", *self.gate.answer_preflight(request.headers))
            return
        if is_check:
            assert self.board is not None
            readiness = None if self.sessions.closing else self._readiness
            yield from answer_health(request, path, self.board, readiness)
            return
        described = path.removeprefix(METADATA)
        resource = self.gate.resource
        if resource is not None and described != path and (not described or described in self._services):
            yield from resource.serve_metadata(request, described)
            return
        yield from self._identify(request)
        if service is None:
            raise RequestRefused(404, self._point_the_way(request.scope))
        relay = self.sessions.relay
        if relay is not None and (session := relay.find_session(request)):
            is_served = yield relay.serve_session(request, session)
            if is_served:
                return
        yield from service(request)

    def _let_in(self, request: HttpRequest, is_check: bool = False) -> bool:
        """Check whom it is for and which page sends it; true for a question whether another request may be sent.

        Raises:
            RequestRefused: It is not let in.
        """
        scope = request.scope
        headers = request.headers = read_headers(scope, self.config.limits)
        host = self.gate.check_host(headers, own_address(scope), is_check)
        request.gate = self.gate if host else None
        request.extra = self.gate.check_origin(headers, scope["scheme"], host)
        return request.method == "OPTIONS" and b"access-control-request-method" in headers

    def _identify(self, request: HttpRequest) -> Routine:
        """Find out who it is, and what else is known of it.

        Raises:
            RequestRefused: It is nobody who may come in.
        """
        yield from self.gate.identify(request)
        request.address = None if self._pages is None else self._pages.address
        if request.principal:
            request.hold.belong(f"principal {request.principal}")  # no address has such a name

    def _find_hold(self, scope: Scope) -> Hold:
        """Return what counts the bytes of a request: its connection's, or one of our own where the server has none."""
        hold: Hold | None = scope.get("extensions", {}).get(HOLD)
        if hold is None:
            client = scope.get("client")
            hold = Hold(self.budget, client[0] if client else "")
        return hold

    def _list_services(self) -> dict[str, Callable[[HttpRequest], Routine]]:
        """Say what serves which path; where two are the same, the one listed last."""
        paths = self.config.paths
        services: dict[str, Callable[[HttpRequest], Routine]] = {}
        if paths.sse is not None:
            services[paths.messages] = self._legacy.serve_post
            services[paths.sse] = self._legacy.serve_stream
        services[paths.mcp] = self.streamable.serve
        return services

    def _point_the_way(self, scope: Scope) -> str:
        """Say to somebody who is let in, but is lost, where to go."""
        paths = self.config.paths
        known = {"Streamable HTTP": paths.mcp, "HTTP+SSE": paths.sse, "WebSocket": paths.websocket}
        root = scope.get("root_path", "")
        listed = ", ".join(f"{what} at {root}{path}" for what, path in known.items() if path is not None)
        return f"there is nothing at this path; MCP is served over {listed}"

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HttpRequest(Wire(scope, receive, send), self._find_hold(scope))
        try:
            self._let_in(request)
            request.routine = self._identify(request)
            await request.run()
            if find_path(scope) != self.config.paths.websocket:
                raise RequestRefused(404, self._point_the_way(scope))
            own = self._addressed(send, request.principal)
            await self._websocket.serve(request, receive, own, lambda: self._is_let_in(request))
        except RequestRefused as refused:
            self._note(request, refused)
            await refuse(scope, receive, send, refused)

    async def _is_let_in(self, request: HttpRequest) -> bool:
        """Whether whoever has sent a request may still come in; who could tell may be away just now."""
        request.routine = self._identify(request)
        try:
            await request.run()
        except RequestRefused as refused:
            return refused.status == HTTPStatus.SERVICE_UNAVAILABLE
        return True

    def _addressed(self, send: Send, principal: str) -> Send:
        """Return the same with what goes to a client over WebSocket as `HttpRequest.address` leaves it."""
        pages = self._pages
        if pages is None:
            return send

        async def send_own(message: Message) -> None:
            if text := message.get("text"):
                message = {**message, "text": pages.address(text.encode(), principal).decode()}
            await send(message)

        return send_own

    def _note(self, request: HttpRequest, refused: RequestRefused) -> None:
        """Log a refusal: so that it is seen, where the way that we were started may be the reason."""
        scope = request.scope
        if refused.advice or refused.option:
            client = scope.get("client")
            line = (
                f"{request.method} {shorten(scope['path'])} from {client[0] if client else 'somebody'} is refused with"
            )
            line = f"{line} {refused.status}: {refused.advice or refused.reason}"
            self.refusals.note(f"refused with {refused.status}", line, refused.option)
        else:
            logger.info("%s %s is refused with %d: %s", request.method, scope["path"], refused.status, refused.reason)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})


def own_address(scope: Scope) -> str | None:
    """Return the address of this machine that a connection came to; None where the server does not say."""
    server = scope.get("server")
    return server[0] if server else None
