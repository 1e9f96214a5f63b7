"""What the tests themselves stand on: signals as a terminal leaves them, waits that end, and servers that are ended."""

from __future__ import annotations

import ast
import asyncio
import errno
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bench.peers import started
from tests.mutants.__main__ import LEFT
from tests.peers import visits
from tests.peers.ahead import ahead
from tests.support import commands, strictness
from tests.support.lines import Lines
from tests.support.waiting import IdleClockLoop, hang, pass_time, run, until, wait_until

ROOT = Path(__file__).parents[1]
STARTED_BY_A_TEST = """
import subprocess, sys
from tests.support.signals import heed_signals
heed_signals()
code = "import signal; print(*[n.name for n in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is signal.SIG_IGN])"
subprocess.run([sys.executable, "-c", code], timeout=60)
"""  # noqa: E501


def saying(code: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, stderr=pipe)


def test_what_a_test_starts_ignores_no_signal_though_the_run_was_started_to() -> None:
    command = ["sh", "-c", 'trap "" HUP INT TERM; exec "$@"', "sh", sys.executable, "-c", STARTED_BY_A_TEST]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "\n"


def test_a_run_that_was_started_to_ignore_a_hangup_goes_on_ignoring_it() -> None:
    code = "import os, signal; from tests.support.signals import heed_signals; heed_signals()\n"
    code += "os.kill(os.getpid(), signal.SIGHUP); print('still here')"
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "still here\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("revisions",), ""),
        (("list", "--", "true"), ""),
        (("proxy", "--", "cat"), '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'),
        (("convert", "--from", "2025-06-18", "--to", "2024-11-05"), "nonsense\n"),
    ],
)
def test_a_command_does_the_same_whether_its_interpreter_is_its_own_or_not(words: tuple[str, ...], said: str) -> None:
    here = commands.dragoman(*words, input=said)
    apart = subprocess.run(
        [*commands.COLD, *words], input=said, capture_output=True, text=True, timeout=60, check=False
    )
    assert (here.returncode, here.stdout, here.stderr) == (apart.returncode, apart.stdout, apart.stderr)


@pytest.mark.parametrize("folder", ["tests/browser", "tests/peers"])
def test_tests_that_have_a_session_of_their_own_can_be_collected(folder: str) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout


def test_a_line_that_does_not_come_is_not_waited_for_without_end() -> None:
    with saying("import sys; print('half', end='', flush=True); sys.stdin.read()") as process:
        with pytest.raises(TimeoutError, match=r"no line within 0\.2 s, only b'(half)?'"):
            Lines(process.stdout, 0.2).read()
        process.communicate(timeout=60)


def test_lines_come_one_by_one_and_the_rest_at_the_end() -> None:
    with saying("import sys; print(1); print(2); print(3); print('err', file=sys.stderr)") as process:
        lines = Lines(process.stdout)
        assert (lines.read(), lines.rest(process)) == (b"1\n", (b"2\n3\n", b"err\n"))


def test_the_rest_of_stderr_comes_with_what_was_read_ahead() -> None:
    with saying("import sys; sys.stderr.write('a\\nb\\n'); print(1)") as process:
        lines = Lines(process.stderr)
        assert (lines.read(), lines.rest(process)) == (b"a\n", (b"1\n", b"b\n"))


def test_the_end_of_a_pipe_is_an_empty_line() -> None:
    with saying("print(1, end='')") as process:
        lines = Lines(process.stdout)
        assert (lines.read(), lines.read()) == (b"1", b"")
        process.communicate(timeout=60)


def test_a_server_of_the_benchmarks_is_ended_though_what_is_done_with_it_fails() -> None:
    code = "import sys, time; print('listening on http://127.0.0.1:1/mcp', file=sys.stderr, flush=True); time.sleep(20)"
    with pytest.raises(ValueError, match="it failed"), started((sys.executable, "-c", code)) as (process, _):
        raise ValueError("it failed")
    assert process.returncode == -signal.SIGTERM


def test_a_proxy_is_not_taken_for_a_server_that_writes_into_the_same_log(tmp_path: Path) -> None:
    code = (
        "import sys, time; print('a server listening on port 1', 'listening on http://127.0.0.1:2/mcp',"
        " sep='\\n', file=sys.stderr, flush=True); time.sleep(20)"
    )
    with visits.started([sys.executable, "-c", code], tmp_path / "log", announced_on_stderr=True) as line:
        assert line == "listening on http://127.0.0.1:2/mcp\n"


