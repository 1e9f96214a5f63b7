"""The table of transitions, and its picture in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.core.lifecycle import TRANSITIONS, Action, Event, State, advance, draw_diagram, draw_table

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
S, E, A = State, Event, Action

ORDINARY = [
    (S.CONNECTING, E.INITIALIZE_REQUESTED, S.INITIALIZING),
    (S.INITIALIZING, E.REVISION_REJECTED, S.INITIALIZING),
    (S.INITIALIZING, E.SERVER_LOST_ON_RETRY, S.INITIALIZING),
    (S.INITIALIZING, E.INITIALIZE_ANSWERED, S.SENDING_INITIALIZED),
    (S.SENDING_INITIALIZED, E.INITIALIZED, S.READY),
    (S.READY, E.CLIENT_CLOSED, S.CLOSING),
    (S.CLOSING, E.DRAINED, S.CLOSED),
]


@pytest.mark.parametrize(("state", "event", "then"), ORDINARY)
def test_an_ordinary_session_goes_its_way(state: State, event: Event, then: State) -> None:
    transition = advance(state, event)
    assert transition is not None
    assert transition.state is then


@pytest.mark.parametrize("event", Event)
def test_nothing_happens_after_the_end(event: Event) -> None:
    assert advance(State.CLOSED, event) is None


@pytest.mark.parametrize("state", [state for state in State if state is not State.CLOSED])
@pytest.mark.parametrize("event", [Event.STOPPED])
def test_every_state_can_be_stopped(state: State, event: Event) -> None:
    transition = advance(state, event)
    assert transition is not None
    assert transition.state is State.CLOSED


@pytest.mark.parametrize("end", [State.CLOSED, State.FAILED])
def test_every_way_to_an_end_finishes_or_waits_for_a_timer(end: State) -> None:
    for key, transition in TRANSITIONS.items():
        if transition.state is end:
            assert {A.FINISH, A.START_TIMER} & set(transition.actions), key


def test_a_running_timer_is_stopped_on_every_way_out_of_a_timed_state() -> None:
    timed = {S.INITIALIZING, S.SENDING_INITIALIZED, S.CLOSING}
    for (state, event), transition in TRANSITIONS.items():
        if state in timed and transition.state is not state and event is not E.TIMED_OUT:
            assert {A.STOP_TIMER, A.START_TIMER} & set(transition.actions), (state, event)


def test_queued_requests_are_failed_on_every_way_to_failure() -> None:
    for key, transition in TRANSITIONS.items():
        if transition.state is State.FAILED:
            assert Action.FAIL_QUEUE in transition.actions, key


def test_every_state_event_and_action_is_used() -> None:
    assert {state for state, _ in TRANSITIONS} | {to.state for to in TRANSITIONS.values()} == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)
    assert {action for to in TRANSITIONS.values() for action in to.actions} == set(Action)


@pytest.mark.parametrize("drawing", [draw_diagram(), draw_table()])
def test_the_page_shows_the_table(drawing: str) -> None:
    assert drawing in PAGE.read_text(), "run `python -m tests.core.test_lifecycle` and paste what it prints"


if __name__ == "__main__":
    print(draw_diagram())
    print(draw_table())
