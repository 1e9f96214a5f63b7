"""What a server with a handshake is at work on for clients that open no session.

Lives here: the requests that are with the server, under ids of ours, and the turns that calls of a server take that
asks back. Must not: translate, or know who is told what comes of it. Called by the other modules of the package.

A request is known at the server by a number of ours, which is its progress token too: what the client has in their
place may be used by another client as well, and a request may go on under another one of the client's.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from dragoman.core.bridge.asking import AskedCall
from dragoman.core.bridge.names import FACTS
from dragoman.core.bridge.replay import Replay
from dragoman.core.bridge.state import Binding, digest_params
from dragoman.core.bridge.strategy import Strategy
from dragoman.core.edges.per_request_front import Request
from dragoman.core.edges.upstream import UpstreamEdge
from dragoman.core.envelope import Frame, decoded, notification_frame, request_frame, twin_of
from dragoman.core.exact_json import decode
from dragoman.core.wiring import Bridging


@dataclass(slots=True, eq=False)
class Work:
    """A request that is with the server, or waits for its turn.

    Attributes:
        key: Our id for it.
        name: What it is called among parked calls; no other call of any server is called so.
        method: What it asks.
        request: The client's request that waits for the answer; None while nobody is there.
        frame: What is to be sent when its turn comes; None once it is with the server.
        questions: What the server has asked about it and is not answered: method by id.
        caller: On whose behalf it was asked; None before anything was.
        way: How its client is asked; None before anything was.
        replay: What the client has answered already, where the call is made again for that.
        wants_task: Whether the server was asked to make a task of it.
        task_id: The task that it is at the server; None where it is none there.
        token: Our progress token, where the server knows it by another id meanwhile.
    """

    key: bytes
    name: str
    method: str
    request: Request | None
    frame: Frame | None = None
    questions: dict[bytes, str] = field(default_factory=dict)
    caller: AskedCall | None = None
    way: Strategy | None = None
    replay: Replay | None = None
    wants_task: bool = False
    task_id: str | None = None
    token: bytes | None = None

    @property
    def may_ask(self) -> bool:
        """Whether the server may ask its client something meanwhile."""
        return self.method in FACTS.input_required

    @property
    def is_at_work(self) -> bool:
        """Whether the server may be asking just now."""
        return self.may_ask and self.frame is None


Hook = Callable[[Frame], None]
"""What to do with the answer to a request of our own."""


class Works:
    """The requests that are with one server.

    Args:
        upstream: The server's edge.
        restore_ids: Whether an answer may have an id of the other type.
        label: Random text, the beginning of all names.

    Attributes:
        is_asking: Whether the server has asked something, and not on the stream of a request: then nothing says which
            of several calls it is about, so such calls go to it one after the other.
    """

    __slots__ = ("_hooks", "_label", "_last", "_queue", "_restore_ids", "_upstream", "_works", "is_asking")

    def __init__(self, upstream: UpstreamEdge, restore_ids: bool, label: str) -> None:
        self._upstream = upstream
        self._restore_ids = restore_ids
        self._label = label
        self._works: dict[bytes, Work] = {}
        self._hooks: dict[bytes, Hook] = {}
        self._queue: deque[Work] = deque()
        self._last = 0
        self.is_asking = False

    def __iter__(self) -> Iterator[Work]:
        return iter(self._works.values())

    @property
    def open_keys(self) -> list[bytes]:
        """The ids of all requests that the server has not answered, our own among them."""
        return [*(work.key for work in self._works.values() if work.frame is None), *self._hooks]

    def new_key(self) -> bytes:
        """Give an id that the server has not seen."""
        self._last += 1
        return b"%d" % self._last

    def new_work(self, request: Request) -> Work:
        """Begin with a request; nothing is sent."""
        key = self.new_key()
        return Work(key, f"{self._label}-{self._last}", request.method, request)

    def start(self, work: Work) -> None:
        """Send a request to the server, or let it wait for its turn."""
        self._works[work.key] = work
        if self.is_asking and self._must_wait(work):
            self._queue.append(work)
        else:
            self._send(work)

    def find(self, key: bytes | None) -> Work | None:
        """Give the work that the server knows by this id; None if it is not at work on it."""
        return None if key is None else self._works.get(key)

    def find_named(self, name: str) -> Work | None:
        """Give the work that is called so among parked calls."""
        return next((work for work in self._works.values() if work.name == name), None)

    def find_task(self, task_id: object) -> Work | None:
        """Give the work that is this task at the server."""
        found = (work for work in self._works.values() if work.task_id is not None and work.task_id == task_id)
        return next(found, None)

    def find_by_token(self, token: object) -> Work | None:
        """Give the work that has this progress token of ours."""
        if isinstance(token, bool) or not isinstance(token, int):
            return None
        key = b"%d" % token
        return self.find(key) or next((work for work in self._works.values() if work.token == key), None)

    def find_for(self, request: Request) -> Work | None:
        """Give the work whose answer this request waits for."""
        return next((work for work in self._works.values() if work.request is request), None)

    def take_answered(self, key: bytes) -> tuple[Work | None, Hook | None]:
        """Take off the table what a response of the server answers: a client's request, or one of our own."""
        work = self._works.get(key)
        if work is not None and work.frame is None and key not in self._hooks:
            del self._works[key]
            return work, None
        if not self._is_answered_by(key):
            twin = twin_of(key) if self._restore_ids else None
            if twin is None or not self._is_answered_by(twin):
                return None, None
            key = twin
        return self._works.pop(key, None), self._hooks.pop(key, None)

    def _is_answered_by(self, key: bytes) -> bool:
        work = self._works.get(key)
        return (work is not None and work.frame is None) or key in self._hooks

    def finish(self, work: Work) -> None:
        """Take note that a request is over; those that wait for their turn go on."""
        self._works.pop(work.key, None)
        self.go_on()

    def go_on(self) -> None:
        """Send what waits for its turn, if it is its turn."""
        while self._queue and (not self._queue[0].may_ask or not self._is_busy()):
            self._send(self._queue.popleft())

    def follow(self, work: Work, method: str, params: dict[str, Any]) -> None:
        """Ask for the answer to a request by another request: it is known by the id of that one from now on."""
        self._works.pop(work.key, None)
        work.token, work.key = work.token or work.key, self.new_key()
        self._works[work.key] = work
        self._upstream.send(request_frame(work.key, method, params))

    def cancel(self, work: Work, reason: str) -> None:
        """Tell the server that nobody waits for this any more."""
        if work.frame is None:
            self.tell_cancelled(work, reason)
        else:
            self._queue.remove(work)
        self.finish(work)

    def tell_cancelled(self, work: Work, reason: str) -> None:
        """Tell the server so, and wait for the end."""
        if work.task_id is not None:  # "tasks/cancel MUST be used" for those (2025-11-25/basic/utilities/tasks)
            self._cancel_task(work.task_id)
            return
        if work.wants_task:  # it may be one by the time that the server reads this
            self._hooks[work.key] = self._cancel_created
        params = {"requestId": decode(work.key)} | ({"reason": reason} if reason else {})
        self._upstream.send(notification_frame("notifications/cancelled", params))

    def _cancel_created(self, answer: Frame) -> None:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            self._cancel_task(decoded(answer).body["result"]["task"]["taskId"])

    def _cancel_task(self, task_id: Any) -> None:
        self.ask("tasks/cancel", {"taskId": task_id}, lambda answer: None)

    def ask(self, method: str, params: dict[str, Any], hook: Hook) -> None:
        """Send the server a request of our own."""
        key = self.new_key()
        self._hooks[key] = hook
        self._upstream.send(request_frame(key, method, params))

    def find_asked(self) -> Work | None:
        """Give the only request that the server can be asking about; None if it may be one of several, or none.

        A question about a task says so, and is not looked for here.
        """
        asked = [work for work in self._works.values() if work.is_at_work and work.task_id is None]
        return asked[0] if len(asked) == 1 else None

    def find_only(self) -> Work | None:
        """Give the only request that the server is at work on; None if there are several, or none."""
        begun = [work for work in self._works.values() if work.frame is None]
        return begun[0] if len(begun) == 1 else None

    def clear(self) -> None:
        """Forget everything: the server is gone."""
        self._works.clear()
        self._hooks.clear()
        self._queue.clear()

    def _must_wait(self, work: Work) -> bool:
        return work.may_ask and (bool(self._queue) or self._is_busy())

    def _is_busy(self) -> bool:
        return any(work.is_at_work and work.task_id is None for work in self._works.values())

    def _send(self, work: Work) -> None:
        assert work.frame is not None
        frame, work.frame = work.frame, None
        self._upstream.send(frame)


def bind(bridging: Bridging, request: Request) -> Binding:
    """Say which request a state is to be good for.

    Raises:
        ValueError: Its params are nested deeper than can be written.
    """
    return Binding(bridging.server, request.method, digest_params(request.params), find_principal(bridging, request))


def find_principal(bridging: Bridging, request: Request) -> str:
    """Say whose a request is."""
    return request.frame.sender or bridging.principal
