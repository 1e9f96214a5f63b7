"""The servers of a world: one run of one server, which does what the arguments of each call tell it to.

Steps of a call, in order:

| step | what happens |
|---|---|
| `["wait", s]` | nothing for so many seconds |
| `["progress"]`, `["log", level]` | a notification about the call; a log message may be made long: `["log", level, bytes]` |
| `["ask", kind]` | the client is asked (`sampling`, `elicitation`, `roots`, `ping`), and its answer waited for; with several kinds, all at once |
| `["ask-on", kind]` | the same, and nobody waits |
| `["ask-same", kind]` | the same, under the id of what was asked last: such servers are there |
| `["answer", how]` | the answer: `text`, `error`, `failed` (isError), `structured`, `both` (result and error), `twice`, `never`, `wrong-id` |
| `["withdraw"]` | what was asked last, and is not answered, is taken back |
| `["updated"]` | whoever has subscribed to a resource is told that it has changed |
| `["changed"]` | clients are told that the list of tools has changed |
| `["die"]` | the server is gone |
| `["stderr", n]` | if it is a process: so many lines that are no frames |
| `["closes"]`, `["stops reading"]` | the same: it closes its output, or reads no more, and lives on |

What stands after `answer` is done all the same: a late word.
"""  # noqa: E501

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from dragoman_spec import HANDSHAKE_REVISIONS
from tests.world.peers.server_tasks import Tasks
from tests.world.peers.words import (
    KEEPING,
    KEPT,
    META,
    PER_REQUEST,
    RELATED,
    chance_of,
    error,
    key_of,
    nonce,
    notification,
    question,
    request,
    result,
)
from tests.world.plan import ServerPlan
from tests.world.record import Body, Record
from tests.world.wires import OfProcess, Wire

PAGES = 2
"""How many entries a page of a list has."""


