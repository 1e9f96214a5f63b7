"""Headers that middleware gives: each request over HTTP has them anew, and nothing else has what is in them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.config import ConfigError, parse_config, read_config
from dragoman.config.opening import opener_of
from dragoman.errors import McpError
from dragoman.middlewares import InjectHeaders
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.router import Router
from dragoman.transports.memory import connect_pair
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport
from dragoman.transports.upstream.config import UpstreamConfig, encode_header
from dragoman.transports.upstream.connect import open_upstream
from dragoman.transports.upstream.mounted import mount
from tests.server.rooms import make
from tests.support import commands
from tests.support.waiting import PATIENCE_S, run
from tests.transports.upstream.stage import Reply, Request, client, on_loop, open_with, server, shake_hands
from tests.transports.upstream.test_websocket import socket_server

SECRET = "t0psecret-one"


def test_variables_files_and_dollars_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("  abc\n", "utf-8")
    templates = {
        "Authorization": "Bearer ${file:token}",
        "X-Env": "$A-${A}-${env:A}",
        "X-Price": "$$5",
        "X-Plain": "{file:token}",
    }
    headers = InjectHeaders(templates, {"A": "1"}, str(tmp_path)).headers_to_server()
    assert headers == {"Authorization": "Bearer abc", "X-Env": "1-1-1", "X-Price": "$5", "X-Plain": "{file:token}"}


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ("Authorization: x", 'expected headers as {"NAME": "VALUE"}'),
        ({"X": 5}, "expected name and value of the header X to be strings"),
        ({5: "X"}, "expected name and value of the header 5 to be strings"),
    ],
)
def test_what_is_not_names_and_values_is_refused(headers: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        InjectHeaders(headers)


def test_what_has_changed_is_read_again(tmp_path: Path) -> None:
    token, environment = tmp_path / "token", {"A": "1"}
    token.write_text("one", "utf-8")
    inject = InjectHeaders({"X": f"${{file:{token}}} $A"}, environment)
    (tmp_path / "new").write_text("two", "utf-8")
    os.replace(tmp_path / "new", token)
    environment["A"] = "2"
    assert inject.headers_to_server() == {"X": "two 2"}


HOSTILE: list[tuple[str, bytes, str]] = [
    ("X", b"", "the file token is empty"),
    ("X", b" \n", "the file token is empty"),
    ("X", b"a\r\nY: b", "the value of the header X holds a control character"),
    ("X", b"a\nb", "holds a control character"),
    ("X", b"a\0b", "holds a control character"),
    ("X", b"a\x7fb", "holds a control character"),
    ("X", b"a" * 65537, "longer than 65536 bytes"),
    ("X\r\nY", b"a", "cannot be the name of an HTTP header"),
    ("Content-Length", b"7", "is written by the transport itself"),
    ("Mcp-Method", b"a", "is written by the transport itself"),
]


@pytest.mark.parametrize(("name", "data", "words"), HOSTILE)
def test_what_no_header_can_say_is_refused_and_not_repeated(
    name: str, data: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_bytes(data)
    with pytest.raises(ValueError, match=words) as caught:
        InjectHeaders({name: "${file:token}"})
    assert "a\r\nY" not in str(caught.value)
    assert "aaaa" not in str(caught.value)


@pytest.mark.parametrize("data", ["a\u20acb".encode(), b"a\xffb"])
def test_bytes_of_a_file_are_sent_as_they_are(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("token").write_bytes(data)
    assert encode_header(InjectHeaders({"X": "${file:token}"}).headers_to_server()["X"]) == data


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("$NOWHERE", "the environment has no variable NOWHERE"),
        ("$EMPTY", "the variable EMPTY is empty"),
        ("${file:nowhere}", "the file nowhere cannot be read: no such file"),
        ("${file:.}", "(. is not a file|the file . cannot be read: is a directory)"),
        ("${file:pipe}", "pipe is not a file"),
        ("${TOKEN:-default}", "expected \\$NAME"),
        ("${file:}", "expected \\$NAME"),
        ("a $ b", "expected \\$NAME"),
        ("${", "expected \\$NAME"),
    ],
)
def test_what_cannot_be_filled_in_is_named(
    template: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")  # nobody writes into it: to open it as usual would take for ever
    with pytest.raises(ValueError, match=words):
        InjectHeaders({"X": template}, {"EMPTY": ""})


def test_nothing_shows_a_value() -> None:
    inject = InjectHeaders({"X": SECRET})
    config = ProxyConfig(header_middleware=(inject.headers_to_server,))
    upstream = UpstreamConfig("http://h/", header_middleware=config.header_middleware)
    assert SECRET not in repr(inject) + repr(config) + repr(upstream)


# What a server gets


class Noted:
    """A well-behaved server that notes the header X of each request."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str | None]] = []

    async def __call__(self, request: Request, reply: Reply) -> None:
        self.seen.append((request.rpc or request.method, request.headers.get("x")))
        if not await shake_hands(request, reply):
            await reply.result(request, {})


