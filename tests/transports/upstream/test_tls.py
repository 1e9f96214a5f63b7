"""Whose certificates are believed."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
import truststore
from cryptography.hazmat.primitives import serialization

from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connector import make_trusting
from tests.transports.upstream.raw import Line, ask, on_both_loops, raw_server, wire_to
from tests.transports.upstream.stage import Reply, Request, client, server, shake_hands


async def serve(request: Request, reply: Reply) -> None:
    if not await shake_hands(request, reply):
        await reply.result(request, {})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    file, subject = folder / "both.pem", ["-subj", "/CN=t", "-addext", "subjectAltName=IP:127.0.0.1"]
    options = ["-nodes", "-days", "1", "-keyout", str(folder / "key.pem"), "-out", str(file)]
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", *options, *subject], check=True, stderr=-3, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no openssl to make a certificate")
    return file


def context(certificate: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return made


@on_both_loops
async def test_a_certificate_that_nobody_trusts_ends_the_session(certificate: Path) -> None:
    async with server(serve, tls=context(certificate)) as url, client(url, opened=False) as peer:
        message = (await peer.initialize())["error"]["message"]
    assert "its TLS certificate is not trusted (--ca-file names who signs it)" in message


@on_both_loops
async def test_a_certificate_is_trusted_when_its_signer_is_named(certificate: Path) -> None:
    async with server(serve, tls=context(certificate)) as url, client(url, ca_file=str(certificate)) as peer:
        assert "result" in await peer.ask("ping")


@on_both_loops
async def test_checking_can_be_turned_off_with_a_warning(certificate: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with server(serve, tls=context(certificate)) as url, client(url, verify=False) as peer:
        assert "result" in await peer.ask("ping")
    assert "its certificate is not checked" in caplog.text


@on_both_loops
async def test_a_certificate_for_another_host_is_refused(certificate: Path) -> None:
    async with server(serve, tls=context(certificate)) as url:
        url = url.replace("127.0.0.1", "localhost")
        async with client(url, opened=False, ca_file=str(certificate)) as peer:
            assert "not trusted" in (await peer.initialize())["error"]["message"]


@on_both_loops
async def test_a_ca_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    async with client("https://127.0.0.1:1/", opened=False, ca_file=str(tmp_path / "ca.pem")) as peer:
        assert "TLS cannot be set up" in (await peer.initialize())["error"]["message"]


@pytest.mark.parametrize("in_one_file", [True, False])
@on_both_loops
async def test_a_server_may_want_our_certificate(certificate: Path, tmp_path: Path, in_one_file: bool) -> None:
    tls, key = context(certificate), certificate.with_name("key.pem")
    tls.load_verify_locations(certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    (tmp_path / "both.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
    files = {"client_cert": str(tmp_path / "both.pem")}
    if not in_one_file:
        files = {"client_cert": str(certificate), "client_key": str(key)}
    async with server(serve, tls=tls) as url, client(url, ca_file=str(certificate), **files) as peer:
        assert "result" in await peer.ask("ping")


@on_both_loops
async def test_a_key_with_a_password_is_not_asked_about(certificate: Path, tmp_path: Path) -> None:
    key = serialization.load_pem_private_key(certificate.with_name("key.pem").read_bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    (tmp_path / "key.pem").write_bytes(locked)
    files = {"client_cert": str(certificate), "client_key": str(tmp_path / "key.pem")}
    async with client("https://127.0.0.1:1/", opened=False, **files) as peer:
        assert "has a password, and nobody can be asked" in (await peer.initialize())["error"]["message"]


@on_both_loops
async def test_openssls_variable_names_whom_to_trust(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with server(serve, tls=context(certificate)) as url, client(url) as peer:
        assert "result" in await peer.ask("ping")


@on_both_loops
async def test_a_variable_that_names_no_file_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    async with client("https://127.0.0.1:1/", opened=False) as peer:
        assert "SSL_CERT_FILE names no file" in (await peer.initialize())["error"]["message"]


def test_by_default_the_system_says_whom_to_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert isinstance(make_trusting(UpstreamConfig("https://example.com/")), truststore.SSLContext)


@on_both_loops
async def test_large_bodies_go_both_ways(certificate: Path) -> None:
    body = bytes(range(256)) * 12288

    async def handle(line: Line) -> None:
        while request := await line.request():
            got = request.partition(b"\r\n\r\n")[2]
            await line.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(got) + got)

    async with raw_server(handle, ssl=context(certificate)) as url, wire_to(url, ca_file=str(certificate)) as wire:
        assert await ask(wire, body=body) == (200, body)
        assert await ask(wire) == (200, b"{}")


@on_both_loops
async def test_a_body_without_length_ends_with_the_connection(certificate: Path) -> None:
    async def handle(line: Line) -> None:
        await line.request()
        await line.say(b"HTTP/1.1 200 OK\r\n\r\nok")

    async with raw_server(handle, ssl=context(certificate)) as url, wire_to(url, ca_file=str(certificate)) as wire:
        assert await ask(wire) == (200, b"ok")
