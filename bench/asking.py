"""What `dragoman proxy` costs between the eras where a server asks in the middle of a call, or a call runs as a task.

Lives here: the rows, and how each kind of client goes through such a call. Called by `eras`. What counts is the CPU
time of the proxy for a whole call, since a call that is parked waits 20 ms for further questions. It is held against
the same call between two with a handshake, either of two revisions, or both with tasks.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from math import nan
from statistics import median
from time import perf_counter
from typing import Any, Final

from bench.flight import cpu_us
from bench.peers import StdioPeer
from bench.proxy import CLIENT_REVISION, NEW_REVISION, PROXY
from bench.server import WITHOUT_A_HANDSHAKE

CALLS: Final = 20
"""How many calls a round."""

TASKS: Final = "io.modelcontextprotocol/tasks"
REPLY: Final = {"role": "assistant", "model": "bench", "content": {"type": "text", "text": "Ada"}}
Frame = dict[str, Any]
SAMPLING: Final[Frame] = {"sampling": {}}


class Talk:
    """The frames of a client, one after the other; notifications are passed over."""

    def __init__(self, peer: StdioPeer) -> None:
        self.peer = peer
        self._rest = b""
        self._frames: deque[bytes] = deque()

    def ask(self, method: str, **params: Any) -> Frame:
        """Send a request; give what comes next: its answer, or a question."""
        self.peer.notify(self.peer.request(method, params))
        return self._hear()

    def reply(self, question: Frame) -> Frame:
        """Answer a question; give what comes next."""
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": REPLY}
        self.peer.notify(json.dumps(answer).encode())
        return self._hear()

    def _hear(self) -> Frame:
        while True:
            while not self._frames:
                *lines, self._rest = (self._rest + self.peer.read()).split(b"\n")
                self._frames.extend(lines)
            frame: Frame = json.loads(self._frames.popleft())
            if "id" in frame:
                assert "error" not in frame, frame
                return frame


def call_and_answer(talk: Talk) -> Frame:
    """Call a tool with a handshake, and answer what is asked meanwhile."""
    return talk.reply(talk.ask("tools/call", name="ask", arguments={}))


def call_as_task(talk: Talk) -> Frame:
    """Call a tool as a task of 2025-11-25, and wait for its result."""
    created = talk.ask("tools/call", name="run", arguments={}, task={})["result"]["task"]
    return talk.reply(talk.ask("tasks/result", taskId=created["taskId"]))


def call_again(talk: Talk) -> Frame:
    """Call a tool without a handshake, and again with what its result has asked."""
    call: Frame = {"name": "ask", "arguments": {}}
    asked = talk.ask("tools/call", **call)["result"]
    state = {"requestState": asked["requestState"]} if "requestState" in asked else {}
    return talk.ask("tools/call", **call, inputResponses=dict.fromkeys(asked["inputRequests"], REPLY), **state)


def follow_task(talk: Talk) -> Frame:
    """Call a tool that becomes a task of the extension, and follow it to its end."""
    task = talk.ask("tools/call", name="ask", arguments={})["result"]
    task_id = task["taskId"]
    while task["status"] != "completed":
        answer = talk.ask("tasks/get", taskId=task_id)
        task = answer["result"]
        if task["status"] == "input_required":
            responses = dict.fromkeys(task["inputRequests"], REPLY)
            talk.ask("tasks/update", taskId=task_id, inputResponses=responses)
    return answer


@dataclass(frozen=True, slots=True)
class Way:
    """How a call goes.

    Attributes:
        client: The revision of the client.
        server: The revision of the server.
        call: Goes through it.
        capabilities: What the client declares.
        options: Of the proxy.
    """

    client: str
    server: str
    call: Callable[[Talk], Frame]
    capabilities: Frame
    options: tuple[str, ...] = ()


TAKES_TASKS: Final[Frame] = {**SAMPLING, "extensions": {TASKS: {}}}
ASKED: Final = Way(CLIENT_REVISION, NEW_REVISION, call_and_answer, SAMPLING)
TASK: Final = Way(NEW_REVISION, NEW_REVISION, call_as_task, SAMPLING)
ROWS: Final[dict[str, tuple[Way, Way]]] = {
    "to stateless  asked": (Way(NEW_REVISION, WITHOUT_A_HANDSHAKE, call_and_answer, SAMPLING), ASKED),
    "to stateless  task": (Way(NEW_REVISION, WITHOUT_A_HANDSHAKE, call_as_task, SAMPLING), TASK),
    "to session  park": (Way(WITHOUT_A_HANDSHAKE, NEW_REVISION, call_again, SAMPLING, ("--questions", "park")), ASKED),
    "to session  replay": (
        Way(WITHOUT_A_HANDSHAKE, NEW_REVISION, call_again, SAMPLING, ("--questions", "replay", "--repeatable", "ask")),
        ASKED,
    ),
    "to session  task": (Way(WITHOUT_A_HANDSHAKE, NEW_REVISION, follow_task, TAKES_TASKS), ASKED),
}
"""Row → how the call goes, and which one it is held against."""


def measure_asking(rounds: int, connect: Callable[[ExitStack, tuple[str, ...], str, Frame], StdioPeer]) -> None:
    """Measure and print.

    Args:
        rounds: How many.
        connect: Starts a process, and gives a client of a revision that declares these capabilities.
    """
    print(f"\na call in the middle of which the server asks: CPU of the proxy for a whole call, {CALLS} calls a round")
    for title, ways in ROWS.items():
        with ExitStack() as stack:
            talks = [Talk(connect(stack, _command(way), way.client, way.capabilities)) for way in ways]
            for way, talk in zip(ways, talks, strict=True):
                _measure(way, talk)  # what is done once only
            found = [[_measure(way, talk) for way, talk in zip(ways, talks, strict=True)] for _ in range(rounds)]
        (cpu, wall), (measured, _) = (
            [median(column) for column in zip(*side, strict=True)] for side in zip(*found, strict=True)
        )
        print(
            f"  {title:<10}  {cpu:>7.0f} µs  {wall:>6.1f} ms by the clock"
            f"  with a handshake {measured:>7.0f} µs  ÷ that {cpu / (measured or nan):>5.2f}",
            flush=True,
        )


def _command(way: Way) -> tuple[str, ...]:
    server = (sys.executable, "-m", "bench.asking_server", way.server)
    return (*PROXY, "--server-revision", way.server, *way.options, "--", *server)


def _measure(way: Way, talk: Talk) -> tuple[float, float]:
    """Make a round of calls; give for each the CPU time of the proxy, in microseconds, and its time in milliseconds."""
    before, began = cpu_us(talk.peer.pid), perf_counter()
    for _ in range(CALLS):
        answer = way.call(talk)
        result = answer["result"].get("result", answer["result"])
        assert result["content"][0]["text"] == "Ada", answer
    return (cpu_us(talk.peer.pid) - before) / CALLS, (perf_counter() - began) * 1000 / CALLS
