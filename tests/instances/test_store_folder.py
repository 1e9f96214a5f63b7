"""The folder of `--store`: files that are not ours, that are broken, or that cannot be written."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.instances.adoption import Adoption
from dragoman.instances.directory import Folder
from dragoman.instances.relay import InstanceRelay
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.exchange import HttpRequest, RequestRefused

NAME = "0123456789abcdef"
RECORD = "session:" + 64 * "0"


def front() -> HttpFront:
    def serve(*_: Any) -> Any:
        raise AssertionError("nobody opens a session here")

    return HttpFront(serve)


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
        request = cast(HttpRequest, SimpleNamespace(scope={"type": "http", "path": "/mcp"}, principal=""))
        return await Adoption(NAME, folder, front(), adopts=True).find_heir("gone.id", "gone", request)

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

    def __init__(self, path: str) -> None:
        super().__init__(path, NAME)
        self.forgotten: list[str] = []

    async def find(self, name: str) -> str | None:
        return "255.255.255.255:9"

    def forget(self, name: str) -> None:
        self.forgotten.append(name)


def test_an_instance_that_cannot_be_reached_is_not_taken_for_dead(tmp_path: Path) -> None:
    """It may go on, and have the session: somebody else who opened it would be the second."""

    async def hand_on() -> None:
        relay = InstanceRelay(NAME, folder, front(), adopts=True)
        await relay.hand_on(cast(HttpRequest, None), "fedcba9876543210", b"")

    folder = Elsewhere(str(tmp_path))
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(hand_on())
    assert (refused.value.status, folder.forgotten) == (503, [])
