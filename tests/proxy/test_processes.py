"""`dragoman proxy` as a process, with small servers, some of them bad on purpose, as its children."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import READY, initialize, request, result
from tests.support import commands
from tests.support.lines import Lines
from tests.support.waiting import stall

A, B, C, D = HANDSHAKE_REVISIONS
SERVER = [sys.executable, str(Path(__file__).parent / "servers" / "scripted.py")]
PATIENCE_S = 60


class Running:
    """A proxy that runs, and a client that talks to it."""

    def __init__(
        self, *arguments: str, command: list[str] | None = None, options: tuple[str, ...] = (), is_cold: bool = False
    ) -> None:
        line = [sys.executable, "-m", "dragoman", "proxy", *options, "--", *(command or [*SERVER, *arguments])]
        start = subprocess.Popen if is_cold else commands.start
        self.process = start(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.heard = Lines(self.process.stdout, PATIENCE_S)
        self.stderr = ""

    def say(self, *frames: Any) -> None:
        assert self.process.stdin is not None
        for frame in frames:
            self.process.stdin.write(frame if isinstance(frame, bytes) else json.dumps(frame).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        line = self.heard.read()
        assert line, "the proxy closed its output"
        return json.loads(line)

    def open(self, revision: str = A, **capabilities: Any) -> Any:
        self.say(initialize(revision, **capabilities))
        answer = self.hear()
        self.say(READY)
        return answer

    def end(self) -> tuple[int, list[Any]]:
        """Close the client's end; give the exit code and what was still said."""
        out, err = self.heard.rest(self.process, PATIENCE_S)
        self.stderr = err.decode()
        assert "Traceback" not in self.stderr
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]


@contextmanager
def running(*arguments: str, **how: Any) -> Iterator[Running]:
    run = Running(*arguments, **how)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.process.kill()
        for stream in (run.process.stdin, run.process.stdout, run.process.stderr):
            if stream is not None:
                stream.close()
        run.process.wait(PATIENCE_S)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def call(key: Any, name: str) -> dict[str, Any]:
    return request(key, "tools/call", name=name)


@pytest.mark.parametrize(("client_revision", "server_revision"), [(A, D), (D, A), (C, C)])
def test_a_session_goes_from_start_to_end(client_revision: str, server_revision: str) -> None:
    with running("--speak", server_revision) as run:
        assert run.open(client_revision)["result"]["protocolVersion"] == client_revision
        run.say(request(1, "tools/list"))
        tool = run.hear()["result"]["tools"][0]
        assert ("title" in tool) == (client_revision >= C)
        code, rest = run.end()
        assert (code, rest) == (0, [])
        assert "scripted server is up" in run.stderr


def test_a_script_piped_in_is_served() -> None:
    script = [initialize(A), READY, call(1, "slow"), request(2, "tools/list")]
    lines = b"".join(json.dumps(frame).encode() + b"\n" for frame in script)
    with running("--speak", D) as run:
        out, err = run.process.communicate(lines, timeout=PATIENCE_S)
    assert [json.loads(line)["id"] for line in out.splitlines()] == [0, 1, 2]
    assert run.process.returncode == 0, err


