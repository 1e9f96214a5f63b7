"""What becomes of children when this process is killed, or as good as that."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dragoman.errors import TransportClosed
from dragoman.transports.spawn import spawn
from dragoman.transports.warden import Warden
from tests.support.waiting import PATIENCE_S, wait_until

PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}).encode()
STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.1; done"
ROOT = Path(__file__).resolve().parents[2]


def end_of(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=PATIENCE_S)
    return process.returncode


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_child_that_stays_gets_sigterm_and_one_that_ignores_that_sigkill() -> None:
    # SIGKILL would overtake a SIGTERM that a busy machine is slow to deliver.
    patient, warden = Warden(grace_s=2), Warden(grace_s=0.1)
    stays = spawn(["sleep", "600"], warden=patient)
    stubborn = spawn(["sh", "-c", STUBBORN], warden=warden)
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    patient.close()
    warden.close()
    assert end_of(stubborn) == -signal.SIGKILL
    assert end_of(stays) == -signal.SIGTERM


def test_what_a_child_started_goes_with_it() -> None:
    warden = Warden(grace_s=0.1)
    wrapper = spawn(["sh", "-c", f'sh -c "{STUBBORN.replace("$", chr(92) + "$")}" & exec sleep 600'], warden=warden)
    assert wrapper.stdout is not None
    started = int(wrapper.stdout.readline())
    warden.close()
    wait_until(lambda: not is_alive(started))
    end_of(wrapper)


def test_a_child_that_is_forgotten_is_left_alone() -> None:
    warden = Warden(grace_s=0.1)
    one, other = (spawn(["sleep", "600"], warden=warden) for _ in range(2))
    warden.forget(one.pid)
    warden.close()
    assert end_of(other) < 0
    assert one.poll() is None
    one.kill()
    end_of(one)


def test_forgetting_who_was_never_known_changes_nothing() -> None:
    warden = Warden(grace_s=0.1)
    stubborn = spawn(["sh", "-c", STUBBORN], warden=warden)
    assert stubborn.stdout is not None
    stubborn.stdout.readline()
    for _ in range(18):  # each once doubled the list of groups
        warden.forget(2**22 + 1)
    warden.close()
    assert end_of(stubborn) == -signal.SIGKILL


def test_it_begins_before_the_first_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the midst of its start, a process has nobody left who could begin then."""
    order: list[str] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, command: list[str], *arguments: object, **more: object) -> None:
            order.append(command[0])
            super().__init__(command, *arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", Noted)
    warden = Warden()
    end_of(spawn(["true"], warden=warden))
    with pytest.raises(TransportClosed):
        spawn(["/no/such/server"], warden=warden)
    warden.close()
    assert order == ["/bin/sh", "true", "/no/such/server"]


def test_a_shell_that_hangs_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\nexec sleep 600\n")
    shell.chmod(0o755)
    monkeypatch.setattr("dragoman.transports.early.SHELL", str(shell))
    monkeypatch.setattr("dragoman.transports.warden._START_S", 0.2)
    with caplog.at_level(logging.INFO, "dragoman.stdio"):
        process = spawn([sys.executable, "-c", "input()"], warden=Warden())
    assert "servers are left behind if this process is killed by SIGKILL" in caplog.text
    end_of(process)


def test_it_is_no_child_of_ours() -> None:
    before = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    warden = Warden()
    warden.watch(2**22 + 1)
    assert set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()) <= set(before)
    warden.forget(2**22 + 1)
    warden.close()


def test_without_a_shell_nothing_else_is_different(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dragoman.transports.early.SHELL", "/no/shell")
    warden = Warden()
    with caplog.at_level(logging.INFO, "dragoman.stdio"):
        process = spawn([sys.executable, "-c", "input()"], warden=warden)
        warden.forget(process.pid)
    warden.close()
    assert "left behind if this process is killed by SIGKILL: no /no/shell" in caplog.text
    end_of(process)


@pytest.mark.parametrize("front", ["stdio", "listen"])
def test_a_proxy_that_is_killed_leaves_no_server_behind(front: str, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    # What it reads comes when it was made known to whoever ends it.
    server = ["sh", "-c", f"trap '' TERM; read line; sleep 600 & echo $$ $! > {note}; while :; do sleep 0.1; done"]
    options = ["--listen", "http://127.0.0.1:0"] if front == "listen" else []
    with contextlib.ExitStack() as stack:
        proxy = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "dragoman", "proxy", *options, "--", *server],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=ROOT,
                bufsize=0,
            )
        )
        if front == "listen":
            assert proxy.stderr is not None
            stack.enter_context(open_session(proxy.stderr.readline().decode().split()[-1]))
        else:
            assert proxy.stdin is not None
            proxy.stdin.write(INITIALIZE + b"\n")
        wait_until(lambda: note.exists() and len(note.read_text().split()) == 2)
        proxy.kill()
        proxy.wait(PATIENCE_S)
    pids = [int(pid) for pid in note.read_text().split()]
    wait_until(lambda: not any(map(is_alive, pids)))


def open_session(url: str) -> socket.socket:
    """Ask for a session, and wait for nothing."""
    host = urlsplit(url).netloc
    head = f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(INITIALIZE)}\r\n\r\n"
    client = socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])))
    client.sendall(head.encode() + INITIALIZE)
    return client
