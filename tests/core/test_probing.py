"""An upstream edge that asks its server what it is: how long a silent one is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.core.bridge.verdict import PROBE_TIMEOUT_S
from dragoman.core.commands import Open, Outbox, Outcome, Wake
from dragoman.core.edges.greeting import read_greeting
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.probing import GLANCES
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Malformed
from dragoman.core.settings import Settings
from tests.core.upstream_talk import NEWEST, bodies_in, frame_of
from tests.proxy.conversation import initialize, request
from tests.proxy.per_request import discovered


class Owner:
    """A switch that wants the server."""

    def waits_for(self, upstream: UpstreamEdge) -> bool:
        return True

    def offered(self, upstream: UpstreamEdge) -> None: ...

    def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
        raise AssertionError(reason)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def asked() -> tuple[UpstreamEdge, Outbox]:
    """Give an edge whose server is asked what it is before it is offered a session."""
    outbox = Outbox()
    edge = UpstreamEdge(Settings(), outbox, Owner())
    hello = frame_of(initialize(NEWEST))
    greeting = read_greeting(hello, "auto")
    assert not isinstance(greeting, Malformed)
    assert edge.ask(greeting, lambda _: hello, greeting.key, needs_session=False) is None
    return edge, outbox


def pauses(outbox: Outbox) -> list[float | None]:
    return [command.after_s for command in outbox.take_all() if isinstance(command, Wake)]


def test_one_that_has_read_the_question_and_is_silent_is_started_again_at_the_first_look() -> None:
    edge, outbox = asked()
    (pause_s,) = pauses(outbox)
    assert pause_s == PROBE_TIMEOUT_S / GLANCES
    edge.has_read = True
    edge.expire()
    commands = outbox.take_all()
    assert any(isinstance(command, Open) for command in commands)
    assert [body["method"] for body in bodies_in(commands)] == ["initialize"]
    assert edge.state is UpstreamState.OFFERED


def test_one_that_is_still_starting_is_waited_for() -> None:
    edge, outbox = asked()
    waited = pauses(outbox)
    for _ in range(GLANCES - 1):
        edge.expire()
        assert edge.state is UpstreamState.PROBED
        waited += pauses(outbox)
    edge.expire()
    assert edge.state is UpstreamState.OFFERED
    assert sum(pause_s or 0.0 for pause_s in waited) == pytest.approx(PROBE_TIMEOUT_S)


def test_one_that_is_known_to_have_no_handshake_is_waited_for_whatever_it_has_read() -> None:
    outbox = Outbox()
    failures: list[Any] = []

    class Pinned(Owner):
        def failed(self, upstream: UpstreamEdge, failure: Any) -> None:
            failures.append(failure)

    edge = UpstreamEdge(Settings(), outbox, Pinned())
    edge.pin()
    edge.has_read = True
    for _ in range(GLANCES - 1):
        edge.expire()
        assert edge.state is UpstreamState.PROBED
    edge.expire()
    assert len(failures) == 1


def test_one_without_a_handshake_that_goes_silent_is_asked_again_and_then_lost() -> None:
    outbox = Outbox()
    losses: list[str] = []

    class Stateless(Owner):
        def discovered(self, upstream: UpstreamEdge, verdict: Any) -> None: ...

        def take_server(self, upstream: UpstreamEdge, frame: Any) -> None:
            raise AssertionError(frame)

        def lost(self, upstream: UpstreamEdge, reason: str, outcome: Outcome) -> None:
            losses.append(reason)

    edge = UpstreamEdge(Settings(health_s=5.0), outbox, Stateless())
    edge.pin()
    (question,) = bodies_in(outbox.take_all())
    found = discovered(question["id"])
    edge.take(frame_of(found))
    assert pauses(outbox)[-1] == 5.0
    edge.expire()  # it had just answered
    assert bodies_in(outbox.take_all()) == []
    for _ in range(2):
        edge.expire()
        (question,) = bodies_in(outbox.take_all())
        assert question["method"] == "server/discover"
        edge.take(frame_of({**found, "id": question["id"]}))
        edge.expire()
        assert bodies_in(outbox.take_all()) == []
    edge.expire()
    edge.expire()
    assert len(losses) == 1
    assert "not even an answer to server/discover" in losses[0]
    assert edge.state is UpstreamState.ABSENT
    outbox.take_all()
    edge.send(frame_of(request(1, "tools/list")))
    assert edge.state is UpstreamState.READY
    assert pauses(outbox) == [5.0], "the one in its place is looked after as well"
