"""Connecting to a host: its addresses, the first one that answers, TLS, and errors that explain what went wrong.

Lives here: everything before the first byte. Must not: know HTTP. Called by `connection_pool` and `upgrade`.

Source: RFC 8305 for the order in which addresses are tried.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from dragoman.errors import TransportError
from dragoman.transports.keepalive import keep_alive
from dragoman.transports.upstream.config import UpstreamConfig, origin_of
from dragoman.transports.upstream.heads import host_of
from dragoman.transports.upstream.proxies import forwarder_of, proxy_of, warn_of_socks
from dragoman.transports.upstream.tunnel import ProxyRefused, open_tunnel, speak_to_proxy

logger = logging.getLogger("dragoman.upstream")

_HEAD_START_S: Final = 0.25
"""How long an address is tried alone. RFC 8305, 5: Connection Attempt Delay."""

_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)
Address = tuple[socket.AddressFamily, tuple[Any, ...]]


class Dialler:
    """Makes connections to one server.

    Args:
        config: The server.
        tls: From `trust`.
    """

    def __init__(self, config: UpstreamConfig, tls: ssl.SSLContext | None) -> None:
        self._config = config
        self._tls = tls
        warn_of_socks(config)

    async def connect(self, make: Callable[[], _Protocol]) -> _Protocol:
        """Open a connection.

        Raises:
            TransportError: There is none, or not in time.
        """
        config = self._config
        _, whom, port = origin_of(config.url)
        at = ""  # what an error is about, if it is not the server
        try:
            host, proxy = host_of(config.url), proxy_of(config)
            async with asyncio.timeout(config.connect_timeout_s):
                if proxy is None:
                    found = await (config.dial() if config.dial is not None else dial(await resolve(host, port or 0)))
                    return (await _open(found, make, self._tls, host))[1]
                whom, at = proxy.host, f"{proxy}: "
                found = await dial(await resolve(proxy.host, proxy.port))
                tls = make_trusting(config) if proxy.uses_tls else None
                if forwarder_of(config):
                    return (await _open(found, make, tls, proxy.host))[1]
                transport, connection = await _open(found, speak_to_proxy, tls, proxy.host)
                try:
                    await open_tunnel(connection, proxy, host, port)
                    whom, at = origin_of(config.url)[1], f"through {proxy}: "
                    return await _go_on(transport, make(), self._tls, host)
                except BaseException:
                    transport.abort()
                    raise
        except (OSError, ValueError) as error:  # a TimeoutError is an OSError
            raise TransportError(config.peer, at + explain(error, whom)) from error


async def _open(
    found: socket.socket, make: Callable[[], _Protocol], tls: ssl.SSLContext | None, host: str
) -> tuple[asyncio.Transport, _Protocol]:
    """Speak over a socket, by TLS if it is to be."""
    try:
        loop = asyncio.get_running_loop()
        return await loop.create_connection(make, sock=found, ssl=tls, server_hostname=_certified(host, tls))
    except BaseException:
        found.close()
        raise


async def _go_on(transport: asyncio.Transport, protocol: _Protocol, tls: ssl.SSLContext | None, host: str) -> _Protocol:
    """Speak to the server at the other end of a tunnel."""
    if tls is None:
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return protocol
    loop = asyncio.get_running_loop()
    inner = await loop.start_tls(transport, protocol, tls, server_hostname=_certified(host, tls))
    assert inner is not None
    protocol.connection_made(inner)
    return protocol


def _certified(host: str, tls: ssl.SSLContext | None) -> str | None:
    """Return the name that a certificate must have."""
    return host.partition("%")[0].rstrip(".") if tls else None


async def dial(addresses: Sequence[Address]) -> socket.socket:
    """Connect to the first address that answers: one after the other, and side by side where one takes long.

    Raises:
        OSError: None did.
    """
    if len(addresses) == 1:
        return await _dial_one(addresses[0])
    loop = asyncio.get_running_loop()
    left, failures = list(addresses), list[OSError]()
    running: set[asyncio.Task[socket.socket]] = set()
    winner: socket.socket | None = None
    try:
        while winner is None:
            if left:
                running.add(loop.create_task(_dial_one(left.pop(0))))
            elif not running:
                raise _sum_up(failures)
            done, running = await asyncio.wait(
                running, timeout=_HEAD_START_S if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if isinstance(error, OSError):
                    failures.append(error)
                elif winner is None:
                    winner = task.result()
                else:
                    task.result().close()
        return winner
    finally:
        for task in running:
            task.cancel()
        for late in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(late, socket.socket):
                late.close()


async def _dial_one(address: Address) -> socket.socket:
    family, where = address
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        with contextlib.suppress(OSError):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(made)  # a stream may be silent for hours
        await asyncio.get_running_loop().sock_connect(made, where)
    except BaseException:
        made.close()
        raise
    return made


async def resolve(host: str, port: int) -> list[Address]:
    """Return the addresses of a host, families in turns."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return [(family, (host, port))]
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    groups: dict[socket.AddressFamily, list[Address]] = {}
    for family, _, _, _, address in found:
        groups.setdefault(family, []).append((family, address))
    turns = itertools.zip_longest(*groups.values())
    return [address for turn in turns for address in turn if address is not None]


