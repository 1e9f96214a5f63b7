"""What a server turned out to be is remembered: it is asked the right thing first, the next time."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.host.known import ERA_S, KnownServer, know, know_url
from dragoman_spec import HANDSHAKE_REVISIONS
from tests.proxy.conversation import (
    READY,
    Step,
    client,
    error,
    expect_to_client,
    expect_to_server,
    hold,
    initialize,
    initialized,
    result,
    server,
    server_closes,
    server_restarts,
    time_passes,
)
from tests.proxy.per_request import discovered
from tests.proxy.test_per_request import asks

D = HANDSHAKE_REVISIONS[-1]
LISTED = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@pytest.fixture
def known(tmp_path: Path) -> KnownServer:
    return KnownServer(str(tmp_path / "cache" / "eras" / "one"))


def method(name: str) -> Any:
    return lambda frame: frame["method"] == name


def opens(key: Any) -> list[Step]:
    """The server opens a session, as the only thing that it is asked."""
    return [expect_to_server(method("initialize")), server(initialized(D, key)), expect_to_server(READY)]


REFUSED = [
    client(asks(1, "tools/list")),
    expect_to_server(method("server/discover")),
    server(error("dragoman-discover-1", -32601)),
]
ANSWERED = [
    expect_to_server(method("tools/list")),
    server(result(1, {"tools": []})),
    expect_to_client(lambda frame: frame["id"] == 1),
]


def test_a_server_of_both_eras_is_spoken_to_in_that_of_each_client(known: KnownServer) -> None:
    """A visit of a client of the other era changes nothing: the server may do less in the other one."""
    hold(
        [
            client(asks(1, "tools/list")),
            expect_to_server(method("server/discover")),
            server(discovered("dragoman-discover-1", tools={})),
            expect_to_server(method("tools/list")),
            server(result(1, LISTED)),
            expect_to_client(result(1, LISTED)),
        ],
        known=known,
    )
    welcomed = [expect_to_client(lambda frame: frame["id"] == 0), client(READY), expect_to_server(READY)]
    hold([client(initialize(D)), *opens(0)[:2], *welcomed], known=known)
    hold([client(asks(1, "tools/list")), expect_to_server(method("server/discover"))], known=known)
    assert known.recall() is None


def test_a_server_that_refuses_a_handshake_is_not_offered_one_once_that_is_known(known: KnownServer) -> None:
    offered = [expect_to_server(method("initialize")), server(error(0, -32601))]
    for refusal in (offered, []):
        hold(
            [
                client(initialize(D)),
                *refusal,
                expect_to_server(method("server/discover")),
                server(discovered("dragoman-discover-1", tools={})),
                expect_to_client(lambda frame: frame["result"]["protocolVersion"] == D),
            ],
            known=known,
        )
        assert known.recall() is False


def test_a_server_with_a_handshake_is_not_asked_what_it_is_once_that_is_known(known: KnownServer) -> None:
    hold([*REFUSED, *opens("dragoman-initialize"), *ANSWERED], known=known)
    assert known.recall() is True
    hold([client(asks(1, "tools/list")), *opens("dragoman-initialize"), *ANSWERED], known=known)


def test_a_server_that_dies_of_the_question_is_not_asked_again(known: KnownServer) -> None:
    restarts = [server_closes(), time_passes(0.02), server_restarts()]
    hold([*REFUSED[:2], *restarts, *opens("dragoman-initialize"), *ANSWERED], known=known)
    assert known.recall() is True


def test_one_that_was_remembered_wrongly_gets_its_session(known: KnownServer) -> None:
    known.note(has_handshake=False)
    hold(
        [
            client(initialize(D)),
            expect_to_server(method("server/discover")),
            server(error("dragoman-discover-1", -32602)),
            expect_to_server(method("initialize")),
            server(initialized(D, "dragoman-initialize-1")),
            expect_to_client(lambda frame: frame["id"] == 0 and frame["result"]["protocolVersion"] == D),
        ],
        known=known,
    )
    assert known.recall() is True


def test_nothing_is_learned_of_a_server_that_was_not_asked(known: KnownServer) -> None:
    hold(
        [
            client(initialize(D)),
            expect_to_server(method("initialize")),
            server(initialized(D)),
            expect_to_client(lambda frame: frame["id"] == 0),
        ],
        known=known,
    )
    assert known.recall() is None


# The file


@pytest.mark.parametrize("text", [b"", b"handshak", b"\xff\xfe", b"per-request"])
def test_a_file_that_is_damaged_or_of_an_older_release_says_nothing(known: KnownServer, text: bytes) -> None:
    known.note(has_handshake=True)
    Path(known.path).write_bytes(text)
    assert known.recall() is None
    known.note(has_handshake=False)
    assert known.recall() is False


@pytest.mark.parametrize("has_handshake", [True, False])
def test_it_is_forgotten_after_a_day(known: KnownServer, has_handshake: bool) -> None:
    known.note(has_handshake)
    then_s = time.time() - ERA_S - 1
    os.utime(known.path, (then_s, then_s))
    assert known.recall() is None


@pytest.mark.parametrize("has_handshake", [True, False])
def test_where_the_cache_cannot_be_written_this_process_alone_remembers(tmp_path: Path, has_handshake: bool) -> None:
    (tmp_path / "cache").write_text("a file, where a directory should be")
    known = KnownServer(str(tmp_path / "cache" / "one"))
    assert known.recall() is None
    known.note(not has_handshake)
    known.note(has_handshake)
    assert known.recall() is has_handshake
    assert KnownServer(known.path).recall() is None


def test_a_name_that_is_a_directory_leaves_nothing_behind(tmp_path: Path) -> None:
    known = KnownServer(str(tmp_path / "one"))
    Path(known.path).mkdir()
    known.note(has_handshake=True)
    assert list(tmp_path.iterdir()) == [Path(known.path)]


def test_no_more_servers_are_remembered_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.host.known._MOST", 3)
    for number in range(5):
        KnownServer(str(tmp_path / str(number))).note(has_handshake=False)
    assert len(list(tmp_path.iterdir())) == 3


def test_another_release_of_a_command_is_another_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = tmp_path / "server.py"
    script.write_text("1")
    before = know([sys.executable, "server.py"], str(tmp_path))
    assert know([sys.executable, "server.py"], str(tmp_path)) == before
    assert know([sys.executable, "server.py", "--more"], str(tmp_path)) != before
    script.write_text("22")
    assert know([sys.executable, "server.py"], str(tmp_path)) != before
    path = Path(before.path)
    assert path.is_relative_to(tmp_path / "cache" / "dragoman")
    assert "server" not in path.name
    before.note(has_handshake=True)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_server_at_a_url_runs_before_we_do_and_is_known_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    url = "https://example.com/mcp?key=secret"
    found = know_url(url)
    assert found.is_up
    assert found == know_url(url) != know_url("https://example.com/")
    assert "secret" not in found.path
    assert not know_url("wss://example.com/mcp").is_up
    assert not know(["true"]).is_up


def test_a_directory_that_has_been_removed_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server starts there as well."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert know([sys.executable, "server.py"]).recall() is None
