"""Children; `test_standard_streams.py` has our own stdin and stdout."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

from dragoman.errors import TransportClosed
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildPatience, ChildTransport, describe_exit
from tests.support.frames import sent
from tests.support.systems import OF_LOOP
from tests.support.waiting import IdleClockLoop, pass_time, run, until
from tests.transports.recorder import Recorder

SHORT = ChildPatience(after_eof_s=0.3, after_term_s=0.3, after_exit_s=0.2)
"""With children of which it does not matter how they go."""

LONG = ChildPatience(after_eof_s=30, after_term_s=30, after_exit_s=30)
"""With children that go by themselves or by a signal, on a busy machine too; `lose_patience` puts an end to it."""

ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.flush()"


def python(code: str, patience: ChildPatience = SHORT) -> ChildTransport:
    return ChildTransport(spawn([sys.executable, "-c", code]), patience)


async def lose_patience(times: int = 1) -> None:
    """Put the clock forward, so that whoever waits for a child with `LONG` goes on to the next step."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, IdleClockLoop)
    for _ in range(times):
        await pass_time(0.01)
        loop.skip(30)


def run_child(code: str, said: bytes = b"", heard: bytes = b"", signals: int = 0) -> tuple[ChildTransport, Recorder]:
    """Talk to a child until it has said what is expected, then close it, and send it so many signals to that end."""

    async def main() -> tuple[ChildTransport, Recorder]:
        child = python(code, LONG)
        recorder = Recorder()
        child.start(recorder)
        child.send(sent(said))
        await recorder.until(lambda: recorder.data == heard)
        closing = asyncio.create_task(child.close())
        await lose_patience(signals)
        await closing
        assert recorder.end is not None
        return child, recorder

    return run(main())


def test_a_child_is_talked_to_and_goes_at_the_end_of_its_input() -> None:
    child, recorder = run_child(ECHO, b"hello\n", b"hello\n")
    assert (child.process.returncode, recorder.end) == (0, "the server exited with status 0")


def test_a_child_that_stays_is_terminated() -> None:
    child, recorder = run_child("import time; print(1, flush=True); time.sleep(600)", heard=b"1\n", signals=1)
    assert child.process.returncode == -signal.SIGTERM
    assert recorder.end == "the server was killed by SIGTERM"


def test_a_child_that_ignores_that_is_killed() -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    child, recorder = run_child(code, heard=b"1\n", signals=2)
    assert child.process.returncode == -signal.SIGKILL
    assert recorder.end == "the server was killed by SIGKILL"


def test_last_words_after_the_end_of_input_are_heard() -> None:
    code = "import sys; print(1, flush=True); sys.stdin.read(); print('bye', flush=True)"

    async def main() -> None:
        child = python(code, LONG)
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.data == b"1\n")
        await child.close()
        assert recorder.data == b"1\nbye\n"

    run(main())


def test_the_end_is_told_after_the_last_bytes_with_the_exit_status() -> None:
    async def main() -> None:
        child = python("import sys; sys.stdout.write('x' * 500_000); sys.stdout.flush(); sys.exit(3)")
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.end is not None)
        assert (len(recorder.data), recorder.end) == (500_001, "the server exited with status 3")
        await child.close()

    run(main())


def test_a_grandchild_that_holds_the_output_open_does_not_hold_us_up() -> None:
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"

    async def main() -> None:
        child = python(code)
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.end is not None)
        await asyncio.wait_for(child.close(), 60)
        assert recorder.end == "the server exited with status 0"

    run(main())


def test_last_words_can_be_held_back_while_a_child_is_closed() -> None:
    code = "import sys; print(1, flush=True); sys.stdin.read(); sys.stdout.write('x' * 5_000_000)"

    async def main() -> None:
        child = python(code, LONG)
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.data == b"1\n")
        child.pause_reading()
        closing = asyncio.create_task(child.close())
        await pass_time(0.1)
        assert recorder.data == b"1\n"
        child.resume_reading()
        await asyncio.wait_for(closing, 60)
        assert (len(recorder.data), child.process.returncode) == (5_000_003, 0)

    run(main())


def test_the_end_is_told_after_last_words_that_were_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.pipes.LOOK_S", 60)

    async def main() -> None:
        child = python("print('x' * 50_000)")
        recorder = Recorder()
        child.start(recorder)
        child.pause_reading()
        await asyncio.to_thread(child.process.wait, 60)
        await pass_time(2 * SHORT.after_exit_s)
        assert (recorder.data, recorder.end) == (b"", None)
        child.resume_reading()
        await recorder.until(lambda: recorder.end is not None)
        assert len(recorder.data) == 50_001
        await child.close()

    run(main())


@pytest.mark.parametrize("leader", ["sys.stdin.read()", "time.sleep(600)"])
@pytest.mark.parametrize("ignored", ["", "signal.signal(15, signal.SIG_IGN);"])
def test_what_a_child_started_ends_with_it(leader: str, ignored: str, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    left = f"import os, signal, time; {ignored} open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    code = (
        "import subprocess, sys, time; devnull = subprocess.DEVNULL\n"
        f"subprocess.Popen([sys.executable, '-c', {left!r}], stdin=devnull, stdout=devnull)\n"
        f"{leader}"
    )

    async def main() -> None:
        child = python(code)
        child.start(Recorder())
        await until(lambda: note.exists() and note.read_text())
        await asyncio.wait_for(child.close(), 60)
        await until(lambda: is_gone(note.read_text()))

    run(main())