@on_loop
async def test_every_request_has_them_anew() -> None:
    count = iter(range(1, 100))
    note = Noted()
    async with server(note) as url, client(url, header_middleware=(lambda: {"X": str(next(count))},)) as peer:
        await peer.ask("tools/list")
        await peer.ask("tools/list")
    methods = [method for method, _ in note.seen]
    assert set(methods) == {"initialize", "notifications/initialized", "GET", "tools/list", "DELETE"}
    assert [value for _, value in note.seen] == [str(number + 1) for number in range(len(note.seen))]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_proxy_and_a_transport_may_both_have_some(kind: str) -> None:
    note = Noted()
    found: list[dict[str, str]] = []

    async def serve(request: Request, reply: Reply) -> None:
        found.append(request.headers)
        await note(request, reply)

    async def work(url: str) -> None:
        near, far = connect_pair()
        upstream = UpstreamConfig(url, header_middleware=(lambda: {"X": "1", "Y": "1"},))
        config = ProxyConfig(header_middleware=(lambda: {"Y": "2"}, lambda: {"Z": "3"}))
        running = asyncio.ensure_future(Proxy(config, far, lambda: open_upstream(upstream)).run())
        async with dragoman.connect(lambda: near, revision="2025-11-25") as talker:
            await talker.ping()
        await running

    async def serve_and_work() -> None:
        if kind == "http":
            async with server(serve) as url:
                await work(url)
        else:
            async with socket_server() as (url, notes):
                await work(url)
                found.append({name.lower(): value for name, value in notes[0].items()})

    run(serve_and_work())
    assert {(one["x"], one["y"], one["z"]) for one in found} == {("1", "2", "3")}


@on_loop
async def test_a_request_without_its_header_is_not_sent_and_the_session_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given: list[Any] = ["a"]
    note = Noted()

    def give() -> dict[str, str]:
        if isinstance(given[0], Exception):
            raise given[0]
        return {"X": given[0]}

    async with server(note) as url, client(url, header_middleware=(give,)) as peer:
        assert "result" in await peer.ask("tools/list")
        errors = []
        for value in (ValueError("the file /run/secrets/token is empty"), "a\r\nY: b", 5):
            given[0] = value
            errors.append((await peer.ask("tools/call"))["error"]["message"])
        given[0] = "b"
        assert "result" in await peer.ask("tools/list")
    assert "tools/call" not in [method for method, _ in note.seen]
    assert "a middleware has no value for its headers now; the log of the proxy says why" in errors[0]
    assert "/run/secrets" not in errors[0]
    assert "the value of the header X holds a control character" in errors[1]
    assert "not a string" in errors[2]
    assert "the file /run/secrets/token is empty" in caplog.text


@pytest.mark.parametrize("name", ["Cookie", "Accept", "Mcp-Session-Id", "Content-Length"])
def test_what_the_transport_writes_is_not_for_middleware(name: str) -> None:
    async def work() -> None:
        error = await open_with(Noted(), header_middleware=(lambda: {name: "1"},))
        assert "written by the transport itself" in error["message"]

    run(work())


def test_a_server_without_a_handshake_gets_them_too() -> None:
    seen: list[tuple[str, str | None]] = []
    inner = make("2026-07-28").app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            seen.append((headers.get(b"mcp-method", b"").decode(), headers.get(b"x", b"").decode() or None))
        await inner(scope, receive, send)

    async def work() -> None:
        async with mount(app, "/mcp") as connect:
            near, far = connect_pair()
            config = ProxyConfig(header_middleware=(lambda: {"X": "1"},))
            proxy = Proxy(config, far, connect)
            running = asyncio.ensure_future(proxy.run())
            async with dragoman.connect(lambda: near, revision="2026-07-28") as talker:
                assert [tool.name async for tool in talker.tools()]
            await running
        await inner.close()

    run(work())
    assert {method for method, _ in seen} >= {"server/discover", "tools/list"}
    assert {value for _, value in seen} == {"1"}


