"""Calls whose servers wait for a client's answer: they do not take the places of those that are under way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.waiting import linger
from tests.transports.upstream.stage import Client, Reply, Request, answer_to, client, on_loop, server, shake_hands


class Asking:
    """A server that asks so many questions in the middle of each `tools/call`, and answers the rest at once."""

    def __init__(self, questions: int = 1) -> None:
        self.questions = questions
        self.called: list[Any] = []
        self.answered: dict[str, asyncio.Event] = {}

    async def __call__(self, request: Request, reply: Reply) -> None:
        if await shake_hands(request, reply):
            return
        if request.rpc is None:
            self.answered[request.frame["id"]].set()
            await reply.status("202 Accepted")
        elif request.rpc == "tools/call":
            await self._ask(request, reply)
        else:
            await reply.json(answer_to(request))

    async def _ask(self, request: Request, reply: Reply) -> None:
        name = request.frame["params"]["name"]
        self.called.append(name)
        keys = [f"{name}-{number}" for number in range(self.questions)]
        self.answered |= {key: asyncio.Event() for key in keys}
        await reply.stream()
        for key in keys:
            await reply.event({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": {"message": "?"}})
        for key in keys:
            await self.answered[key].wait()
        if name.startswith("slow"):
            await asyncio.Event().wait()
        await reply.event(answer_to(request))
        reply.cut()


def decline(peer: Client, key: str) -> None:
    peer.send({"jsonrpc": "2.0", "id": key, "result": {"action": "decline"}})


def asked(peer: Client) -> list[str]:
    return [frame["id"] for frame in peer.others if frame.get("method") == "elicitation/create"]


@on_loop
async def test_a_call_that_waits_for_its_client_leaves_its_place_to_others() -> None:
    async with server(Asking()) as url, client(url, open_requests=1) as peer:
        parked = peer.start("tools/call", name="a")
        await peer.until(lambda: asked(peer) == ["a-0"])
        assert "result" in await peer.ask("tools/list")
        decline(peer, "a-0")
        assert "result" in await peer.answer(parked)
        assert "result" in await peer.ask("tools/list")


@on_loop
async def test_a_server_that_waits_for_its_client_may_be_silent() -> None:
    """People take longer to answer than a server may take that owes something."""
    serve = Asking()
    async with server(serve) as url, client(url, idle_timeout_s=0.4) as peer:
        first, second = peer.start("tools/call", name="a"), peer.start("tools/call", name="slow")
        await peer.until(lambda: len(asked(peer)) == 2)
        await linger(1.0)
        decline(peer, "a-0")
        assert "result" in await peer.answer(first)
        decline(peer, "slow-0")
        await serve.answered["slow-0"].wait()
        error = (await peer.answer(second))["error"]  # from here on it owes the answer
        assert "nothing came from it for too long" in error["message"]


@on_loop
async def test_calls_that_wait_for_their_clients_have_a_limit_of_their_own() -> None:
    serve = Asking()
    async with server(serve) as url, client(url, open_requests=2, parked_requests=2) as peer:
        for name in "abcdef":
            peer.start("tools/call", name=name)
        await peer.until(lambda: len(asked(peer)) == 4)
        await linger(0.05)
        assert serve.called == ["a", "b", "c", "d"]  # two are parked, and two keep their places
        decline(peer, asked(peer)[-1])
        await peer.until(lambda: len(asked(peer)) == 5)


@on_loop
async def test_a_call_that_goes_on_counts_again_once_all_is_answered() -> None:
    serve = Asking(questions=2)
    async with server(serve) as url, client(url, open_requests=1) as peer:
        peer.start("tools/call", name="slow")
        await peer.until(lambda: len(asked(peer)) == 2)
        decline(peer, "slow-0")
        await serve.answered["slow-0"].wait()
        assert "result" in await peer.ask("tools/list")
        decline(peer, "slow-1")
        await serve.answered["slow-1"].wait()
        await linger(0.05)
        waiting = peer.start("tools/list")
        await linger(0.05)
        assert waiting not in peer.answers


QUESTION = {"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}}


class Elsewhere:
    """A server whose question does not come on the connection that the call was sent on, or is not answered there.

    Args:
        place: `before` the first connection ends, `after` that on the one which resumes it, or `unasked`, by a GET.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.resumed = 0
        self.called, self.answered = asyncio.Event(), asyncio.Event()
        self.call: Request | None = None

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            await self._speak(request, reply)
        elif not await shake_hands(request, reply) and request.rpc is None:
            self.answered.set()
            await reply.status("202 Accepted")
        elif request.rpc == "tools/call":
            self.call = request
            await reply.stream()
            self.called.set()
            if self.place == "unasked":
                await self._finish(reply)
            else:
                await reply.event(QUESTION if self.place == "before" else "", event_id="e0", retry="10")
                reply.cut()

    async def _speak(self, request: Request, reply: Reply) -> None:
        await self.called.wait()
        self.resumed += "last-event-id" in request.headers
        await reply.stream()
        if self.place != "before" and self.resumed < 2:
            await reply.event(QUESTION, event_id="e1" if self.resumed else "")
        await self._finish(reply)

    async def _finish(self, reply: Reply) -> None:
        await self.answered.wait()
        assert self.call is not None
        await reply.event(answer_to(self.call))
        reply.cut()


@pytest.mark.parametrize(("place", "resumed"), [("before", 1), ("after", 1), ("unasked", 0)])
def test_it_may_be_silent_wherever_its_question_came(place: str, resumed: int) -> None:
    @on_loop
    async def run() -> None:
        serve = Elsewhere(place)
        async with server(serve) as url, client(url, idle_timeout_s=0.3) as peer:
            call = peer.start("tools/call", name="a")
            await peer.until(lambda: asked(peer) == ["q"])
            await linger(1.0)
            decline(peer, "q")
            assert "result" in await peer.answer(call)
            assert serve.resumed == resumed

    run()
