"""What can be decided about an HTTP front: paths, limits, patience, and whom to let in. Values only.

Read by every module of this package. What needs checking is checked by `security.Doorkeeper` and by the command line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from dragoman.transports.callers import Callers
from dragoman.transports.http.bearer import Guard
from dragoman_spec.record import record


@record
class Paths:
    """Where what is served, relative to where the application is mounted.

    Attributes:
        mcp: Streamable HTTP.
        sse: The stream of HTTP+SSE; None serves none.
        messages: Where HTTP+SSE clients post; told to them, so it matters to nobody.
        websocket: WebSocket; None serves none.
    """

    mcp: str = "/mcp"
    sse: str | None = "/sse"
    messages: str = "/message"
    websocket: str | None = "/ws"


@record
class Limits:
    """How much a client may take up; what goes beyond is refused with the status that says so.

    Attributes:
        body_bytes: The longest body of a POST, or WebSocket message.
        header_bytes: All headers of a request together.
        headers: How many headers a request may have.
        nesting: How deep arrays and objects may be nested in a body.
        memory_bytes: What all messages that have begun to come in, and are not handed on yet, may hold together, beyond
            the first 64 KiB of each; one client may hold half of it. One message of `body_bytes` always has room.
        sessions: How many sessions may be open at once, ending ones included.
        streams: How many requests of one session may be under way at once, GET streams included. Without a
            session, those of one principal, or of one connection where nobody has a name, and as many listens.
        connections: How many connections may be open at once, from accept on, TLS handshakes included.
        high_water_bytes: How much may wait for readers of one session before its server is held back.
        replay_bytes: How much of what was sent is kept for one session, in case a client resumes a stream.
        replay_events: How many events are kept of one stream.
    """

    body_bytes: int = 16 * 1024 * 1024
    header_bytes: int = 32 * 1024
    headers: int = 100
    nesting: int = 200
    memory_bytes: int = 256 * 1024 * 1024
    sessions: int = 100
    streams: int = 64
    connections: int = 2048
    high_water_bytes: int = 1024 * 1024
    replay_bytes: int = 1024 * 1024
    replay_events: int = 1000


@record
class Patience:
    """How long something may take, in seconds.

    Attributes:
        headers_s: The headers of a request, from its connection's opening, before TLS, or its first byte.
        body_s: The body of a request.
        stall_s: How long a stream's reader may take nothing before its connection is cut; the stream stays resumable.
        idle_s: How long a session may be without request and without connection before it ends.
        resume_s: How long a finished stream can still be resumed.
        stream_after_s: A request that is not answered by then is answered with a stream.
        keepalive_s: How often a quiet stream carries a comment, and a quiet WebSocket a ping.
        poll_s: A stream's connection is closed after this long, and the client is asked to come back for more, if
            its revision knows of that (2025-11-25); None keeps it open.
        retry_s: How long a client is asked to wait before it comes back.
        notice_s: How long everybody is still served after `/readyz` has begun to say that the server is to stop.
        closing_s: How long connections may take to end when the server stops.
        tidy_s: How long after the end of the last session, or of many connections, whoever made the front may tidy up;
            while sessions are open, it is twelve times as long.
    """

    headers_s: float = 10.0
    body_s: float = 30.0
    stall_s: float = 60.0
    idle_s: float = 1800.0
    resume_s: float = 60.0
    stream_after_s: float = 1.0
    keepalive_s: float = 15.0
    poll_s: float | None = None
    retry_s: float = 1.0
    notice_s: float = 0.0
    closing_s: float = 1.0
    tidy_s: float = 5.0


@record
class Admission:
    """Whom to let in.

    Attributes:
        hosts: What the `Host` header may name beside loopback names, `name` or `name:port`; `*` allows any.
        origins: Which pages may call us beside our own, `scheme://host[:port]`, port `*` for any; `*` allows any.
        tokens: Secrets by the name of the principal who has them, who may have several; none, and no guard, lets
            everybody in.
        guard: Lets in whoever has a token of an authorization server.
        notes_origins: Whether it is noted of each request where it comes from, for middleware.
        callers: Reads what another proxy says of whose a request is; None: that is not looked at.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tokens: Mapping[str, str | Sequence[str]] = field(default_factory=dict, repr=False)
    guard: Guard | None = field(default=None, repr=False)
    notes_origins: bool = False
    callers: Callers | None = field(default=None, repr=False)


@record
class FrontConfig:
    """Everything that can be decided about an HTTP front.

    Attributes:
        paths: Where what is served.
        limits: How much a client may take up.
        patience: How long something may take.
        admission: Whom to let in.
        answers: `auto` answers a request with JSON as long as nothing else is to be sent and it does not take long;
            `json` and `sse` do so where the client takes it.
        post_opens_sse: Whether a POST to the path of HTTP+SSE opens its stream too, as some clients do.
        shares_requests: Whether all requests without a session are served as one, whoever they are of; else those of
            each principal are.
    """

    paths: Paths = field(default_factory=Paths)
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)
    admission: Admission = field(default_factory=Admission)
    answers: Literal["auto", "json", "sse"] = "auto"
    post_opens_sse: bool = False
    shares_requests: bool = False