@pytest.mark.parametrize("way", [dragoman.connect, dragoman.connect_sync])
def test_a_client_takes_a_function_for_headers(way: Any) -> None:
    note, values = Noted(), iter(["1", "2", "3", "4", "5", "6", "7", "8", "9"])

    async def work() -> None:
        async with server(note) as url:
            opening = way(url, revision="2025-11-25", headers=lambda: {"X": next(values)})
            if way is dragoman.connect:
                async with opening as talker:
                    await talker.ping()
            else:
                await asyncio.get_running_loop().run_in_executor(None, ping, opening)

    def ping(opening: Any) -> None:
        with opening as talker:
            talker.ping()

    asyncio.run(work())
    assert [value for _, value in note.seen] == [str(number + 1) for number in range(len(note.seen))]
    assert "ping" in [method for method, _ in note.seen]


# Where there are no headers


@pytest.mark.parametrize("scope", [Scope.CLIENT, Scope.SHARED])
def test_a_server_that_is_not_reached_over_http_is_refused_and_ended(scope: Scope) -> None:
    spawned: list[subprocess.Popen[bytes]] = []

    def connect() -> ChildTransport:
        spawned.append(spawn([sys.executable, "-c", "import sys; sys.stdin.read()"]))
        return ChildTransport(spawned[-1])

    async def work() -> None:
        config = ProxyConfig(header_middleware=(dict,), names_server=True)
        near, far = connect_pair()
        pool = UpstreamPool(scope, connect)
        running = asyncio.ensure_future(pool.proxy(config, far).run())
        with pytest.raises(McpError, match="not reached over HTTP"):
            async with dragoman.connect(lambda: near, revision="2025-06-18"):
                pass
        await running
        await pool.close()

    run(work())
    assert [process.poll() for process in spawned] == [0]


def test_several_servers_behind_a_router_do_not_get_what_is_for_one() -> None:
    async def work() -> None:
        note = Noted()
        async with server(note) as url:
            config = ProxyConfig(header_middleware=(lambda: {"X": SECRET},))
            router = Router(parse_config(json.dumps({"mcpServers": {"a": {"url": url}}})), config)
            async with dragoman.connect(router.connect, revision="2025-11-25") as talker:
                assert [tool async for tool in talker.tools()] == []
        assert {value for _, value in note.seen} == {None}

    asyncio.run(work())


# As a user types it


def dragoman_proxy(*arguments: str, said: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "dragoman", "proxy", *arguments]
    env = {**os.environ, **environment}
    return commands.run(command, input=said, capture_output=True, timeout=PATIENCE_S, check=False, env=env)


INJECT = 'dragoman.middlewares:InjectHeaders({"X": "$D11_TOKEN"})'


@pytest.mark.parametrize(
    ("behind", "environment", "words"),
    [
        (("--", "true"), SECRET, "headers go to a server at a URL, and this one is a command"),
        (("--url", "http://127.0.0.1:1/mcp"), "", "the variable D11_TOKEN is empty"),
        (("--url", "http://127.0.0.1:1/mcp"), "a\nb", "the value of the header X holds a control character"),
        (("--config", "FILE"), SECRET, '"dragoman": {"servers": {"NAME": {"headers"'),
        (("--config", "FILE", "--server", "one"), SECRET, "headers go to a server at a URL, and 'one' is a command"),
    ],
)
def test_what_has_no_headers_is_refused_before_anything_starts(
    behind: tuple[str, ...], environment: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"one": {"command": "true"}, "two": {"command": "true"}}}', "utf-8")
    arguments = [str(file) if one == "FILE" else one for one in behind]
    done = dragoman_proxy("--middleware", INJECT, *arguments, D11_TOKEN=environment)
    assert (done.returncode, words in done.stderr.decode()) == (2, True), done.stderr.decode()


def opening() -> bytes:
    info = {"name": "t", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    frames: list[Any] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    ]
    return b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)


