"""What a service manager is told, and what it gives: a made-up one, which hears at a socket of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.supervisor import Supervisor
from tests.cli.test_listen import INITIALIZE, PROXY, listening
from tests.support.waiting import PATIENCE_S

SHOWS_ITS_VARIABLES = """
import json, os, sys
found = sorted(name for name in os.environ if name.startswith(("NOTIFY", "LISTEN", "WATCHDOG")))
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        told = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        told["instructions"] = ",".join(found)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


class Manager:
    """Hears what services say."""

    def __init__(self, where: str) -> None:
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.channel.settimeout(PATIENCE_S)
        self.channel.bind(where)

    def hear(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.channel.recv(4096).decode().split("\n"))

    def hear_of(self, name: str) -> dict[str, str]:
        """Wait for a notice with this variable in it."""
        while name not in (told := self.hear()):
            pass
        return told


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    manager = Manager(str(tmp_path / "n"))
    yield manager
    manager.channel.close()


def test_a_service_says_when_it_is_ready_reads_its_files_again_and_ends(manager: Manager, tmp_path: Path) -> None:
    options = ("--shutdown-delay", "1", "--drain-timeout", "7")
    with listening(*options, NOTIFY_SOCKET=str(tmp_path / "n")) as proxy:
        assert manager.hear() == {"READY": "1", "STATUS": proxy.first_line.strip()}
        proxy.process.send_signal(signal.SIGHUP)
        reloading = manager.hear()
        assert reloading["RELOADING"] == "1"
        assert int(reloading["MONOTONIC_USEC"]) > 0
        assert manager.hear()["READY"] == "1"
        proxy.process.send_signal(signal.SIGTERM)
        stopping = manager.hear()
        assert (stopping["STOPPING"], stopping["STATUS"]) == ("1", "the proxy was stopped by SIGTERM")
        assert int(stopping["EXTEND_TIMEOUT_USEC"]) >= 8_000_000
        assert proxy.process.wait(PATIENCE_S) == 143


def test_it_gives_signs_of_life_while_it_is_watched(manager: Manager, tmp_path: Path) -> None:
    with listening(NOTIFY_SOCKET=str(tmp_path / "n"), WATCHDOG_USEC="100000"):
        for _ in range(3):
            assert manager.hear_of("WATCHDOG")["WATCHDOG"] == "1"


def test_another_process_is_watched(manager: Manager, tmp_path: Path) -> None:
    with listening(NOTIFY_SOCKET=str(tmp_path / "n"), WATCHDOG_USEC="1000", WATCHDOG_PID="1") as proxy:
        assert "READY" in manager.hear()
        proxy.process.send_signal(signal.SIGTERM)
        assert "STOPPING" in manager.hear()


def test_it_hears_at_an_abstract_name() -> None:
    name = f"dragoman-test-{os.getpid()}"
    manager = Manager(f"\0{name}")
    with contextlib.closing(manager.channel), listening(NOTIFY_SOCKET=f"@{name}"):
        assert "READY" in manager.hear()


def test_nobody_who_hears_ends_nothing(tmp_path: Path) -> None:
    with listening(NOTIFY_SOCKET=str(tmp_path / "nobody"), WATCHDOG_USEC="1000") as proxy:
        assert proxy.post(INITIALIZE)[0] == 200


def test_servers_do_not_find_what_is_between_us_and_the_manager(manager: Manager, tmp_path: Path) -> None:
    server = [sys.executable, "-c", SHOWS_ITS_VARIABLES]
    with listening("--inherit-env", "all", server=server, NOTIFY_SOCKET=str(tmp_path / "n"), LISTEN_PID="1") as proxy:
        assert proxy.post(INITIALIZE)[2]["result"]["instructions"] == ""


def activated(*made: str, count: int = 1) -> list[str]:
    """A command line that starts the proxy with this as descriptor 3, as systemd does."""
    made = made or ("socket.create_server(('127.0.0.1', 0))",)
    begin = f"import os, socket, sys; given = {made[0]}; os.dup2(given.fileno(), 3); os.set_inheritable(3, True)"
    say = f"os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='{count}')"
    return [sys.executable, "-c", f"{begin}; {say}; os.execv(sys.argv[1], sys.argv[1:])", *PROXY]


def test_it_serves_at_a_socket_that_it_is_given() -> None:
    with listening(proxy=activated()) as proxy:
        assert proxy.post(INITIALIZE)[0] == 200
        assert proxy.end()[0] == 143


@pytest.mark.parametrize(
    ("proxy", "url", "words"),
    [
        (activated(), "http://127.0.0.1:1", "and --listen says 1; use the same in both"),
        (activated(count=2), "http://127.0.0.1:0", "expected one socket, got 2; keep one ListenStream="),
        (activated("open(os.devnull)"), "http://127.0.0.1:0", "descriptor 3 is no socket"),
        (activated("socket.socket()"), "http://127.0.0.1:0", "expected a TCP socket that listens"),
        (activated("socket.socketpair()[0]"), "http://127.0.0.1:0", "expected a TCP socket that listens"),
    ],
)
def test_a_socket_of_no_use_is_named(proxy: list[str], url: str, words: str) -> None:
    with listening(proxy=proxy, url=url) as told:
        assert told.first_line.startswith("dragoman proxy: LISTEN_FDS: ")
        assert words in told.first_line
        assert told.process.wait(PATIENCE_S) == 1


def test_sockets_of_another_process_are_not_ours() -> None:
    """A shell between the manager and us hands its variables on."""
    with listening(LISTEN_FDS="1", LISTEN_PID="1") as proxy:
        assert proxy.post(INITIALIZE)[0] == 200


@pytest.mark.parametrize("count", ["", "many", "-1", "\u0663"])
def test_a_count_that_is_none_is_no_socket(count: str) -> None:
    assert Supervisor({"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": count}).take_listener(0) is None