def _sum_up(failures: list[OSError]) -> OSError:
    """Make one error of what several addresses failed with."""
    if len({failure.errno for failure in failures}) == 1:
        return failures[0]
    return OSError("; ".join(dict.fromkeys(_name(failure) for failure in failures)))


def trust(config: UpstreamConfig) -> ssl.SSLContext | None:
    """Say whose certificates are believed; nothing without TLS."""
    if origin_of(config.url)[0] not in ("https", "wss"):
        return None
    context = make_trusting(config)
    if not config.verify:
        logger.warning("%s: its certificate is not checked; who is in between reads everything", config.peer)
    if config.client_cert is not None:
        context.load_cert_chain(config.client_cert, config.client_key, _refuse_to_ask)
    with contextlib.suppress(NotImplementedError):
        context.set_alpn_protocols(["http/1.1"])
    return context


def make_trusting(config: UpstreamConfig) -> ssl.SSLContext:
    """Make TLS that believes whoever the configuration names, or OpenSSL's variables, or else the system.

    Raises:
        OSError: A file is not there, or holds no certificate.
    """
    named = os.environ.get("SSL_CERT_FILE")
    if named and config.ca_file is None and not os.path.isfile(named):  # which OpenSSL would pass over
        raise FileNotFoundError(errno.ENOENT, "SSL_CERT_FILE names no file", named)
    if config.verify and config.ca_file is None and not named and not os.environ.get("SSL_CERT_DIR"):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.create_default_context(cafile=config.ca_file)
    if not config.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _refuse_to_ask() -> str:
    """Stand in the place of a prompt at the terminal."""
    raise PermissionError(errno.EACCES, "the key of --client-cert has a password, and nobody can be asked")


def explain(error: BaseException, host: str) -> str:
    """Say why there is no connection, for a person."""
    match error:
        case ProxyRefused():
            return str(error)
        case ssl.SSLCertVerificationError():
            return f"its TLS certificate is not trusted (--ca-file names who signs it): {last_line(error)}"
        case ssl.SSLError():
            hint = " (does it speak plain HTTP there?)" if "WRONG_VERSION_NUMBER" in str(error) else ""
            return f"no TLS connection: {last_line(error)}{hint}"
        case socket.gaierror():
            return f"the name {host} is not known"
        case TimeoutError():
            return "no connection in time (--connect-timeout sets how long to wait)"
        case OSError():
            return f"no connection: {_name(error)}"
        case _:
            return f"its URL cannot be used: {last_line(error)}"


def _name(error: OSError) -> str:
    """Say what the system said."""
    return os.strerror(error.errno).lower() if error.errno else last_line(error)


def last_line(error: object) -> str:
    """Return the end of what an error says, which is the point of it."""
    text = str(error).strip()
    return text.splitlines()[-1][:200] if text else type(error).__name__
