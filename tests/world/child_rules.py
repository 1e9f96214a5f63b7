"""Rules and marks of servers that are child processes: how they are ended, and what is made of their words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dragoman.transports.child_words import LINES
from tests.world.peers.words import secrets_in
from tests.world.plan import Plan
from tests.world.record import Event
from tests.world.rules import Talk, rule
from tests.world.situations import sometimes

_LEAST_S: Final = 0.19
"""How long a process has at least after the end of its input, and after SIGTERM, where we are in a hurry."""

_GONE_S: Final = 12.0
"""How long one has at most after the end of its input, whatever it heeds."""

_WRITES: Final = "writes on stderr"
_LEFT_OUT: Final = " lines left out)"


def _runs(talk: Talk) -> Iterator[tuple[str, dict[str, Event]]]:
    """Give what became of each process: of each thing that may happen to one, when it did for the first time."""
    for run in talk.servers():
        first = {event.what: event for event in reversed(talk.by_peer[run])}
        if "exits" in first or "input ends" in first:
            yield run, first


@rule("ended-in-order")
def a_process_is_asked_before_it_is_made_to_go(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server hears the end of its input, then SIGTERM, then SIGKILL, each when it has had time to heed the one."""
    for run, first in _runs(talk):
        ends, term, kill = (first.get(what) for what in ("input ends", "gets SIGTERM", "gets SIGKILL"))
        if term is not None and (ends is None or term.at_s < ends.at_s + _LEAST_S) and not _was_gone(first, term):
            yield f"{run} got SIGTERM before its input had ended for {_LEAST_S} s"
        if kill is not None and (term is None or kill.at_s < term.at_s + _LEAST_S):
            yield f"{run} got SIGKILL before it had had {_LEAST_S} s to heed SIGTERM"
        told = [event.what for event in talk.by_peer[run] if event.what.startswith("gets ")]
        if len(told) != len(set(told)):
            yield f"{run} was told twice: {', '.join(told)}"


def _was_gone(first: dict[str, Event], event: Event) -> bool:
    """Whether the process itself had exited, and what it had started is told."""
    return "exits" in first and first["exits"].turn < event.turn


@rule("ended-in-time")
def a_process_is_gone_soon(plan: Plan, talk: Talk) -> Iterator[str]:
    """Whatever a server heeds, it is gone a few seconds after its input has ended, and what it started with it."""
    for run, first in _runs(talk):
        ends = first.get("input ends")
        late = [event for event in talk.by_peer[run] if ends is not None and event.at_s > ends.at_s + _GONE_S]
        if ends is not None and "exits" not in first:
            yield f"{run} never went"
        for event in late[:1]:
            yield f"{run} {event.what} {event.at_s - ends.at_s:.1f} s after its input had ended"  # type: ignore[union-attr]


@rule("words-told")
def every_line_of_stderr_is_told(plan: Plan, talk: Talk) -> Iterator[str]:
    """What a process writes on stderr is in the log, line by line and in order, but for what is counted as left out."""
    told: dict[str, list[str]] = {}
    for _, text in talk.record.words:
        if not text.endswith(_LEFT_OUT):
            told.setdefault(_said_by(text), []).append(text.removeprefix(f"{_said_by(text).partition('.')[0]}: "))
    for run in talk.servers():
        wrote = [event.frame for event in talk.by_peer[run] if event.what == _WRITES]
        heard = told.get(run, [])
        rest = iter(wrote)
        if not all(line in rest for line in heard):
            yield f"{run} wrote {len(wrote)} lines, and what the log has of them is in another order, or changed"
        elif len(wrote) <= LINES and len(heard) != len(wrote):
            yield f"{run} wrote {len(wrote)} lines, and the log has {len(heard)}"


def _said_by(text: str) -> str:
    """Say which run of a server a line of the log is of; a router's have the name of the server before them."""
    first, _, rest = text.partition(" ")
    return rest.partition(" ")[0] if first.endswith(":") else first


@rule("own-words")
def a_line_of_stderr_belongs_to_its_session(plan: Plan, talk: Talk) -> Iterator[str]:
    """Each process has its words in the log of one session; where each client has servers of its own, of its own."""
    labels: dict[str, set[str]] = {}
    for label, text in talk.record.words:
        if not text.endswith(_LEFT_OUT):
            labels.setdefault(_said_by(text), set()).add(label)
    principals = {client.name: client.principal for client in plan.clients}
    for run, named in labels.items():
        if len(named) > 1:
            yield f"{run} has its words in the log of {', '.join(sorted(named))}"
        if plan.scope == "shared" or plan.front != "http":
            continue
        for label in named:
            _, is_named, whose = label.partition(" of ")
            owners = {owner for one in talk.got.get(run, ()) for owner, _ in secrets_in(one.params)}
            others = {principals[owner] for owner in owners} - {whose.partition(",")[0]}
            if is_named and others:
                yield f"{run} served {', '.join(sorted(others))}, and its words are in the log of {label}"


def _told(talk: Talk, what: str) -> Iterator[tuple[str, dict[str, Event]]]:
    return ((run, first) for run, first in _runs(talk) if what in first)


@sometimes("a process that heeds nothing is ended by SIGKILL")
def _killed(plan: Plan, talk: Talk) -> bool:
    return any(first["exits"].turn >= first["gets SIGKILL"].turn for _, first in _told(talk, "gets SIGKILL"))


@sometimes("what a process has started and left behind is ended")
def _left_behind(plan: Plan, talk: Talk) -> bool:
    return any(_was_gone(first, first["gets SIGTERM"]) for _, first in _told(talk, "gets SIGTERM"))


@sometimes("a process closes its output, lives on, and is ended")
def _closes(plan: Plan, talk: Talk) -> bool:
    return any("gets SIGTERM" in first for _, first in _told(talk, "closes its output"))


@sometimes("a process reads no more, and its clients are told")
def _reads_nothing(plan: Plan, talk: Talk) -> bool:
    return any("input ends" in first for _, first in _told(talk, "reads nothing"))


@sometimes("lines on stderr are left out, and counted")
def _left_out(plan: Plan, talk: Talk) -> bool:
    return any(text.endswith(_LEFT_OUT) for _, text in talk.record.words)


@sometimes("a command cannot be started again for a while")
def _missing(plan: Plan, talk: Talk) -> bool:
    return any("command not found" in text for _, text in talk.record.log)
