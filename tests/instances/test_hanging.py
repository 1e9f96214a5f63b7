"""An instance that hangs takes what is handed on to it, and says nothing: who waits is told, as if it were killed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.instances import relay
from dragoman.instances.relay import InstanceRelay
from tests.support.waiting import until
from tests.transports.http.stage import call, on_loop, serving, within

OTHER = "b" * 16


class Finds:
    """A directory with one other instance."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def find(self, name: str) -> str | None:
        return self._address if name == OTHER else None


class Peer:
    """The port of another instance, which answers `/healthz` or nothing at all."""

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs
        self.probes = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line.startswith(b"GET /healthz "):
                self.probes += 1
                if not self.hangs:
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        writer.close()


@pytest.mark.parametrize("hangs", [True, False])
@on_loop
async def test_who_waits_for_an_instance_that_hangs_is_told(hangs: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr(relay, "LOOK_S", 0.05)
    monkeypatch.setattr(relay, "SILENCE_S", 0.3)
    peer = Peer(hangs)
    async with await asyncio.start_server(peer.serve, "127.0.0.1", 0) as listener, serving() as stage:
        address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        others = InstanceRelay("a" * 16, Finds(address), stage.front, adopts=False)  # type: ignore[arg-type]
        stage.front.sessions.relay = others
        asking = asyncio.create_task(stage.post(call(), mcp_session_id=f"{OTHER}.x"))
        if hangs:
            assert (await within(asking)).status == 502
        else:
            await until(lambda: peer.probes >= 3, 20)
            assert not asking.done()
            asking.cancel()
        await others.close()
