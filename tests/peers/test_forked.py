"""A peer that is forked does, for whoever has started it, what a process of its own interpreter does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.peers.forked import POSSIBLE, interpreter
from tests.support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="peers are not forked here")

ECHO = """
import neighbour, os, sys
print(sys.argv, os.environ.get("PEER"), os.getcwd(), sys.stdin.read(), neighbour.FOUND, __name__)
print(ascii(sys.path[0]), "caf\u00e9", file=sys.stderr)
sys.exit(len(sys.argv))
"""
WAITS = """
import os, signal, sys, time
if "heeds" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
print(os.getpid(), os.getppid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    for name, text in {
        "echo": ECHO,
        "waits": WAITS,
        "neighbour": "FOUND = 1",
        "broken": "1 +",
        "fails": "1 / 0",
    }.items():
        (tmp_path / f"{name}.py").write_text(text, "utf-8")
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


def run(python: str, *words: str, **how: Any) -> tuple[int, str, str]:
    environment = {**os.environ, "PEER": "1"}
    done = subprocess.run(
        [python, *words], capture_output=True, text=True, env=environment, timeout=PATIENCE_S, check=False, **how
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("quiet", [[], ["-W", "ignore"]])
def test_it_has_words_environment_folder_and_streams(scripts: Path, quiet: list[str]) -> None:
    forked, how = interpreter(Path(sys.executable), scripts), {"input": "said", "cwd": scripts / "elsewhere"}
    words = [*quiet, str(scripts / "echo.py"), "one", "-two"]
    assert run(forked, *words, **how) == run(sys.executable, *words, **how)
    assert run(forked, *words, **how)[0] == 3


@pytest.mark.parametrize("name", ["broken", "fails"])
def test_a_mistake_is_one_of_the_peer_alone(scripts: Path, name: str) -> None:
    forked = interpreter(Path(sys.executable), scripts)
    script = str(scripts / f"{name}.py")
    (code, out, errors), alone = run(forked, script), run(sys.executable, script)
    assert (code, out, errors.splitlines()[-1]) == (*alone[:2], alone[2].splitlines()[-1])
    assert run(forked, str(scripts / "nowhere.py"))[0] == 1
    assert run(forked, str(scripts / "echo.py"), "one")[0] == 2


def test_what_is_no_script_of_the_folder_is_started_itself(scripts: Path) -> None:
    forked = interpreter(Path(sys.executable), scripts / "elsewhere")
    told = "import sys; print(sys.executable, sys.argv)"
    assert run(forked, "-c", told, "one") == (0, f"{sys.executable} ['-c', 'one']\n", "")
    assert run(forked, str(scripts / "echo.py"), "one")[0] == 2


@pytest.mark.parametrize(
    ("words", "number", "code"),
    [(["heeds"], signal.SIGTERM, 5), ([], signal.SIGTERM, -15), ([], signal.SIGKILL, -9), ([], signal.SIGINT, -2)],
)
def test_a_signal_ends_both(scripts: Path, words: list[str], number: int, code: int) -> None:
    command = [interpreter(Path(sys.executable), scripts), str(scripts / "waits.py"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[0])
        assert pid != process.pid
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == code
        wait_until(lambda: not Path(f"/proc/{pid}").exists())


def test_they_end_apart(scripts: Path) -> None:
    command = [interpreter(Path(sys.executable), scripts), str(scripts / "waits.py")]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as one,
        subprocess.Popen(command, stdout=subprocess.PIPE) as other,
    ):
        assert one.stdout is not None
        assert other.stdout is not None
        first = int(one.stdout.readline().split()[0])
        assert other.stdout.readline()
        os.kill(first, signal.SIGUSR1)
        assert one.wait(PATIENCE_S) == -signal.SIGUSR1
        assert other.poll() is None
        other.terminate()
        assert other.wait(PATIENCE_S) == -signal.SIGTERM


def test_one_that_ends_while_it_is_given_up_takes_no_other_along(scripts: Path) -> None:
    command = [interpreter(Path(sys.executable), scripts), str(scripts / "waits.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        peer, forks = map(int, process.stdout.readline().split())
        os.kill(forks, signal.SIGSTOP)  # so it sees both at once
        os.kill(peer, signal.SIGKILL)
        wait_until(lambda: Path(f"/proc/{peer}/stat").read_text().split()[2] == "Z")
        process.kill()
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
        os.kill(forks, signal.SIGCONT)
    assert run(command[0], str(scripts / "echo.py"), "one")[0] == 2
