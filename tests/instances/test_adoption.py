"""Sessions go on at another instance when theirs is gone, if their server is reached over HTTP."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from redis import Redis

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.instances.test_several import CALL, INITIALIZED, end_session, instances, open_session, redis, store
from tests.support.ports import free_port
from tests.support.waiting import PATIENCE_S, wait_until

__all__ = ["store"]

NOTES = """
import json, os, sys
log = open(sys.argv[1], "a")
for line in sys.stdin:
    told = json.loads(line)
    log.write(json.dumps([told.get("method"), told.get("params")]) + "\\n")
    log.flush()
    is_deaf = os.path.exists(sys.argv[1] + ".deaf") and told["method"] in ("resources/subscribe", "logging/setLevel")
    if "id" not in told or is_deaf:
        continue
    result = {}
    if told["method"] == "initialize":
        result = {"protocolVersion": told["params"]["protocolVersion"], "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {"tools": {}, "logging": {}, "resources": {"subscribe": True}}}
    elif told["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": told["id"], "result": result}), flush=True)
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def server(log: Path) -> Iterator[Listening]:
    """A server over HTTP, which notes what it is asked."""
    with listening("--max-sessions", "1000", server=[sys.executable, "-S", "-c", NOTES, str(log)]) as found:
        yield found


def behind(server: Listening) -> tuple[str, ...]:
    return ("--url", server.url)


def asked(log: Path, method: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [params for found, params in lines if found == method]


def kill(proxy: Listening) -> None:
    proxy.process.kill()
    proxy.process.wait(PATIENCE_S)


def test_a_session_goes_on_elsewhere_with_what_its_client_asked_for(
    store: list[str], server: Listening, log: Path
) -> None:
    with instances(3, *store, *behind(server), server=[]) as proxies:
        session = open_session(proxies[0])
        lasting = [
            ("logging/setLevel", {"level": "error"}),
            ("logging/setLevel", {"level": "debug"}),
            ("resources/subscribe", {"uri": "a:1"}),
            ("resources/subscribe", {"uri": "a:2"}),
            ("resources/unsubscribe", {"uri": "a:1"}),
        ]
        for number, (method, params) in enumerate(lasting):
            frame = {"jsonrpc": "2.0", "id": f"l{number}", "method": method, "params": params}
            assert "result" in proxies[number % 3].post(frame, mcp_session_id=session)[2]
        log.write_text("")
        kill(proxies[0])
        for _ in range(2):
            for proxy in proxies[1:]:
                wait_until(lambda proxy=proxy: proxy.post(CALL, mcp_session_id=session)[0] == 200)  # type: ignore[misc]
        assert len(asked(log, "initialize")) == 1
        assert asked(log, "logging/setLevel") == [{"level": "debug"}]
        assert asked(log, "resources/subscribe") == [{"uri": "a:2"}]
        kill(proxies[1])  # perhaps it had the session; the last one has it afterwards
        wait_until(lambda: proxies[2].post(CALL, mcp_session_id=session)[0] == 200)
        before = len(asked(log, "initialize"))
        with listening(*store, *behind(server), server=[]) as last:
            assert last.post(CALL, mcp_session_id=session)[0] == 200
            kill(proxies[2])
            wait_until(lambda: last.post(CALL, mcp_session_id=session)[0] == 200)
            assert len(asked(log, "initialize")) == before + 1
            assert end_session(last, session) == 204
            assert last.post(CALL, mcp_session_id=session)[0] == 404


def test_a_session_of_somebody_else_does_not_go_on(store: list[str], server: Listening, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("ada secret-of-ada-0001\nbob secret-of-bob-0001\n")
    tokens.chmod(0o600)
    ada, bob = ({"authorization": f"Bearer secret-of-{name}-0001"} for name in ("ada", "bob"))
    with instances(2, *store, *behind(server), "--auth-token-file", str(tokens), server=[]) as proxies:
        session = proxies[0].post(INITIALIZE, **ada)[1]["mcp-session-id"]
        proxies[0].post(INITIALIZED, mcp_session_id=session, **ada)
        kill(proxies[0])
        assert proxies[1].post(CALL, mcp_session_id=session, **bob)[0] == 404
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session, **ada)[0] == 200)
        assert proxies[1].post(CALL, mcp_session_id=session, **bob)[0] == 404


