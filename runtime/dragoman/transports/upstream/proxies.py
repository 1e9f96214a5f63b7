"""Which HTTP proxy leads to a server: the one of a company's network.

Lives here: its URL, the variables that name it, and whom they leave out. Must not: connect (`connector`, `tunnel`).

The variables have no specification; they are read as curl reads them.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final
from urllib.parse import unquote, urlsplit

from dragoman.transports.upstream.config import UpstreamConfig, origin_of
from dragoman_spec.record import record

logger = logging.getLogger("dragoman.upstream")

_ENTRY: Final = re.compile(
    r"""(?:[a-z][a-z0-9+.-]*://)?  # which no specification has, and people write
    (?:\[(?P<inner>[^\]]*)\]|(?P<name>[^/:\[\]]+|(?=[^:]*:[^:]*:)[0-9a-f:.]+))
    (?::(?P<port>\d+))?(?P<mask>/\d+)?/?""",
    re.VERBOSE,
)
"""An entry of `NO_PROXY`."""

DIRECT: Final = "none"
"""What stands in place of a proxy's URL where there is to be none, whatever the environment says."""


@record
class HttpProxy:
    """A proxy that speaks HTTP.

    Attributes:
        host: Its name or address.
        port: Of it.
        uses_tls: Whether it is spoken to by TLS itself.
        credentials: User and password, if it wants them.
        named_by: The variable or the option that names it.
    """

    host: str
    port: int
    uses_tls: bool
    credentials: str = field(repr=False)
    named_by: str

    def __str__(self) -> str:
        return f"the proxy {self.host}:{self.port} ({self.named_by})"

    @property
    def authorization(self) -> bytes:
        """The header with its credentials; empty without."""
        if not self.credentials:
            return b""
        return b"Proxy-Authorization: Basic %b\r\n" % base64.b64encode(self.credentials.encode())


def find_proxy(url: str, chosen: str | None, environment: Mapping[str, str]) -> HttpProxy | None:
    """Return the proxy that leads to a server; None if there is none on the way.

    Args:
        url: Of the server.
        chosen: The URL of a proxy, or `none`; None for what the environment says, which is never for loopback.
        environment: With `HTTPS_PROXY`, `NO_PROXY` and the like, in capitals or not.

    Raises:
        ValueError: What names a proxy is not a URL of one; the text does not repeat it.
    """
    if chosen is not None:
        return None if chosen == DIRECT else parse_proxy(chosen, "as configured")
    name = _name_variable(url, environment)
    return None if name is None or _is_socks(environment[name]) else parse_proxy(environment[name], name)


def proxy_of(config: UpstreamConfig) -> HttpProxy | None:
    """Return the proxy that leads to a server; None if there is none on the way.

    Raises:
        ValueError: What names one is not its URL.
    """
    return None if config.dial is not None else find_proxy(config.url, config.proxy, os.environ)


def warn_of_socks(config: UpstreamConfig) -> None:
    """Say so, where other programs would go through a SOCKS proxy, and we go directly."""
    name = _name_variable(config.url, os.environ) if config.proxy is None and config.dial is None else None
    if name is not None and _is_socks(os.environ[name]):
        logger.warning("%s is ignored: it names a SOCKS proxy, and only HTTP proxies are gone through", name)


def forwarder_of(config: UpstreamConfig) -> HttpProxy | None:
    """Return the proxy that is handed requests themselves, where it is not asked for a tunnel: without TLS."""
    return proxy_of(config) if origin_of(config.url)[0] == "http" else None


def parse_proxy(text: str, named_by: str) -> HttpProxy:
    """Read the URL of a proxy.

    Raises:
        ValueError: It is none, or one of a kind that is not spoken; the text does not repeat it.
    """
    with contextlib.suppress(ValueError):
        parts = urlsplit(text.strip() if "://" in text else f"http://{text.strip()}")
        if parts.scheme in ("http", "https") and parts.hostname:
            user = ":".join(unquote(one or "") for one in (parts.username, parts.password))
            port = parts.port or (443 if parts.scheme == "https" else 80)
            return HttpProxy(parts.hostname, port, parts.scheme == "https", user.strip(":") and user, named_by)
    raise ValueError(f"{named_by}: expected http://HOST:PORT or https://HOST:PORT, an HTTP proxy")


def _name_variable(url: str, environment: Mapping[str, str]) -> str | None:
    """Return the variable that names the proxy for a URL."""
    scheme, host, port = origin_of(url)
    exempt = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if _is_loopback(host) or any(_covers(one, host, port) for one in re.split(r"[,\s]+", exempt.lower())):
        return None
    kind = "https" if scheme in ("https", "wss") else "http"
    names = (f"{kind}_proxy", f"{kind}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((name for name in names if environment.get(name)), None)


def _is_socks(url: str) -> bool:
    return url.lower().startswith("socks")


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _covers(entry: str, host: str, port: int | None) -> bool:
    """Say whether an entry of `NO_PROXY` is about a host: a name, its subdomains, an address or a network."""
    found = _ENTRY.fullmatch(entry)
    if found is None or found["port"] not in (None, str(port)):
        return False
    name = found["inner"] or found["name"]
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host) in ipaddress.ip_network(f"{name}{found['mask'] or ''}", strict=False)
    name, host = _to_ascii(name.removeprefix("*").strip(".")), _to_ascii(host)
    return entry == "*" or (bool(name) and (host == name or host.endswith(f".{name}")))


def _to_ascii(name: str) -> str:
    """Return a name as the network knows it: both spellings of a host are one."""
    with contextlib.suppress(UnicodeError):
        return name if name.isascii() else name.encode("idna").decode()
    return name
