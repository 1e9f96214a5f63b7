"""Books: each kind of table is spoilt while a world runs, and the books say so."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.core.calls import Call
from dragoman.core.commands import Side
from dragoman.core.edges.exchange import Exchange
from dragoman.core.edges.lifecycle import FrontState, UpstreamState
from dragoman.core.edges.recovery import Recovery
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import request_frame
from dragoman.core.serving.subscriptions import Subscriptions
from dragoman.core.switch.to_session.loans import SessionLoans
from dragoman.host.host import Host
from dragoman.host.shared import SharedHost
from dragoman.pool import UpstreamPool
from dragoman.router.router import Router
from dragoman.router.transport import RouterTransport
from dragoman.transports.http.sessions import Sessions
from dragoman.transports.http.streamable_session import StreamableSession
from dragoman.transports.http.streams import StreamConnection
from dragoman.transports.upstream.lanes import Lanes
from tests.world import books
from tests.world.books import Books
from tests.world.plans import make_plan
from tests.world.worlds import run_world

FRAME = request_frame(b"77", "ping", {})


class Seen(BaseException):
    """What the books said of what was spoilt: the world ends with this."""


def spoil(kind: type, change: Callable[[Any], bool], cell: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run worlds until something of a kind is there that can be spoilt; give what is said of it then."""

    found: list[str] = []

    def look(self: Books, now: float) -> Any:
        for one in [] if found else list(self.kept.values()):  # what ends a world lets it run to its end
            if type(one) is kind:
                before = set(said(one, now))
                if change(one):
                    found.append(" | ".join(set(said(one, now)) - before))
                    raise Seen(found[0])
        return ()

    monkeypatch.setattr(Books, "look", look)
    for seed in range(1, 400):
        try:
            run_world(make_plan(cell, seed))
        except Seen as seen:
            return str(seen)
    raise AssertionError(f"no {kind.__name__} was there to be spoilt")


def said(one: Any, now: float) -> list[str]:
    return [text for check in books._CHECKS[type(one)] for text in check(one, now)]


def forget_call(exchange: Exchange) -> bool:
    calls = exchange.calls[Side.CLIENT]
    calls.cancelled |= calls.waiting
    return bool(calls.waiting)


def ask_too_much(exchange: Exchange) -> bool:
    calls = exchange.calls[Side.CLIENT]
    calls.limit = 0
    return len(calls.waiting) > 0


def answer_nobody(host: SharedHost) -> bool:
    edges = [port.edge for port in host._ports.values() if isinstance(port.transport, StreamableSession)]
    asked = [edge.exchange.calls[Side.CLIENT].waiting for edge in edges if edge.state is FrontState.READY]
    had = any(asked) and host.closing is None
    for waiting in asked:
        waiting.clear()
    return had


def leave_silently(host: SharedHost) -> bool:
    desk = host.switch._desk
    loan = next((loan for loan in desk.loans.by_key.values() if loan.session is not None), None)
    if loan is None or loan.session is None or loan.cancelled_at is not None:
        return False
    loan.session.present = False
    return True


def want_less(host: SharedHost) -> bool:
    desk = host.switch._desk
    is_told = desk.levels._current is not None and all(session.ready for session in desk.sessions.values())
    if not is_told or not desk.sessions or host.closing is not None:
        return False
    for session in desk.sessions.values():
        session.level = 7
    desk.levels._current = 1
    return True


def ask_nobody(host: SharedHost) -> bool:
    desk = host.switch._desk
    for session in desk.sessions.values():
        session.front.exchange.calls[Side.SERVER].waiting[b"99"] = Call(b"99", "ping")
    return bool(desk.sessions) and host.closing is None


def unsettle(subscriptions: Subscriptions[Any]) -> bool:
    had = bool(subscriptions._filters)
    subscriptions._filters.clear()
    return had


def make_wait(host: SharedHost) -> bool:
    host.switch._desk.turns._bytes += 1
    return host.closing is None


def offer_again(edge: UpstreamEdge) -> bool:
    edge._first = FRAME
    return edge.state is UpstreamState.READY


def keep_for_later(recovery: Recovery) -> bool:
    is_ready = getattr(getattr(recovery, "_edge", None), "state", None) is UpstreamState.READY
    return is_ready and recovery._meanwhile.add(FRAME)


