"""Listeners of clients without a session that do not read what they are sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from dragoman.core.envelope import Frame
from dragoman.core.label import LABEL
from dragoman.core.peek import read_line
from dragoman.transports.http.config import FrontConfig, Limits, Patience
from dragoman.transports.http.pump import pump
from dragoman.transports.http.requests import Place, Post, RequestsTransport
from tests.transports.http.stage import on_loop


class Proxy:
    """What runs the transport."""

    def __init__(self) -> None:
        self.heard: list[Frame] = []
        self.is_held = False

    def received(self, frames: Sequence[Frame]) -> None:
        self.heard += frames

    def pause_writing(self) -> None:
        self.is_held = True

    def resume_writing(self) -> None:
        self.is_held = False

    def ended(self, reason: str) -> None: ...

    def broken(self, reason: str) -> None: ...


def frame_of(**members: object) -> Frame:
    frame = read_line(json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")
    assert isinstance(frame, Frame)
    return frame


def asks(transport: RequestsTransport, method: str) -> Post:
    place = Place("", (), method == "subscriptions/listen")
    return transport.post(frame_of(id=1, method=method, params={}), (), place, takes_stream=True)


@on_loop
async def test_a_listener_that_does_not_read_is_cut_off_and_the_others_go_on() -> None:
    proxy = Proxy()
    transport = RequestsTransport(FrontConfig(limits=Limits(high_water_bytes=20_000)), "")
    transport.start(proxy)
    deaf, reads = asks(transport, "subscriptions/listen"), asks(transport, "subscriptions/listen")
    call = asks(transport, "tools/call")
    notice = frame_of(method="notifications/tools/list_changed", params={"_meta": {"x": "y" * 200}})
    taken = 0
    for _ in range(200):
        transport.send([notice._replace(stream=deaf.key), notice._replace(stream=reads.key)])
        taken += len(reads.lines)
        _, size = reads.take_part()
        transport.weigh(-size)
        await asyncio.sleep(0)
    assert taken == 200
    assert deaf.is_over
    assert not deaf.lines
    assert [reads.is_over, call.is_over, proxy.is_held] == [False] * 3
    assert [frame.method for frame in proxy.heard[3:]] == ["notifications/cancelled"]
    assert len(transport) == 2


@on_loop
async def test_a_large_answer_cuts_off_no_listener() -> None:
    transport = RequestsTransport(FrontConfig(limits=Limits(high_water_bytes=20_000)), "")
    transport.start(Proxy())
    listener, call = asks(transport, "subscriptions/listen"), asks(transport, "tools/call")
    transport.send([frame_of(method="notifications/tools/list_changed")._replace(stream=listener.key)])
    transport.send([frame_of(id=2, result={"content": "x" * 30_000})._replace(key=call.key)])
    await asyncio.sleep(0)
    assert not listener.is_over


@on_loop
async def test_a_large_answer_that_nobody_reads_holds_the_others_back_only_beyond_a_limit() -> None:
    proxy, size = Proxy(), 3 * 2**20
    transport = RequestsTransport(FrontConfig(limits=Limits(high_water_bytes=20_000)), "")
    transport.start(proxy)
    held, calls = [], []
    for number in range(7):
        calls.append(asks(transport, "tools/call"))
        transport.send([frame_of(id=number, result={"content": "x" * size})._replace(key=calls[-1].key)])
        transport.weigh(size)
        held.append(proxy.is_held)
    assert held == [False] * 5 + [True] * 2, "five of 3 MiB are less than 16"
    for call in calls:
        transport.weigh(-size)
        transport.leave(call)
    assert not proxy.is_held
    deaf = asks(transport, "tools/call")
    transport.begin_stream(deaf)
    progress = frame_of(method="notifications/progress", params={"message": "x" * 30_000})
    transport.send([progress._replace(stream=deaf.key)])
    assert proxy.is_held, "what is said before the answer counts as ever"


@on_loop
async def test_a_client_that_is_cut_off_is_named_in_the_log_whoever_made_room_for_it() -> None:
    async def send(data: bytes, stall_s: float) -> None:
        raise TimeoutError

    wire = SimpleNamespace(is_gone=False, watch=lambda told: None, abort=lambda: None)
    request: Any = SimpleNamespace(wire=wire, principal="bob", send_within=send)
    source: Any = SimpleNamespace(wake=asyncio.Event(), is_over=False, take_part=lambda: (b"x", 1))
    LABEL.set("session 1 of ada")
    assert not await pump(request, source, lambda size: None, Patience())
    assert LABEL.get() == "bob"
