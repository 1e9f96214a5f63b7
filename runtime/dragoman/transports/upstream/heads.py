"""Request lines and headers of the requests to a server.

Lives here: request targets, the headers that every request has, credentials in a URL, and the check that no value
can end its header. Must not: send. Called by `connection_pool` and `upgrade`.

Source: RFC 9112, 3 and 5; RFC 7617 for credentials.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar
from urllib.parse import quote, unquote, urlsplit

from dragoman.transports.secrecy import Secrets, secrets_of
from dragoman.transports.upstream.config import (
    HEADER_NAME,
    OURS,
    UpstreamConfig,
    check_header_name,
    check_header_value,
    encode_header,
    origin_of,
)
from dragoman.transports.upstream.proxies import forwarder_of

logger = logging.getLogger("dragoman.upstream")

_ENDS_IT = re.compile(r"[\r\n\0]")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PATH: Final = "/%:@!$&'()*+,;=~"
_QUERY: Final = _PATH + "?"
_KEPT: Final = 32
"""How many encoded URLs and sets of headers are kept; a session needs a handful."""

_Key = TypeVar("_Key")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}


class Heads:
    """Writes the heads of requests to one server.

    Args:
        config: The server, and what to send along.
        secrets: Where it is noted what middleware gives.

    Attributes:
        forwarder: The proxy that is handed the requests; None if there is none. Some close a connection after one, and
            do not say so.

    Raises:
        ValueError: The URL names no host that there can be, or a header cannot be sent; the text holds no value.
    """

    def __init__(self, config: UpstreamConfig, secrets: Secrets | None = None) -> None:
        self._config = config
        self._secrets = Secrets() if secrets is None else secrets
        self._always = _encode_always(config, {})
        self.forwarder = forwarder_of(config)
        self._cookie = "; ".join(value for name, value in config.headers if name.lower() == "cookie")
        self._lines: dict[str, bytes] = {}
        self._blocks: dict[tuple[tuple[str, str], ...], bytes] = {}

    def write(self, method: str, url: str, headers: Mapping[str, str], has_body: bool, cookies: str = "") -> bytes:
        """Return the head of one request; of one with a body, as far as the digits of its length.

        Args:
            method: Of HTTP.
            url: Where to; only its path and query are looked at.
            headers: Beside what is always sent.
            has_body: Whether a body follows, which is JSON unless `Content-Type` says otherwise.
            cookies: What the server wants back, and those of the configuration; empty if the server has set none.

        Raises:
            ValueError: A header cannot be sent, or middleware has none.
        """
        if self._config.header_middleware:  # what it gives is not kept: it may be a secret that is soon replaced
            found = _ask_middleware(self._config, headers)
            self._secrets.add(one for given in found.values() for one in secrets_of(*given))
            always = _encode_always(self._config, found)
            line = self._line(url, always)
        else:
            line = self._lines.get(url) or _keep(self._lines, url, self._line(url, self._always))
        if self._config.tells is not None:
            headers = {**self._config.tells(self._config.caller or ""), **headers}
        key = tuple(headers.items())
        block = self._blocks.get(key) or _keep(self._blocks, key, _encode_asked(headers))
        sent = cookies or self._cookie
        cookie = _encode([("Cookie", sent)]) if sent else b""
        start = b"".join((method.encode(), line, block, cookie))
        if not has_body:
            return start + (b"Content-Length: 0\r\n\r\n" if method not in ("GET", "HEAD") else b"\r\n")
        kind = b"" if "Content-Type" in headers else b"Content-Type: application/json\r\n"
        return start + kind + b"Content-Length: "

    def _line(self, url: str, always: bytes) -> bytes:
        """Write all but the method; a proxy that hands requests on is told the whole URL. RFC 9112, 3.2.2."""
        if self.forwarder is None:
            return b" %b HTTP/1.1\r\n" % _target_of(url) + always
        where = f"http://{_authority_of(self._config.url)}".encode() + _target_of(url)
        return b" %b HTTP/1.1\r\n" % where + always + self.forwarder.authorization


def host_of(url: str) -> str:
    """Return the host of a URL as the network knows it: international names in ASCII.

    Raises:
        ValueError: There can be no such host.
    """
    host = urlsplit(url).hostname or ""
    if not host.isascii():
        encoded = host.encode("idna").decode()  # a UnicodeError is a ValueError
        if encoded.encode().decode("idna") != host:
            raise ValueError("its host name means another one to older software")
        host = encoded
    if not re.fullmatch(r"[0-9a-z._~-]+|[0-9a-f:.]+(%[0-9a-z._~-]+)?", host, re.IGNORECASE):
        raise ValueError("its host name cannot be one")
    return host


def _ask_middleware(config: UpstreamConfig, asked: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the headers that middleware wants to send now, by their names in small letters."""
    taken = {name.lower() for name in asked} | {"cookie"}
    found: dict[str, tuple[str, str]] = {}
    for middleware in config.header_middleware:
        try:
            given = dict(middleware())
        except Exception as error:  # theirs; the log is for whoever has set it up, and clients are not told
            logger.warning("the headers for %s cannot be made: %s: %s", config.peer, type(error).__name__, error)
            raise ValueError("a middleware has no value for its headers now; the log of the proxy says why") from None
        for name, value in given.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise ValueError("a middleware gives a header whose name or value is not a string")
            check_header_name(name)
            check_header_value(name, value)
            if name.lower() in taken:
                raise ValueError(f"the header {name} is not for middleware: it is written by the transport itself")
            found[name.lower()] = name, value
    return found


