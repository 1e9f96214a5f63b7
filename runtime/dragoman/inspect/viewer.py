"""The viewer: reads what a proxy tells, or a trace, and serves the page.

Lives here: the loop of the viewer's process. Must not: read flags (`dragoman.cli.inspect`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dragoman.core.exact_json import decode, encode
from dragoman.inspect.recording import MOST_BYTES, Recording
from dragoman.inspect.records import unpack
from dragoman.inspect.site import InspectSite
from dragoman.trace.lines import Noted, Scribe, Translated
from dragoman.trace.redact import redact, redact_text
from dragoman.transports.http.config import Admission, FrontConfig, Patience
from dragoman.transports.http.door import Door
from dragoman.transports.http.serve import Address, read_certificate
from dragoman.transports.http.site import Budget, Site

_READ_BYTES: Final = 256 * 1024
_LOOK_S: Final = 0.25
"""How often it is looked whether a file has become longer."""

_LINE_BYTES: Final = 64 * 1024 * 1024
"""From here on a line is not kept."""

_GLANCE_S: Final = 0.02

_AT_ONCE: Final = 200
"""How many lines are made before everybody else gets a turn."""

LINGER_S: Final = 3.0
"""How long browsers get to hear that it is over."""


@dataclass(frozen=True, slots=True)
class Viewing:
    """What a viewer needs to know.

    Attributes:
        listener: Where browsers come.
        address: The same, with the certificate.
        key: What they need.
        hosts: What they may call us, beside loopback names.
        most_bytes: How much is kept.
        about: What the page says of what it shows.
    """

    listener: socket.socket
    address: Address
    key: str
    hosts: tuple[str, ...] = ()
    most_bytes: int = MOST_BYTES
    about: Mapping[str, Any] | None = None


async def view_feed(viewing: Viewing, feed: socket.socket, process: int) -> None:
    """Show what a proxy tells, until it ends.

    Args:
        viewing: How.
        feed: What its `Feed` writes to.
        process: Its number.
    """
    recording = Recording(viewing.most_bytes)
    async with _served(viewing, recording):
        await _read_feed(feed, recording, Scribe(process))
        recording.end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while recording.is_watched:
                    await asyncio.sleep(_GLANCE_S)


async def view_file(viewing: Viewing, path: Path) -> None:
    """Show a trace, and what is still written to it, until this is cancelled."""
    recording = Recording(viewing.most_bytes)
    async with _served(viewing, recording):
        await _follow(path, recording)


@contextlib.asynccontextmanager
async def _served(viewing: Viewing, recording: Recording) -> Any:
    config = FrontConfig(
        admission=Admission(hosts=viewing.hosts),
        limits=replace(FrontConfig().limits, body_bytes=4096, connections=64),
        patience=Patience(keepalive_s=10.0),
    )
    page = InspectSite(recording, viewing.key, config, viewing.about)
    budget = Budget(config.limits.memory_bytes, config.limits.body_bytes)
    site = Site(page, config, budget)
    door = Door(viewing.listener, read_certificate(viewing.address), site)
    door.open()
    try:
        yield
    finally:
        door.close()
        await site.close(config.patience.closing_s)


async def _read_feed(feed: socket.socket, recording: Recording, scribe: Scribe) -> None:
    loop = asyncio.get_running_loop()
    feed.setblocking(False)
    data = bytearray()
    while True:
        with contextlib.suppress(ConnectionResetError):
            if received := await loop.sock_recv(feed, _READ_BYTES):
                data += received
                await _take_records(data, recording, scribe)
                continue
        return


async def _take_records(data: bytearray, recording: Recording, scribe: Scribe) -> None:
    for number, said in enumerate(unpack(data), 1):
        match said:
            case Noted() | Translated():
                recording.add(scribe.write(said))
            case ("status", _, status):
                recording.tell_status(redact(status))
            case ("dropped", time_s, count):
                recording.add(scribe.write_dropped(time_s, count))
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)


async def _follow(path: Path, recording: Recording) -> None:
    """Read a file to its end, and go on as it grows; one that is shorter than before is read anew, once it is there."""
    lines, passed, told = FileLines(), 0, 0
    while True:
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < lines.where:
                lines = FileLines()
            file.seek(lines.where)
            while data := await asyncio.to_thread(file.read, _READ_BYTES):
                for line in lines.take(data):
                    passed += not _take_line(line, recording)
                await asyncio.sleep(0)
        if passed != told:
            told = passed
            recording.tell_status({"passed_over": passed})
        await asyncio.sleep(_LOOK_S)


class FileLines:
    """The lines of a file that is read piece by piece.

    Args:
        most_bytes: How long one may be.

    Attributes:
        where: How much of it has been read.
    """

    def __init__(self, most_bytes: int = _LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self.where = self._held = 0
        self._parts: list[bytes] = []

    def take(self, data: bytes) -> Iterator[bytes]:
        """Yield each whole line; one that is too long comes without its end, which makes it no line of a trace."""
        self.where += len(data)
        *whole, rest = data.split(b"\n")
        for line in whole:
            yield b"".join((*self._parts, line))
            self._parts, self._held = [], 0
        if self._held <= self._most_bytes:
            self._parts.append(rest)
            self._held += len(rest)


def _take_line(line: bytes, recording: Recording) -> bool:
    """Keep a line of a trace, without what looks like a secret; give whether it is one."""
    try:
        said = decode(line)
    except ValueError:
        return not line.strip()
    if not isinstance(said, dict) or "direction" not in said:
        return False
    for name in ("frame", "before", "after", "refused"):
        if name in said:
            said[name] = redact(said[name])
    for name in ("line", "reason"):
        if isinstance(said.get(name), str):
            said[name] = redact_text(said[name])
    recording.add(encode(said))
    return True
