"""The law of sharing: a session sees at a shared server what it would have seen alone, however others come between."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.core.switch.shared.levels import LEVELS
from tests.core.switch.talk import Heard, Talk
from tests.proxy.conversation import READY, initialize, initialized, notification, request, result
from tests.support.profile import hypothesis_settings

Frame = dict[str, Any]


class Server:
    """A server that does several things at once, each in its own order, and keeps one log level and one set of URIs."""

    def __init__(self) -> None:
        self.work: list[Iterator[Frame | None]] = []
        self.used: dict[Any, None] = {}
        self.level = 0
        self.uris: set[str] = set()
        self.questions = itertools.count()
        self.answers: dict[int, Frame] = {}

    def hear(self, frame: Frame) -> None:
        if "method" not in frame:
            self.answers[frame["id"]] = frame["result"]
        elif "id" in frame:
            assert frame["id"] not in self.used, "an id was used twice"
            self.used[frame["id"]] = None
            self.work.append(self.serve(frame["id"], frame["method"], frame.get("params", {})))
            if frame["method"] in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
                self.change(frame["method"], frame["params"])

    def change(self, method: str, params: Frame) -> None:
        if method == "logging/setLevel":
            self.level = LEVELS.index(params["level"])
        elif method == "resources/subscribe":
            self.uris.add(params["uri"])
        else:
            self.uris.discard(params["uri"])

    def serve(self, key: Any, method: str, params: Frame) -> Iterator[Frame | None]:
        if method == "initialize":
            yield initialized(params["protocolVersion"], key, tools={})
            return
        said: Any = {}
        if method == "tools/call":
            doing = params["arguments"]
            token = params.get("_meta", {}).get("progressToken")
            for step in range(doing["steps"] if token is not None else 0):
                yield notification("notifications/progress", progressToken=token, progress=step)
            for level in doing["logs"]:
                if level >= self.level:
                    yield notification("notifications/message", level=LEVELS[level], data=doing["name"])
            for uri in doing["touches"]:
                if uri in self.uris:
                    yield notification("notifications/resources/updated", uri=uri)
            if doing["asks"]:
                question = next(self.questions)
                yield request(question, "elicitation/create", message=doing["name"], requestedSchema={})
                while question not in self.answers:
                    yield None
                said = self.answers[question]
        yield result(key, {"method": method, "said": said, "arguments": params.get("arguments")})


class Guest:
    """A session that says its lines, answers what it is asked and writes down what it hears."""

    def __init__(self, name: str, script: list[Frame]) -> None:
        self.name = name
        self.lines = deque([initialize("2025-11-25", key="i", elicitation={}), READY, *script])
        self.heard: list[Frame] = []

    def hear(self, frame: Frame) -> None:
        if frame.get("method") == "elicitation/create":
            self.lines.append(result(frame["id"], {"action": "accept", "content": {"by": self.name}}))
            frame = {**frame, "id": "any"}
        self.heard.append(frame)

    def may_speak(self) -> bool:
        """A session waits for the answer to `initialize`, as the proxy makes it."""
        waits = len(self.lines) > 0 and self.lines[0] == READY and not self.heard
        return bool(self.lines) and not waits

    def seen(self) -> list[str]:
        return sorted(json.dumps(frame, sort_keys=True) for frame in self.heard)


class Together:
    """The way through a shared switch."""

    def __init__(self, guests: list[Guest], server: Server) -> None:
        self.talk = Talk(asks=True, is_for_all=False)
        self.server = server
        self.guests = {guest.name: guest for guest in guests}

    def up(self, guest: Guest, frame: Frame) -> None:
        self.deliver(self.talk.says(guest.name, frame))

    def down(self, frame: Frame) -> None:
        self.deliver(self.talk.says("server", frame))

    def deliver(self, heard: Heard) -> None:
        for name, frame in heard:
            (self.server if name == "server" else self.guests[name]).hear(frame)
        assert self.talk.switch.counters.refused == 0


class Alone:
    """The way of a session that has the server for itself."""

    def __init__(self, guests: list[Guest], server: Server) -> None:
        [self.guest] = guests
        self.server = server

    def up(self, guest: Guest, frame: Frame) -> None:
        self.server.hear(frame)

    def down(self, frame: Frame) -> None:
        self.guest.hear(frame)


def play(way: type[Together | Alone], scripts: dict[str, list[Frame]], random: Random) -> dict[str, list[str]]:
    """Let everybody speak in random order until nobody has anything to say; give what each session saw."""
    guests, server = [Guest(name, script) for name, script in scripts.items()], Server()
    wire = way(guests, server)
    for _ in range(100_000):
        talking: list[Guest | Iterator[Frame | None]] = [guest for guest in guests if guest.may_speak()]
        talking += server.work
        if not talking:
            return {guest.name: guest.seen() for guest in guests}
        who = random.choice(talking)
        if isinstance(who, Guest):
            wire.up(who, who.lines.popleft())
            continue
        frame = next(who, "over")
        if frame == "over":
            server.work.remove(who)
        elif isinstance(frame, dict):
            wire.down(frame)
    raise AssertionError("they never come to an end")


@st.composite
def scripts(draw: st.DrawFn) -> dict[str, list[Frame]]:
    found = {}
    for name in "abcd"[: draw(st.integers(2, 4))]:
        keys = draw(st.permutations([1, "1", 2, "x", -1, "é", 2**63]))
        uris = [f"x:{name}", "x:all"]
        script = [request("level", "logging/setLevel", level=draw(st.sampled_from(LEVELS)))]
        script += [
            request(f"s{n}", "resources/subscribe", uri=uri) for n, uri in enumerate(uris) if draw(st.booleans())
        ]
        for key in keys[: draw(st.integers(0, 5))]:
            if draw(st.booleans()):
                doing = {
                    "name": name,
                    "steps": draw(st.integers(0, 2)),
                    "logs": draw(st.lists(st.integers(0, 7), max_size=2)),
                    "touches": draw(st.sampled_from([[], [f"x:{name}"]])),
                    "asks": draw(st.booleans()),
                }
                meta = {"_meta": {"progressToken": key}} if draw(st.booleans()) else {}
                script.append(request(key, "tools/call", name="t", arguments=doing, **meta))
            else:
                script.append(request(key, draw(st.sampled_from(["tools/list", "prompts/list", "ping"]))))
        script += [request("u", "resources/unsubscribe", uri="x:all")] if draw(st.booleans()) else []
        found[name] = script
    return found


@given(scripts(), st.integers(0, 2**32))
@hypothesis_settings(default=80, thorough=3000)
def test_a_session_sees_what_it_would_have_seen_alone(all_scripts: dict[str, list[Frame]], seed: int) -> None:
    together = play(Together, all_scripts, Random(seed))
    for name, script in all_scripts.items():
        alone = play(Alone, {name: script}, Random(seed))[name]
        assert [line for line in together[name] if not own(line)] == [line for line in alone if not own(line)]


def own(line: str) -> bool:
    """Whether it is an answer whose content depends on who gave it: the server or, in its place, the proxy."""
    frame = json.loads(line)
    return frame.get("id") in ("level", "s0", "s1", "u") and "result" in frame


@given(scripts(), st.integers(0, 2**32))
@hypothesis_settings(default=20, thorough=500)
def test_every_request_is_answered_once_under_its_own_id(all_scripts: dict[str, list[Frame]], seed: int) -> None:
    for name, seen in play(Together, all_scripts, Random(seed)).items():
        answered = [frame["id"] for line in seen if "method" not in (frame := json.loads(line))]
        asked = ["i", *(frame["id"] for frame in all_scripts[name])]
        assert sorted(map(repr, answered)) == sorted(map(repr, asked))
