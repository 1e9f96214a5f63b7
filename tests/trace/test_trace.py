"""What a trace tells of conversations: every frame that comes or goes, and what became of it on the way."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dragoman.core.commands import Side
from dragoman.core.envelope import notification_frame
from dragoman.core.label import LABEL
from dragoman.core.translate import Crossing, OnLoss
from dragoman.pool import Scope
from dragoman.proxy import ProxyConfig, watched
from dragoman.trace.redact import TOO_DEEP
from dragoman.trace.trace import Trace
from dragoman.transports.memory import connect_pair
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream
from tests.proxy import per_request, test_per_request, test_per_request_relay
from tests.proxy.conversation import (
    Peer,
    Step,
    client,
    client_closes,
    expect_end,
    expect_to_client,
    expect_to_server,
    hold,
    notification,
    opening,
    request,
    result,
    server,
)
from tests.support.frames import sent
from tests.support.nesting import deep
from tests.transports.house import House, hear, say

ROOT = Path(__file__).parents[2]


def trace_of(steps: Sequence[Step], path: Path, **config: Any) -> list[Any]:
    """Hold a conversation and give the lines of its trace."""
    trace = Trace(path)
    hold(steps, trace=trace, **config)
    trace.close()
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def brief(line: Any) -> tuple[str, str]:
    return line["side"], line["direction"]


AUDIO = {"content": [{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]}


def test_a_frame_that_passes_is_received_and_sent(tmp_path: Path) -> None:
    asked = request(1, "tools/list")
    steps = [*opening("2025-11-25", "2025-11-25"), client(asked), expect_to_server(asked)]
    lines = [line for line in trace_of(steps, tmp_path / "t") if line.get("frame") == asked]
    assert [brief(line) for line in lines] == [("client", "received"), ("server", "sent")]


def test_the_frames_of_the_handshake_are_there_and_revisions_from_then_on(tmp_path: Path) -> None:
    lines = trace_of(opening("2025-03-26", "2025-11-25"), tmp_path / "t")
    frames = [line for line in lines if "frame" in line]
    assert [(*brief(line), line["revision"]) for line in frames] == [
        ("client", "received", None),
        ("server", "sent", None),
        ("server", "received", "2025-11-25"),
        ("client", "sent", "2025-03-26"),
        ("client", "received", "2025-03-26"),
        ("server", "sent", "2025-11-25"),
    ]


def test_a_translation_has_both_forms_and_what_was_lost(tmp_path: Path) -> None:
    asked, answer = request(1, "tools/call", name="t"), result(1, AUDIO)
    steps = [
        *opening("2024-11-05", "2025-11-25"),
        client(asked),
        expect_to_server(asked),
        server(answer),
        expect_to_client(lambda frame: frame["id"] == 1),
    ]
    found = [line for line in trace_of(steps, tmp_path / "t") if line["direction"] == "translated"]
    (line,) = [line for line in found if line["method"] == "tools/call"]
    assert (line["side"], line["revision"], line["to"]) == ("server", "2025-11-25", "2024-11-05")
    assert line["before"] == answer
    assert line["after"]["result"]["content"][0]["type"] == "text"
    assert line["losses"] == [{"pointer": "/result/content/0", "kind": "replaced", "bytes": 53, "cosmetic": False}]


def test_a_refused_frame_says_why(tmp_path: Path) -> None:
    steps = [
        *opening("2024-11-05", "2025-11-25"),
        client(request(1, "tools/call", name="t")),
        expect_to_server(lambda frame: frame["id"] == 1),
        server(result(1, AUDIO)),
        expect_to_client(lambda frame: frame["error"]["code"] == -32603),
    ]
    lines = trace_of(steps, tmp_path / "t", on_loss=OnLoss.REFUSE)
    (line,) = [line for line in lines if "refused" in line]
    assert line["refused"]["code"] == -32603
    assert line["losses"]


def test_a_swallowed_notification_has_nothing_after(tmp_path: Path) -> None:
    news = notification("notifications/elicitation/complete", elicitationId="e")
    steps = [*opening("2025-03-26", "2025-11-25"), server(news)]
    steps += [server(request("p", "ping")), expect_to_client(request("p", "ping"))]
    lines = [line for line in trace_of(steps, tmp_path / "t") if line.get("before") == news]
    assert [line["after"] for line in lines] == [None]


def test_a_line_that_is_not_a_frame_is_there_and_so_is_its_answer(tmp_path: Path) -> None:
    steps = [
        *opening("2025-11-25", "2025-11-25"),
        client(b"nonsense password=hunter2\n"),
        expect_to_client(lambda frame: frame["error"]["code"] == -32700),
        client_closes(),
        expect_end_of_client(),
    ]
    lines = trace_of(steps, tmp_path / "t")
    (line,) = [line for line in lines if "malformed" in line]
    assert line["line"] == "nonsense password=[redacted]"
    following = lines[lines.index(line) + 1]
    assert (*brief(following), following["frame"]["error"]["code"]) == ("client", "sent", -32700)


def expect_end_of_client() -> Step:
    from dragoman.core.commands import Outcome

    return expect_end(Outcome.CLIENT_CLOSED)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the standard library shows what is nested as deep as this")
def test_a_frame_that_is_too_deep_to_be_shown_does_not_end_the_trace(tmp_path: Path) -> None:
    told = notification("notifications/message", level="info", data=deep(700, "list"))
    asked = request(1, "tools/list")
    steps = [*opening("2025-11-25", "2025-11-25"), server(told), expect_to_client(told)]
    lines = trace_of([*steps, client(asked), expect_to_server(asked)], tmp_path / "t")
    shown = [(line["direction"], line["frame"]) for line in lines if line.get("frame") in (TOO_DEEP, asked)]
    assert shown == [("received", TOO_DEEP), ("sent", TOO_DEEP), ("received", asked), ("sent", asked)]


def test_a_frame_that_only_looks_like_one_is_shown_as_it_came(tmp_path: Path) -> None:
    broken = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{]}\n'
    steps = [*opening("2025-11-25", "2025-11-25"), client(broken), expect_to_server(broken)]
    lines = [line for line in trace_of(steps, tmp_path / "t") if "malformed" in line]
    assert [line["line"] for line in lines] == [broken.decode().strip()] * 2


def test_no_secret_is_written(tmp_path: Path) -> None:
    asked = request(1, "tools/call", name="t", arguments={"password": "hunter2"}, _meta={"progressToken": "p"})
    steps = [*opening("2025-11-25", "2025-11-25"), client(asked), expect_to_server(asked)]
    trace_of(steps, tmp_path / "t")
    written = (tmp_path / "t").read_text()
    assert "hunter2" not in written
    assert '"progressToken":"p"' in written


def test_without_a_trace_nothing_stands_before_a_transport() -> None:
    transport, _ = connect_pair()
    assert watched(ProxyConfig(), transport, Side.CLIENT) is transport


def in_house(scope: Scope, visit: Callable[[House], Awaitable[None]], path: Path) -> list[Any]:
    async def main() -> None:
        house = House(scope)
        house.proxies = {"trace": trace}
        try:
            await asyncio.wait_for(visit(house), 60)
        finally:
            await house.close()

    trace = Trace(path)
    asyncio.run(main())
    trace.close()
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("own", ["", "session 1"])
def test_what_another_server_gave_the_reason_for_is_of_the_same_session(own: str, tmp_path: Path) -> None:
    def label(*said: str) -> str:
        return ", ".join(filter(None, said))

    frame = notification_frame("x", None)
    crossing = Crossing(Side.CLIENT, "2026-07-28", "2025-11-25", "x", frame, frame, ())
    trace = Trace(tmp_path / "trace")
    one = trace.behind("one")
    try:
        for whose in (label(own, "one"), label(own, "two")):
            LABEL.set(whose)
            if whose.endswith("one"):
                one.watch(connect_pair()[0], Side.SERVER)
            one.translated(crossing)
    finally:
        LABEL.set("")
        trace.close()
    lines = [json.loads(line) for line in (tmp_path / "trace").read_bytes().splitlines()]
    assert [line["session"] for line in lines] == [own or None] * 2


def test_behind_a_shared_server_each_client_has_a_connection_and_the_server_one(tmp_path: Path) -> None:
    async def visit(house: House) -> None:
        for guest in (await house.open("2025-11-25"), await house.open("2024-11-05")):
            guest.say(request(1, "tools/call", name="t"))
            while (heard := await hear(house.servers[0])).get("method") != "tools/call":
                pass
            say(house.servers[0], result(heard["id"], AUDIO))
            await hear(guest)

    lines = in_house(Scope.SHARED, visit, tmp_path / "t")
    calls = [line for line in lines if line.get("frame", {}).get("method") == "tools/call"]
    assert [brief(line) for line in calls] == [("client", "received"), ("server", "sent")] * 2
    assert len({line["connection"] for line in calls if line["side"] == "client"}) == 2
    (server_connection,) = {line["connection"] for line in calls if line["side"] == "server"}
    sessions = {line["session"] for line in lines if line.get("connection") == server_connection}
    assert sessions == {"shared server"}
    assert [line["losses"] != [] for line in lines if line.get("method") == "tools/call"] == [True]


def sample() -> list[Any]:
    page = (ROOT / "docs" / "trace.md").read_text("utf-8")
    block = page.split("## A sample")[1].split("```json\n")[1].split("```")[0]
    return [json.loads(line) for line in block.splitlines()]


def test_the_page_shows_what_is_written(tmp_path: Path) -> None:
    asked = request(1, "tools/call", name="record", arguments={"password": "hunter2", "seconds": 2})
    steps = [
        *opening("2024-11-05", "2025-11-25"),
        client(asked),
        expect_to_server(asked),
        server(result(1, AUDIO)),
        expect_to_client(lambda frame: frame["id"] == 1),
        client(b"nonsense\n"),
        expect_to_client(lambda frame: frame["id"] is None),
        client_closes(),
        expect_end_of_client(),
    ]
    lines = trace_of(steps, tmp_path / "t")
    start = next(n for n, line in enumerate(lines) if line.get("frame", {}).get("method") == "tools/call")
    assert [timeless(line) for line in lines[start : start + 8]] == [timeless(line) for line in sample()]


def timeless(line: Any) -> Any:
    return {name: value for name, value in line.items() if name not in ("time", "process")}


def test_the_page_names_every_field_and_direction(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "trace.md").read_text("utf-8")
    lines = trace_of(opening("2025-03-26", "2025-11-25"), tmp_path / "t")
    words = {*(name for line in lines for name in line), *(line["direction"] for line in lines)}
    assert [word for word in words if f"`{word}`" not in page] == []


@pytest.mark.parametrize("revision", ["2025-11-25"])
def test_times_are_in_order(revision: str, tmp_path: Path) -> None:
    times = [line["time"] for line in trace_of(opening(revision, revision), tmp_path / "t")]
    assert times == sorted(times)


def test_what_goes_on_at_once_stands_after_what_it_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a router in the same process hands a call on to its server before `send` returns."""

    async def hand_on() -> None:
        (to_router, _), (to_server, _) = connect_pair(), connect_pair()
        router, server_of_it = (watched(config, one, Side.SERVER) for one in (to_router, to_server))
        monkeypatch.setattr(to_router, "send", server_of_it.send)
        router.send(sent(json.dumps(request(1, "tools/call", name="t")).encode() + b"\n"))

    trace = Trace(tmp_path / "t")
    config = ProxyConfig(trace=trace)
    asyncio.run(hand_on())
    trace.close()
    lines = [json.loads(line) for line in (tmp_path / "t").read_bytes().splitlines()]
    assert [line["connection"] for line in lines] == [1, 2]
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)


