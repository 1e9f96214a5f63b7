"""The tables of transitions, and their pictures in the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.core.edges.lifecycle import (
    FRONT,
    UPSTREAM,
    FrontAction,
    FrontEvent,
    FrontState,
    Table,
    UpstreamAction,
    UpstreamEvent,
    UpstreamState,
)

PAGE = Path(__file__).parents[2] / "docs" / "internals" / "lifecycle.md"
S, E, A = FrontState, FrontEvent, FrontAction
U, V = UpstreamState, UpstreamEvent
KINDS: list[tuple[Table[Any, Any, Any], Any, Any, Any]] = [
    (FRONT, FrontState, FrontEvent, FrontAction),
    (UPSTREAM, UpstreamState, UpstreamEvent, UpstreamAction),
]

ORDINARY = [
    (FRONT, S.CONNECTING, E.INITIALIZE_REQUESTED, S.INITIALIZING),
    (FRONT, S.INITIALIZING, E.SERVER_ACCEPTED, S.SENDING_INITIALIZED),
    (FRONT, S.SENDING_INITIALIZED, E.INITIALIZED, S.READY),
    (FRONT, S.READY, E.CLIENT_CLOSED, S.CLOSING),
    (FRONT, S.CLOSING, E.DRAINED, S.CLOSED),
    (UPSTREAM, U.IDLE, V.ASKED, U.OPENING),
    (UPSTREAM, U.OPENING, V.ACCEPTED, U.ACCEPTED),
    (UPSTREAM, U.OPENING, V.DISCOVERED, U.READY),
    (UPSTREAM, U.ACCEPTED, V.ANNOUNCED, U.READY),
    (UPSTREAM, U.READY, V.CLOSED, U.LOST),
]


@pytest.mark.parametrize(("table", "state", "event", "then"), ORDINARY)
def test_an_ordinary_session_goes_its_way(table: Table[Any, Any, Any], state: Any, event: Any, then: Any) -> None:
    transition = table.advance(state, event)
    assert transition is not None
    assert transition.state is then


@pytest.mark.parametrize(("table", "states", "events", "actions"), KINDS)
def test_nothing_happens_after_the_end(table: Table[Any, Any, Any], states: Any, events: Any, actions: Any) -> None:
    assert all(table.advance(table.last, event) is None for event in events)


@pytest.mark.parametrize("state", [state for state in S if state is not S.CLOSED])
def test_every_state_of_a_client_can_be_stopped(state: FrontState) -> None:
    transition = FRONT.advance(state, E.STOPPED)
    assert transition is not None
    assert transition.state is S.CLOSED


@pytest.mark.parametrize("state", [state for state in U if state is not U.LOST])
def test_a_server_can_be_lost_in_every_state(state: UpstreamState) -> None:
    transition = UPSTREAM.advance(state, V.CLOSED)
    assert transition is not None
    assert transition.state is U.LOST


@pytest.mark.parametrize("end", [S.CLOSED, S.FAILED])
def test_every_way_to_an_end_finishes_or_waits_for_a_timer(end: FrontState) -> None:
    for key, transition in FRONT.transitions.items():
        if transition.state is end:
            assert {A.FINISH, A.START_TIMER} & set(transition.actions), key


def test_a_running_timer_is_stopped_on_every_way_out_of_a_timed_state() -> None:
    timed = {S.INITIALIZING, S.SENDING_INITIALIZED, S.CLOSING}
    for (state, event), transition in FRONT.transitions.items():
        if state in timed and transition.state is not state and event is not E.TIMED_OUT:
            assert {A.STOP_TIMER, A.START_TIMER} & set(transition.actions), (state, event)


def test_queued_requests_are_failed_on_every_way_to_failure() -> None:
    for key, transition in FRONT.transitions.items():
        if transition.state is S.FAILED:
            assert A.FAIL_QUEUE in transition.actions, key


@pytest.mark.parametrize(("table", "states", "events", "actions"), KINDS)
def test_every_state_event_and_action_is_used(
    table: Table[Any, Any, Any], states: Any, events: Any, actions: Any
) -> None:
    transitions = table.transitions
    assert {state for state, _ in transitions} | {to.state for to in transitions.values()} == set(states)
    assert {event for _, event in transitions} == set(events)
    assert {action for to in transitions.values() for action in to.actions} == set(actions)


def draw_diagram(table: Table[Any, Any, Any]) -> str:
    """Draw a table as a Mermaid state diagram, the text between the fences of the page: a line from state to state."""
    ways: dict[tuple[str, str], list[str]] = {}
    for (state, event), to in table.transitions.items():
        ways.setdefault((node(state), node(to.state)), []).append(event.value)
    lines = ["stateDiagram-v2", f"    [*] --> {node(table.first)}"]
    lines += [f"    {start} --> {end}: {'<br/>'.join(events)}" for (start, end), events in ways.items() if start != end]
    lines.append(f"    {node(table.last)} --> [*]")
    return "\n".join(lines) + "\n"


def node(state: Any) -> str:
    return str(state.value).replace("-", "_")


@pytest.mark.parametrize("table", [FRONT, UPSTREAM])
def test_the_page_has_the_picture_of_the_table(table: Table[Any, Any, Any]) -> None:
    remedy = "run `python -m tests.core.test_lifecycle` and paste what it prints"
    assert draw_diagram(table) in PAGE.read_text(), remedy


if __name__ == "__main__":
    for table in (FRONT, UPSTREAM):
        print(draw_diagram(table))
