"""A client that lost its stream resumes it at another instance, when that of its session is gone: `--store-events`."""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import Redis

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.instances.test_adoption import asked, behind, kill
from tests.instances.test_several import CALL, INITIALIZED, instances, store
from tests.support.waiting import PATIENCE_S, wait_until

__all__ = ["store"]

TELLS = """
import json, sys
log = open(sys.argv[1], "a")
def say(**frame): print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)
open_call = None
for line in sys.stdin:
    told = json.loads(line)
    method, params = told.get("method"), told.get("params") or {}
    log.write(json.dumps([method, params]) + "\\n")
    log.flush()
    if method == "initialize":
        say(id=told["id"], result={"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "s",
            "version": "1"}, "capabilities": {"tools": {}, "logging": {}}})
    elif method == "tools/call":
        what = params["name"]
        token = params.get("_meta", {}).get("progressToken")
        for step in (1, 2, 3):
            say(method="notifications/progress", params={"progressToken": token, "progress": step})
        if what == "asks":
            say(id="q", method="elicitation/create", params={"message": "Who?", "requestedSchema":
                {"type": "object", "properties": {}}})
        if what == "short":
            say(id=told["id"], result={"content": [{"type": "text", "text": "secret-of-the-answer"}]})
        if what == "tells":
            say(id=told["id"], result={"content": []})
            say(method="notifications/message", params={"level": "error", "data": "of no call"})
    elif "id" in told and method is not None:
        say(id=told["id"], result={})
"""
PING = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
STEPS = [("notifications/progress", number) for number in (1, 2, 3)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def server(log: Path) -> Iterator[Listening]:
    """A server over HTTP that tells of progress; one call of it never ends."""
    with listening("--max-sessions", "1000", server=[sys.executable, "-S", "-c", TELLS, str(log)]) as found:
        yield found


@pytest.fixture
def options(store: list[str], tmp_path: Path) -> list[str]:
    keys = tmp_path / "keys"
    keys.write_text("5a" * 32 + "\n")
    keys.chmod(0o600)
    return [*store, "--store-events", "--state-key-file", str(keys)]


def open_newest(proxy: Listening) -> str:
    """Open a session of a revision whose clients resume from the first moment on, and can be asked."""
    told = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    session: str = proxy.post({**INITIALIZE, "params": told})[1]["mcp-session-id"]
    assert proxy.post(INITIALIZED, mcp_session_id=session)[0] == 202
    return session


Event = tuple[str, dict[str, Any] | None]


class Events:
    """Reads a stream of events one at a time."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[Event]:
        event_id = ""
        for line in self._answer:
            if line.startswith(b"id:"):
                event_id = line[3:].strip().decode()
            elif line.startswith(b"data:"):
                yield event_id, json.loads(line[5:]) if line[5:].strip() else None


@contextmanager
def requested(proxy: Listening, session: str, verb: str, body: Any = None, last: str = "") -> Iterator[Any]:
    where = urlsplit(proxy.url)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=PATIENCE_S)) as connection:
        headers = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session}
        headers |= {"Last-Event-ID": last} if last else {}
        headers |= {"Content-Type": "application/json"} if body else {}
        connection.request(verb, where.path, json.dumps(body) if body else None, headers)
        with connection.getresponse() as answer:
            yield answer


def call_until(proxy: Listening, session: str, name: str, events: int) -> list[Event]:
    """Call a tool, and leave after so many events; the first one has no data."""
    frame = {**CALL, "params": {"name": name, "arguments": {}, "_meta": {"progressToken": "t"}}}
    with requested(proxy, session, "POST", frame) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        return [event for event, _ in zip(Events(answer), range(events), strict=False)]


def wait_until_kept(store: list[str], count: int) -> None:
    """Wait until so many events are in the store: nobody waits for it that has them."""
    if "://" not in store[1]:
        wait_until(lambda: len(list(Path(store[1]).glob("event:*"))) == count)
        return
    with closing(Redis.from_url(store[1])) as client:
        wait_until(lambda: len(client.keys("dragoman:event:*")) == count)


def resume(proxy: Listening, session: str, last: str) -> list[dict[str, Any] | None]:
    """Resume a stream of a call, as often as it takes until somebody has the session, and read it to its end."""
    found: list[dict[str, Any] | None] = []

    def is_served() -> bool:
        with requested(proxy, session, "GET", last=last) as answer:
            if answer.status in (502, 503):
                return False
            assert answer.status == 200, answer.read()
            found.extend(frame for _, frame in Events(answer))
        return True

    wait_until(is_served)
    return found


def shown(frames: list[dict[str, Any] | None]) -> list[Any]:
    """What frames of a call say, in short."""
    return [
        (frame["method"], frame["params"].get("progress"))
        if "method" in frame
        else frame.get("result", frame.get("error"))
        for frame in frames
        if frame is not None
    ]


def test_an_answer_that_was_logged_is_resumed_elsewhere(options: list[str], server: Listening, log: Path) -> None:
    with instances(3, *options, *behind(server), server=[]) as proxies:
        session = open_newest(proxies[0])
        seen = call_until(proxies[1], session, "short", 3)  # by way of the other one
        wait_until_kept(options, 5)
        kill(proxies[0])
        answer = {"content": [{"type": "text", "text": "secret-of-the-answer"}]}
        assert shown(resume(proxies[1], session, seen[-1][0])) == [STEPS[2], answer]
        assert shown(resume(proxies[2], session, seen[0][0])) == [*STEPS, answer]
        assert shown(resume(proxies[1], session, seen[1][0])) == [*STEPS[1:], answer]
        assert len(asked(log, "tools/call")) == 1


@pytest.mark.parametrize("name", ["endless", "asks"])
def test_an_open_call_fails_once_after_what_was_logged(
    options: list[str], server: Listening, log: Path, name: str
) -> None:
    """And is not made again; nor is the client asked what nobody waits for."""
    with instances(2, *options, *behind(server), server=[]) as proxies:
        session = open_newest(proxies[0])
        seen = call_until(proxies[0], session, name, 2)
        wait_until_kept(options, 4 if name == "endless" else 5)
        kill(proxies[0])
        frames = resume(proxies[1], session, seen[-1][0])
        assert shown(frames)[:-1] == STEPS[1:]
        assert frames[-1] is not None
        assert (frames[-1]["id"], frames[-1]["error"]["code"]) == (CALL["id"], -32603)
        assert "nobody knows what became" in frames[-1]["error"]["message"]
        assert len(asked(log, "tools/call")) == 1


def test_what_was_said_on_a_stream_of_its_own_is_resumed_elsewhere(options: list[str], server: Listening) -> None:
    with instances(2, *options, *behind(server), server=[]) as proxies:
        session = open_newest(proxies[0])
        with requested(proxies[0], session, "GET") as standing:
            events = iter(Events(standing))
            first = next(events)[0]
            call_until(proxies[0], session, "tells", 5)
            assert next(frame for _, frame in events if frame is not None)["method"] == "notifications/message"
        wait_until_kept(options, 6)
        kill(proxies[0])

        def is_heard() -> bool:
            with requested(proxies[1], session, "GET", last=first) as answer:
                if answer.status != 200:
                    return False
                told = next(frame for _, frame in Events(answer) if frame is not None)
                return bool(told["params"]["data"] == "of no call")

        wait_until(is_heard)


def test_a_stream_of_somebody_else_s_session_is_not_there(options: list[str], server: Listening) -> None:
    with instances(2, *options, *behind(server), server=[]) as proxies:
        session, other = open_newest(proxies[0]), open_newest(proxies[0])
        (first, _), *_ = call_until(proxies[0], session, "short", 5)
        wait_until_kept(options, 5)
        kill(proxies[0])
        resume(proxies[1], session, first)
        wait_until(lambda: proxies[1].post(PING, mcp_session_id=other)[0] == 200)
        for last in (first, "p../../x-0", "p" + "1" * 60 + "-0", "p1-" + "9" * 30, "p1-\u0661"):
            with requested(proxies[1], other, "GET", last=last.encode().decode("latin-1")) as answer:
                assert answer.status == 410


def test_without_the_option_nothing_of_a_stream_is_kept(store: list[str], server: Listening) -> None:
    with instances(2, *store, *behind(server), server=[]) as proxies:
        session = open_newest(proxies[0])
        (first, _), *_ = call_until(proxies[0], session, "short", 5)
        kill(proxies[0])
        wait_until(lambda: proxies[1].post(PING, mcp_session_id=session)[0] == 200)
        with requested(proxies[1], session, "GET", last=first) as answer:
            assert answer.status == 410


def test_what_is_kept_of_streams_can_be_read_by_no_one_else_and_goes(tmp_path: Path, server: Listening) -> None:
    """Sealed, no more of it than the instance has itself, and gone with it."""
    keys = tmp_path / "keys"
    keys.write_text("5a" * 32 + "\n")
    keys.chmod(0o600)
    folder = tmp_path / "i"
    options = ("--store", str(folder), "--store-events", "--state-key-file", str(keys))
    with instances(1, *options, *behind(server), server=[]) as (proxy,):
        session = open_newest(proxy)
        for number in range(40):
            frame = {
                **CALL,
                "id": number,
                "params": {"name": "short", "arguments": {}, "_meta": {"progressToken": number}},
            }
            with requested(proxy, session, "POST", frame) as answer:
                answer.read()
        wait_until(lambda: len(list(folder.glob("event:*"))) <= 5 * 17)  # of 16 streams that are over, and the last one
        kept = list(folder.glob("event:*"))
        assert len(kept) > 5 * 14
        assert not any(b"secret-of" in file.read_bytes() or session.encode() in file.read_bytes() for file in kept)


def test_the_option_needs_a_place_and_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    from dragoman.cli import main

    with pytest.raises(SystemExit):
        main(["proxy", "--listen", "http://127.0.0.1:0", "--store-events", "--url", "http://127.0.0.1:9/mcp"])
    assert "--state-key-file" in capsys.readouterr().err
