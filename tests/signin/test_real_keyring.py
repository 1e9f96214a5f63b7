"""Tokens in a keyring that others wrote, `keyrings.alt`, which keeps them in a file; each command is a process."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.conformance.signing_in import HERE
from tests.signin.house import House, house
from tests.transports.upstream.stage import on_loop

pytest.importorskip("keyrings.alt")

LONGEST_S = 60
OPENING = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"c","version":"0"}}}\n'
)


@pytest.fixture(autouse=True)
def ring(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the keyring."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyrings.alt.file.PlaintextKeyring")
    monkeypatch.setenv("BROWSER", shlex.join([sys.executable, str(HERE / "browser.py")]))
    return folder / "python_keyring" / "keyring_pass.cfg"


async def run(*arguments: str, said: str = "") -> tuple[int | None, str, str]:
    """Run a command; give its exit code, and what it has said."""
    pipe = asyncio.subprocess.PIPE
    command = sys.executable, "-m", "dragoman", *arguments
    child = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(os.environ))
    async with asyncio.timeout(LONGEST_S):
        out, err = await child.communicate(said.encode())
    return child.returncode, out.decode(), err.decode()


def files_with(folder: Path, text: str) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and text in path.read_text()]


async def sign_in(home: House) -> None:
    code, _, err = await run("login", "--oauth-store", "keyring", home.url)
    assert code == 0, err


@on_loop
async def test_what_one_process_keeps_the_next_ones_use_and_logout_removes(folder: Path, ring: Path) -> None:
    async with house(folder) as home:
        await sign_in(home)
        assert ring.exists()
        assert files_with(folder, "token-secret") == []
        home.seen.clear()
        code, out, err = await run("proxy", "--oauth-store", "keyring", "--url", home.url, said=OPENING)
        assert '"result"' in out, (code, err)
        assert ("initialize", "Bearer token-secret-1") in home.seen
        assert home.count("/authorize") == 1
        assert (await run("logout", home.url))[0] == 0
        assert [line for line in ring.read_text().splitlines() if "=" in line] == []


@on_loop
async def test_a_keyring_that_cannot_be_written_is_said_and_no_file_takes_its_place(folder: Path, ring: Path) -> None:
    async with house(folder) as home:
        ring.parent.write_text("not a directory")
        code, _, err = await run("login", "--oauth-store", "keyring", home.url)
        assert code == 1
        assert "the keyring of the system cannot be used" in err
        assert "token-secret" not in err
        assert files_with(folder, "token-secret") == []
