"""Each frame is looked at once on its way, and decoded once at most: where it is read, and never again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from dragoman.core import peek
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.base import Transport
from dragoman.transports.stdio import StandardStreams
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.proxy.conversation import notification, request, result
from tests.support.frames import heard
from tests.transports.http import stage as front
from tests.transports.http.stage import Stage, on_loop, serving, until, within
from tests.transports.upstream import stage as upstream
from tests.transports.upstream.stage import Reply, Request, server, shake_hands

REVISION = "2025-11-25"
MARK = "looked-at"
QUESTION = request("q", "elicitation/create", message=f"{MARK} question", requestedSchema={"type": "object"})
PROGRESS = notification("notifications/progress", progressToken="t", progress=1, message=f"{MARK} progress")
LOG = notification("notifications/message", level="info", data=f"{MARK} log")
CALL = request(7, "tools/call", name=f"{MARK} call", _meta={"progressToken": "t"})
CANCEL = notification("notifications/cancelled", requestId=99, reason=f"{MARK} cancel")
NEWS = notification("notifications/progress", progressToken="s", progress=1, message=f"{MARK} news")
ANSWER = result("q", {"action": "accept", "content": {"text": f"{MARK} answer"}})
RESULT = result(7, {"content": [{"type": "text", "text": f"{MARK} result"}]})
FROM_CLIENT = (CALL, CANCEL, NEWS, ANSWER)


class Looks:
    """Counts who looks at which of the frames above, and how."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        monkeypatch.setattr(orjson, "loads", self._counted("decoded", orjson.loads))
        for name in ("peek", "read_line"):
            original = getattr(peek, name)
            counted = self._counted(name, original)
            for module in [module for key, module in sys.modules.items() if key.startswith("dragoman")]:
                if getattr(module, name, None) is original:
                    monkeypatch.setattr(module, name, counted)

    def _counted(self, how: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def look(line: bytes, *more: bytes) -> Any:
            text = bytes(line)
            if MARK.encode() in text:
                self.counts[how, text.split(MARK.encode())[1].split(b'"')[0].decode().strip()] += 1
            return original(line, *more)

        return look

    def check(self) -> None:
        names = {"call", "cancel", "news", "answer", "progress", "log", "question", "result"}
        assert {name for how, name in self.counts if how == "peek"} == names
        assert not {look: count for look, count in self.counts.items() if count > 1}


def test_the_counter_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = Looks(monkeypatch)
    heard(json.dumps(CALL).encode() + b"\n")
    heard(json.dumps([CALL]).encode() + b"\n")
    assert (looks.counts["peek", "call"], looks.counts["decoded", "call"]) == (2, 1)
    with pytest.raises(AssertionError):
        looks.check()


class Pipes:
    """Two pipes: our end of them is a transport, the other one a program's."""

    def __init__(self) -> None:
        (self.read_fd, theirs_out), (theirs_in, self.write_fd) = os.pipe(), os.pipe()
        self.transport = StandardStreams(theirs_in, theirs_out)

    async def hear(self) -> Any:
        line = b""
        while not line.endswith(b"\n"):
            line += await asyncio.to_thread(os.read, self.read_fd, 1)
        return json.loads(line)

    def say(self, *frames: Any) -> None:
        os.write(self.write_fd, b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))


@on_loop
async def talk_over_pipes() -> None:
    client, far = Pipes(), Pipes()
    run = asyncio.create_task(Proxy(ProxyConfig(), client.transport, lambda: far.transport).run())
    client.say(front.initialize(REVISION))
    far.say(result((await within(far.hear()))["id"], front.initialized(REVISION)))
    await within(client.hear())
    client.say(notification("notifications/initialized"), CALL)
    await within(far.hear())
    await within(far.hear())
    far.say(PROGRESS, LOG, QUESTION)
    assert [await within(client.hear()) for _ in range(3)] == [PROGRESS, LOG, QUESTION]
    client.say(CANCEL, NEWS, ANSWER)
    assert [await within(far.hear()) for _ in range(3)] == [CANCEL, NEWS, ANSWER]
    far.say(RESULT)
    assert await within(client.hear()) == RESULT
    os.close(client.write_fd)
    os.close(far.write_fd)
    await within(run)
    os.close(client.read_fd)
    os.close(far.read_fd)


async def talk_as_client(stage: Stage) -> None:
    """Call over HTTP, and answer what is asked meanwhile."""
    reply = await within(asyncio.create_task(stage.post(CALL)))
    frames = []
    while len(frames) < 3:
        event = await reply.event()
        assert event is not None
        if event.data:
            frames.append(event.frame)
    assert frames == [PROGRESS, LOG, QUESTION]
    for frame in (CANCEL, NEWS, ANSWER):
        (await stage.post(frame)).leave()
    event = await reply.event()
    assert event is not None
    assert event.frame == RESULT
    reply.leave()


@on_loop
async def talk_from_http_to_pipes() -> None:
    async with serving() as stage:
        await stage.open(REVISION)
        talking = asyncio.create_task(talk_as_client(stage))
        await stage.server.hear()
        stage.server.say(PROGRESS, LOG, QUESTION)
        for _ in range(3):
            await stage.server.hear()
        stage.server.say(RESULT)
        await within(talking)


class Server:
    """Says the frames above on the stream of the call."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.answered = asyncio.Event()

    async def __call__(self, said: Request, reply: Reply) -> None:
        if await shake_hands(said, reply):
            return
        self.heard.append(said.frame)
        if said.rpc == "tools/call":
            await reply.stream()
            for frame in (PROGRESS, LOG, QUESTION):
                await reply.event(frame)
            await self.answered.wait()
            await reply.event(RESULT)
            reply.cut()
        else:
            await reply.status("202 Accepted")
            if "method" not in said.frame:
                await until(lambda: len(self.heard) == len(FROM_CLIENT))
                self.answered.set()


@on_loop
async def talk_over_http() -> None:
    async with server(Server()) as url, serving() as stage:

        def connect() -> Transport:
            return open_upstream(UpstreamConfig(url, close_timeout_s=0.5))

        stage.connect = connect  # type: ignore[method-assign]
        opened = await stage.post(front.initialize(REVISION))
        stage.session, stage.revision = opened.headers["mcp-session-id"], REVISION
        opened.leave()
        (await stage.post(notification("notifications/initialized"))).leave()
        await talk_as_client(stage)


@on_loop
async def talk_from_pipes_to_http() -> None:
    async with server(Server()) as url, upstream.client(url) as peer:
        peer.send(CALL)
        await peer.until(lambda: len(peer.others) == 3)
        for frame in (CANCEL, NEWS, ANSWER):
            peer.send(frame)
        assert await peer.answer(7) == RESULT


@pytest.mark.parametrize("talk", [talk_over_pipes, talk_from_http_to_pipes, talk_from_pipes_to_http, talk_over_http])
def test_each_frame_is_looked_at_and_decoded_once_at_most(
    talk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(monkeypatch)
    talk()
    looks.check()
