"""Tokens in the keyring of the system, in place of files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import PasswordDeleteError

from dragoman.cli import main
from dragoman.signin.settings import SignInSettings
from tests.signin.house import House, house
from tests.support.waiting import pass_time, put_forward, until
from tests.transports.upstream.stage import on_loop


class Memory(KeyringBackend):
    """A keyring that forgets everything with the process; it may want a password first."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.is_unlocked = threading.Event()
        self.is_unlocked.set()

    def get_password(self, service: str, username: str) -> str | None:
        assert self.is_unlocked.wait(20)
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError


@pytest.fixture
def ring() -> Iterator[Memory]:
    before, memory = keyring.get_keyring(), Memory()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


async def ask(home: House, **settings: Any) -> str:
    """Start a proxy, and ask the server something; give the token that it was asked with."""
    async with home.client(authority=home.sign_in(**settings)) as peer:
        return str((await peer.ask("tools/list"))["result"]["sent"])


def written(folder: Path) -> dict[str, Any]:
    (path,) = (folder / "dragoman" / "tokens").glob("*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@on_loop
async def test_the_keyring_keeps_tokens_and_files_none(folder: Path, ring: Memory) -> None:
    async with house(folder) as home:
        assert await ask(home, store="keyring") == "Bearer token-secret-1"
        assert written(folder) == {"format": 1, "url": home.url, "store": "keyring"}
        ((service, name),) = ring.kept
        assert (service, name) == ("dragoman", next((folder / "dragoman" / "tokens").glob("*.json")).stem)
        home.seen.clear()
        assert await ask(home, store="keyring") == "Bearer token-secret-1"
        assert home.seen[0] == ("initialize", "Bearer token-secret-1"), "from the first request on"
        assert len(home.person.pages) == 1


@on_loop
async def test_several_proxies_share_what_the_keyring_keeps(folder: Path, ring: Memory) -> None:
    async with house(folder) as home:
        home.person.says_yes.clear()
        tasks = [asyncio.ensure_future(ask(home, store="keyring")) for _ in range(4)]
        await until(lambda: home.person.pages)
        await pass_time(0.3)
        home.person.says_yes.set()
        assert set(await asyncio.gather(*tasks)) == {"Bearer token-secret-1"}
        assert len(home.person.pages) == 1


@on_loop
async def test_tokens_move_with_the_choice(folder: Path, ring: Memory) -> None:
    async with house(folder) as home:
        for number, kept_in in enumerate(("file", "keyring", "file"), 1):
            home.good.clear()
            assert await ask(home, store=kept_in) == f"Bearer token-secret-{number}"
            in_file = f"token-secret-{number}" in json.dumps(written(folder))
            assert (in_file, bool(ring.kept)) == ((True, False) if kept_in == "file" else (False, True))
        assert len(home.person.pages) == 1, "they are refreshed, wherever they were"


@on_loop
async def test_without_a_keyring_tokens_end_with_the_proxy(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    try:
        async with house(folder) as home, home.client(authority=home.sign_in(store="keyring")) as peer:
            for number in (2, 3):
                home.good.clear()
                assert (await peer.ask("tools/list"))["result"]["sent"] == f"Bearer token-secret-{number}"
    finally:
        keyring.set_keyring(before)
        assert len(home.person.pages) == 1
    (said,) = [line for line in caplog.messages if "cannot be kept" in line]
    assert "the keyring of the system cannot be used: No recommended backend was available" in said
    assert not list((folder / "dragoman" / "tokens").glob("*.json")), "and never in a file instead"


@on_loop
async def test_a_keyring_that_wants_a_password_holds_up_nobody_else(folder: Path, ring: Memory) -> None:
    async with house(folder) as home:
        await ask(home, store="keyring")
        ring.is_unlocked.clear()
        waits = asyncio.ensure_future(ask(home, store="keyring"))
        await pass_time(0.3)
        assert not waits.done()
        ring.is_unlocked.set()
        assert await waits == "Bearer token-secret-1"


@on_loop
async def test_a_keyring_that_stays_locked_is_not_waited_for_and_tokens_end_with_the_proxy(
    folder: Path, ring: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(folder) as home:
        await ask(home, store="keyring")
        ring.is_unlocked.clear()
        async with home.client(opened=False, authority=home.sign_in(store="keyring")) as peer:
            about = {"capabilities": {}, "clientInfo": {"name": "c", "version": "0"}}
            asked = peer.start("initialize", protocolVersion="2025-11-25", **about)
            await until(lambda: "the keyring of the system is waited for" in caplog.text)
            await put_forward(45)
            assert "result" in await peer.answer(asked)
        ring.is_unlocked.set()
        assert len(home.person.pages) == 2
    assert "the sign-in cannot be kept, and ends with us: the keyring of the system does not answer" in caplog.text


@on_loop
async def test_tokens_that_a_keyring_does_not_keep_are_refreshed_all_the_same(
    folder: Path, ring: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(folder) as home:
        home.wants = lambda request: "" if request.rpc == "tools/list" else None
        async with home.client(authority=home.sign_in(store="keyring")) as peer:
            await peer.ask("ping")
            ring.is_unlocked.clear()
            asked = peer.start("tools/list")
            await until(lambda: "the keyring of the system is waited for" in caplog.text)
            await put_forward(45)
            assert (await peer.answer(asked))["result"] == {"sent": "Bearer token-secret-1"}
            home.good.clear()
            assert (await peer.ask("tools/list"))["result"] == {"sent": "Bearer token-secret-2"}
            ring.is_unlocked.set()
        assert len(home.person.pages) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a signal ends it there at once")
def test_a_process_ends_though_its_keyring_does_not_answer() -> None:
    program = """
import asyncio, time
from dragoman.transports.aside import do_aside

async def main():
    async with asyncio.timeout(0.1):
        await do_aside(lambda: time.sleep(1000))

asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "TimeoutError" in ended.stderr


def test_commands_know_what_the_keyring_keeps(folder: Path, ring: Memory, capsys: pytest.CaptureFixture[str]) -> None:
    urls: list[str] = []

    async def sign_in() -> None:
        async with house(folder) as home:
            await ask(home, store="keyring")
            urls.append(home.url)

    asyncio.run(sign_in())
    assert main(["tokens"]) == 0
    assert urls[0] in capsys.readouterr().out
    assert main(["logout", *urls]) == 0
    assert not ring.kept
    assert not list((folder / "dragoman" / "tokens").glob("*.json"))


def test_the_package_that_it_takes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SignInSettings(store="keyring").find_fault() == ""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install 'dragoman[keyring]'" in SignInSettings(store="keyring").find_fault()
