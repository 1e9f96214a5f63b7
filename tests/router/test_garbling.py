"""Servers that garble whatever they say, at random: those beside them and the session do not notice."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dragoman.proxy import ProxyConfig
from tests.router.made import HANDSHAKE, PER_REQUEST, Body, MadeServer, routing, session
from tests.support.waiting import run

ODD = [None, True, -1, 1e300, "", "x", "a_x", "file:///r", "\u00e9" * 70, [], {}, [None], {"name": 5}, {"uri": []}]
NOTICES = ["progress", "message", "cancelled", "resources/updated", "tools/list_changed", "elicitation/complete"]
QUESTIONS = ["sampling/createMessage", "elicitation/create", "roots/list", "ping", "x/y"]
ABOUT: Body = {
    "progressToken": 1,
    "progress": 1,
    "uri": "file:///r",
    "requestId": 1,
    "message": "hi",
    "elicitationId": "e",
    "_meta": {"progressToken": 2},
    "level": "info",
    "messages": [],
    "maxTokens": 1,
}
PARAMS: Body = {
    "uri": "n://1",
    "ref": {"type": "ref/prompt", "name": "p"},
    "argument": {"name": "a", "value": "v"},
    "level": "info",
    "taskId": "t",
    "_meta": {"progressToken": 1},
}
METHODS = [
    *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "tasks/list", "prompts/get"),
    *("tools/call", "resources/read", "resources/subscribe", "completion/complete", "logging/setLevel", "tasks/get"),
]


class Garbling(MadeServer):
    """A server that answers the handshake, and nothing else as it should."""

    def __init__(self, revision: str, chance: random.Random) -> None:
        super().__init__(revision, tools=["x"], prompts=["p"], resources=["file:///r"], templates=["n://{x}"])
        self.capabilities |= {"logging": {}, "tasks": {"list": {}}}
        self.chance = chance

    def take(self, frame: Body) -> None:
        if "method" not in frame or "id" not in frame:
            return
        said: Any = self.result(frame["method"], frame)
        if frame["method"] not in ("initialize", "server/discover"):
            said = self.garble(said)
        kind = "error" if self.chance.random() < 0.1 else "result"
        self.say({"id": frame["id"], kind: self.complete(said) if isinstance(said, dict) else said})
        if self.chance.random() < 0.5:
            self.say({"method": f"notifications/{self.chance.choice(NOTICES)}", "params": self.garble(ABOUT)})
        if self.chance.random() < 0.5:
            asked = {"id": self.chance.choice([1, 2, "q"]), "method": self.chance.choice(QUESTIONS)}
            self.say({**asked, "params": self.garble(ABOUT)})

    def garble(self, value: Any) -> Any:
        """Put something else in place of some of it, and leave out some."""
        if self.chance.random() < 0.12:
            return self.chance.choice(ODD)
        if isinstance(value, dict):
            return {name: self.garble(one) for name, one in value.items() if self.chance.random() > 0.03}
        return [self.garble(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("revision", ["2024-11-05", HANDSHAKE, PER_REQUEST])
@pytest.mark.parametrize("seed", range(4))
def test_a_server_that_garbles_everything_spoils_nothing_of_others(
    seed: int, revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    servers: dict[str, MadeServer] = {
        name: Garbling(spoken, chance)
        for name, spoken in zip("abc", ("2025-03-26", HANDSHAKE, PER_REQUEST), strict=True)
    }
    servers["good"] = MadeServer(tools=["good"])
    options = {"listTimeout": 0.1, "requestTimeout": 0.5}

    async def main() -> None:
        capabilities: Body = {"sampling": {}, "elicitation": {}, "roots": {}}
        router = routing(servers, options, ProxyConfig(drain_timeout_s=0.1))
        async with session(router, revision, capabilities) as client:
            if revision == PER_REQUEST:
                wanted = {"toolsListChanged": True, "resourceSubscriptions": ["file:///r", "n://1"]}
                client.begin("subscriptions/listen", {"notifications": wanted})
            for _ in range(30):
                name = chance.choice(["a_x", "b_x", "a_p", "c_p", "x", "p"])
                asked = client.begin(chance.choice(METHODS), {**PARAMS, "name": name})
                assert await client.call("good") == "good"
                if chance.random() < 0.5:
                    await client.answer_to(asked)
            assert "good" in await client.list()

    run(main())
    assert "internal error" not in caplog.text
