"""A proxy before another one, as processes: two people of the first are two to the second, and nothing crosses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import connect
from dragoman.transports.callers import HEADER, Callers
from dragoman_spec import load
from tests.proxy.test_per_request import NEW, asks
from tests.proxy.test_scopes import Client, Running
from tests.support.waiting import run
from tests.transports.upstream.stage import Reply, Request, server, shake_hands

LATE = (sys.executable, str(Path(__file__).parent / "servers" / "late.py"))
ERAS = ("2025-11-25", "2026-07-28")


@contextlib.contextmanager
def running(*args: Any, **more: Any) -> Iterator[Running]:
    proxy = Running(*args, **more)
    try:
        yield proxy
    finally:
        proxy.stop()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two people with secrets, and a key for two proxies."""
    (tmp_path / "tokens").write_text("ann secret-of-ann-0123456789\nben secret-of-ben-0123456789\n")
    for name, key in (("key", "7" * 64), ("another", "8" * 64)):
        (tmp_path / name).write_text(key)
        (tmp_path / name).chmod(0o600)
    return tmp_path


@contextlib.contextmanager
def in_a_row(files: Path, scope: str, told: bool = True, *more: str) -> Iterator[tuple[Running, Running]]:
    """Two proxies, the second of which shares a server that asks late."""
    trusts = ("--trust-callers", str(files / "key")) if told else ()
    tells = ("--tell-callers", str(files / "key")) if told else ()
    with running(files, "--scope", "shared", *trusts, server=LATE) as inner:
        url = f"http://127.0.0.1:{inner.port}/mcp"
        people = ("--auth-token-file", str(files / "tokens"))
        with running(files, "--scope", scope, *people, "--url", url, *tells, *more) as outer:
            yield outer, inner


async def talk(port: int, revision: str) -> tuple[str, list[Any]]:
    """Let one person begin something, and another one call what makes the server ask about it.

    Returns:
        What the server says that it was answered, and what either was asked or told.
    """
    heard: list[Any] = []

    async def answer(params: Any) -> Any:
        heard.append(params)
        return load(revision).ElicitResult(action="accept", content={"sure": True})

    def person(name: str) -> Any:
        headers = {"Authorization": f"Bearer secret-of-{name}-0123456789"}
        how: dict[str, Any] = {"elicitation": answer, "headers": headers, "on_notification": heard.append}
        return connect(f"http://127.0.0.1:{port}/mcp", revision, **how)

    async with person("ann") as ann, person("ben") as ben:
        await ann.call("begin", {})
        said = await ben.call("ask", {})
        return said.content[0].text, heard


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("scope", ["client", "principal", "shared"])
def test_a_question_about_the_call_of_one_person_does_not_reach_another_behind_two_proxies(
    scope: str, revision: str, files: Path
) -> None:
    with in_a_row(files, scope) as (outer, _):
        assert run(talk(outer.port, revision)) == ("refused", [])


@pytest.mark.parametrize("revision", ERAS)
def test_without_being_told_the_second_proxy_takes_them_for_one_person(revision: str, files: Path) -> None:
    """So it is in `docs/security.md`; and the tests above are about something."""
    with in_a_row(files, "client", told=False) as (outer, _):
        said, heard = run(talk(outer.port, revision))
        assert (said, len(heard) > 0) == ("accept", True)