def refusing(times: int, number: int) -> list[int]:
    """Make a visit that the system refuses so often, and give the visits that were tried."""
    tried: list[int] = []

    @ahead
    def visit() -> dict[str, int]:
        tried.append(len(tried))
        if len(tried) <= times:
            raise OSError(number, "refused")
        return {"after": len(tried)}

    assert visit() == {"after": times + 1}
    return tried


def test_a_visit_whose_process_the_system_did_not_start_is_made_again() -> None:
    assert refusing(1, errno.EFAULT) == [0, 1]


@pytest.mark.parametrize(("times", "number"), [(2, errno.EFAULT), (1, errno.ENOENT)])
def test_a_visit_that_fails_otherwise_or_again_fails(times: int, number: int) -> None:
    with pytest.raises(OSError, match="refused"):
        refusing(times, number)


def test_a_clock_that_counts_idle_time_stands_still_while_the_machine_stops_us() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        one, other = socket.socketpair()
        arrived = loop.create_future()
        loop.add_reader(other, lambda: arrived.done() or arrived.set_result(loop.time()))
        began = loop.time()
        one.send(b"x")
        threading.Event().wait(0.3)
        async with asyncio.timeout(0.2):
            taken = await arrived - began
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await hang()
        loop.remove_reader(other)
        one.close()
        other.close()
        return taken, loop.time() - began

    taken, passed = run(main())
    assert taken < 0.1
    assert 0.2 <= passed < 0.3


def test_a_clock_that_is_put_forward_makes_what_is_due_happen() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, IdleClockLoop)
        waiting = asyncio.create_task(pass_time(3600))
        await asyncio.sleep(0)
        loop.skip(3600)
        await asyncio.wait_for(waiting, 60)

    run(main())


def test_what_does_not_come_about_is_not_waited_for_without_end() -> None:
    with pytest.raises(TimeoutError, match=r"within 0\.02 s"):
        wait_until(lambda: False, 0.02)
    with pytest.raises(TimeoutError):
        run(until(lambda: False, 0.02))


def sleeps(path: Path) -> list[str]:
    """Give where a file sleeps, but for a turn of the event loop."""
    calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    return [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for call in calls
        if ast.unparse(call.func) in ("asyncio.sleep", "time.sleep", "sleep")
        and ast.unparse(call) != "asyncio.sleep(0)"
    ]


def test_no_test_sleeps() -> None:
    """What takes its time by itself, as a program of its own, may; and so may who lives in a world of virtual time."""
    apart = (*(ROOT / "tests" / name for name in ("support/waiting.py", "soak", "proxy/servers", "world")),)
    files = [path for path in (ROOT / "tests").rglob("*.py") if not {path, *path.parents} & {*apart}]
    assert len(files) > 200
    assert [place for path in files for place in sleeps(path)] == []


def test_no_test_thaws_what_is_frozen() -> None:
    """Else whatever looks for cycles later on, in the same process, looks through all tests, which takes a second."""
    thaws = re.compile(r"\bgc\.unfreeze\(")
    assert [path.name for path in (ROOT / "tests").rglob("*.py") if thaws.search(path.read_text("utf-8"))] == []


def test_what_a_decision_keeps_may_stay_in_the_place_that_it_names_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = '[[decision]]\ndirection = "down"\nchange = "field-removed"\nat = "{}"\ndo = "{}"\n'
    (tmp_path / "2025-11-25.toml").write_text(row.format("Tool.execution", "keep") + row.format("Tool.icons", "drop"))
    monkeypatch.setattr(strictness, "OVERLAYS", tmp_path)
    monkeypatch.setattr(strictness, "decided_to_keep", strictness.decided_to_keep.__wrapped__)
    tool = {"name": "t", "inputSchema": {"type": "object"}}
    judge = strictness.strict_validator.__wrapped__("2025-11-25", "2025-06-18", "Tool")
    found = [judge.is_valid({**tool, **more}) for more in ({"execution": {}}, {"icons": []}, {"other": 1})]
    assert found == [True, False, True]


def test_a_mutant_has_every_file_that_tests_read() -> None:
    there = {path.name for path in ROOT.iterdir()}
    assert not LEFT(str(ROOT), sorted(there)) & {".ci", ".github", ".gitattributes", ".dockerignore", "docs", "schema"}


@pytest.mark.parametrize("profile", ["", "whole", "thorough"])
def test_a_random_test_has_no_deadline_which_a_busy_machine_would_miss(profile: str) -> None:
    code = "import tests.conftest, hypothesis; print(hypothesis.settings().deadline)"
    environment = {**os.environ, "DRAGOMAN_PROFILE": profile}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "None\n"
