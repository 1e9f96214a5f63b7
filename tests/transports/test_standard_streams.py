"""Our own standard streams, towards a client."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dragoman.transports.stdio import StandardStreams, take_standard_streams
from tests.support.frames import sent
from tests.support.waiting import run
from tests.transports.recorder import Recorder


def test_standard_streams_carry_both_ways() -> None:
    async def main() -> None:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        streams = StandardStreams(in_read, out_write)
        streams.send(sent(b"before the start"))
        streams.pause_reading()
        streams.resume_reading()
        recorder = Recorder()
        streams.start(recorder)
        streams.hurry()
        os.write(in_write, b"question\n")
        await recorder.until(lambda: recorder.data == b"question\n")
        streams.send(sent(b"answer"))
        assert os.read(out_read, 100) == b"answer"
        streams.pause_reading()
        streams.resume_reading()
        os.close(in_write)
        await recorder.until(lambda: recorder.end == "end of input")
        await streams.close()
        assert os.read(out_read, 100) == b""
        os.close(out_read)

    run(main())


def test_standard_streams_that_never_started_close() -> None:
    async def main() -> None:
        await StandardStreams(0, 1).close()

    run(main())


def test_a_client_that_does_not_read_does_not_hold_us_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.transports.stdio._LAST_WORDS_S", 0.1)

    async def main() -> None:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        streams = StandardStreams(in_read, out_write)
        streams.start(Recorder())
        streams.send(sent(b"x" * 5_000_000))
        await streams.close()
        os.close(in_write)
        os.close(out_read)

    run(main())


def test_what_else_prints_to_stdout_ends_up_on_stderr() -> None:
    code = (
        "import asyncio\n"
        "from dragoman.transports.stdio import take_standard_streams\n"
        "from tests.support.frames import sent\n"
        "from tests.transports.recorder import Recorder\n"
        "async def main():\n"
        "    streams = take_standard_streams()\n"
        "    streams.start(Recorder())\n"
        "    print('stray', flush=True)\n"
        "    streams.send(sent(b'protocol'))\n"
        "    await streams.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (done.stdout, done.stderr) == (b"protocol", b"stray\n")
    assert callable(take_standard_streams)