class Server:
    """One run of a server.

    Args:
        plan: What it is.
        run: Which run of it this is, from 1.
        seed: Of the world.
        record: Where it is noted what it says and hears.

    Attributes:
        wire: Its way to the proxy.
        is_over: Whether it is gone.
        is_silent: Whether it is there, and says nothing any more.
        is_for_all: Whether it serves requests of several clients, whose ids may be the same.
        said: How much it said about each call, by its secret; a call that comes back goes on counting.
        capabilities: Of the client, as it declared them when the session was opened.
    """

    def __init__(self, plan: ServerPlan, run: int, seed: int, record: Record) -> None:
        self.plan = plan
        self.name = f"{plan.name}.{run}"
        self.wire: Wire | None = None
        self.is_over = self.is_silent = False
        self.is_for_all = False
        self._record = record
        self._chance = chance_of(seed, self.name)
        self._asked = 0
        self._latest: Any = 0  # the id of the latest question
        self._questions: dict[tuple[str, Any], asyncio.Future[Body]] = {}
        self._calls: dict[tuple[str, tuple[str, Any]], asyncio.Task[None]] = {}  # by what they came on, and id
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._subscribed: list[str] = []
        self._listens: dict[tuple[str, Any], Body] = {}  # what is listened to, by what it came on, and id
        self.said: Counter[str] = Counter()  # how often something was said about a call, in all its rounds
        self.capabilities: Body = {}
        self._its_tasks = Tasks(self, Call)

    # What the wire tells

    def hear(self, frame: Body, via: str = "") -> None:
        """Take a frame."""
        if self.is_over:
            return
        method, key = frame.get("method"), frame.get("id")
        if method is None:
            waiting = self._questions.pop(key_of(key), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(frame)
        elif "id" in frame:
            self._start(self._serve(frame, via), (via if self.is_for_all else "", key_of(key)))
        elif method == "notifications/initialized" and self.plan.manner == "eager":
            self._start(self._ask_early(), ("", ("early", 0)))
        elif method == "notifications/cancelled" and self._ends_listen(via, frame):
            pass
        elif method == "notifications/cancelled" and self.plan.manner != "goes-on":
            task = self._calls.pop(("", key_of((frame.get("params") or {}).get("requestId"))), None)
            if task is not None:
                task.cancel()

    async def _ask_early(self) -> None:
        """Ask before there is any call, and take it back, perhaps."""
        self.ask(self._chance.choice(("roots", "roots", "roots", "sampling", "elicitation")), "", "")
        await asyncio.sleep(self._chance.choice((0.0, 0.01, 0.5, 3.0, 8.0)))
        if self._chance.random() < 0.6:
            self.withdraw()

    def refuse(self, key: Any) -> None: ...

    def waits_for(self, key: Any) -> bool:
        return False

    def _ends_listen(self, via: str, frame: Body) -> bool:
        key = (frame.get("params") or {}).get("requestId")
        found = next((one for one in self._listens if key_of(one[1]) == key_of(key)), None)
        return found is not None and self._listens.pop(found) is not None

    def drop(self, key: Any, via: str) -> None:
        """Nobody waits for the answer to a request."""
        self._listens.pop((via, key), None)
        task = self._calls.pop((via, key_of(key)), None)
        if task is not None and self.plan.manner != "goes-on":
            task.cancel()

    def over(self, reason: str) -> None:
        """The connection is gone, and with it this run."""
        self.stop()

    def die(self) -> None:
        """Be gone at once."""
        if not self.is_over and self.wire is not None:
            self._record.add(self.name, "dies")
            self.stop()
            self.wire.cut()

    def of_process(self, does: str, *how: Any) -> None:
        """Do what only a process can, if this is one."""
        if isinstance(self.wire, OfProcess):
            getattr(self.wire, does)(*how)

    def fall_silent(self) -> None:
        """Say nothing more, and stay."""
        if not self.is_over:
            self._record.add(self.name, "falls silent")
            self.is_silent = True

    def stop(self) -> None:
        """Do nothing more."""
        self.is_over = True
        for task in list(self._tasks):
            task.cancel()

    # What it does

    def _start(self, work: Any, key: tuple[str, tuple[str, Any]]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        self._calls[key] = task
        task.add_done_callback(self._tasks.pop)

    def note(self, rule: str, text: str) -> None:
        """Note that a rule was broken."""
        self._record.note(rule, text)

    def say(self, frame: Body, via: str = "") -> None:
        """Send a frame, unless it is gone or keeps silent."""
        if not self.is_over and not self.is_silent and self.wire is not None:
            self.wire.say(frame, via)

    async def _serve(self, frame: Body, via: str) -> None:
        method, key, params = frame["method"], frame["id"], frame.get("params") or {}
        if method in ("initialize", "server/discover") and self.plan.start_s:
            await asyncio.sleep(self.plan.start_s)
        if self.plan.manner == "slow":
            await asyncio.sleep(self._chance.uniform(0, 3))
        if method == "subscriptions/listen" and self.revision == PER_REQUEST:
            self._listen(key, params, via)
        elif method == "tools/call" and isinstance(params.get("arguments"), dict):
            await self._call(frame, params, via)
        else:
            is_of_task = method.startswith("tasks/") and self.plan.tasks
            said = await self._its_tasks.serve(method, params, via) if is_of_task else self._result(method, params)
            if isinstance(said.get("error"), int):
                self.say(error(key, said["error"], f"{self.plan.name} has no {method}"), via)
            else:
                self.say(result(key, self._complete(said, method, params)), via)

    def _listen(self, key: Any, params: Body, via: str) -> None:
        wants = params.get("notifications") or {}
        self._listens[via, key] = wants
        meta = {"_meta": {f"{META}subscriptionId": key}}
        self.say(notification("notifications/subscriptions/acknowledged", {"notifications": wants, **meta}), via)

    def _result(self, method: str, params: Body) -> Body:
        """Give the result to everything but a call."""
        match method:
            case "initialize" if self._handshakes and self._record.revisions.get(self.name) != PER_REQUEST:
                return self._open(params)
            case "initialize":
                return {"error": -32022}
            case "server/discover" if PER_REQUEST in self.plan.revisions and not self._is_in_session:
                self._record.revisions[self.name] = PER_REQUEST
                return {"supportedVersions": [PER_REQUEST], "capabilities": self._offer(PER_REQUEST)}
            case "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list":
                return self._page(method, params)
            case "prompts/get":
                said = f"{self.plan.name} on {params.get('arguments')}"
                return {"messages": [{"role": "user", "content": {"type": "text", "text": said}}]}
            case "resources/read":
                return {"contents": [{"uri": params["uri"], "text": f"{self.plan.name} has {params['uri']}"}]}
            case "completion/complete":
                return {"completion": {"values": [f"{params['argument']['value']} of {self.plan.name}"]}}
            case "resources/subscribe" if self.plan.manner == "declines" and self._chance.random() < 0.6:
                return {"error": -32002}
            case "logging/setLevel" if self.plan.manner == "declines" and self._chance.random() < 0.4:
                return {"error": -32603}
            case "resources/subscribe":
                self._subscribed.append(params["uri"])
                return {}
            case "resources/unsubscribe":
                self._subscribed = [uri for uri in self._subscribed if uri != params["uri"]]
                return {}
            case "ping" | "logging/setLevel":
                return {}
        return {"error": -32601}

    def _open(self, params: Body) -> Body:
        if self.plan.manner == "garbles":
            return {"protocolVersion": 7, "capabilities": [], "serverInfo": self.plan.name}
        if self.plan.manner == "refuses":
            return {"error": -32602}
        asked = params.get("protocolVersion")
        revision = asked if asked in self._handshakes else self._handshakes[-1]
        self._record.revisions[self.name] = revision
        self.capabilities = params.get("capabilities") or {}
        info = {"name": self.plan.name, "version": "1"}
        return {"protocolVersion": revision, "capabilities": self._offer(revision), "serverInfo": info}

    @property
    def _handshakes(self) -> list[str]:
        return [revision for revision in self.plan.revisions if revision in HANDSHAKE_REVISIONS]

    @property
    def _is_in_session(self) -> bool:
        """Whether a session was opened first: a run of a server speaks in the way in which it was spoken to first."""
        return self._record.revisions.get(self.name, PER_REQUEST) != PER_REQUEST

    @property
    def revision(self) -> str:
        """What this run speaks."""
        return self._record.revisions.get(self.name, PER_REQUEST)

    def _offer(self, revision: str) -> Body:
        offer: Body = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True}, "logging": {}}
        offer |= self._its_tasks.offer(revision)
        return offer if revision == HANDSHAKE_REVISIONS[0] else {**offer, "completions": {}}

    def _complete(self, said: Body, method: str, params: Body) -> Body:
        if self.revision != PER_REQUEST or method == "initialize":
            return said
        kept = KEPT if method in KEEPING or method.endswith("/list") else {}
        return {"resultType": "complete", **said, **kept}

    def _page(self, method: str, params: Body) -> Body:
        """Give one page of a list; everybody's tools have names of their own."""
        what, runs = self.plan.name, self._its_tasks.describe(self.revision)
        lists: dict[str, tuple[str, list[Body]]] = {
            "tools/list": (
                "tools",
                [{"name": f"{what}_{n}", "inputSchema": {"type": "object"}, **runs} for n in "abc"],
            ),
            "prompts/list": ("prompts", [{"name": f"{what}_p"}]),
            "resources/list": ("resources", [{"uri": f"world://{what}/r", "name": "r"}]),
            "resources/templates/list": (
                "resourceTemplates",
                [{"uriTemplate": f"world://{what}/{{x}}", "name": "x"}],
            ),
        }
        member, entries = lists[method]
        start = int(params.get("cursor") or 0)
        said: Body = {member: entries[start : start + PAGES]}
        return said | ({"nextCursor": str(start + PAGES)} if start + PAGES < len(entries) else {})

    # A call

    async def _call(self, frame: Body, params: Body, via: str) -> None:
        """Do the steps of a call; a call that comes back with answers goes on where it was."""
        script = params["arguments"]
        job = self._its_tasks.begin(frame["id"], params, via)
        if job is not None:
            job.work = asyncio.current_task()
            self._calls.pop((via if self.is_for_all else "", key_of(frame["id"])), None)
            await job.run(script.get("steps", []))
            return
        first = int(params.get("requestState") or 0)
        call = Call(self, frame["id"], script.get("secret", ""), params.get("_meta") or {}, via)
        for number, step in enumerate(script.get("steps", [["answer", "text"]])):
            if number >= first and await call.take(step, number):
                return

    def ask(
        self, kind: str, text: str, via: str, again: bool = False, related: str = ""
    ) -> asyncio.Future[Body] | None:
        """Ask the client, if it said that it can be asked."""
        if kind != "ping" and kind not in self.capabilities and self.plan.manner != "rude":
            return None
        if kind == "elicitation" and self.revision < "2025-06-18":
            return None
        self._asked += 1
        if not again:
            self._latest = f"q{self._asked}" if self.plan.manner == "words" else self._asked
        key = self._latest
        waiting: asyncio.Future[Body] = asyncio.get_running_loop().create_future()
        if not again:
            self._questions[key_of(key)] = waiting
        method, params = question(kind, f"{text} {nonce(self.name, self._asked)}")
        if self.plan.manner == "words" and params:
            params["_meta"] = {"progressToken": f"token {key}"}
        if related:
            params = {**params, "_meta": {**params.get("_meta", {}), RELATED: {"taskId": related}}}
        self.say(request(key, method, params), via)
        return waiting

    def withdraw(self) -> None:
        """Take back what was asked last and is not answered."""
        for key, waiting in reversed(self._questions.items()):
            if not waiting.done() and self.revision != PER_REQUEST:
                del self._questions[key]
                waiting.set_result({})
                self.say(notification("notifications/cancelled", {"requestId": key[1]}))
                return

    def tell(self, method: str, params: Body) -> None:
        """Say something that is about no call, where the revision has a way to say it."""
        if self.revision != PER_REQUEST:
            self.say(notification(method, params))
        for stream in list(self._listens):
            wants = self._listens[stream]
            if method != "notifications/resources/updated" or params["uri"] in wants.get("resourceSubscriptions", ()):
                meta = {"_meta": {f"{META}subscriptionId": stream[1]}}
                self.say(notification(method, {**params, **meta}), stream[0])

    def tell_updates(self) -> None:
        """Say that every resource has changed that somebody has subscribed to."""
        wanted = [uri for wants in self._listens.values() for uri in wants.get("resourceSubscriptions", ())]
        for uri in dict.fromkeys([*self._subscribed, *wanted]):
            self.tell("notifications/resources/updated", {"uri": uri})

    def next_nonce(self) -> str:
        """Give a number for a question that goes out in a result."""
        self._asked += 1
        return nonce(self.name, self._asked)


