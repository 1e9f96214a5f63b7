"""What can be decided about a connection to a server over the network. Values, and how their texts are checked.

Lives here: the URL, headers, patience and limits. Must not: import the HTTP library, because the command line reads
this before anything is connected. Called by `dragoman.cli`, embedders and every module of this package.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import SplitResult, urlsplit, urlunsplit

from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.transports.surroundings import expand
from dragoman_spec import REVISIONS, facts
from dragoman_spec.record import record

if TYPE_CHECKING:
    import socket

    from dragoman.middleware import HeaderMiddleware
    from dragoman.transports.upstream.challenge import Challenge
    from dragoman.transports.upstream.idle import IdleConnections

OURS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "sec-websocket-accept",
        "sec-websocket-extensions",
        "sec-websocket-key",
        "sec-websocket-protocol",
        "sec-websocket-version",
        "transfer-encoding",
        "upgrade",
        *(header.name.lower() for revision in REVISIONS for header in facts(revision).headers.values()),
    }
)
"""Headers that the transport itself writes; a user's value would break it."""

HURRIED_S: Final = 0.5
"""How long the goodbye to a server may take where somebody is in a hurry."""

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")


class Kind(Enum):
    """Which transport a server is spoken to over."""

    AUTO = "auto"
    STREAMABLE_HTTP = "streamable-http"
    SSE = "sse"


class Authority(Protocol):
    """Has tokens for one server, and gets others."""

    async def load(self) -> None:
        """Read what is kept, where that may take long; before the first request, and at once afterwards."""

    def authorization(self) -> str:
        """Return what requests are to say in `Authorization`; empty where there is no token."""

    def has_ended(self) -> bool:
        """Whether the token should have ended by now, and another one can be had for it without anybody."""

    async def refresh_ended(self, headers: tuple[tuple[str, str], ...], config: UpstreamConfig) -> None:
        """Get another token in place of one that has ended, if there is one; the headers are those of the request."""

    def takes(self, challenge: Challenge) -> bool:
        """Whether a token may help against this."""

    async def renew(self, challenge: Challenge, config: UpstreamConfig) -> None:
        """Get another token, for as long as that takes.

        Raises:
            TransportError: There is none.
        """

    def join(self) -> None:
        """Record a connection that may need tokens."""

    async def leave(self) -> None:
        """Record that one does not any more: with the last one, nobody is asked for tokens."""


def _make_idle() -> IdleConnections:
    from dragoman.transports.upstream.idle import IdleConnections  # brings asyncio

    return IdleConnections()


@record
class UpstreamConfig:
    """Everything that can be decided about a connection to a server.

    Attributes:
        url: Where it is: http, https, ws or wss.
        headers: What to send along with every request, to this origin alone; may hold secrets.
        header_middleware: Gives more of them, asked before each request; of two with one name this one is sent.
        kind: Which transport; `AUTO` finds out, as the specification's page says.
        ca_file: Who signs the server's certificate, if not who the system trusts.
        client_cert: A file with our own certificate, for servers that want one.
        client_key: A file with its key, if that is not in the same one.
        proxy: The URL of an HTTP proxy on the way, or `none`; None for what the environment says. May hold secrets.
        verify: Whether its certificate is checked at all.
        connect_timeout_s: How long a connection may take.
        idle_timeout_s: How long a server that owes an answer may send nothing at all.
        close_timeout_s: How long the goodbye may take.
        limit_bytes: The longest message accepted, once decompressed.
        held_bytes: How much of answers that have not come whole is held at once, beside one that may be the longest.
        open_requests: How many requests may be under way at once; more wait.
        parked_requests: How many more may wait for answers of clients.
        end_session: Whether the server is told, by DELETE, that a session is over.
        restore_ids: Whether an answer counts whose id came back as another type (rule `restore-id-type`).
        renews_sessions: Whether a server may say in other ways than by 404 that it has forgotten the session (rule
            `forgotten-session`).
        name: What it is called in errors, which clients read, and in the log; None for its URL.
        idle: Connections that are kept for whoever is configured alike; all that is opened with one value shares them.
        authority: Has tokens for the server; None where nobody signs in.
        tells: Gives the headers that say whose a request is, for another proxy; None where the server is not told.
        caller: Whose the connection is; empty for nobody's, or for several. None: of whoever opens it (`core.label`).
        dial: Opens a connection in the place of the network, for a server inside our process; None without one.
    """

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    kind: Kind = Kind.AUTO
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    proxy: str | None = field(default=None, repr=False)
    verify: bool = True
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 300.0
    close_timeout_s: float = 2.0
    limit_bytes: int = DEFAULT_LIMIT_BYTES
    held_bytes: int = 64 * 1024 * 1024
    open_requests: int = 256
    parked_requests: int = 256
    end_session: bool = True
    restore_ids: bool = True
    renews_sessions: bool = True
    name: str | None = None
    dial: Callable[[], Awaitable[socket.socket]] | None = None
    header_middleware: tuple[HeaderMiddleware, ...] = field(default=(), repr=False)
    authority: Authority | None = field(default=None, repr=False, compare=False)
    tells: Callable[[str], Mapping[str, str]] | None = field(default=None, repr=False, compare=False)
    caller: str | None = field(default=None, repr=False, compare=False)
    idle: IdleConnections = field(default_factory=_make_idle, repr=False, compare=False)

    @property
    def peer(self) -> str:
        """The server as logs and errors name it: user, password and query may be secret and stay out."""
        return describe_url(self.url) if self.name is None else self.name


