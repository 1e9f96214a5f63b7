"""The official servers under `dragoman check`: what it finds is real, for another validator finds it, too.

With `nox -s peers -- full`; three servers come from PyPI, three from npm.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.check.check import check_server
from dragoman.check.findings import CheckReport
from dragoman.core.envelope import Frame, decoded
from dragoman.transports.base import Receiver, Transport
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport
from dragoman_spec import load
from tests.peers.test_npm import FOLDER, node
from tests.peers.visits import ENVIRONMENTS, SELECTION
from tests.support.judge import validator

pytestmark = pytest.mark.skipif(
    not ENVIRONMENTS or SELECTION != "full", reason="run `nox -s peers -- full` for the official servers"
)

LONGEST_S: Final = 300
PYPI: Final = {"fetch": (), "git": (), "time": ()}
NPM: Final = {"everything": ("stdio",), "filesystem": ("{folder}",), "memory": ()}

BROKEN: Final[dict[str, set[str]]] = {
    # It gives links to resources to clients whose revision has no such block.
    "everything": {"result-model"},
}
"""What each server breaks of what the specification says with MUST."""


class Tap:
    """A transport that keeps each result that comes, with the method that it answers."""

    def __init__(self, inner: Transport, heard: list[tuple[str, Any]]) -> None:
        self._inner = inner
        self._asked: dict[bytes, str] = {}
        self._heard = heard
        self._receiver: Any = None
        self.pause_reading, self.resume_reading = inner.pause_reading, inner.resume_reading
        self.hurry, self.close = inner.hurry, inner.close

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._inner.start(self)

    def send(self, frames: Sequence[Frame]) -> None:
        self._asked |= {frame.key: frame.method for frame in frames if frame.key and frame.method}
        self._inner.send(frames)

    def received(self, frames: Sequence[Any]) -> None:
        for frame in frames:
            if isinstance(frame, Frame) and frame.kind == "result":
                self._heard.append((self._asked.get(frame.key or b"", ""), decoded(frame).body))
        self._receiver.received(frames)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._receiver, name)


def command_of(name: str, folder: Path) -> list[str]:
    if name in PYPI:
        return [str(Path(str(ENVIRONMENTS)) / "official" / "bin" / f"mcp-server-{name}")]
    package = "server-everything-2026.8" if name == "everything" else f"@modelcontextprotocol/server-{name}"
    script = Path(str(FOLDER)) / "node_modules" / package / "dist" / "index.js"
    return [node(), str(script), *(argument.format(folder=folder) for argument in NPM[name])]


@functools.cache
def checked(name: str) -> tuple[CheckReport, list[tuple[str, Any]]]:
    import tempfile

    heard: list[tuple[str, Any]] = []

    async def work(folder: Path) -> CheckReport:
        environment = {**os.environ, "MEMORY_FILE_PATH": str(folder / "memory.json")}
        command = command_of(name, folder)
        async with asyncio.timeout(LONGEST_S):
            return await check_server(
                lambda: Tap(ChildTransport(spawn(command, environment)), heard), calls_tools=True, timeout_s=30
            )

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(work(Path(folder))), heard


def names() -> list[Any]:
    needs_npm = pytest.mark.skipif(not FOLDER, reason="no peers from npm")
    return [*PYPI, *(pytest.param(name, marks=needs_npm) for name in NPM)]


@pytest.mark.parametrize("name", names())
def test_an_official_server_speaks_every_handshake_and_breaks_what_we_know(name: str) -> None:
    report, _ = checked(name)
    assert len(report.served) >= 4
    assert {found.rule for found in report.findings if found.level == "must"} == BROKEN.get(name, set())


@pytest.mark.parametrize("name", names())
def test_another_validator_finds_every_place_that_no_model_allows(name: str) -> None:
    report, heard = checked(name)
    for found in report.findings:
        if found.rule != "result-model":
            continue
        frames = [(method, body) for method, body in heard if method and method in found.about]
        assert any(is_wrong(body, found.revision, method, found.pointer) for method, body in frames), found


def is_wrong(body: Any, revision: str, method: str, pointer: str) -> bool:
    """Whether a JSON Schema validator complains of a place in a result, or of what it is in or holds."""
    definition = load(revision).METHODS[method].result
    for error in validator(revision, definition, fixed=False).iter_errors(body["result"]):
        at = "".join(f"/{part}" for part in ("result", *error.absolute_path))
        if pointer.startswith(at) or at.startswith(pointer):
            return True
    return False