@pytest.mark.parametrize("named_by", ["option", "file"])
def test_a_secret_reaches_the_server_and_no_trace_and_no_log(named_by: str, tmp_path: Path) -> None:
    token, trace, note = tmp_path / "token", tmp_path / "trace", Noted()
    token.write_text(SECRET, "utf-8")

    async def work() -> subprocess.CompletedProcess[bytes]:
        async with server(note) as url:
            where = ["--url", url, "--middleware", 'dragoman.middlewares:InjectHeaders({"X": "$D11_TOKEN"})']
            if named_by == "file":
                own = {"servers": {"one": {"headers": {"X": "${file:token}"}}}}
                body = {"mcpServers": {"one": {"url": url}, "two": {"url": url}}, "dragoman": own}
                (tmp_path / "mcp.json").write_text(json.dumps(body), "utf-8")
                where = ["--config", str(tmp_path / "mcp.json"), "--server", "one"]
            options = ["--trace", str(trace), "--log-level", "debug"]
            call = lambda: dragoman_proxy(*where, *options, said=opening(), D11_TOKEN=SECRET)  # noqa: E731
            return await asyncio.get_running_loop().run_in_executor(None, call)

    done = run(work())
    assert done.returncode == 0, done.stderr
    assert {value for _, value in note.seen} == {SECRET}
    assert "tools/list" in [method for method, _ in note.seen]
    assert "tools/list" in trace.read_text("utf-8")
    assert SECRET not in done.stdout.decode() + done.stderr.decode() + trace.read_text("utf-8")


# In a configuration file


def test_a_configuration_file_gives_them_to_one_server(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one", "utf-8")
    note = Noted()

    async def work() -> None:
        async with server(note) as url:
            own = {"servers": {"a": {"headers": {"X": "Bearer ${file:token}"}}}}
            body = {"mcpServers": {"a": {"url": url}}, "dragoman": own}
            (tmp_path / "mcp.json").write_text(json.dumps(body), "utf-8")
            connect = opener_of(read_config(tmp_path / "mcp.json").choose("a"))
            async with dragoman.connect(connect, revision="2025-11-25") as talker:
                (tmp_path / "token").write_text("two", "utf-8")
                await talker.ping()

    run(work())
    assert ("initialize", "Bearer one") in note.seen
    assert ("ping", "Bearer two") in note.seen


@pytest.mark.parametrize(
    ("target", "headers", "words"),
    [
        ({"command": "true"}, {"X": "a"}, "dragoman.servers.a.headers mean nothing for a command"),
        ({"url": "http://h/"}, {"X": "$NOWHERE_D11"}, "the environment has no variable NOWHERE_D11"),
        ({"url": "http://h/"}, {"X": "${file:nowhere}"}, "cannot be read"),
        ({"url": "http://h/"}, {"X": 5}, "expected X of dragoman.servers.a.headers to be a string"),
        ({"url": "http://h/"}, {"Connection": "a"}, "written by the transport itself"),
        ({"url": "http://h/"}, ["X: a"], "expected dragoman.servers.a.headers to be an object"),
    ],
)
def test_what_is_wrong_in_a_configuration_file_is_said_with_its_place(target: Any, headers: Any, words: str) -> None:
    body = {"mcpServers": {"a": target}, "dragoman": {"servers": {"a": {"headers": headers}}}}
    with pytest.raises(ConfigError, match=words.replace(".", r"\.")) as caught:
        parse_config(json.dumps(body, indent=1))
    assert caught.value.problems[0].line > 1


def test_a_variable_in_a_configuration_file_is_read_again() -> None:
    environment = {"A": "1"}
    own = {"servers": {"a": {"headers": {"X": "${A}"}}}}
    body = {"mcpServers": {"a": {"url": "http://h/"}}, "dragoman": own}
    headers = parse_config(json.dumps(body), environment).servers[0].options.headers
    environment["A"] = "2"
    assert headers is not None
    assert headers.headers_to_server() == {"X": "2"}


def test_the_same_headers_are_no_change_of_a_file() -> None:
    def read(value: str) -> Any:
        own = {"servers": {"a": {"headers": {"X": value}}}}
        return parse_config(json.dumps({"mcpServers": {"a": {"url": "http://h/"}}, "dragoman": own})).servers

    assert read("1") == read("1")
    assert read("1") != read("2")
