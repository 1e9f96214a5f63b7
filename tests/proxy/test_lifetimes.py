"""Sessions over stdio whose server does not read, or whose client never initialises."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import pytest

from dragoman.core.commands import Finish, Outcome
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildPatience, ChildTransport, StandardStreams
from tests.proxy.conversation import READY, initialize, initialized, request

SHORT = ChildPatience(after_eof_s=0.2, after_term_s=2, after_exit_s=0.2)
DEAF = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdin.readline()
print({json.dumps(json.dumps(initialized("2025-11-25")))}, flush=True)
sys.stdin.readline()
time.sleep(600)
"""


def serve(said: bytes, server: str, **config: float) -> tuple[Finish, int | None]:
    """Let a client say this, close its end, and go on reading; give how it ended, and how the server did."""

    async def main() -> tuple[Finish, int | None]:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        process = spawn([sys.executable, "-c", server])
        proxy = Proxy(
            ProxyConfig(**config),  # type: ignore[arg-type]
            StandardStreams(in_read, out_write),
            lambda: ChildTransport(process, SHORT),
        )
        run = asyncio.create_task(proxy.run())
        try:
            await asyncio.wait_for(asyncio.to_thread(write_all, in_write, said), 60)
            return await asyncio.wait_for(run, 60), process.returncode
        finally:
            os.close(out_read)

    return asyncio.run(main())


def write_all(fd: int, data: bytes) -> None:
    with os.fdopen(fd, "wb") as client:
        client.write(data)


def test_a_client_that_closes_stdin_alone_ends_the_session_though_the_server_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.transports.pipes.LOOK_S", 0.05)
    monkeypatch.setattr("dragoman.transports.pipes.HIGH_WATER_BYTES", 100_000)
    frames = [initialize("2025-11-25"), READY, *(request(key, "tools/call", text="x" * 200_000) for key in range(1, 7))]
    said = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    finish, status = serve(said, DEAF, drain_timeout_s=0.1)
    assert (finish.outcome, status) == (Outcome.CLIENT_CLOSED, -9)


def test_a_client_on_stdin_that_never_initialises_is_not_waited_for() -> None:
    async def main() -> Finish:
        in_read, in_write = os.pipe()
        out_read, out_write = os.pipe()
        streams = StandardStreams(in_read, out_write)
        command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        proxy = Proxy(ProxyConfig(init_timeout_s=0.2), streams, lambda: ChildTransport(spawn(command), SHORT))
        try:
            return await asyncio.wait_for(proxy.run(), 60)
        finally:
            os.close(in_write)
            os.close(out_read)

    finish = asyncio.run(main())
    assert finish.outcome is Outcome.INITIALIZATION_TIMED_OUT
    assert "waiting for the client's initialize" in finish.reason