def rename(loans: SessionLoans) -> bool:
    found = list(loans)
    for loan in found:
        loan.key = b"other"
    return bool(found)


def fill(host: Host) -> bool:
    living = [port for port in host._ports.values() if port.alive]
    for port in living:
        port.full = True
    return len(living) > 1 and not any(ending.done() for ending in host._endings.values())


def count_wrongly(host: SharedHost) -> bool:
    host._clients += 1
    return host.closing is None


def hold_up(host: SharedHost) -> bool:
    ports = [port for port in host._ports.values() if isinstance(port.edge, UpstreamEdge)]
    for port in ports:
        port.transport.pause_reading()
    is_ending = any(ending.done() for ending in host._endings.values())
    return bool(ports) and host.closing is None and not host._is_held_back and not is_ending


def lose(pool: UpstreamPool) -> bool:
    for host in pool.upstreams:
        host.switch.upstream.state = UpstreamState.LOST
    return bool(pool.upstreams)


def end_session(session: RouterTransport) -> bool:
    session._timers.add(asyncio.get_running_loop().call_later(100.0, int))
    session.is_over = True
    return True


def stop_running(session: RouterTransport) -> bool:
    is_open = any(member.state.value == "open" for member in session.catalogue.members.values())
    if is_open and not session.is_over:
        session._running.clear()
    return is_open and not session.is_over


def close_sessions(router: Router) -> bool:
    for session in router._sessions:
        session.is_over = True
        session._running.clear()
    return bool(router._sessions)


def admit_none(sessions: Sessions) -> bool:
    sessions._limit = 0
    return len(sessions) > 0


def take_no_requests(session: StreamableSession) -> bool:
    limits = dataclasses.replace(session._config.limits, streams=0)
    session._config = dataclasses.replace(session._config, limits=limits)
    return bool(session._calls)


def carry_twice(connection: StreamConnection) -> bool:
    stream = getattr(connection, "stream", None)
    if stream is not None:
        stream._connection = None
    return stream is not None and not connection.gone


def take_places(lanes: Lanes) -> bool:
    lanes._by_sender["somebody"] += 1
    return True


SPOILT: dict[str, tuple[type, Callable[[Any], bool], str]] = {
    "an id that waits and was cancelled": (Exchange, forget_call, "direct"),
    "more requests are open, and 0 may be": (Exchange, ask_too_much, "direct"),
    "a POST waits for what nobody does": (SharedHost, answer_nobody, "http"),
    "a call of who has left is not given up": (SharedHost, leave_silently, "shared"),
    "a server was told another level": (SharedHost, want_less, "shared"),
    "a session is asked, and the server waits for no answer": (SharedHost, ask_nobody, "shared"),
    "bytes are counted that do not wait": (SharedHost, make_wait, "shared"),
    "who wants something is not kept": (Subscriptions, unsettle, "shared"),
    "an offer is kept": (UpstreamEdge, offer_again, "direct"),
    "frames wait for a session that is open": (Recovery, keep_for_later, "direct"),
    "a loan has another id": (SessionLoans, rename, "direct"),
    "somebody is full, and others are read": (Host, fill, "direct"),
    "clients are counted that are not there": (SharedHost, count_wrongly, "shared"),
    "a server of several is not read": (SharedHost, hold_up, "shared"),
    "a lost server is given out": (UpstreamPool, lose, "shared"),
    "a timer outlives its session": (RouterTransport, end_session, "router"),
    "an open server does not run": (RouterTransport, stop_running, "router"),
    "a session that is over is kept": (Router, close_sessions, "router"),
    "sessions are open, and 0 may be": (Sessions, admit_none, "http"),
    "requests wait, and 0 may": (StreamableSession, take_no_requests, "http"),
    "a stream has another connection": (StreamConnection, carry_twice, "http"),
    "places are counted": (Lanes, take_places, "http"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_books_say_what_is_spoilt(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, change, cell = SPOILT[what]
    assert spoil(kind, change, cell, monkeypatch) != ""


def test_what_may_not_be_is_a_limit_and_the_rest_are_books(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "_CHECKS", {int: [lambda one, now: iter(["5 wait, and 4 may be", "one is lost"])]})
    kept = Books()
    kept.kept[1] = 5
    assert [rule for rule, _ in kept.look(0.0)] == ["limits", "books"]
    assert list(kept.look(0.0)) == []  # said once
