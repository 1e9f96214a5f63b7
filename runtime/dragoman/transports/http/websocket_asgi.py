"""A WebSocket connection that our own server has taken, for an ASGI application.

Lives here: the answer to its opening, the application's messages, and what a client may keep of our memory and time.
Must not: know frames (`transports.websocket`) or how the request came. `websockets` takes as long to import as the rest
of the server: this is imported at the first connection.

Source: RFC 6455, 4.2; ASGI, WebSocket Connection Scope and WebSocket Denial Response.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from websockets.datastructures import Headers
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import SERVER
from websockets.server import ServerProtocol

from dragoman.errors import TransportError
from dragoman.transports.countdown import Countdown
from dragoman.transports.defects import describe
from dragoman.transports.http.config import FrontConfig
from dragoman.transports.http.exchange import ABORT, GONE, HOLD, Message, Scope
from dragoman.transports.http.refusals import Refusals
from dragoman.transports.http.site import FREE_BYTES, MAX_MEMORY, Excess, Hold, Site
from dragoman.transports.http.turn import write_date
from dragoman.transports.websocket import WebSocketConnection
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.http")

_LAST_S: Final = 1.0
"""How long a client may take to answer our close frame when the server stops."""

_GOODBYE_S: Final = 10.0
"""How long it may take otherwise."""


@record
class WebSocketRequest:
    """A request that opens a WebSocket, read as a whole.

    Attributes:
        scope: As of a request of HTTP.
        target: What stands in its first line.
        transport: Of asyncio, which nobody else uses any more.
        hold: What its messages count towards until they are taken.
    """

    scope: Scope
    target: bytes
    transport: asyncio.Transport
    hold: Hold


def take_over(site: Site, opening: WebSocketRequest, ended: Callable[[], object]) -> None:
    """Serve a connection of a site whose first request opens a WebSocket; its end is told."""
    served = ServedWebSocket(opening, site.config, site.refusals)
    site.connections.add(served)

    def end(_: object) -> None:
        site.connections.discard(served)
        ended()

    site.run(served.run(site.app)).add_done_callback(end)


class ServedWebSocket:
    """One connection.

    Args:
        opening: How it came.
        config: With limits and patience.
        refusals: What is closed for what the client did is noted here.
    """

    def __init__(self, opening: WebSocketRequest, config: FrontConfig, refusals: Refusals) -> None:
        self.transport = opening.transport
        self._opening, self._refusals = opening, refusals
        headers = Headers(
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in opening.scope["headers"]]
        )
        self._offered = ",".join(headers.get_all("Sec-WebSocket-Protocol"))
        self._answer = ServerProtocol().accept(Request(opening.target.decode("latin-1"), headers))
        self._patience = patience = config.patience
        self._wire = WebSocketConnection(
            "the client", config.limits.body_bytes, SERVER, patience.keepalive_s, patience.stall_s
        )
        self._is_asked = self._is_open = False
        self._whole = 0
        self._deadline = Countdown()

    async def run(self, app: Any) -> None:
        """Serve it to its end."""
        self.transport.set_protocol(self._wire)
        self._wire.connection_made(self.transport)
        self._wire.hold_back()  # nothing may come before the opening is answered
        self._wire.on_bytes = self._weigh
        try:
            if self._answer.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
                # In a task that ends with the application, whoever waits for the end of the connection after it.
                await asyncio.ensure_future(app(self._write_scope(), self._receive, self._send))
            else:
                words = f"{self._answer.status_code} {self._answer.reason_phrase}"
                self._refusals.note(words, f"a WebSocket is refused with {words}: {self._answer.body.decode().strip()}")
                self._deny(self._answer)
        except OSError:
            logger.debug("a client left before it was answered")
        except Exception as error:  # a defect of ours
            logger.error("internal error: %s", describe(error))
            if self._is_open:
                self._wire.fail(CloseCode.INTERNAL_ERROR, "internal error")
            else:
                self._deny(
                    Response(500, "Internal Server Error", Headers({"Connection": "close", "Content-Length": "0"}))
                )
        finally:
            await self._end()

    def shutdown(self) -> None:
        """Close, and wait no longer for the client than it takes to answer."""
        if self._is_open:
            self._wire.say_goodbye(CloseCode.SERVICE_RESTART)
        asyncio.get_running_loop().call_later(_LAST_S, self.transport.abort)

    async def _receive(self) -> Message:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "websocket.connect"}
        try:
            message = await self._wire.receive()
        except TransportError as error:
            return {"type": "websocket.disconnect", "code": self._wire.close_code, "reason": error.reason}
        self._weigh()
        if message is None:
            return {"type": "websocket.receive", "bytes": b""}
        return {"type": "websocket.receive", "text": message.decode()}

    async def _send(self, message: Message) -> None:
        """Take a message of ASGI.

        Raises:
            OSError: The client has gone.
        """
        if self.transport.is_closing():
            raise ConnectionError("the client has gone")
        match message["type"]:
            case "websocket.accept":
                self._answer.headers["Sec-WebSocket-Protocol"] = message["subprotocol"]
                self.transport.write(self._answer.serialize())
                self._is_open = True
            case "websocket.send":
                self._wire.write(message["text"].encode())
                await self._wire.until_room()
            case "websocket.close":
                self._wire.say_goodbye(message["code"], message["reason"])
            case "websocket.http.response.start":
                status = HTTPStatus(message["status"])
                headers = Headers([(name.decode(), value.decode("latin-1")) for name, value in message["headers"]])
                headers.setdefault("Connection", "close")
                headers.setdefault("Date", write_date(int(time.time())).decode())
                self._answer = Response(status, status.phrase, headers)
            case "websocket.http.response.body":
                self._answer.body = message["body"]
                self._answer.headers["Content-Length"] = str(len(message["body"]))
                self._deny(self._answer)

    def _deny(self, answer: Response) -> None:
        """Answer with what opens nothing."""
        self.transport.write(answer.serialize())
        self._wire.fail(CloseCode.ABNORMAL_CLOSURE, "it is refused")  # which writes nothing

    async def _end(self) -> None:
        """Close the connection once the client has, or has had the time to."""
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self._wire.until_end()
            await self._wire.leave(self._patience.stall_s)
        except TimeoutError:
            self._wire.abort()
        finally:
            self._deadline.stop()
            self._opening.hold.release()

    def _weigh(self) -> None:
        """Count what nobody has taken yet, and let a long message take so much time."""
        unfinished = self._wire.unfinished_bytes
        held = unfinished + self._wire.waiting_bytes
        if held > FREE_BYTES or self._opening.hold.size:
            try:
                self._opening.hold.resize(held if held > FREE_BYTES else 0)
            except Excess as excess:
                self._fail(CloseCode.TRY_AGAIN_LATER, excess.reason, MAX_MEMORY)
        if unfinished <= FREE_BYTES or self._whole != self._wire.whole:
            self._deadline.stop()
        if unfinished > FREE_BYTES and not self._deadline.is_set:
            self._whole = self._wire.whole
            self._deadline.set(self._patience.body_s, self._run_out)

    def _run_out(self) -> None:
        if self._wire.held_back:  # it is we who do not read
            self._weigh()
        else:
            self._fail(CloseCode.POLICY_VIOLATION, f"a message did not come within {self._patience.body_s:g} s")

    def _fail(self, code: int, reason: str, option: str = "") -> None:
        """Close: the client has done what cannot be served."""
        self._refusals.note(f"WebSockets closed with {code}", f"a WebSocket is closed with {code}: {reason}", option)
        self._wire.fail(code, reason)

    def _write_scope(self) -> Scope:
        path, _, query = self._opening.target.partition(b"?")
        return {
            **self._opening.scope,
            "type": "websocket",
            "scheme": "wss" if self._opening.scope["scheme"] == "https" else "ws",
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "subprotocols": [name.strip() for name in self._offered.split(",")],
            "extensions": {
                "websocket.http.response": {},
                ABORT: self.transport.abort,
                GONE: self.transport.is_closing,
                HOLD: self._opening.hold,
            },
        }