class Call:
    """One call at a server."""

    def __init__(self, server: Server, key: Any, secret: str, meta: Body, via: str) -> None:
        self._server = server
        self._key = key
        self._secret = secret
        self._meta = meta
        self._via = via
        self._chance = chance_of(server.name, secret)
        self._steps: dict[str, Callable[..., Any]] = {
            "progress": self._progress,
            "log": self._log,
            "answer": self._answer,
            "ask-on": lambda kind: self._server.ask(kind, self._secret, self._via),
            "ask-same": lambda kind: self._server.ask(kind, self._secret, self._via, again=True),
            "withdraw": server.withdraw,
            "updated": server.tell_updates,
            "changed": lambda: server.tell("notifications/tools/list_changed", {}),
            "die": server.die,
            "stderr": lambda lines=1: server.of_process("write_stderr", f"{server.name} on {secret}", lines),
            "closes": lambda: server.of_process("close_output"),
            "stops reading": lambda: server.of_process("stall", True),
        }

    async def take(self, step: list[Any], number: int) -> bool:
        """Do a step; say whether the call has nothing more to do for now."""
        kind, *how = step
        if kind == "wait":
            await asyncio.sleep(how[0])
        elif kind == "ask":
            if self._server.revision == PER_REQUEST:
                return self._want(how, number)
            put = [self._server.ask(kind, self._secret, self._via) for kind in how]
            await asyncio.gather(*(waiting for waiting in put if waiting is not None))
        else:
            self._steps[kind](*how)
        return False

    def may_ask(self, kind: str) -> bool:
        """Whether the request says that its client can be asked."""
        return kind in self._meta.get(f"{META}clientCapabilities", {})

    def _want(self, kinds: Sequence[str], number: int) -> bool:
        """Answer with questions, those that the request says its client can be asked."""
        asked: Body = {}
        for kind in kinds:
            if self.may_ask(kind):
                method, params = question(kind, f"{self._secret} {self._server.next_nonce()}")
                name = f"q{len(asked)}" if asked else "q"
                asked[name] = {"method": method, **({"params": params} if params else {})}
        if not asked:
            return False
        state = {"inputRequests": asked, "requestState": str(number + 1)}
        self._server.say(result(self._key, {"resultType": "input_required", **state}), self._via)
        return True

    def _text(self) -> str:
        said = self._server.said
        said[self._secret] += 1
        return f"{self._secret} #{said[self._secret]} of {self._server.name}"

    def _progress(self) -> None:
        token = self._meta.get("progressToken")
        if token is None:
            return
        text = self._text()
        says = {} if self._server.revision == HANDSHAKE_REVISIONS[0] else {"message": text}
        params = {"progressToken": token, "progress": self._server.said[self._secret], **says}
        self._server.say(notification("notifications/progress", params), self._via)

    def _log(self, level: str, size: int = 0) -> None:
        if self._server.revision == PER_REQUEST and f"{META}logLevel" not in self._meta:
            return
        more = {"logger": "x" * size} if size else {}
        self._server.say(
            notification("notifications/message", {"level": level, "data": self._text()} | more), self._via
        )

    def _answer(self, how: str) -> None:
        said: Body = {"content": [{"type": "text", "text": self._text()}]}
        if self._server.revision == PER_REQUEST:
            said["resultType"] = "complete"
        if how == "structured" and self._server.revision >= "2025-06-18":
            said["structuredContent"] = {"said": self._secret}
        if how == "failed":
            said["isError"] = True
        match how:
            case "never":
                return
            case "error":
                self._server.say(error(self._key, -32000, self._text()), self._via)
                return
            case "both":
                both = {**result(self._key, said), "error": {"code": -32000, "message": self._text()}}
                self._server.say(both, self._via)
                return
            case "wrong-id":
                self._server.say(result(f"{self._key}?", said), self._via)
            case "twice":
                self._server.say(result(self._key, said), self._via)
        self._server.say(result(self._key, said), self._via)