def test_a_session_that_its_client_ended_stays_ended(store: list[str], server: Listening) -> None:
    with instances(2, *store, *behind(server), server=[]) as proxies:
        session = open_session(proxies[0])
        assert end_session(proxies[0], session) == 204
        wait_until(lambda: proxies[0].post(CALL, mcp_session_id=session)[0] == 404)
        kill(proxies[0])
        for _ in range(3):
            assert proxies[1].post(CALL, mcp_session_id=session)[0] == 404


def test_requests_at_once_open_a_session_again_once(store: list[str], server: Listening, log: Path) -> None:
    with instances(3, *store, *behind(server), server=[]) as proxies:
        session = open_session(proxies[0])
        kill(proxies[0])
        log.write_text("")
        statuses: list[int] = []

        def call(proxy: Listening, number: int) -> None:
            statuses.append(proxy.post({**CALL, "id": number}, mcp_session_id=session)[0])

        threads = [threading.Thread(target=call, args=(proxies[1 + n % 2], n)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert set(statuses) <= {200, 502}  # what was on its way when the instance died is not sent again
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 200)
        assert len(asked(log, "initialize")) == 1


def test_an_instance_that_ends_hands_its_sessions_over(store: list[str], server: Listening) -> None:
    """A rolling restart: each instance is stopped in turn, another comes, and no call of any session fails."""
    options = (*store, *behind(server), "--shutdown-delay", "0.5")
    with ExitStack() as stack:
        proxies = [stack.enter_context(listening(*options, server=[])) for _ in range(2)]
        sessions = [open_session(proxies[number % 2]) for number in range(6)]
        for _ in range(3):
            old = proxies.pop(0)
            proxies.append(stack.enter_context(listening(*options, server=[])))
            old.process.send_signal(signal.SIGTERM)
            while old.process.poll() is None:
                for number, session in enumerate(sessions):
                    status, _, answer = proxies[number % 2].post(CALL, mcp_session_id=session)
                    assert (status, "result" in answer) == (200, True)
        for number, session in enumerate(sessions):
            assert proxies[number % 2].post(CALL, mcp_session_id=session)[0] == 200


def test_sessions_of_commands_do_not_go_on(store: list[str]) -> None:
    with instances(2, *store) as proxies:
        session = open_session(proxies[0])
        kill(proxies[0])
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 404)


def test_sessions_of_a_file_go_on_while_all_its_servers_are_reached_over_http(
    store: list[str], server: Listening, tmp_path: Path
) -> None:
    file, url = tmp_path / "servers.json", {"url": server.url}
    file.write_text(json.dumps({"mcpServers": {"one": url, "two": url}}))
    with instances(3, *store, "--config", str(file), server=[]) as proxies:
        session, other = open_session(proxies[0]), open_session(proxies[1])
        kill(proxies[0])
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 200)
        open_session(proxies[2])
        commands = tmp_path / "commands"
        commands.touch()
        command = {"command": sys.executable, "args": ["-S", "-c", NOTES, str(commands)]}
        file.write_text(json.dumps({"mcpServers": {"one": url, "two": command}}))
        wait_until(lambda: len(asked(commands, "initialize")) == 3)  # of all sessions, so both have read the file
        kill(proxies[1])
        wait_until(lambda: proxies[2].post(CALL, mcp_session_id=other)[0] == 404)


def test_with_restarts_they_go_on_with_a_fresh_server(store: list[str]) -> None:
    with instances(2, *store, "--restarts", "1") as proxies:
        session = open_session(proxies[0])
        kill(proxies[0])
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 200)


def is_present(url: str, session: str) -> bool:
    """Whether the store knows the instance that has opened a session."""
    with closing(Redis.from_url(url)) as client:
        return client.exists(f"dragoman:instance:{session.partition('.')[0]}") == 1


def test_an_instance_that_hung_and_comes_back_gives_up_what_goes_on_elsewhere(
    tmp_path: Path, server: Listening, log: Path
) -> None:
    with redis(tmp_path, free_port()) as url:
        options = ("--store", url, "--instance-listen", "http://127.0.0.1:0", *behind(server), "--log-level", "info")
        with instances(2, *options, server=[]) as proxies:
            session = open_session(proxies[0])
            proxies[0].process.send_signal(signal.SIGSTOP)
            try:
                wait_until(lambda: not is_present(url, session))
                wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 200)  # 503 without CPU time
            finally:
                proxies[0].process.send_signal(signal.SIGCONT)
            while b"another instance has taken it over" not in proxies[0].lines.read():
                pass
            assert proxies[1].post(CALL, mcp_session_id=session)[0] == 200


def records(store: list[str]) -> list[Path]:
    return sorted(Path(store[1]).glob("session:*"))


