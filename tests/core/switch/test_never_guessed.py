"""The other law of sharing: what is said about a session's call no other session hears, however late it comes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.switch.talk import Heard, Talk
from tests.core.switch.test_questions import ALL
from tests.proxy.conversation import notification, request, result
from tests.support.profile import hypothesis_settings

METHODS = ["tools/call", "prompts/get", "resources/read", "completion/complete", "vendor/do"]


class House:
    """Sessions that call, cancel and leave, and a server that speaks of any call that it has not answered.

    Args:
        random: Decides what happens next.
        streams: Whether what is said about a call comes on its stream, sometimes after its answer.
        is_for_all: Whether each session is another principal's: then the server logs after its answers, too.
        settings: Of the shared server.
    """

    def __init__(self, random: Random, streams: bool, is_for_all: bool = False, **settings: Any) -> None:
        self.random = random
        self.is_for_all = is_for_all
        self.streams = streams
        self.talk = Talk(is_for_all=is_for_all, **settings)
        self.talk.opens("a", "b", "c", **ALL)
        self.present = ["a", "b", "c"]
        self.joined = 3
        self.last = 0
        self.with_server: dict[int, str] = {}  # whose call it is, by the number that the server knows it by
        self.answered: dict[int, str] = {}
        self.open: dict[str, list[str]] = {name: [] for name in "abc"}
        self.heard_of_own = 0

    def live(self) -> None:
        steps = [self.call] * 4 + [self.cancel, self.leave, self.join, self.wait, self.fail]
        steps += [self.answer] * 3 + [self.ask] * 6 + [self.log] * 6
        for _ in range(80):
            self.take(self.random.choice(steps)())

    def take(self, heard: Heard) -> None:
        """Look at what everybody hears: it says whose it is."""
        for to, frame in heard:
            method = frame.get("method")
            if to == "server" and method in METHODS:
                self.with_server[frame["id"]] = frame["params"]["of"]
            elif to != "server" and method in ("elicitation/create", "notifications/message"):
                of = frame["params"]["message" if method == "elicitation/create" else "data"]
                assert of == to, f"{to} heard what is about a call of {of}"
                self.heard_of_own += 1

    def call(self) -> Heard:
        if not self.present:
            return []
        self.last += 1
        name, key = self.random.choice(self.present), f"k{self.last}"
        self.open[name].append(key)
        return self.talk.says(name, request(key, self.random.choice(METHODS), of=name))

    def cancel(self) -> Heard:
        names = [name for name in self.present if self.open[name]]
        if not names:
            return []
        name = self.random.choice(names)
        key = self.open[name].pop(self.random.randrange(len(self.open[name])))
        return self.talk.says(name, notification("notifications/cancelled", requestId=key))

    def leave(self) -> Heard:
        if len(self.present) < 2 or self.random.random() < 0.5:
            return []
        name = self.present.pop(self.random.randrange(len(self.present)))
        return self.talk.leaves(name)

    def join(self) -> Heard:
        if len(self.present) > 3:
            return []
        self.joined += 1
        name = f"s{self.joined}"
        self.talk.opens(name, **ALL)
        self.present.append(name)
        self.open[name] = []
        return []

    def wait(self) -> Heard:
        return self.talk.time_passes(self.random.choice([1, 10, 10_000]))

    def fail(self) -> Heard:
        if not self.with_server or self.random.random() < 0.5:
            return []
        return self.talk.fails(self.random.choice(list(self.with_server)), "gave up")

    def answer(self) -> Heard:
        if not self.with_server:
            return []
        number = self.random.choice(list(self.with_server))
        self.answered[number] = self.with_server.pop(number)
        return self.talk.says("server", result(number, {}))

    def ask(self) -> Heard:
        self.last += 1
        return self.say(lambda of: request(self.last, "elicitation/create", message=of, requestedSchema={}))

    def log(self) -> Heard:
        return self.say(lambda of: notification("notifications/message", level="info", data=of), self.is_for_all)

    def say(self, frame: Any, is_late: bool = False) -> Heard:
        about = {**self.with_server, **(self.answered if self.streams or is_late else {})}
        if not about:
            return []
        number = self.random.choice(list(about))
        if self.streams:
            return self.talk.streams(number, frame(about[number]))
        return self.talk.says("server", frame(about[number]))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("suspects", [1, 1024])
@pytest.mark.parametrize("is_for_all", [False, True])
@given(seed=st.integers(0, 2**32))
@hypothesis_settings(default=25, thorough=2000)
def test_nobody_hears_what_is_about_the_call_of_another_session(
    streams: bool, asks: bool, suspects: int, is_for_all: bool, seed: int
) -> None:
    House(Random(seed), streams, is_for_all, asks=asks, suspects=suspects).live()


@pytest.mark.parametrize("is_for_all", [False, True])
@pytest.mark.parametrize("streams", [False, True])
def test_and_somebody_hears_what_is_about_a_call_of_its_own(streams: bool, is_for_all: bool) -> None:
    heard = 0
    for seed in range(20):
        house = House(Random(seed), streams, is_for_all)
        house.live()
        heard += house.heard_of_own
    assert heard > 20