TO_STATELESS = [
    *per_request.opening(),
    client(request(7, "tools/list")),
    expect_to_server(lambda frame: frame["id"] == 1),
]
TO_STATELESS += [server(per_request.complete(1, tools=[], ttlMs=0, cacheScope="private"))]
TO_STATELESS += [expect_to_client(result(7, {"tools": []}))]
ML = [client(test_per_request.asks("a", "tools/list")), *test_per_request.opening("2025-03-26")]
ML += [expect_to_server(request(1, "tools/list")), server(result(1, {"tools": []}))]
ML += [expect_to_client(lambda frame: frame["id"] == "a")]
MM = [client(test_per_request.asks("a", "tools/list")), *test_per_request_relay.opening()]
MM += [expect_to_server(test_per_request.asks("a", "tools/list")), server(result("a", {"tools": []}))]
MM += [expect_to_client(lambda frame: frame["id"] == "a")]


@pytest.mark.parametrize("steps", [TO_STATELESS, ML, MM], ids=["TO_STATELESS", "ML", "MM"])
def test_every_frame_between_the_eras_is_there(steps: Sequence[Step], tmp_path: Path) -> None:
    crossed: list[tuple[str, str, Any]] = []

    def note(*peers: Peer) -> None:
        for peer in peers:
            crossed.extend((peer.name, "received", json.loads(line)) for line in peer.said)
            crossed.extend((peer.name, "sent", json.loads(line)) for line in peer.heard)

    lines = trace_of(steps, tmp_path / "t", check=note)
    told = [(*brief(line), line["frame"]) for line in lines if line["direction"] in ("received", "sent")]
    assert sorted(map(str, told)) == sorted(map(str, crossed))


def test_a_translation_for_a_client_without_a_session_is_there(tmp_path: Path) -> None:
    found = [line for line in trace_of(ML, tmp_path / "t") if line["direction"] == "translated"]
    told = [(line["side"], line["revision"], line["to"]) for line in found if line["method"] == "tools/list"]
    assert ("server", "2025-03-26", "2026-07-28") in told


def test_a_server_that_takes_headers_takes_them_with_a_trace(tmp_path: Path) -> None:
    ours, _ = connect_pair()
    trace = Trace(tmp_path / "t")
    assert not getattr(watched(ProxyConfig(trace=trace), ours, Side.SERVER), "takes_headers", False)
    upstream = open_upstream(UpstreamConfig("http://127.0.0.1:1/mcp"))
    assert getattr(watched(ProxyConfig(trace=trace), upstream, Side.SERVER), "takes_headers", False)
    trace.close()
