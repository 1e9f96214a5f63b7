"""An upstream edge that opens its server: which questions a silent one is asked, and when it is started again."""

from __future__ import annotations

from typing import Any

from dragoman.core.commands import Close, Open, Outbox, Outcome, Wake
from dragoman.core.edges.greeting import read_greeting
from dragoman.core.edges.lifecycle import UpstreamState
from dragoman.core.edges.opening import READ_SILENCE_S, SILENCE_S
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Malformed
from dragoman.core.rules.metadata import Metadata
from dragoman.core.settings import Settings
from dragoman_spec import REVISIONS
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
    assert edge.initialize(greeting, lambda _: hello, greeting.key, metadata=Metadata(REVISIONS[-1], {})) is None
    return edge, outbox


def pauses(outbox: Outbox) -> list[float | None]:
    return [command.after_s for command in outbox.take_all() if isinstance(command, Wake)]


def asked_more(outbox: Outbox) -> list[str]:
    return [body["method"] for body in bodies_in(outbox.take_all())]


def test_a_silent_process_is_asked_both_things_and_is_never_ended() -> None:
    edge, outbox = asked()
    assert pauses(outbox) == [READ_SILENCE_S]
    edge.expire()
    assert pauses(outbox) == [SILENCE_S - READ_SILENCE_S], "it may be starting"
    edge.expire()
    commands = outbox.take_all()
    assert [body["method"] for body in bodies_in(commands)] == ["initialize"]
    edge.expire()
    commands += outbox.take_all()
    assert len(bodies_in(commands)) == 1, "it has both questions"
    assert not any(isinstance(command, Open | Close) for command in commands)
    assert edge.state is UpstreamState.OPENING


def test_one_that_has_read_the_question_is_asked_the_other_one_before_its_client_gives_up() -> None:
    edge, outbox = asked()
    outbox.take_all()
    edge.was_read = lambda: True
    edge.expire()
    assert asked_more(outbox) == ["initialize"]


def test_one_that_has_not_read_the_question_is_given_the_time_to_start() -> None:
    edge, outbox = asked()
    outbox.take_all()
    edge.was_read = lambda: False
    edge.expire()
    assert asked_more(outbox) == []
    edge.expire()
    assert asked_more(outbox) == ["initialize"]


def test_one_over_http_is_up() -> None:
    edge, outbox = asked()
    outbox.take_all()
    edge.takes_headers = True
    edge.expire()
    assert asked_more(outbox) == ["initialize"]


def test_the_clock_is_not_looked_at_any_more_once_it_has_answered() -> None:
    outbox = Outbox()

    class Told(Owner):
        def discovered(self, upstream: UpstreamEdge, verdict: Any) -> None: ...

    edge = UpstreamEdge(Settings(), outbox, Told())
    edge.pin()
    edge.take(frame_of(discovered("dragoman-discover-1")))
    assert pauses(outbox) == [READ_SILENCE_S, None]


def test_one_that_is_known_to_have_no_handshake_is_waited_for_however_long_it_is_silent() -> None:
    outbox = Outbox()
    edge = UpstreamEdge(Settings(), outbox, Owner())
    edge.pin()
    outbox.take_all()
    for _ in range(5):
        edge.expire()
    assert all(isinstance(command, Wake) for command in outbox.take_all())
    assert edge.state is UpstreamState.OPENING


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