def is_gone(pid: str) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def test_a_child_that_is_closed_is_gone_without_a_search_for_cycles() -> None:
    async def main() -> weakref.ref[ChildTransport]:
        child = python(ECHO, LONG)
        child.start(Recorder())
        await child.close()
        return weakref.ref(child)

    gc.disable()
    try:
        assert run(main())() is None
    finally:
        gc.enable()


@OF_LOOP
def test_children_take_no_threads() -> None:
    async def main() -> None:
        before = threading.active_count()
        children = [python(ECHO, LONG) for _ in range(3)]
        for child in children:
            child.start(Recorder())
        assert threading.active_count() == before
        await asyncio.gather(*(child.close() for child in children))

    run(main())


@pytest.mark.parametrize("kind", ["none", "no descriptor is left"])
def test_the_end_of_a_child_is_seen_where_the_system_tells_nobody(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> int:
        raise OSError(24, kind)

    if kind == "none":
        monkeypatch.delattr(os, "pidfd_open")
    else:
        monkeypatch.setattr(os, "pidfd_open", fail)

    async def main() -> None:
        child = python("raise SystemExit(3)")
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.end is not None)
        assert recorder.end == "the server exited with status 3"
        await child.close()

    run(main())


def test_a_child_that_closes_its_output_and_stays_is_reported() -> None:
    async def main() -> None:
        child = python("import os, time; os.close(1); time.sleep(600)", LONG)
        recorder = Recorder()
        child.start(recorder)
        while recorder.end is None:
            await lose_patience()
        assert recorder.end == "the server closed its output"
        closing = asyncio.create_task(child.close())
        await lose_patience()
        await closing
        assert child.process.returncode == -signal.SIGTERM

    run(main())


def test_a_child_that_does_not_read_is_not_waited_for_long() -> None:
    async def main() -> None:
        child = python("import time; print(1, flush=True); time.sleep(600)")
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.data == b"1\n")
        child.send(sent(b"x" * 5_000_000))
        assert recorder.paused
        await asyncio.wait_for(child.close(), 60)

    run(main())


def test_reading_can_be_paused() -> None:
    async def main() -> None:
        child = python(ECHO)
        recorder = Recorder()
        child.start(recorder)
        child.pause_reading()
        child.send(sent(b"a\n"))
        await pass_time(0.2)
        assert recorder.data == b""
        child.resume_reading()
        await recorder.until(lambda: recorder.data == b"a\n")
        await child.close()

    run(main())


def test_a_transport_that_was_never_started_leaves_the_child_to_its_owner() -> None:
    async def main() -> None:
        child = python(ECHO)
        child.send(sent(b"nobody hears this"))
        child.pause_reading()
        child.resume_reading()
        await child.close()
        assert child.process.poll() is None
        child.process.communicate(timeout=60)

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="no other system says whether a pipe was read")
def test_it_is_known_whether_a_child_has_read_what_it_was_sent(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    code = f"import sys\nopen({str(gate)!r}).read()\nsys.stdin.readline()\nprint('read', flush=True)\nsys.stdin.read()"

    async def main() -> None:
        child = python(code, LONG)
        recorder = Recorder()
        assert not child.was_read()
        child.start(recorder)
        child.send(sent(b"question\n"))
        opened = await asyncio.to_thread(os.open, gate, os.O_WRONLY)
        assert not child.was_read()
        os.close(opened)
        await recorder.until(lambda: recorder.data == b"read\n")
        assert child.was_read()
        await child.close()
        assert not child.was_read()

    run(main())


@pytest.mark.parametrize(
    ("command", "words"),
    [("no-such-thing", "not found"), ("/", "cannot be run: permission denied$"), ("a\0b", "null"), ("", "^''")],
)
def test_what_cannot_be_started_is_named(command: str, words: str) -> None:
    with pytest.raises(TransportClosed, match=words):
        spawn([command])


def test_an_unknown_signal_is_named_by_number() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    process.returncode = -99
    assert describe_exit(process) == "the server was killed by signal 99"


def test_a_hurried_patience_is_short() -> None:
    hurried = ChildPatience().hurried()
    assert hurried.after_eof_s + hurried.after_term_s < 2
    assert ChildPatience(0.1, 0.1, 0.1).hurried() == ChildPatience(0.1, 0.1, 0.1)


def test_a_child_is_hurried_while_it_is_waited_for() -> None:
    async def main() -> None:
        patient = ChildPatience(after_eof_s=600, after_term_s=600, after_exit_s=0.2)
        child = python("import time; print(1, flush=True); time.sleep(1200)", patient)
        recorder = Recorder()
        child.start(recorder)
        await recorder.until(lambda: recorder.data == b"1\n")
        closing = asyncio.create_task(child.close())
        await pass_time(0.05)
        child.hurry()
        await asyncio.wait_for(closing, 60)
        assert child.process.returncode in (-signal.SIGTERM, -signal.SIGKILL)  # where it took its time to go

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="it takes Linux to be given orphans without being process 1")
def test_what_a_child_left_behind_is_reaped_where_that_is_up_to_us() -> None:
    """As in a container whose first process we are: no zombie stays, and none is waited for."""
    code = """
import asyncio, ctypes, os, sys
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport, ChildPatience
from tests.transports.recorder import Recorder

ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER

async def main():
    child = ChildTransport(spawn(["sh", "-c", "sleep 0.2 & exec cat"]), ChildPatience(30, 30, 30))
    child.start(Recorder())
    await child.close()
    print(open(f"/proc/self/task/{os.getpid()}/children").read().split())

asyncio.run(main())
"""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, cwd=root, check=False)
    assert (done.stdout, done.stderr) == (b"[]\n", b"")
