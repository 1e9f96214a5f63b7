"""The clients of a world: each does what its plan says, answers what it is asked, and notes everything.

| act | what happens |
|---|---|
| `call` | `tools/call`, with a secret of its own and steps for the server; `progress` gives it a token |
| `list`, `read`, `prompt`, `complete`, `ping`, `level` | the request of that name |
| `subscribe`, `unsubscribe` | to a resource with a secret in its URI, or a `common` one (clients with a session) |
| `subscribe` of a client without a session | it listens: to that resource, and to the list of tools |
| `call` with `follow` | the same, as a task; `client_tasks` says what becomes of that |
| `take` | the request `method` about the latest task of somebody else |
| `cancel` | the request with the number `of` is cancelled |
| `leave`, `cut` | it closes in order, or breaks off |
| `break` | it loses the connections that bring events, and takes those up again |
| `stall`, `junk` | it reads nothing for `for` seconds, says something odd |
| `odd` | it says what is neither request nor response, under the id of a request beside it in its array |
| `roots` | it says that its roots have changed |

Acts that follow each other with the same number in `array` go out as one array, where the revision knows that.

Of a client without a session, `has` of an act stands for what it can be asked from there on.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any, Final

from tests.world.peers.client_tasks import SINCE, follow, task_of
from tests.world.peers.words import (
    META,
    PER_REQUEST,
    TASKS,
    answer,
    chance_of,
    error,
    key_of,
    notification,
    request,
    result,
    secret,
    text_of,
)
from tests.world.plan import Act, ClientPlan
from tests.world.record import Body, Record
from tests.world.wires import Resuming, Wire

_PATIENCE_S: Final = 10.0
"""How long a client that is not sure what its server is waits for the answer, as SDKs do."""

_TRIES: Final = 2
_AGAIN_S: Final = 25.0
"""How often, and how much later, a client opens a session again where somebody has to sign in first."""

_JUNK: list[Any] = [
    b"no JSON\n",
    b'{"jsonrpc": "2.0", "id": 77, "method"\n',
    {"jsonrpc": "2.0", "id": "nobody asked", "result": {}},
    {"jsonrpc": "2.0", "method": "notifications/nobody-knows"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "no such"}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "no such", "progress": 1}},
]


class Client:
    """One client.

    Args:
        plan: What it is and does.
        seed: Of the world.
        record: Where it is noted what it says and hears.

    Attributes:
        visit: Has who is behind it see a link; None where nobody comes by links.
        done: Set when it has done everything, and has got every answer that it waits for, or is gone.
    """

    def __init__(self, plan: ClientPlan, seed: int, record: Record) -> None:
        self.plan = plan
        self.name = plan.name
        self.wire: Wire | None = None
        self.is_over = False
        self.done = asyncio.Event()
        self.visit: Callable[[str], None] | None = None
        self._seed = seed
        self._record = record
        self._last = 0
        self._waiting: dict[tuple[str, Any], Body] = {}  # requests that are not answered yet
        self._keys: dict[int, Any] = {}  # the last id that an act was sent under
        self._given_up: set[tuple[str, Any]] = set()
        self._gathered: list[Body] | None = None  # what goes out as one array
        self._free_ids: list[Any] = []  # of requests that were cancelled, for who uses ids again
        self._has = plan.has
        self._tries = 0
        self._opened, self._discovered = asyncio.Event(), asyncio.Event()
        self._answers: dict[tuple[str, Any], asyncio.Future[Body | None]] = {}  # of requests that somebody here awaits
        self._tasks: dict[asyncio.Task[None], None] = {}
        record.revisions[self.name] = plan.revision

    @property
    def is_stateless(self) -> bool:
        """Whether it opens no session."""
        return self.plan.revision == PER_REQUEST

    async def live(self, patience_s: float) -> None:
        """Do everything, wait for what is still to come, and leave."""
        if self.plan.manner == "silent":  # it connects, and says nothing
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.done.wait(), patience_s)
            if not self.is_over and self.wire is not None:
                self.wire.leave()
            return
        self._open()
        acts = asyncio.ensure_future(self._act())
        self._keep(acts)
        with_end = asyncio.ensure_future(self.done.wait())
        await asyncio.wait([acts, with_end], return_when=asyncio.FIRST_COMPLETED)
        if not self.done.is_set():
            self._see()
            await asyncio.wait([with_end], timeout=patience_s)
        with_end.cancel()
        self.stop()
        if not self.is_over and self.wire is not None:
            self.wire.leave()

    def stop(self) -> None:
        """Do nothing more."""
        for task in list(self._tasks):
            task.cancel()

    # What the wire tells

    def hear(self, frame: Body, via: str = "") -> None:
        """Take a frame."""
        method = frame.get("method")
        if method is not None and "id" in frame:
            self._keep(asyncio.ensure_future(self._answer(frame, via)))
        elif method is None:
            asked = self._waiting.pop(key_of(frame.get("id")), None)
            if asked is None:
                return
            self._see_link(str((frame.get("error") or {}).get("message")))
            self._settle(key_of(frame.get("id")), frame)
            if asked["method"] == "server/discover":
                self._discovered.set()
            elif asked["method"] == "initialize":
                if "result" not in frame and self.plan.manner == "stubborn":
                    self._opened.set()
                    return
                if "result" not in frame and self.visit is not None and self._tries < _TRIES:
                    self._tries += 1
                    self._keep(asyncio.ensure_future(self._open_later()))
                    return
                if "result" not in frame:
                    self._end()
                    return
                self._say(notification("notifications/initialized"))
                self._opened.set()
            elif isinstance(said := frame.get("result"), dict) and said.get("resultType") == "input_required":
                self._keep(asyncio.ensure_future(self._come_back(asked, said)))
            elif (task := task_of(asked, frame.get("result"))) is not None and not self.done.is_set():
                self._keep(asyncio.ensure_future(follow(self, asked, task)))
            self._see()

    def _see_link(self, text: str) -> None:
        """Have who is behind it see a link, if there is one in what was said."""
        found = re.search(r"http\S*token=[^\s,]*", text)
        if found is not None and self.visit is not None:
            self.visit(found[0])

    def refuse(self, key: Any) -> None:
        """A request was refused, or its answer was lost."""
        asked = self._waiting.pop(key_of(key), None)
        self._settle(key_of(key), None)
        if asked is not None and asked["method"] == "initialize":
            self._end()
        self._see()

    def _settle(self, key: tuple[str, Any], frame: Body | None) -> None:
        waiting = self._answers.pop(key, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(frame)

    def waits_for(self, key: Any) -> bool:
        """Whether a request is not answered yet."""
        return key_of(key) in self._waiting

    def over(self, reason: str) -> None:
        """The connection is gone."""
        self._end()

    def _end(self) -> None:
        self.is_over = True
        self.done.set()
        self.stop()

    def _see(self) -> None:
        """See whether there is anything left to wait for."""
        if not [key for key in self._waiting if key not in self._given_up] and not self._tasks:
            self.done.set()

    # What it does

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not self._tasks:
            self._see()

    def _say(self, frame: Any, via: str = "") -> None:
        if self._gathered is not None:
            self._gathered.append(frame)
        elif not self.is_over and self.wire is not None:
            self.wire.say(frame, via)

    def _open(self) -> None:
        if self.is_stateless:
            self._opened.set()
            return
        info = {"name": self.name, "version": "1"}
        has = self._declare(self.plan.has)
        if self.plan.manner == "unsure" and not self._last:
            self._keep(asyncio.ensure_future(self._discover()))
            return
        self._ask("initialize", {"protocolVersion": self.plan.revision, "capabilities": has, "clientInfo": info})
        if self.plan.manner == "hasty":
            self._opened.set()

    def _declare(self, kinds: list[str]) -> Body:
        """Say what it can be asked; who shows links, says so."""
        found: Body = {name: {} for name in kinds}
        if self.visit is not None and self.plan.visits and "elicitation" in found:
            found["elicitation"] = {"form": {}, "url": {}} if self.plan.revision >= SINCE else {}
        return found

    async def _open_later(self) -> None:
        """Open a session again: by then, somebody may have signed in."""
        await asyncio.sleep(_AGAIN_S)
        self._open()

    async def _discover(self) -> None:
        """Ask what the server is, as in the newest revision, and open a session when that has taken long enough."""
        has: Body = {name: {} for name in self.plan.has}
        meta = {f"{META}protocolVersion": PER_REQUEST, f"{META}clientCapabilities": has}
        self._ask("server/discover", {"_meta": {**meta, f"{META}clientInfo": {"name": self.name, "version": "1"}}})
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._discovered.wait(), _PATIENCE_S)
        self._open()

    def _ask(self, method: str, params: Body, act: int | None = None) -> None:
        self._last += 1
        key: Any = f"id {self._last}" if self.plan.manner == "odd" else self._last
        if self._free_ids and method != "initialize":
            key = self._free_ids.pop()
        if self.is_stateless:
            has = self._declare(self._has) | ({"extensions": {TASKS: {}}} if self.plan.tasks else {})
            meta = {f"{META}protocolVersion": PER_REQUEST, f"{META}clientCapabilities": has}
            info = {f"{META}clientInfo": {"name": self.name, "version": "1"}}
            params = {**params, "_meta": {**(params.get("_meta") or {}), **meta, **info}}
        frame = request(key, method, params)
        self._waiting[key_of(key)] = frame
        if act is not None:
            self._keys[act] = key
        self._say(frame)

    async def ask(self, method: str, params: Body) -> Body | None:
        """Ask something, and give the answer; None where it was refused or got lost."""
        self._ask(method, params)
        key = next(reversed(self._waiting))
        waiting = self._answers[key] = asyncio.get_running_loop().create_future()
        answer: Body | None = None if self.is_over else await waiting
        return answer

    async def _act(self) -> None:
        await self._opened.wait()
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, act in enumerate(self.plan.acts):
            wait_s = began + act["at"] - loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            if self.is_over:
                return
            if "array" in act and self._gathered is None:
                self._gathered = []
            await self._do(act, act.get("n", number))
            following = self.plan.acts[number + 1 : number + 2]
            if self._gathered is not None and [one.get("array") for one in following] != [act["array"]]:
                frames, self._gathered = self._gathered, None
                self._say(frames)

    async def _do(self, act: Act, number: int) -> None:
        mark = secret(self.name, number)
        tool = act.get("server", "s0")
        self._has = act.get("has", self._has)
        match act["do"]:
            case "call":
                # Progress is named like the id: tokens of different clients are the same, as in life.
                token = self._free_ids[-1] if self._free_ids else self._last + 1
                meta: Body = {"_meta": {"progressToken": token}} if act.get("progress") else {}
                if self.is_stateless and act.get("level"):
                    meta.setdefault("_meta", {})[f"{META}logLevel"] = act["level"]
                arguments = {"secret": mark, "steps": act["steps"]}
                if "follow" in act:
                    arguments["follow"] = act["follow"]
                if "follow" in act and self.plan.tasks and self.plan.revision == SINCE:
                    meta["task"] = {"ttl": 300_000}
                self._ask("tools/call", {"name": f"{tool}_a", "arguments": arguments, **meta}, number)
            case "list":
                self._ask(f"{act['what']}/list", {"cursor": act["cursor"]} if "cursor" in act else {}, number)
            case "read":
                self._ask("resources/read", {"uri": f"world://{tool}/{mark}"}, number)
            case "prompt":
                self._ask("prompts/get", {"name": f"{tool}_p", "arguments": {"x": mark}}, number)
            case "complete":
                ref = {"type": "ref/prompt", "name": f"{tool}_p"}
                self._ask("completion/complete", {"ref": ref, "argument": {"name": "x", "value": mark}}, number)
            case "ping" if not self.is_stateless:
                self._ask("ping", {}, number)
            case "level" if not self.is_stateless:
                self._ask("logging/setLevel", {"level": act["level"]}, number)
            case "subscribe" | "unsubscribe" if not self.is_stateless:
                mark = "common" if act.get("common") else secret(self.name, act.get("of", number))
                self._ask(f"resources/{act['do']}", {"uri": f"world://{tool}/{mark}"}, number)
            case "subscribe":
                wants = {"toolsListChanged": True, "resourceSubscriptions": [f"world://{tool}/{mark}"]}
                self._ask("subscriptions/listen", {"notifications": wants}, number)
                self._given_up.add(key_of(self._keys[number]))  # it is answered when it ends
            case "cancel":
                self._cancel(act["of"])
            case "take":
                self._take(act["method"])
            case "leave":
                assert self.wire is not None
                self.wire.leave()
            case "cut":
                assert self.wire is not None
                self.wire.cut()
                self._end()
            case "break" if isinstance(self.wire, Resuming):
                self.wire.break_streams()
            case "stall":
                self._keep(asyncio.ensure_future(self._stall(act["for"])))
            case "junk":
                self._say_junk(act["which"])
            case "odd":
                key = next((one["id"] for one in reversed(self._gathered or []) if "id" in one), None)
                self._say({"jsonrpc": "2.0", "id": key})
            case "roots" if not self.is_stateless and "roots" in self.plan.has:
                self._say(notification("notifications/roots/list_changed"))

    def _cancel(self, act: int) -> None:
        key = self._keys.get(act)
        if key is not None and key_of(key) in self._waiting:
            self._given_up.add(key_of(key))
            self._say(notification("notifications/cancelled", {"requestId": key, "reason": "no more"}))
            if self.plan.manner == "again":
                self._free_ids.append(key)
                self._waiting.pop(key_of(key))
                self._given_up.discard(key_of(key))
            self._see()

    def _take(self, method: str) -> None:
        """Ask for the latest task that somebody else has been told of."""
        for event in reversed(self._record.events):
            if event.is_heard and event.peer.startswith("c") and event.peer != self.name:
                task = task_of({"method": "tools/call"}, event.frame.get("result"))
                if task is not None and isinstance(task.get("taskId"), str) and not self._must_guess(task["taskId"]):
                    answers: Body = {"inputResponses": {}} if method == "tasks/update" else {}
                    self._ask(method, {"taskId": task["taskId"], **answers})
                    return

    def _must_guess(self, name: str) -> bool:
        """Whether an id is a server's own, passed on as it is: such a server has ids that nobody can guess."""
        run = name.partition("task-")[2].rpartition("-")[0]
        return self.is_stateless and self._record.revisions.get(run) == PER_REQUEST

    async def _stall(self, for_s: float) -> None:
        assert self.wire is not None
        self.wire.stall(True)
        await asyncio.sleep(for_s)
        self.wire.stall(False)

    def _say_junk(self, which: int) -> None:
        junk = _JUNK[which % 7 % len(_JUNK)]
        assert self.wire is not None
        if isinstance(junk, bytes):
            self.wire.write_raw(junk)
        elif which % 7 == 6:  # an answer to what somebody else may have been asked
            self._say(result(which // 7, {"guessed": self.name, "roots": [], "action": "decline"}))
        else:
            self._say(junk)

    # What it is asked

    async def _answer(self, frame: Body, via: str) -> None:
        method, params = frame["method"], frame.get("params") or {}
        token = (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            self._say(notification("notifications/progress", {"progressToken": token, "progress": 1}), via)
        self._see_link(str(params.get("url")))
        times = await self.consider(method, text_of(method, params))
        for _ in range(times):
            self._say(self._reply(frame["id"], method, params), via)

    async def consider(self, method: str, text: str) -> int:
        """Take the time that it takes to answer; say how often it is done."""
        chance = chance_of(self._seed, self.name, method, text.partition(" nonce")[0])
        if self.plan.manner == "mute" and chance.random() < 0.5:
            return 0
        if self.plan.manner == "slow" or chance.random() < 0.2:
            await asyncio.sleep(chance.choice((0.1, 1.0, 7.0, 40.0)))
        return 2 if self.plan.manner == "twice" and chance.random() < 0.5 else 1

    def _reply(self, key: Any, method: str, params: Body) -> Body:
        kind = method.partition("/")[0]
        if method != "ping" and kind not in self.plan.has:
            return error(key, -32601, f"{self.name} has no {method}")
        return result(key, self._answer_of(method, params))

    def _answer_of(self, method: str, params: Body) -> Body:
        if params.get("mode") == "url":
            return {"action": "decline" if self.plan.visits == "declines" else "accept"}
        return answer(method, text_of(method, params), self.name)

    async def _come_back(self, asked: Body, said: Body) -> None:
        """Answer what a call without a session wants to know, and send it again."""
        answers: Body = {}
        for name, one in (said.get("inputRequests") or {}).items():
            method, params = one["method"], one.get("params") or {}
            if not await self.consider(method, text_of(method, params)):
                return
            self._see_link(str(params.get("url")))
            answers[name] = self._answer_of(method, params)
        state = {"requestState": said["requestState"]} if "requestState" in said else {}
        act = next((act for act, key in self._keys.items() if key == asked["id"]), None)
        again = {name: value for name, value in asked["params"].items() if name not in ("requestState",)}
        self._ask(asked["method"], {**again, **state, "inputResponses": answers}, act)
