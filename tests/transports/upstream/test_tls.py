"""Whose certificates are believed."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

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