def test_stdin_and_stdout_may_be_files(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(
        b"".join(json.dumps(f).encode() + b"\n" for f in (initialize(A), READY, call(1, "x")))
    )
    command = [sys.executable, "-m", "dragoman", "proxy", "--", *SERVER, "--speak", D]
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        done = commands.run(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in (tmp_path / "out").read_bytes().splitlines()] == [0, 1]


def test_only_the_protocol_is_on_stdout_and_losses_are_on_stderr() -> None:
    info = ("--log-level", "info")
    with running("--speak", D, "--behave", "banner", "garbage", options=info) as run:
        run.open(A)
        run.say(request(1, "tools/list"))
        assert run.hear()["id"] == 1
        run.end()
        assert "tools/list result, 2025-11-25 to 2024-11-05: dropped /result/tools/0/icons" in run.stderr
        assert run.stderr.count("malformed line from the server") + run.stderr.count("is not JSON-RPC") >= 5


def test_a_server_asks_and_the_client_answers() -> None:
    with running("--speak", D) as run:
        run.open(A, roots={})
        run.say(call(1, "ask"))
        asked = run.hear()
        assert asked["method"] == "roots/list"
        run.say(result(asked["id"], {"roots": []}))
        assert run.hear()["params"]["data"] == result("ask-1", {"roots": []})


def test_a_server_that_rejects_is_offered_what_it_supports() -> None:
    with running("--only", A) as run:
        assert run.open(D)["result"]["protocolVersion"] == D
        run.say(call(1, "x"))
        assert run.hear()["result"]["content"][0]["type"] == "audio"
        assert run.end()[0] == 0
        assert "the server rejected 2025-11-25" in run.stderr


def test_a_server_that_dies_of_rejecting_is_started_again(tmp_path: Path) -> None:
    note = tmp_path / "starts"
    with running("--only", A, "--note", str(note), "--behave", "die-on-rejection") as run:
        assert run.open(D)["result"]["protocolVersion"] == D
        assert len(note.read_text().split()) == 2
        assert run.end()[0] == 0


def test_a_rejection_is_final_when_the_retry_is_off() -> None:
    with running("--only", A, options=("--no-retry-older",)) as run:
        run.say(initialize(D))
        error = run.hear()["error"]
        assert (error["code"], error["data"]["supported"], error["data"]["requested"]) == (-32602, [A], D)
        assert run.end()[0] == 4


@pytest.mark.parametrize(
    ("name", "reason"),
    [("die", "exited with status 9"), ("crash", "killed by SIGKILL"), ("close-output", "closed its output")],
)
def test_a_server_that_goes_away_is_named_to_who_waits(name: str, reason: str) -> None:
    with running("--speak", D) as run:
        run.open(A)
        run.say(call("k", name))
        frame = run.hear()
        assert frame["id"] == "k"
        assert reason in frame["error"]["message"]
        assert run.end()[0] == 3


def test_a_server_that_closes_its_input_may_still_answer() -> None:
    with running("--speak", D) as run:
        run.open(A)
        run.say(call(1, "close-input"))
        assert run.hear()["result"] == {"content": []}
        run.say(request(2, "ping"))
        assert "closed its input" in run.hear()["error"]["message"]
        assert run.end()[0] == 3


def test_a_server_that_dies_on_initialize_is_named() -> None:
    with running("--behave", "die-on-initialize") as run:
        run.say(initialize(A), request(1, "tools/list"))
        assert "exited with status 7" in run.hear()["error"]["message"]
        assert run.hear()["id"] == 1
        assert run.end()[0] == 3


def test_a_server_that_does_not_answer_initialize_times_out() -> None:
    with running("--behave", "hang-on-initialize", options=("--init-timeout", "0.3")) as run:
        run.say(initialize(A))
        assert run.hear()["error"]["data"]["error"] == "InitializationTimeout"
        assert run.end()[0] == 5


UNSTARTABLE = [("no-such-command", 127, "not found"), ("/", 126, "cannot be run")]


@pytest.mark.parametrize(("command", "code", "words"), UNSTARTABLE)
def test_a_server_that_cannot_be_started_is_named(command: str, code: int, words: str) -> None:
    with running(command=[command]) as run:
        run.say(initialize(A))
        assert words in run.hear()["error"]["message"]
        assert run.end()[0] == code
        assert words in run.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_session_in_order(number: signal.Signals, code: int) -> None:
    with running("--speak", D) as run:
        run.open(A)
        run.say(call(1, "env"))
        pid, group = json.loads(run.hear()["result"]["content"][0]["text"])
        assert group == pid != os.getpgid(run.process.pid)
        run.say(call(2, "hang"), request(3, "ping"))
        assert run.hear()["id"] == 3
        run.process.send_signal(number)
        assert number.name in run.hear()["error"]["message"]
        assert run.end()[0] == code
        assert not is_alive(pid)


@pytest.mark.parametrize("behaviour", [["linger"], ["linger", "ignore-term"], ["linger", "grandchild"]])
def test_a_server_that_does_not_go_is_made_to(behaviour: list[str]) -> None:
    with running("--speak", D, "--behave", *behaviour) as run:
        run.open(A)
        run.say(call(1, "env"))
        pid = json.loads(run.hear()["result"]["content"][0]["text"])[0]
        run.process.send_signal(signal.SIGTERM)
        assert run.end()[0] == 143
        assert not is_alive(pid)


def test_a_client_that_does_not_read_any_more_ends_the_session() -> None:
    with running("--speak", D) as run:
        run.open(A)
        assert run.process.stdout is not None
        run.process.stdout.close()
        run.say(request(1, "ping"))
        assert run.process.wait(PATIENCE_S) == 0


def test_a_large_frame_crosses_whole_while_the_client_is_slow() -> None:
    with running("--speak", D) as run:
        run.open(D)
        big = request(1, "echo/this", text="x" * 3_000_000)
        run.say(big)
        stall(0.3)
        assert run.hear()["result"] == big["params"]
        assert run.end()[0] == 0


def test_missing_standard_descriptors_are_no_disaster() -> None:
    command = [sys.executable, "-m", "dragoman", "proxy", "--", *SERVER]
    done = commands.run(["sh", "-c", 'exec "$@" <&- >&-', "sh", *command], stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


def test_a_stderr_that_nobody_reads_does_not_stop_the_session() -> None:
    with running("--speak", D) as run:
        run.open(A)
        for key in range(3000):  # each is a line of the log
            run.say(b"not JSON\n", request(key, "tools/list"))
            assert [run.hear()["id"], run.hear()["id"]].count(key) == 1
        assert run.end()[0] == 0
        assert run.stderr.count("malformed line") < 3000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see memory")
@pytest.mark.parametrize("client_revision", [A, D])
def test_memory_is_bounded_while_a_client_does_not_read(client_revision: str) -> None:
    with running("--speak", D, is_cold=True) as run:
        run.open(client_revision)
        run.say(call(1, "flood"))
        stall(0.5)
        status = Path(f"/proc/{run.process.pid}/status").read_text()
        (peak_kb,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert peak_kb < 100_000
        frames = [run.hear() for _ in range(201)]
        assert frames[-1]["id"] == 1
        assert run.end()[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--client-revision", "2026-07-28"), "says so with each request"),
        (("--server-revision", "1999-01-01"), "no revision"),
        (("--init-timeout", "0"), "seconds"),
        (("--init-timeout", "soon"), "seconds"),
        (("--on-loss", "cry"), "cry"),
        (("--no-rule", "no-such-rule"), "no-such-rule"),
    ],
)
def test_a_wrong_flag_is_explained(options: tuple[str, ...], words: str) -> None:
    with running(options=options) as run:
        assert run.end()[0] == 2
        assert words in run.stderr