def _encode_always(config: UpstreamConfig, fresh: Mapping[str, tuple[str, str]]) -> bytes:
    """Write what every request to this server has, and what one has beside, in the place of what has the same name."""
    parts = urlsplit(config.url)
    given = {name.lower() for name, _ in config.headers}
    if misplaced := given & OURS:
        raise ValueError(f"the header {min(misplaced)} is written by the transport itself")
    given |= fresh.keys()
    headers = [] if "host" in given else [("Host", _authority_of(config.url))]
    if (parts.username or parts.password) and "authorization" not in given:
        credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        headers.append(("Authorization", f"Basic {base64.b64encode(credentials.encode()).decode()}"))
    rest = [header for header in config.headers if header[0].lower() not in {"cookie", *fresh}]
    return _encode([*headers, *rest, *fresh.values(), ("Accept-Encoding", "identity")])


def _authority_of(url: str) -> str:
    scheme, _, port = origin_of(url)
    host = host_of(url).partition("%")[0]
    authority = f"[{host}]" if ":" in host else host
    return authority + ("" if port == _DEFAULT_PORTS.get(scheme) else f":{port}")


def _encode_asked(headers: Mapping[str, str]) -> bytes:
    accepts = any(name.lower() == "accept" for name in headers)
    return _encode(headers.items() if accepts else [("Accept", "*/*"), *headers.items()])


def _encode(headers: Iterable[tuple[str, str]]) -> bytes:
    """Write headers; a value that could end its line could say anything on the next."""
    lines = []
    for name, value in headers:
        if not HEADER_NAME.match(name):
            raise ValueError("a header has a name that cannot be one")
        if _ENDS_IT.search(value):
            raise ValueError(f"the value of the header {name} holds a line end or NUL")
        lines.append(f"{name}: {value}\r\n")
    return encode_header("".join(lines))


def _target_of(url: str) -> bytes:
    parts = urlsplit(url)
    path = quote(_LONE_PERCENT.sub("%25", parts.path) or "/", _PATH)
    query = quote(_LONE_PERCENT.sub("%25", parts.query), _QUERY)
    return (f"{path}?{query}" if query else path).encode()


def _keep(kept: dict[_Key, bytes], key: _Key, value: bytes) -> bytes:
    if len(kept) >= _KEPT:
        kept.clear()
    kept[key] = value
    return value
