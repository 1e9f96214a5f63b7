"""Files with tokens: what is written is read again, by this version and by others."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import SignInFailed
from dragoman.signin import store
from dragoman.signin.discovery import AuthorizationServer, OAuthClient
from dragoman.signin.grants import PendingVisit, SignedIn
from dragoman.signin.store import TokenFile
from dragoman.signin.tokens import Tokens
from tests.support import waiting

URL = "https://mcp.example/mcp"


def signed_in(issuer: str = "https://a.example", access: str = "t") -> SignedIn:
    server = AuthorizationServer(issuer, "https://a/x", "https://a/y", scopes=("a", "b"))
    return SignedIn(server, OAuthClient("c", "s", is_registered=True), Tokens(access, "r", 1.5, "a b", ("a",)))


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "f.json")
    file.write(store.add({}, URL, signed_in()))
    assert store.find_current(file.read()) == signed_in()
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["f.json"]


def test_each_authorization_server_has_its_own_part() -> None:
    written = store.add(store.add({}, URL, signed_in("https://a")), URL, signed_in("https://b", "t2"))
    assert store.find_current(written) == signed_in("https://b", "t2")
    assert list(store.find_clients(written)) == ["https://a", "https://b"]
    assert store.find_current(store.drop(written, "tokens")) is None
    assert list(store.find_clients(store.drop(written, "tokens", "client"))) == ["https://a"]


def test_what_a_later_version_writes_stays_and_does_no_harm() -> None:
    written = store.add({"later": 1}, URL, signed_in())
    written["issuers"]["https://a.example"]["tokens"]["later"] = 2
    written["issuers"]["https://a.example"]["later"] = 3
    assert store.find_current(written) == signed_in()
    again = store.add(written, URL, signed_in())
    assert (again["later"], again["issuers"]["https://a.example"]["later"]) == (1, 3)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"issuers": []}', '{"issuer": "a", "issuers": {"a": 1}}', '{"issuer": 1, "issuers": {}}']
)
def test_a_file_that_says_something_else_says_nothing(tmp_path: Path, text: str) -> None:
    file = TokenFile(tmp_path / "f.json")
    file.path.write_text(text)
    assert store.find_current(file.read()) is None
    assert store.find_clients(file.read()) == {}


@pytest.mark.parametrize("data", [b'{"a":' * 100_000, b"\xff", b"[" * 2**20, b" " * 2**23, b"1" * 5000])
def test_a_file_that_cannot_be_read_says_nothing(tmp_path: Path, data: bytes) -> None:
    file = TokenFile(tmp_path / "f.json")
    file.path.write_bytes(data)
    assert file.read() == {}
    file.write(store.add({}, URL, signed_in()))
    assert store.find_current(file.read()) == signed_in()


@pytest.mark.parametrize(
    ("part", "member", "value"),
    [
        ("tokens", "access", 5),
        ("tokens", "access", None),
        ("tokens", "access", "t\r\nX-Evil: 1"),
        ("tokens", "access", "\ud800"),
        ("tokens", "refresh", {}),
        ("tokens", "expires_at", "soon"),
        ("tokens", "expires_at", float("inf")),
        ("tokens", "expires_at", True),
        ("tokens", "requested", "a"),
        ("tokens", "requested", [1]),
        ("server", "issuer", ["https://a.example"]),
        ("server", "token_endpoint", 1),
        ("server", "names_itself", "yes"),
        ("server", "resource", []),
        ("client", "id", {}),
        ("client", "is_registered", 1),
    ],
)
def test_a_part_of_another_type_is_none(tmp_path: Path, part: str, member: str, value: Any) -> None:
    written = json.loads(json.dumps(store.add({}, URL, signed_in())))
    written["issuers"]["https://a.example"][part][member] = value
    file = TokenFile(tmp_path / "f.json")
    file.path.write_text(json.dumps(written))
    assert store.find_current(file.read()) is None


@pytest.mark.parametrize("made", ["pipe", "endless", "folder"])
def test_nobody_waits_for_what_stands_in_the_place_of_a_file(tmp_path: Path, made: str) -> None:
    file = TokenFile(tmp_path / "f.json")
    if made == "pipe":
        os.mkfifo(file.path)
    elif made == "endless":
        file.path.symlink_to("/dev/zero")
    else:
        file.path.mkdir()
    assert file.read() == {}
    assert list(store.list_files(tmp_path)) == []
    if made != "folder":
        file.write(store.add({}, URL, signed_in()))
        assert store.find_current(file.read()) == signed_in()


@pytest.mark.parametrize("url", ["http://[", "", 5, None, "nowhere"])
def test_a_file_of_no_server_is_not_listed(tmp_path: Path, url: Any) -> None:
    file = TokenFile(tmp_path / "f.json")
    file.path.write_text(json.dumps({**store.add({}, URL, signed_in()), "url": url}))
    assert list(store.list_files(tmp_path)) == []


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = TokenFile(tmp_path / "f.json")
    file.write(store.add({}, URL, signed_in()))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        file.write(store.add({}, URL, signed_in(access="new")))
    assert store.find_current(json.loads(file.path.read_text())) == signed_in()
    assert len(list(tmp_path.iterdir())) == 1
    assert store.find_current(file.read()) == signed_in(access="new"), "what is in the file is older"
    TokenFile(file.path).remove()
    assert file.read() == {}, "unless somebody else has changed it since"


def test_what_a_killed_process_has_left_goes_with_the_next_turn(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "f.json")
    for name in ("f.4711", "g.4711", "f.lock.1", "f.json"):
        (tmp_path / name).write_text("{}")

    async def take() -> None:
        async with file.turn():
            assert not (tmp_path / "f.4711").exists()

    waiting.run(take())
    (tmp_path / "f.4712").write_text("{}")
    file.remove()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.lock", "f.lock.1", "g.4711"]


def test_a_directory_may_be_a_link_and_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    elsewhere = tmp_path / "elsewhere.json"
    file = TokenFile(tmp_path / "link" / "f.json")
    elsewhere.write_text(json.dumps(store.add({}, URL, signed_in())))
    for name in ("f.json", f"f.{os.getpid()}"):
        (tmp_path / "real" / name).symlink_to(elsewhere)
    assert file.read() == {}, "what a link leads to is not read"
    with pytest.raises(OSError, match="symbolic links"):
        file.write({"a": 1})
    file.write({"a": 1})
    assert (tmp_path / "real" / "f.json").read_text() == '{\n "a": 1\n}'
    assert not (tmp_path / "real" / "f.json").is_symlink()
    assert store.find_current(json.loads(elsewhere.read_text())) == signed_in(), "and never written"


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    async def take() -> str:
        async with TokenFile(tmp_path / "f.json").turn():
            return "taken"

    monkeypatch.setattr("fcntl.flock", no_locks)
    assert waiting.run(take()) == "taken"


def test_one_at_a_time_has_the_turn(tmp_path: Path) -> None:
    order: list[str] = []

    async def take(name: str) -> None:
        async with TokenFile(tmp_path / "f.json").turn():
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    async def main() -> None:
        await asyncio.gather(take("a"), take("b"), take("c"))

    waiting.run(main())
    assert [one.split()[1] for one in order] == ["in", "out"] * 3


@pytest.mark.skipif(sys.platform == "win32", reason="a lock is of the process there")
def test_a_turn_that_is_held_for_longer_than_a_sign_in_takes_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "f.4711").write_text("{}")

    async def main() -> bool:
        async with TokenFile(tmp_path / "f.json").turn():
            (tmp_path / "f.4711").write_text("{}")
            waits = asyncio.ensure_future(take())
            await waiting.pass_time(6)
            assert "waiting for it" in caplog.text
            assert not waits.done()
            await waiting.put_forward(660)
            return await waits

    async def take() -> bool:
        async with TokenFile(tmp_path / "f.json").turn() as has_waited:
            assert (tmp_path / "f.4711").exists(), "it may be writing"
            return has_waited

    assert waiting.run(main())
    assert "is not waited for any more" in caplog.text


def failure(asked: bool = False) -> SignInFailed:
    error = SignInFailed("peer", "no")
    error.was_asked = asked
    return error


@pytest.mark.parametrize("asked", [True, False])
def test_a_failure_counts_for_those_who_waited_for_it(asked: bool) -> None:
    written = store.add_failure({}, URL, failure(asked))
    at = written["failed"]["at"]
    found = store.find_failure(written, at - 1, "me")
    assert found is not None
    assert (str(found), found.was_asked) == ("me: no", asked)
    assert store.find_failure(written, at + 1, "me") is None
    assert store.find_failure(store.add(written, URL, signed_in()), 0, "me") is None


def test_a_failure_of_a_clock_that_was_ahead_keeps_nobody_out() -> None:
    written = store.add_failure({}, URL, failure())
    written["failed"]["at"] += 1e6
    assert store.find_failure(written, 0, "me") is None


def visit(at: float) -> PendingVisit:
    server, client = signed_in().server, signed_in().client
    return PendingVisit(server, client, "http://127.0.0.1:1/callback", "https://a/x?y", "state", "verifier", ("a",), at)


def test_a_visit_is_read_again_until_it_is_over() -> None:
    now = time.time()
    written = store.add_visit({}, URL, visit(now))
    assert store.find_visit(json.loads(json.dumps(written)), now - 1) == visit(now)
    assert store.find_visit(written, now + 1) is None
    assert store.find_visit(store.add_visit({}, URL, visit(now + 1e6)), 0) is None
    assert store.find_visit(store.add(written, URL, signed_in()), 0) is None
    assert store.find_visit(store.add_failure(written, URL, failure()), 0) is None


@pytest.mark.parametrize("change", [{"server": 1}, {"client": None}, {"at": "now"}, {"at": True}])
def test_a_visit_that_says_something_else_is_none(change: dict[str, Any]) -> None:
    written = store.add_visit({}, URL, visit(time.time()))
    written["visit"].update(change)
    assert store.find_visit(written, 0) is None
