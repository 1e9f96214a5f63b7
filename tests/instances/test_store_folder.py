"""The folder of `--store`: files that are not ours, that are broken, or that cannot be written."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.instances.adoption import Adoption
from dragoman.instances.directory import Folder
from dragoman.instances.door import read_hop, taken_at
from dragoman.instances.relay import HOP, InstanceRelay
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.config import FrontConfig, Patience
from dragoman.transports.http.exchange import HttpRequest, RequestRefused
from dragoman.transports.http.reading import read_posted
from dragoman.transports.http.sessions import Caller, HttpSession
from dragoman.transports.http.streamable import StreamableFront
from dragoman.transports.http.streamable_session import StreamableSession
from tests.cli.test_listen import INITIALIZE
from tests.support.waiting import PATIENCE_S, pass_time, put_forward, run, until

NAME = "0123456789abcdef"
RECORD = "session:" + 64 * "0"


CALLER = Caller("", "streamable-http")


def nobody(*_: Any) -> Any:
    """Stands for what runs a session: none is run here."""


def front() -> HttpFront:
    return HttpFront(nobody)


def named(path: str) -> HttpRequest:
    return cast(HttpRequest, SimpleNamespace(scope={"type": "http", "path": path}, principal=""))


POSTED = read_posted(json.dumps(INITIALIZE).encode(), 64)


def test_what_else_is_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    """Among it the common key of `--workers`, and whatever somebody had there before."""
    old = time.time() - 10_000
    for name in ("state-key", "notes.txt", ".profile", "session:mine", RECORD, f"heir:{64 * '1'}:{NAME}"):
        (tmp_path / name).write_text("text")
        os.utime(tmp_path / name, (old, old))
    asyncio.run(Folder(str(tmp_path), NAME).keep("session:" + 64 * "2", "text", 60.0))
    assert {file.name for file in tmp_path.iterdir()} == {
        *("state-key", "notes.txt", ".profile", "session:mine"),
        "session:" + 64 * "2",
    }


@pytest.mark.parametrize("kept", [b"\xff\xfe", b"", b"[]", b"{", b'{"initialize": 1}', b"[" * 200_000])
def test_a_record_that_is_broken_is_none(tmp_path: Path, kept: bytes) -> None:
    async def find() -> str:
        folder = Folder(str(tmp_path), NAME)
        file = tmp_path / f"session:{hashlib.sha256(b'dragoman gone.id').hexdigest()}"
        file.write_bytes(kept)
        os.utime(file, (time.time() + 60, time.time() + 60))
        return await Adoption(NAME, folder, front(), adopts=lambda: True).find_heir("gone.id", "gone", named("/mcp"))

    assert asyncio.run(find()) == ""


def test_nobody_waits_for_something_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / RECORD)
    os.utime(tmp_path / RECORD, (time.time() + 60, time.time() + 60))
    assert asyncio.run(Folder(str(tmp_path), NAME).read(RECORD)) is None


def test_what_cannot_be_claimed_is_refused_for_now(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path / "gone"), NAME)
    with pytest.raises(RequestRefused, match="just now"):
        asyncio.run(folder.claim(f"heir:{64 * '1'}:{NAME}", NAME, 60.0))


class Elsewhere(Folder):
    """Says of each instance that it is where nobody can connect to."""

    def __init__(self, path: str, address: str) -> None:
        super().__init__(path, NAME)
        self.address = address
        self.forgotten: list[str] = []

    async def find(self, name: str) -> str | None:
        return self.address

    def forget(self, name: str) -> None:
        self.forgotten.append(name)


@pytest.mark.parametrize("address", ["255.255.255.255:9", "", "127.0.0.1:x", "127.0.0.1:99999"])
def test_an_instance_that_cannot_be_reached_is_not_taken_for_dead(tmp_path: Path, address: str) -> None:
    """It may go on, and have the session: somebody else who opened it would be the second."""

    async def hand_on() -> None:
        relay = InstanceRelay(NAME, folder, front(), adopts=lambda: True)
        await relay.hand_on(cast(HttpRequest, None), "fedcba9876543210", b"")

    folder = Elsewhere(str(tmp_path), address)
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(hand_on())
    assert (refused.value.status, folder.forgotten) == (503, [])


class Counting(Folder):
    """Notes in which round of the loop something is kept."""

    def __init__(self, path: str) -> None:
        super().__init__(path, NAME)
        self.round = 0
        self.rounds: list[int] = []

    async def keep(self, key: str, text: str, kept_s: float) -> bool:
        self.rounds.append(self.round)
        return True


def test_others_have_their_turn_while_records_are_renewed(tmp_path: Path) -> None:
    async def renew() -> list[int]:
        folder = Counting(str(tmp_path))
        adoption = Adoption(
            NAME, folder, HttpFront(nobody, FrontConfig(patience=Patience(idle_s=0.02))), adopts=lambda: True
        )
        for number in range(20):
            session = HttpSession(f"{NAME}.{number}", CALLER, StreamableSession(FrontConfig()), nobody(), "")
            await adoption.remember(session, POSTED)
        folder.rounds.clear()
        adoption.begin()
        async with asyncio.timeout(PATIENCE_S):
            while len(folder.rounds) < 20:
                folder.round += 1
                await asyncio.sleep(0)
        await adoption.end()
        return folder.rounds

    assert len(set(asyncio.run(renew()))) == 20


class Refusing(Folder):
    """Keeps nothing at first."""

    is_away = True

    async def keep(self, key: str, text: str, kept_s: float) -> bool:
        return not self.is_away and await super().keep(key, text, kept_s)


def test_a_record_that_could_not_be_kept_is_kept_soon_after(tmp_path: Path) -> None:
    """Else a session that was opened while the store was away would end with its instance."""

    async def remember() -> None:
        folder = Refusing(str(tmp_path), NAME)
        adoption = Adoption(NAME, folder, front(), adopts=lambda: True)
        adoption.begin()
        for number in range(3):
            session = HttpSession(f"{NAME}.{number}", CALLER, StreamableSession(FrontConfig()), nobody(), "")
            await adoption.remember(session, POSTED)
        await put_forward(4)
        assert list(tmp_path.iterdir()) == []
        folder.is_away = False
        await put_forward(4)
        await adoption.end()

    run(remember())
    assert [file.name.partition(":")[0] for file in tmp_path.iterdir()] == 3 * ["session"]


class Ending(StreamableFront):
    """One that is told to end while it opens a session again."""

    def __init__(self, front: HttpFront) -> None:
        super().__init__(front.config, front.sessions)
        self._all = front.sessions

    async def open_again(self, *_: Any) -> bool:
        self._all.closing = True
        return False


def test_a_session_that_an_ending_instance_could_not_open_is_still_anybodys(tmp_path: Path) -> None:
    async def find() -> None:
        front = HttpFront(nobody)
        adoption = Adoption(NAME, folder, front, adopts=lambda: True)
        session = HttpSession("gone.id", CALLER, StreamableSession(FrontConfig()), nobody(), "")
        await adoption.remember(session, POSTED)
        front.streamable = Ending(front)
        await adoption.find_heir("gone.id", "gone", named("/mcp"))

    folder = Folder(str(tmp_path), NAME)
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(find())
    assert refused.value.status == 503
    assert [file.name.partition(":")[0] for file in tmp_path.iterdir()] == ["session"]


@pytest.mark.parametrize("port", ["", "x", "-1", "\u00b2", 5000 * "9"])
def test_a_hop_that_is_no_hop_is_none(port: str) -> None:
    """What reaches the port of an instance may come from anybody."""
    hop = f"10.0.0.1 {port} evil.example 80 https".encode("latin-1")
    scope = {"type": "http", "client": ("127.0.0.1", 1), "scheme": "http", "headers": [(HOP, hop)]}
    read = read_hop(scope)
    assert (read["client"], read["scheme"], read["headers"]) == (("127.0.0.1", 1), "http", [])


def test_what_is_handed_on_just_before_an_instance_ends_is_handed_back(tmp_path: Path) -> None:
    """Were its connection closed in place of that, the other one could not tell whether the request was served."""
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(frame)}\r\n"
    )
    asked = f"{head}Mcp-Session-Id: {NAME}.id\r\nDragoman-Hop: 127.0.0.1 9 127.0.0.1 80 http\r\n\r\n{frame}".encode()

    async def hand_on() -> list[bytes]:
        folder, ending, ends, heads = Folder(str(tmp_path), NAME), front(), asyncio.Event(), list[bytes]()
        ending.sessions.closing = True

        async def serve() -> None:
            async with taken_at(folder.listen(), ending, folder):
                await ends.wait()

        serving = asyncio.create_task(serve())
        await until((tmp_path / f"{NAME}.sock").exists)
        reader, writer = await asyncio.open_unix_connection(tmp_path / f"{NAME}.sock")
        for _ in range(2):
            writer.write(asked)
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await reader.read(65536)
            ends.set()
            await pass_time(0.05)
        writer.close()
        await serving
        return heads

    for answer in run(hand_on()):
        assert answer.startswith(b"HTTP/1.1 421 ")
        assert b"dragoman-handed-back: 1" in answer


def test_an_ending_instance_does_not_say_that_a_session_is_over(tmp_path: Path) -> None:
    """It may go on at another one; after 404 its client would give it up."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        ending = front()
        ending.sessions.relay = InstanceRelay(NAME, Folder(str(tmp_path), NAME), ending, adopts=lambda: True)
        ending.sessions.closing = True
        headers = [(b"host", b"127.0.0.1"), (b"mcp-session-id", f"{NAME}.id".encode())]
        where = {"path": "/mcp", "raw_path": b"/mcp", "query_string": b"", "server": ("127.0.0.1", 80)}
        scope = {"type": "http", "method": "DELETE", "scheme": "http", "headers": headers, **where}
        await ending({**scope, "client": ("127.0.0.1", 1), "http_version": "1.1"}, receive, send)

    asyncio.run(ask())
    assert sent[0]["status"] == 503
