"""What a slow server is read for, so that its next start can be answered for it."""

from __future__ import annotations

from typing import Any

from dragoman.core.edges.greeter import Answers, Greeter
from dragoman.core.envelope import Frame, Malformed
from dragoman.core.exact_json import decode
from dragoman.core.waiting import WaitingRoom
from tests.core.upstream_talk import NEWEST, frame_of
from tests.proxy.conversation import initialize, initialized, notification, request, result

READY = notification("notifications/initialized")


class Carrier:
    """Carries frames, and keeps answers, of a server that is slow and not known yet."""

    def __init__(self) -> None:
        self.kept: Answers = {}
        self.for_server: list[str | None] = []

    def tell_edge(self, frame: Frame | Malformed) -> None: ...

    def tell_server(self, frame: Frame) -> None:
        self.for_server.append(frame.method)

    def recall(self, asked: bytes) -> tuple[Answers, bool]:
        return {}, False

    def keep(self, asked: bytes, answers: Answers) -> None:
        self.kept = dict(answers)

    def arrived(self) -> bool:
        return True

    def end(self, reason: str) -> None:
        raise AssertionError(reason)

    def listed(self) -> Any:
        """Give the tools that are kept; None where no list is."""
        kept = self.kept.get("tools/list")
        return None if kept is None else [tool["name"] for tool in decode(kept)["tools"]]


def opened() -> tuple[Greeter, Carrier]:
    carrier = Carrier()
    greeter = Greeter(carrier, WaitingRoom(64, 65536))
    greeter.take_from_edge(frame_of(initialize(NEWEST)))
    greeter.take_from_server(frame_of(initialized(NEWEST, tools={})))
    greeter.take_from_edge(frame_of(READY))
    return greeter, carrier


def list_tools(greeter: Greeter, key: int, names: str, **more: Any) -> None:
    cursor = {name: more.pop(name) for name in ("cursor",) if name in more}
    greeter.take_from_edge(frame_of(request(key, "tools/list", **cursor)))
    greeter.take_from_server(frame_of(result(key, {"tools": [{"name": name} for name in names], **more})))


def test_a_list_is_kept_once_its_last_page_has_come() -> None:
    greeter, carrier = opened()
    list_tools(greeter, 2, "a", nextCursor="x")
    assert carrier.listed() is None, "a part of a list is none"
    list_tools(greeter, 3, "b", cursor="x")
    assert carrier.listed() == ["a", "b"]


def test_a_list_after_a_call_is_not_kept() -> None:
    greeter, carrier = opened()
    greeter.take_from_edge(frame_of(request(2, "tools/call", name="log_in")))
    list_tools(greeter, 3, "a")
    assert carrier.listed() is None, "what it has may be for this session alone"
    assert greeter.is_done
