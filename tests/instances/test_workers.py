"""One proxy in several processes."""

from __future__ import annotations

import os
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.instances.test_several import CALL, INITIALIZED
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it looks for processes in /proc")


def workers_of(proxy: Listening) -> list[int]:
    pid = proxy.process.pid
    return [int(found) for found in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def instances_of(proxy: Listening, tries: int = 64) -> dict[str, str]:
    """Open sessions until two workers have had some; give one session of each instance."""
    found: dict[str, str] = {}
    for _ in range(tries):
        session = proxy.post(INITIALIZE)[1]["mcp-session-id"]
        found.setdefault(session.partition(".")[0], session)
        if len(found) == 2:
            break
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_each_worker_serves_the_sessions_of_all() -> None:
    with listening("--workers", "2") as proxy:
        sessions = instances_of(proxy)
        assert len(sessions) == 2
        for session in sessions.values():
            assert proxy.post(INITIALIZED, mcp_session_id=session)[0] == 202
            for _ in range(8):  # each by a connection of its own, for which the system chooses a worker
                assert proxy.post(CALL, mcp_session_id=session)[0] == 200
        status, said = proxy.end()
    assert status == 143
    assert "Error" not in said


def test_a_worker_that_died_is_started_again() -> None:
    with listening("--workers", "2", "--max-sessions", "1000") as proxy:
        first, second = workers_of(proxy)
        os.kill(first, signal.SIGKILL)
        assert b"worker 0 ended with -9, and is started again" in proxy.lines.read()
        wait_until(lambda: len(workers_of(proxy)) == 2 and first not in workers_of(proxy))
        assert second in workers_of(proxy)
        wait_until(lambda: len(instances_of(proxy, 4)) == 2)
        assert proxy.end()[0] == 143


def test_no_worker_outlives_its_parent() -> None:
    with listening("--workers", "2") as proxy:
        workers = workers_of(proxy)
        proxy.process.kill()
        proxy.process.wait(PATIENCE_S)
        wait_until(lambda: not any(is_running(pid) for pid in workers))


def test_a_hangup_is_for_every_worker(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada secret-of-ada-0001\n")
    tokens.chmod(0o600)
    with listening("--workers", "2", "--auth-token-file", str(tokens)) as proxy:
        tokens.write_text("bob secret-of-bob-0001\n")
        proxy.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: all(proxy.post(INITIALIZE, authorization="Bearer secret-of-bob-0001")[0] == 200 for _ in range(8))
        )
        assert proxy.post(INITIALIZE, authorization="Bearer secret-of-ada-0001")[0] == 401


def test_what_no_worker_can_do_ends_all(tmp_path: Path) -> None:
    chain = tmp_path / "chain.pem"
    chain.write_text("no certificate")
    options = ("--workers", "2", "--tls-cert", str(chain))
    with listening(*options, url="https://127.0.0.1:0") as proxy:
        assert "cannot use" in proxy.first_line
        assert proxy.process.wait(PATIENCE_S) == 1


def test_a_port_that_is_taken_is_named() -> None:
    with listening() as other:
        port = other.url.split(":")[2].partition("/")[0]
        with listening("--workers", "2", url=f"http://127.0.0.1:{port}") as proxy:
            assert proxy.first_line == "dragoman proxy: --workers: Address already in use\n"
            assert proxy.process.wait(PATIENCE_S) == 1


def test_each_worker_has_its_own_figures(tmp_path: Path) -> None:
    port = free_port()
    with listening("--workers", "2", "--metrics-listen", f"http://127.0.0.1:{port}") as proxy:
        for number in range(2):
            with urllib.request.urlopen(f"http://127.0.0.1:{port + number}/metrics", timeout=PATIENCE_S) as page:
                assert b"dragoman_places" in page.read()
        assert proxy.end()[0] == 143


def test_the_page_shows_one_process_alone() -> None:
    with listening("--workers", "2", "--inspect") as proxy:
        assert (
            "--inspect shows one process" in proxy.first_line + proxy.lines.rest(proxy.process, PATIENCE_S)[1].decode()
        )
        assert proxy.process.returncode == 2