def check_url(text: str) -> str:
    """Give a URL back if it names a server.

    Raises:
        ValueError: It does not; the text says what is wrong, and repeats no secret.
    """
    parts = _split(text)
    if parts.scheme not in ("http", "https", "ws", "wss"):
        found = repr(parts.scheme) if "://" in text else "none of them: put http:// or https:// before it"
        raise ValueError(f"expected a URL that begins with http, https, ws or wss, found {found}")
    if not parts.hostname:
        raise ValueError("expected a URL that names a host")
    if parts.fragment:
        raise ValueError("expected a URL without fragment")
    return text


def describe_url(url: str) -> str:
    """Return a URL without what may be secret in it."""
    parts = _split(url)
    return urlunsplit((parts.scheme, _authority(parts), parts.path, "", ""))


def origin_of(url: str) -> tuple[str, str, int | None]:
    """Return scheme, host and port: what has to be equal for two URLs to belong to one server."""
    parts = _split(url)
    port = parts.port or {"http": 80, "ws": 80, "https": 443, "wss": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), port


def parse_header(text: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """Read one `NAME=VALUE` or `NAME: VALUE`.

    `$VARIABLE` and `${VARIABLE}` in the value come from the environment, `$$` is a dollar.

    Raises:
        ValueError: It is not a header, or not ours to send; the text says what is wrong, without the value.
    """
    name, *rest = re.split("[=:]", text, maxsplit=1)
    if not rest or not HEADER_NAME.match(name):
        raise ValueError("expected NAME=VALUE or 'NAME: VALUE' with the name of an HTTP header")
    check_header_name(name)
    value = expand(rest[0], environment).strip()
    check_header_value(name, value)
    return name, value


def check_header_name(name: str) -> None:
    """Make sure that a header may be sent along.

    Raises:
        ValueError: HTTP has no such names, or it is not ours to send.
    """
    if not HEADER_NAME.match(name):
        raise ValueError(f"{name[:60]!r} cannot be the name of an HTTP header")
    if name.lower() in OURS:
        raise ValueError(f"the header {name} is written by the transport itself")


def check_header_value(name: str, value: str) -> None:
    """Make sure that a header may say this.

    Raises:
        ValueError: It would end its line, or cannot be written; the text does not repeat it.
    """
    if any((ord(char) < 32 and char != "\t") or ord(char) == 127 for char in value):
        raise ValueError(f"the value of the header {name} holds a control character, such as a line feed")
    try:
        encode_header(value)
    except UnicodeEncodeError:
        raise ValueError(f"the value of the header {name} holds a character that HTTP headers cannot") from None


def encode_header(text: str) -> bytes:
    """Return header text as it is sent: in UTF-8, and bytes of the environment that are not UTF-8 as they came."""
    return text.encode(errors="surrogateescape")


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        what = "a port up to 65535" if str(error).startswith("Port ") else "a URL"  # a URL may hold a secret
        raise ValueError(f"expected {what}, found something that cannot be one") from None
    return parts


def _authority(parts: SplitResult) -> str:
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if parts.port is None else f"{host}:{parts.port}"
