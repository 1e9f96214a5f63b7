"""Tokens in the keyring of the system, in place of files."""

from __future__ import annotations

import asyncio
import json
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
from tests.support.waiting import pass_time, until
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
