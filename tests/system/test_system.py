"""What is different from system to system, as far as it can be seen on this one."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import system
from dragoman.host.board import HERE, SocketTaken, told_at
from dragoman.status import StatusBoard
from tests.support.waiting import pass_time, run


def test_a_file_is_locked_for_one(tmp_path: Path) -> None:
    first, second = (os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert system.try_lock(first)
    assert not system.try_lock(second)
    os.close(first)
    system.lock(second)
    os.close(second)


def test_what_somebody_uses_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    answers = iter((PermissionError(), PermissionError(), None))

    def act() -> str:
        if (error := next(answers)) is not None:
            raise error
        return "done"

    assert system.when_free(act) == "done"


def test_what_may_not_be_used_fails_at_once() -> None:
    tries = []

    def act() -> None:
        tries.append(1)
        raise PermissionError

    with pytest.raises(PermissionError):
        system.when_free(act)
    assert tries == [1]


@pytest.mark.parametrize(
    ("platform", "error", "said"),
    [
        ("linux", PermissionError(13, "Permission denied"), "Permission denied"),
        ("win32", PermissionError(13, "Permission denied"), "Permission denied, or another program has it open"),
        ("win32", FileNotFoundError(2, "No such file"), "No such file"),
        ("win32", OSError("as it says"), "as it says"),
    ],
)
def test_a_file_that_another_program_keeps_for_itself_is_told_so_on_windows(
    platform: str, error: OSError, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert system.explain(error) == said


def test_bits_of_windows_forbid_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keys").touch()
    os.chmod(tmp_path / "keys", 0o666)
    found = os.stat(tmp_path / "keys")
    assert system.rights_of_others(found) & stat.S_IROTH
    monkeypatch.setattr("sys.platform", "win32")
    assert not system.rights_of_others(found)
    assert system.is_of_this_user(found)


def test_status_at_a_port_wants_its_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio, "start_unix_server")
    path = tmp_path / "status"

    async def ask(secret: str) -> bytes:
        reader, writer = await asyncio.open_connection(HERE, json.loads(path.read_text())["port"])
        writer.write(f"{secret}\n".encode())
        told = await reader.read()
        writer.close()
        return told

    async def main() -> None:
        async with told_at(str(path), StatusBoard()):
            said = json.loads(path.read_text())
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert json.loads(await ask(said["secret"]))["ready"]
            assert await ask("guessed") == b""
            assert await ask("x" * 100_000) == b""
            with pytest.raises(SocketTaken, match="another proxy uses it"):
                async with told_at(str(path), StatusBoard()):
                    pass
            await pass_time(0.01)  # until who only looked is let go
        assert not path.exists()

    run(main())


@pytest.mark.parametrize("left", ['{"port": 1, "secret": "of one that was killed"}'])
def test_what_a_killed_proxy_left_is_replaced(left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio, "start_unix_server")
    path = tmp_path / "status"
    path.write_text(left)

    async def main() -> None:
        async with told_at(str(path), StatusBoard()):
            assert json.loads(path.read_text())["port"] > 1

    run(main())


@pytest.mark.parametrize("other", ["notes", "[]", '{"port": "x", "secret": 1}'])
def test_what_is_not_ours_stays(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio, "start_unix_server")
    path = tmp_path / "status"
    path.write_text(other)

    async def main() -> None:
        async with told_at(str(path), StatusBoard()):
            raise AssertionError("it was overwritten")

    with pytest.raises(SocketTaken, match="something else is there"):
        run(main())
    assert path.read_text() == other


@pytest.mark.skipif(not platform.libc_ver()[0].startswith("glibc"), reason="only glibc has a word for this")
def test_large_blocks_that_are_freed_are_not_given_back_to_the_system() -> None:
    """Each page of one that was given back is cleared when we get it again, which is counted as a fault."""
    script = (
        "import resource, sys\nfrom dragoman import system\n"
        "if sys.argv[1:]: system.keep_freed_memory()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for size in range(1, 30): b'x' * (size * 1_000_000)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
    )
    commands = [[sys.executable, "-c", script, *words] for words in ((), ("keep",))]
    given, kept = (
        int(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout) for command in commands
    )
    assert kept < given / 4
