"""Files that are read again while a proxy serves, and SIGHUP, which never ends a service."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.reloading import Reloading
from dragoman.proxy import ProxyConfig, change_state_keys, make_bridging
from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.support.waiting import put_forward, run, until, wait_until

ADA, BOB, EVE = "secret-of-ada-0001", "secret-of-bob-0001", "secret-of-eve-0001"


def write(path: Path, text: str) -> Path:
    """Write a file as tools do that change it in one step."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(0o600)
    new.rename(path)
    return path


def enters(proxy: Listening, secret: str) -> bool:
    return proxy.post(INITIALIZE, authorization=f"Bearer {secret}")[0] == 200


def test_a_hangup_never_ends_a_service() -> None:
    with listening("--log-level", "info") as proxy:
        for _ in range(3):
            proxy.process.send_signal(signal.SIGHUP)
            while b"SIGHUP" not in proxy.lines.read():
                pass
        assert proxy.post(INITIALIZE)[0] == 200
        assert proxy.end()[0] == 143


@pytest.mark.parametrize("is_told", [True, False])
def test_secrets_are_read_again_and_sessions_of_those_that_are_gone_end(is_told: bool, tmp_path: Path) -> None:
    tokens = write(tmp_path / "tokens", f"ada {ADA}\nbob {BOB}\n")
    with listening("--auth-token-file", str(tokens)) as proxy:
        sessions = {
            secret: proxy.post(INITIALIZE, authorization=f"Bearer {secret}")[1]["mcp-session-id"]
            for secret in (ADA, BOB)
        }
        write(tokens, f"eve {EVE}\nbob {BOB}\n")
        if is_told:
            proxy.process.send_signal(signal.SIGHUP)
        wait_until(lambda: enters(proxy, EVE))
        assert not enters(proxy, ADA)
        noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        hers = {"authorization": f"Bearer {EVE}", "mcp_session_id": sessions[ADA]}
        assert proxy.post(noted, **hers)[0] == 404
        assert proxy.post(noted, authorization=f"Bearer {BOB}", mcp_session_id=sessions[BOB])[0] == 202


def test_secrets_that_cannot_be_used_change_nothing(tmp_path: Path) -> None:
    tokens = write(tmp_path / "tokens", f"ada {ADA}\n")
    with listening("--auth-token-file", str(tokens)) as proxy:
        write(tokens, f"ada {BOB} {EVE}\n")
        said = proxy.lines.read().decode()
        assert "cannot be used as it is now, and what was read before stays: line 1: expected a secret" in said
        assert EVE not in said
        assert enters(proxy, ADA)
        tokens.unlink()
        proxy.process.send_signal(signal.SIGHUP)
        assert "No such file" in proxy.lines.read().decode()
        assert enters(proxy, ADA)
        write(tokens, f"eve {EVE}\n")
        wait_until(lambda: enters(proxy, EVE))


def make_certificate(folder: Path, name: str) -> None:
    options = ["-nodes", "-days", "1", "-keyout", str(folder / "key.new"), "-out", str(folder / "cert.new")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *options, "-subj", f"/CN={name}"]
    if subprocess.run(command, capture_output=True, timeout=60, check=False).returncode:
        pytest.skip("no openssl to make a certificate")
    for kind in ("cert", "key"):
        (folder / f"{kind}.new").rename(folder / f"{kind}.pem")


def test_a_new_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    make_certificate(tmp_path, "before")
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with listening(*files, url="https://127.0.0.1:0") as proxy:
        where = ("127.0.0.1", int(proxy.url.split(":")[2].split("/")[0]))
        before = ssl.get_server_certificate(where)
        write(tmp_path / "cert.pem", "half a certificate")
        assert "cannot be used as it is now" in proxy.lines.read().decode()
        assert ssl.get_server_certificate(where) == before
        make_certificate(tmp_path, "after")
        wait_until(lambda: ssl.get_server_certificate(where) == (tmp_path / "cert.pem").read_text())


def test_a_trace_that_was_renamed_is_opened_anew(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with listening("--trace", str(trace)) as proxy:
        proxy.post(INITIALIZE)
        wait_until(lambda: trace.stat().st_size)
        trace.rename(tmp_path / "trace.1")
        proxy.process.send_signal(signal.SIGHUP)

        def traces() -> bool:
            proxy.post({**INITIALIZE, "id": "after"})
            return trace.exists() and '"after"' in trace.read_text()

        wait_until(traces)
        assert trace.stat().st_mode & 0o777 == 0o600


def test_a_configuration_is_read_again_and_its_service_goes_on(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(Path(__file__).parents[2] / "bench" / "server.py"), "2025-06-18"]}
    file = write(tmp_path / "mcp.json", json.dumps({"mcpServers": {"one": server}}))
    with listening("--config", str(file), "--log-level", "info", server=[]) as proxy:
        write(file, json.dumps({"mcpServers": {"one": server, "two": server}}))
        proxy.process.send_signal(signal.SIGHUP)
        while b"new: two" not in proxy.lines.read():
            pass
        assert proxy.post(INITIALIZE)[0] == 200


def test_state_keys_can_be_changed_for_proxies_that_run() -> None:
    old, new = bytes(32), bytes(range(32))
    config = ProxyConfig(state_key=(old,), parked_s=601.5)
    seal = make_bridging(config).keeper().seal
    before = seal.seal(b"x", bytes(12))
    change_state_keys(config, (new, old))
    assert seal.open(before) is not None
    assert seal.seal(b"x", bytes(12)) != before
    change_state_keys(config, (new,))
    assert seal.open(before) is None


def test_a_file_that_is_being_written_is_not_read_yet(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    read: list[str] = []

    async def change() -> None:
        reloading = Reloading()
        reloading.add(lambda: read.append(file.read_text()) or "", str(file))  # type: ignore[func-returns-value]
        reloading.begin()
        for number in range(5):  # it changes between any two looks
            file.write_text("half" * number)
            os.utime(file, ns=(number, number))
            await put_forward(1.0)
        assert read == []
        await until(lambda: read)

    run(change())
    assert read == ["half" * 4]