def heirs(store: list[str]) -> list[Path]:
    return sorted(Path(store[1]).glob("heir:*"))


@pytest.fixture
def folder(tmp_path: Path) -> list[str]:
    return ["--store", str(tmp_path / "i")]


def test_who_has_a_session_is_known_as_long_as_it_lives(folder: list[str], server: Listening) -> None:
    """If it were forgotten, a third instance would open it again, beside the second."""
    with instances(2, *folder, *behind(server), "--session-idle", "5", server=[]) as proxies:
        session = open_session(proxies[0])
        kill(proxies[0])
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 200)
        (heir,) = heirs(folder)
        until = heir.stat().st_mtime

        def is_renewed() -> bool:
            assert proxies[1].post(CALL, mcp_session_id=session)[0] == 200
            return heir.stat().st_mtime > until

        wait_until(is_renewed)


def test_what_is_kept_of_a_session_stays_small(folder: list[str], server: Listening) -> None:
    with instances(1, *folder, *behind(server), server=[]) as (proxy,):
        session = open_session(proxy)
        for number in range(8):
            params = {"uri": f"a:{number}{30_000 * 'x'}"}
            frame = {"jsonrpc": "2.0", "id": number, "method": "resources/subscribe", "params": params}
            assert "result" in proxy.post(frame, mcp_session_id=session)[2]
        (record,) = records(folder)
        assert 60_000 < record.stat().st_size < 100_000


def test_what_the_server_leaves_unanswered_when_it_is_asked_again_holds_nobody_up(
    folder: list[str], server: Listening, log: Path
) -> None:
    uris = [{"uri": f"a:{number}"} for number in range(3)]
    lasting = [("logging/setLevel", {"level": "error"}), *(("resources/subscribe", uri) for uri in uris)]
    with instances(2, *folder, *behind(server), "--max-streams", "1", server=[]) as proxies:
        session = open_session(proxies[0])
        for number, (method, params) in enumerate(lasting):
            frame = {"jsonrpc": "2.0", "id": f"l{number}", "method": method, "params": params}
            assert "result" in proxies[0].post(frame, mcp_session_id=session)[2]
        log.write_text("")
        Path(f"{log}.deaf").touch()
        kill(proxies[0])
        wait_until(lambda: proxies[1].post(CALL, mcp_session_id=session)[0] == 200)
        wait_until(lambda: asked(log, "logging/setLevel") == [{"level": "error"}])
        asked_again = asked(log, "resources/subscribe")
        assert sorted(asked_again, key=str) == uris, "those that nobody waits for may overtake each other"
        assert len(asked(log, "initialize")) == 1
        while b"the server has not answered resources/subscribe in 5 s" not in proxies[1].lines.read():
            pass


def test_a_session_for_which_there_is_no_room_now_goes_on_later(folder: list[str], server: Listening) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(listening(*folder, *behind(server), server=[]))
        second = stack.enter_context(listening(*folder, *behind(server), "--max-sessions", "1", server=[]))
        session, other = open_session(first), open_session(second)
        kill(first)
        assert second.post(CALL, mcp_session_id=session)[0] == 503
        assert end_session(second, other) == 204
        wait_until(lambda: second.post(CALL, mcp_session_id=session)[0] == 200)


def test_a_session_at_the_path_of_a_server_goes_on_there_alone(folder: list[str], tmp_path: Path, log: Path) -> None:
    file = tmp_path / "servers.json"
    entry = {"command": sys.executable, "args": ["-S", "-c", NOTES, str(log)]}
    file.write_text(json.dumps({"mcpServers": {"one": entry, "two": entry}}))
    options = (*folder, "--config", str(file), "--paths", "--restarts", "1")
    with instances(2, *options, server=[]) as proxies:
        one, two = (proxies[1].url.replace("/mcp", f"/{name}/mcp") for name in ("one", "two"))
        at_first = proxies[0].url.replace("/mcp", "/one/mcp")
        session = proxies[0].post(INITIALIZE, at_first)[1]["mcp-session-id"]
        assert proxies[0].post(INITIALIZED, at_first, mcp_session_id=session)[0] == 202
        kill(proxies[0])
        assert proxies[1].post(CALL, two, mcp_session_id=session)[0] == 404
        assert proxies[1].post(CALL, mcp_session_id=session)[0] == 404
        wait_until(lambda: proxies[1].post(CALL, one, mcp_session_id=session)[0] == 200)
        assert proxies[1].post(CALL, two, mcp_session_id=session)[0] == 404
