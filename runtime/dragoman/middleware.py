"""Middleware: your own code around each request and notification that crosses a proxy.

Lives here: what middleware is, and what it is given. Must not: run it (`dragoman.host.chains`). A proxy is given some
in its `ProxyConfig`; docs/middleware.md has examples.

    async def refuse_removal(call: Message, proceed: Proceed) -> Answer:
        if call.method == "tools/call" and call.params.get("name") == "remove":
            return Answer.fail(-32001, "nothing is removed here")
        return await proceed(call)

    config = ProxyConfig(middleware=(refuse_removal,))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from dragoman.core.commands import Side
from dragoman.core.envelope import Frame, decoded, error_frame, result_frame, rewrite
from dragoman.core.origin import INSUFFICIENT, NOWHERE, Origin
from dragoman.core.unchecked import find_object


class Direction(Enum):
    """Which way a request or notification goes."""

    TO_SERVER = "to server"
    TO_CLIENT = "to client"


class Message:
    """A request or notification on its way, as the peer that it goes to will see it.

    Args:
        frame: In the revision of that peer.
        side: Who sent it.
        session: The label of the session.
        sender_revision: What the sender speaks.
        revision: What the peer speaks that it goes to.
        principal: Who the client is.

    Attributes:
        session: Such as `session 3 of ada`; empty where the proxy has one session.
        principal: The name that goes with the client's token, such as `ada`; empty where everybody may come in.
        direction: Which way it goes.
        sender_revision: What the sender speaks; None where it is not known yet.
        revision: What the peer speaks that it goes to: `params` and the answer are in that revision.
    """

    __slots__ = ("_frame", "_side", "direction", "principal", "revision", "sender_revision", "session")

    def __init__(
        self,
        frame: Frame,
        side: Side,
        session: str,
        sender_revision: str | None,
        revision: str | None,
        principal: str = "",
    ) -> None:
        self._frame = frame
        self._side = side
        self.session = session
        self.direction = Direction.TO_SERVER if side is Side.CLIENT else Direction.TO_CLIENT
        self.sender_revision = sender_revision
        self.revision = revision
        self.principal = principal

    @property
    def method(self) -> str:
        """What it asks or tells."""
        return self._frame.method or ""

    @property
    def is_request(self) -> bool:
        """Whether somebody waits for an answer; not for that to a notification."""
        return self._frame.kind == "request"

    @property
    def frame(self) -> Frame:
        """The frame: bytes, unless somebody has looked into it."""
        return self._frame

    @property
    def origin(self) -> Origin:
        """Where a client's request comes from: scopes and claims of its token, and which trace it is of."""
        return self._frame.origin or NOWHERE

    def with_origin(self, origin: Origin) -> Message:
        """Return the same message with another origin."""
        frame = self._frame._replace(origin=origin)
        return Message(frame, self._side, self.session, self.sender_revision, self.revision, self.principal)

    @property
    def params(self) -> dict[str, Any]:
        """The params, decoded when they are first asked for; an empty object where there are none.

        They are to be read. To change them, make another message: `with_params`.

        Raises:
            ValueError: What was sent is not JSON.
        """
        self._frame = decoded(self._frame)
        return find_object(self._frame.body, "params")

    def with_params(self, params: dict[str, Any]) -> Message:
        """Return the same message with other params.

        Args:
            params: In the revision of the peer that it goes to.
        """
        frame = decoded(self._frame)
        changed = rewrite(frame, {**frame.body, "params": params})
        return Message(changed, self._side, self.session, self.sender_revision, self.revision, self.principal)


class Answer:
    """The answer to a request: a result, or an error. Make one with `succeed` or `fail`.

    Args:
        frame: In the revision of the peer that answers.
    """

    __slots__ = ("_frame",)

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @classmethod
    def succeed(cls, result: dict[str, Any]) -> Answer:
        """Make an answer with a result.

        Args:
            result: In the revision of the peer that the request went to.
        """
        return cls(result_frame(b"null", result))

    @classmethod
    def fail(
        cls, code: int, message: str, data: Any = None, *, retry_after_s: int | None = None, scopes: Iterable[str] = ()
    ) -> Answer:
        """Make an answer with a JSON-RPC error.

        Args:
            code: Of the error.
            message: For a person.
            data: Whatever else is to be said.
            retry_after_s: After how many seconds it is worth another try. Clients over HTTP then get the status 429
                and this as `Retry-After`, beside the error.
            scopes: What a token would have to be good for. Clients over HTTP then get the status 403, and a challenge
                with these scopes where their tokens are those of an authorization server.
        """
        said = {"retry-after": None if retry_after_s is None else str(retry_after_s), INSUFFICIENT: " ".join(scopes)}
        headers = tuple((name, value) for name, value in said.items() if value)
        return cls(error_frame(b"null", code, message, data)._replace(headers=headers))

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, decoded when it is first asked for; None for an error. It is to be read, not changed."""
        return self._member("result")

    @property
    def error(self) -> dict[str, Any] | None:
        """The error, with `code` and `message`; None for a result."""
        return self._member("error")

    def to_frame(self, key: bytes) -> Frame:
        """Return it as the answer to a request; the bytes that came stay where the id is theirs.

        Args:
            key: The id of the request, as canonical JSON.
        """
        if self._frame.key == key:
            return self._frame
        if self.error is not None:
            failed = error_frame(key, self.error["code"], self.error["message"], self.error.get("data"))
            return failed._replace(headers=self._frame.headers)
        return result_frame(key, self.result)

    def _member(self, name: str) -> dict[str, Any] | None:
        if self._frame.kind != name:
            return None
        self._frame = decoded(self._frame)
        member: dict[str, Any] = self._frame.body[name]
        return member


Proceed = Callable[[Message], Awaitable[Answer]]
"""Lets a request go on, to the next middleware and then to its peer, and gives the answer. May be called once."""

Middleware = Callable[[Message, Proceed], Awaitable[Answer]]
"""What is around a request: lets it proceed, or answers it."""

ProceedNotice = Callable[[Message], Awaitable[None]]
"""Lets a notification go on. May be called once."""

NoticeMiddleware = Callable[[Message, ProceedNotice], Awaitable[None]]
"""What is around a notification: lets it proceed, or drops it."""

HeaderMiddleware = Callable[[], Mapping[str, str]]
"""What gives headers for the next request over HTTP to the server, `initialize` and the stream of a session included.

It is called in the event loop for each of them, and must not take long. If it raises, nothing is sent: the request
fails, and the log has the words of the exception."""
