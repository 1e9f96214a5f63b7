"""A whole run of three instances, and a search of the store, of what passed through it, and of every log."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.cli.test_listen import INITIALIZE, Listening, listening
from tests.instances.test_adoption import kill
from tests.instances.test_news import SERVER, change, listen
from tests.instances.test_several import CALL, INITIALIZED, instances, redis
from tests.support.waiting import PATIENCE_S, wait_until

TOKEN, ARGUMENT, HEADER, KEY = "secret-of-a-person-9Qx7Lm2Zt", "argument-4Kd8Ws1Pv", "header-7Hn3Rb6Yc", "cd" * 32
NAME = "ada-lovelace-of-london"


@contextlib.contextmanager
def overheard(url: str) -> Iterator[list[bytes]]:
    """Note every command that the store is given, as long as this is open."""
    where, heard = urlsplit(url), list[bytes]()
    with socket.create_connection((str(where.hostname), int(where.port or 0)), PATIENCE_S) as connection:
        connection.sendall(b"MONITOR\r\n")

        def note() -> None:
            with contextlib.suppress(OSError):
                while data := connection.recv(65536):
                    heard.append(data)

        listener = threading.Thread(target=note, daemon=True)
        listener.start()
        wait_until(lambda: bool(heard))
        yield heard
        connection.shutdown(socket.SHUT_RDWR)
        listener.join(PATIENCE_S)


def run(proxies: list[Listening]) -> list[str]:
    """Open a session that another instance goes on with, listen, and have changes told; give the ids of sessions."""
    shown = {"authorization": f"Bearer {TOKEN}"}
    session = proxies[0].post(INITIALIZE, **shown)[1]["mcp-session-id"]
    call = {**CALL, "params": {"name": "tool_1", "arguments": {"path": ARGUMENT}}}
    proxies[1].post(INITIALIZED, mcp_session_id=session, **shown)
    level = {"jsonrpc": "2.0", "id": 8, "method": "logging/setLevel", "params": {"level": "debug"}}
    for frame in (level, call):
        assert proxies[2].post(frame, accept="application/json", mcp_session_id=session, **shown)[0] == 200
    with listen(proxies[0], **shown) as heard:
        change(proxies[1], **shown)
        heard.wait("notifications/tools/list_changed")
    kill(proxies[0])
    wait_until(lambda: proxies[1].post(call, accept="application/json", mcp_session_id=session, **shown)[0] == 200)
    return [session, session.rpartition(".")[2]]


def test_neither_the_store_nor_a_log_gets_a_secret(tmp_path: Path) -> None:
    for name, text in (("tokens", f"{NAME} {TOKEN}\n"), ("state", f"{KEY}\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    with redis(tmp_path) as url, overheard(url) as heard, listening(server=SERVER, url="http://127.0.0.1:0") as far:
        options = [
            *("--store", url, "--instance-listen", "http://127.0.0.1:0"),
            *("--log-level", "debug", "--log-file", str(tmp_path / "log"), "--access-log", str(tmp_path / "access")),
            *("--auth-token-file", str(tmp_path / "tokens"), "--state-key-file", str(tmp_path / "state")),
            *("--header", f"X-Key: {HEADER}", "--url", far.url),
        ]
        with instances(3, *options, server=[]) as proxies:
            sessions = run(proxies)
            said = "".join(proxy.end()[1] for proxy in proxies[1:])
    store = b"".join(heard).decode("utf-8", "replace")
    assert "dragoman:session:" in store, "the store was used"
    assert "dragoman:news" in store, "and so was the way for news"
    log, access = ((tmp_path / name).read_text() for name in ("log", "access"))
    assert "goes on here" in log
    assert NAME in access
    found = [
        (where, secret)
        for where, text in (("the store", store), ("the log", log + said), ("the access log", access))
        for secret in (TOKEN, ARGUMENT, HEADER, KEY, *sessions)
        if secret in text
    ]
    assert found == []
    assert NAME not in store
