"""TLS between the proxy and servers of a world: what asyncio makes of it, over connections of the world.

What is encrypted differs from run to run, since OpenSSL draws its own random numbers; how long it is does not, with
keys and signatures of one length (X25519, Ed25519, AES-GCM). A world needs no more: what comes when depends on lengths.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import datetime
import ipaddress
import shutil
import ssl
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from tests.world.network import Address, Network, StreamTransport
from tests.world.peers.words import chance_of
from tests.world.streams import RESET, End, Manner

_SERVERS = 3
_FROM, _UNTIL = datetime.datetime(2000, 1, 1), datetime.datetime(2200, 1, 1)
_HANDSHAKE_S = 60.0


def _sign(name: str, key: Ed25519PrivateKey, by: str, by_key: Ed25519PrivateKey, is_ca: bool) -> x509.Certificate:
    names = [x509.IPAddress(ipaddress.ip_address(f"10.0.0.{n + 1}")) for n in range(_SERVERS)]
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, by)]))
        .public_key(key.public_key())
        .serial_number(1 + is_ca)
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .sign(by_key, None)
    )


@lru_cache(maxsize=1)
def certificates() -> Path:
    """Write whom clients trust (`ca.pem`), and what servers show (`server.pem`), once a process; give the folder."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    signer, own = (Ed25519PrivateKey.from_private_bytes(chance_of(name).randbytes(32)) for name in ("ca", "server"))
    ca, server = _sign("ca", signer, "ca", signer, True), _sign("server", own, "ca", signer, False)
    pem = serialization.Encoding.PEM
    key = own.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    (folder / "server.pem").write_bytes(server.public_bytes(pem) + key)
    return folder


@lru_cache(maxsize=1)
def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates() / "server.pem")
    context.num_tickets = 0
    return context


class TlsDoor:
    """Takes connections by TLS, and hands on what is in them to a server that listens without.

    Args:
        network: Of the world.
        address: Where it listens.
        behind: Where the server does.
    """

    def __init__(self, network: Network, address: Address, behind: Address) -> None:
        self._network = network
        self._address = address
        self._behind = behind
        self._tasks: dict[asyncio.Task[None], None] = {}  # in their order
        network.listen(address, self._accept)

    def _accept(self, end: End, source: Address) -> None:
        passage = _Passage(self._network, self._behind)
        transport = StreamTransport(end, passage, self._network, source, self._address)
        task = asyncio.get_running_loop().create_task(self._open(transport, passage))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _open(self, transport: StreamTransport, passage: _Passage) -> None:
        with contextlib.suppress(OSError):
            await start_tls(transport, passage, _context(), None)

    def close(self) -> None:
        """Listen to nobody."""
        self._network.stop(self._address)
        for task in list(self._tasks):
            task.cancel()


async def start_tls(
    transport: StreamTransport, protocol: asyncio.Protocol, context: ssl.SSLContext, name: str | None
) -> asyncio.Transport:
    """Speak TLS over a connection that has just been made; a `name` is that of the server.

    Raises:
        OSError: It cannot be.
    """
    transport.begin()
    transport.pause_reading()
    loop = asyncio.get_running_loop()
    try:
        inner = await loop.start_tls(
            transport, protocol, context, server_side=name is None, server_hostname=name,
            ssl_handshake_timeout=_HANDSHAKE_S,
        )  # fmt: skip
    except BaseException:
        transport.abort()
        raise
    assert inner is not None
    protocol.connection_made(inner)
    return inner


class _Passage(asyncio.Protocol):
    """One connection: what comes out of it goes to the server, and what the server says comes back."""

    def __init__(self, network: Network, behind: Address) -> None:
        self._network = network
        self._behind = behind
        self._transport: Any = None
        self._end: End | None = None
        self._early = b""  # what came with the end of the handshake

    def connection_made(self, transport: Any) -> None:
        if isinstance(transport, StreamTransport):
            return  # there is no TLS yet
        self._transport = transport
        try:
            self._end, _ = self._network.dial(self._behind, "door", Manner())
        except ConnectionRefusedError:
            transport.abort()
        else:
            self._end.start(_Back(transport))
            self._end.write(self._early)

    def data_received(self, data: bytes) -> None:
        if self._end is not None:
            self._end.write(data)
        elif self._transport is None:
            self._early += data

    def connection_lost(self, error: Exception | None) -> None:
        end, self._end = self._end, None
        if end is not None and error is None:
            end.close()
        elif end is not None:
            end.cut()

    def pause_writing(self) -> None:
        if self._end is not None:
            self._end.hears.pause(True)

    def resume_writing(self) -> None:
        if self._end is not None:
            self._end.hears.pause(False)


class _Back:
    """Takes what a server says, and hands it on by TLS."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)

    def ended(self, reason: str) -> None:
        if reason == RESET:
            self._transport.abort()
        else:
            self._transport.close()

    def broken(self, reason: str) -> None:
        self._transport.abort()

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