class Asking:
    """A server over HTTP that asks on the stream of each call, once both are with it."""

    def __init__(self) -> None:
        self.sessions = 0
        self.both_there = asyncio.Barrier(2)
        self.answers: dict[Any, asyncio.Future[Any]] = {}

    async def __call__(self, said: Request, reply: Reply) -> None:
        if said.rpc == "initialize":
            self.sessions += 1
            about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "asking", "version": "1"}}
            await reply.result(said, {"protocolVersion": ERAS[0], **about}, f"Mcp-Session-Id: s{self.sessions}")
        elif said.rpc == "server/discover":
            await reply.status("404 Not Found")
        elif said.rpc == "tools/call":
            await reply.stream()
            key, name = said.frame["id"], said.frame["params"]["arguments"]["of"]
            self.answers[key] = asyncio.get_running_loop().create_future()
            await self.both_there.wait()
            question = {"message": f"Who, {name}?", "requestedSchema": {"type": "object", "properties": {}}}
            await reply.event({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": question})
            action = (await self.answers[key])["action"]
            content = {"content": [{"type": "text", "text": f"{name}: {action}"}]}
            await reply.event({"jsonrpc": "2.0", "id": key, "result": content})
            reply.cut()
        elif said.rpc is None and said.body:
            self.answers[said.frame["id"]].set_result(said.frame["result"])
            await reply.status("202 Accepted")
        elif not await shake_hands(said, reply):
            await reply.result(said, {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})


class Told:
    """A server of the newest era that has a tool for whom it is told of, and a resource that is on no list.

    Attributes:
        heard: Of each request: its method, and whom it is of.
    """

    def __init__(self, key: Path) -> None:
        self.callers = Callers((bytes.fromhex(key.read_text()),))
        self.names = {self.callers.read(self.callers.tell(one)[HEADER]).tag: one for one in ("ann", "ben")}
        self.heard: list[tuple[str, str]] = []

    async def __call__(self, said: Request, reply: Reply) -> None:
        sealed = said.headers.get(HEADER.lower(), "")
        name = self.names[self.callers.read(sealed).tag] if sealed else "nobody"
        if said.rpc is None:
            await reply.status("405 Method Not Allowed")
            return
        self.heard.append((said.rpc, name))
        kept = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if said.rpc == "server/discover":
            has = {"tools": {}, "resources": {}}
            await reply.result(said, {"supportedVersions": [NEW], "capabilities": has, **kept})
        elif said.rpc == "tools/list":
            tools = [{"name": f"of-{name}", "inputSchema": {"type": "object"}}]
            await reply.result(said, {"tools": tools, **kept})
        elif said.rpc == "resources/read":
            uri = said.frame["params"]["uri"]
            await reply.result(said, {"contents": [{"uri": uri, "text": f"for {name}"}], **kept})
        else:
            lists = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}
            await reply.result(said, {lists.get(said.rpc, "prompts"): [], **kept})


def test_what_a_router_asks_by_itself_is_told_to_be_of_whom_it_is_for(files: Path) -> None:
    async def main() -> None:
        told = Told(files / "key")
        async with server(told) as url, server(Told(files / "key")) as other:
            entries = {"told": {"url": url}, "other": {"url": other}}
            own = {"servers": {"told": {"tellCallers": "key"}}}
            (files / "servers.json").write_text(json.dumps({"mcpServers": entries, "dragoman": own}))
            how = ("--scope", "shared", "--auth-token-file", str(files / "tokens"))
            proxy = await asyncio.to_thread(Running, files, *how, "--config", str(files / "servers.json"))

            def ask(name: str, method: str, **params: Any) -> Any:
                client = Client(proxy.port, f"secret-of-{name}-0123456789")
                named = {"mcp-name": params["uri"]} if "uri" in params else {}
                client.headers |= {"mcp-method": method, "mcp-protocol-version": NEW, **named}
                return client.post(asks(1, method, **params))["result"]

            try:
                both = [asyncio.to_thread(ask, name, "tools/list") for name in ("ann", "ben")]
                listed = [[tool["name"] for tool in one["tools"]] for one in await asyncio.gather(*both)]
                assert listed == [["of-ann", "of-nobody"], ["of-ben", "of-nobody"]]
                read = await asyncio.to_thread(ask, "ben", "resources/read", uri="odd://x")
                assert read["contents"][0]["text"] == "for ben"
                assert await asyncio.to_thread(ask, "ann", "tools/list") is not None
                assert {name for rpc, name in told.heard if rpc == "resources/read"} == {"ben"}
            finally:
                await asyncio.to_thread(proxy.stop)

    run(main())


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("scope", ["client", "shared"])
def test_each_person_is_asked_about_their_own_call_where_a_stream_proves_whose_it_is(
    scope: str, revision: str, files: Path
) -> None:
    key = str(files / "key")

    async def call(port: int, name: str, action: str) -> tuple[list[str], str]:
        asked: list[str] = []

        async def answer(params: Any) -> Any:
            asked.append(params.message)
            return load(revision).ElicitResult(action=action)

        headers = {"Authorization": f"Bearer secret-of-{name}-0123456789"}
        async with connect(f"http://127.0.0.1:{port}/mcp", revision, elicitation=answer, headers=headers) as client:
            said = await client.call("ask", {"of": name})
            return asked, said.content[0].text

    async def main() -> None:
        async with server(Asking()) as there:
            inner = await asyncio.to_thread(
                Running, files, "--scope", "shared", "--trust-callers", key, "--url", f"{there}"
            )
            url, people = f"http://127.0.0.1:{inner.port}/mcp", ("--auth-token-file", str(files / "tokens"))
            outer = await asyncio.to_thread(
                Running, files, "--scope", scope, *people, "--tell-callers", key, "--url", url
            )
            try:
                both = await asyncio.gather(call(outer.port, "ann", "accept"), call(outer.port, "ben", "decline"))
            finally:
                for proxy in (outer, inner):
                    await asyncio.to_thread(proxy.stop)
        assert both == [(["Who, ann?"], "ann: accept"), (["Who, ben?"], "ben: decline")]

    run(main())


def test_the_second_proxy_has_a_server_for_each_person_of_the_first(files: Path) -> None:
    trusts, tells = ("--trust-callers", str(files / "key")), ("--tell-callers", str(files / "key"))
    with running(files, "--scope", "principal", *trusts) as inner:
        url = f"http://127.0.0.1:{inner.port}/mcp"
        with running(
            files, "--scope", "shared", "--auth-token-file", str(files / "tokens"), "--url", url, *tells
        ) as one:
            for name in ("ann", "ben", "ann"):
                client = Client(one.port, f"secret-of-{name}-0123456789")
                client.headers |= {"mcp-method": "tools/list", "mcp-protocol-version": NEW}
                assert client.post(asks(1, "tools/list"))["result"]["resultType"] == "complete"
            assert inner.starts == 2 + 1, "one more for what the first proxy asks before it knows the second"


def test_a_client_cannot_say_whose_its_requests_are(files: Path) -> None:
    """Its header goes no further than the proxy that it calls, which would take it for nothing or refuse it."""
    with in_a_row(files, "client") as (outer, inner):
        client = Client(outer.port, "secret-of-ann-0123456789")
        client.headers[HEADER] = "x"
        client.open("2025-11-25")
        direct = Client(inner.port)
        direct.headers[HEADER] = "x"
        assert "does not count here" in json.dumps(direct.post(asks(1, "tools/list")))


def test_proxies_with_two_keys_say_so(files: Path) -> None:
    with running(files, "--scope", "shared", "--trust-callers", str(files / "another"), server=LATE) as inner:
        url = f"http://127.0.0.1:{inner.port}/mcp"
        tells = ("--tell-callers", str(files / "key"), "--auth-token-file", str(files / "tokens"))
        with running(files, "--url", url, *tells) as outer:
            client = Client(outer.port, "secret-of-ann-0123456789")
            client.headers |= {"mcp-method": "tools/list", "mcp-protocol-version": NEW}
            error = client.post(asks(1, "tools/list"))["error"]
            assert "the Dragoman-Caller header does not count here" in error["message"]


def test_a_configuration_file_says_of_which_server_it_is(files: Path) -> None:
    with running(files, "--scope", "shared", "--trust-callers", str(files / "key"), server=LATE) as inner:
        entry = {"late": {"url": f"http://127.0.0.1:{inner.port}/mcp"}}
        own = {"servers": {"late": {"tellCallers": "key"}}}
        (files / "servers.json").write_text(json.dumps({"mcpServers": entry, "dragoman": own}))
        people = ("--auth-token-file", str(files / "tokens"), "--config", str(files / "servers.json"))
        for scope in ("client", "shared"):
            with running(files, "--scope", scope, *people) as outer:
                assert run(talk(outer.port, "2026-07-28")) == ("refused", [])
