"""The tasks of one run of a server: calls that go on when they have been answered, in the form of its revision.

A task does the steps of its call. What it has come to says whose it is in its `statusMessage`, so that a rule sees from
each frame about a task who may hear it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.world.peers.client_tasks import OVER, SINCE
from tests.world.peers.words import (
    PER_REQUEST,
    RELATED,
    TASKS,
    chance_of,
    nonces_in,
    notification,
    question,
    result,
)
from tests.world.record import Body

if TYPE_CHECKING:
    from tests.world.peers.server import Call, Server


class Tasks:
    """The tasks of a run.

    Args:
        server: Whose they are.
        make_call: Makes what does the steps of a call.
    """

    def __init__(self, server: Server, make_call: Callable[..., Call]) -> None:
        self._server = server
        self._make_call = make_call
        self._jobs: dict[str, Job] = {}

    def offer(self, revision: str) -> Body:
        """Give the capability."""
        if not self._server.plan.tasks or revision < SINCE:
            return {}
        if revision == PER_REQUEST:
            return {"extensions": {TASKS: {}}}
        return {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}

    def describe(self, revision: str) -> Body:
        """Say of a tool whether it runs as a task."""
        support = self._server.plan.tasks
        return {"execution": {"taskSupport": support}} if support and revision == SINCE else {}

    def begin(self, key: Any, params: Body, via: str) -> Job | None:
        """Answer a call with a task, if it is to be one."""
        server, script = self._server, params["arguments"]
        secret, meta = script.get("secret", ""), params.get("_meta") or {}
        if server.revision == PER_REQUEST:
            can = meta.get("io.modelcontextprotocol/clientCapabilities", {}).get("extensions", {})
            wants = TASKS in can and (server.plan.tasks == "required" or chance_of(secret, "task").random() < 0.7)
        else:
            wants = "task" in params
        if not (server.plan.tasks and wants):
            return None
        job = Job(server, f"task-{server.name}-{len(self._jobs) + 1}", secret, meta, via, self._make_call)
        self._jobs[job.name] = job
        told = {"resultType": "task", **job.tell()} if server.revision == PER_REQUEST else {"task": job.tell()}
        server.say(result(key, told), via)
        return job

    async def serve(self, method: str, params: Body, via: str) -> Body:
        """Give the result of a request about a task, or `error`."""
        if method == "tasks/list" and self._server.revision != PER_REQUEST:
            return {"tasks": [job.tell() for job in self._jobs.values()]}
        job = self._jobs.get(str(params.get("taskId")))
        if job is None or (method == "tasks/result" and self._server.revision == PER_REQUEST):
            return {"error": -32602 if job is None else -32601}
        match method:
            case "tasks/get":
                return job.tell(is_whole=True)
            case "tasks/result":
                return await job.wait(via)
            case "tasks/cancel":
                return job.cancel()
            case "tasks/update":
                job.take_answers(params.get("inputResponses") or {})
                return {}
        return {"error": -32601}


class Job:
    """One task, which does the steps of its call; what it says meanwhile is said as of the call."""

    def __init__(
        self, server: Server, name: str, secret: str, meta: Body, via: str, make_call: Callable[..., Call]
    ) -> None:
        self.name = name
        self.status = "working"
        self.work: asyncio.Task[None] | None = None
        self._server = server
        self._secret = secret
        self._payload: Body = {}
        self._asked: dict[str, tuple[Body, asyncio.Future[Any]]] = {}
        self._over = asyncio.Event()
        self._via = via
        self._call = make_call(server, None, secret, meta, via)
        self._tells = chance_of(server.name, name).random() < 0.5

    @property
    def _is_new(self) -> bool:
        return self._server.revision == PER_REQUEST

    def tell(self, is_whole: bool = False) -> Body:
        """Say how it stands."""
        ttl, poll = ("ttlMs", "pollIntervalMs") if self._is_new else ("ttl", "pollInterval")
        times = dict.fromkeys(("createdAt", "lastUpdatedAt"), "2026-11-28T00:00:00Z")
        status = {"status": self.status, "statusMessage": f"{self._secret} is {self.status}"}
        told: Body = {"taskId": self.name, **status, **times, ttl: 600_000, poll: 1000}
        if is_whole and self._is_new:
            asked = {"inputRequests": {key: one for key, (one, _) in self._asked.items()}} if self._asked else {}
            told |= {**self._payload, **asked}
        return told

    async def run(self, steps: list[list[Any]]) -> None:
        """Do the steps."""
        for number, step in enumerate(steps):
            if self._over.is_set():
                return
            if step[0] == "ask":
                await self._ask(step[1])
            elif step[0] == "answer":
                self._end(step[1])
            elif step[0] not in ("progress", "log") or not self._is_new:
                await self._call.take(step, number)
        if not any(step[0] == "answer" for step in steps):
            self._end("text")

    async def _ask(self, kind: str) -> None:
        server = self._server
        if kind == "ping":
            return
        if self._is_new:
            if not self._call.may_ask(kind):
                return
            method, params = question(kind, f"{self._secret} {server.next_nonce()}")
            key, waiting = f"q{len(self._asked)}", asyncio.get_running_loop().create_future()
            self._asked[key] = {"method": method, **({"params": params} if params else {})}, waiting
        else:
            asked = server.ask(kind, self._secret, self._via, related=self.name)
            if asked is None:
                return
            waiting = asked
        self._change("input_required")
        await waiting
        self._change("working")

    def take_answers(self, answers: Body) -> None:
        """Take what the client answers; each question is answered by what it asked."""
        for key, said in answers.items():
            asked, waiting = self._asked.pop(key, ({}, None))
            if waiting is not None:
                if nonces_in(asked) != nonces_in(said):
                    self._server.note("own-rounds", f"{self.name} asked {asked}, and heard {said}")
                waiting.set_result(said)

    def _change(self, status: str) -> None:
        if not self._over.is_set():
            self.status = status
            if status in OVER:
                self._over.set()
            if self._tells and not self._is_new:
                self._server.say(notification("notifications/tasks/status", self.tell()), self._via)

    def _end(self, how: str) -> None:
        said: Body = {"content": [{"type": "text", "text": f"{self._secret} is done by {self._server.name}"}]}
        if self._is_new:
            said["resultType"] = "complete"
        if how == "never" or self._over.is_set():
            return
        if how == "error":
            self._payload = {"error": {"code": -32000, "message": f"{self._secret} failed"}}
        else:
            self._payload = {"result": {**said, **({"isError": True} if how == "failed" else {})}}
        self._change("failed" if how == "error" or (how == "failed" and not self._is_new) else "completed")

    async def wait(self, via: str) -> Body:
        """Give what it has come to, when it has; what is asked meanwhile is asked on the stream of who waits."""
        self._via = via or self._via
        await self._over.wait()
        if "result" in self._payload:
            return {**self._payload["result"], "_meta": {RELATED: {"taskId": self.name}}}
        return {"error": -32000}

    def cancel(self) -> Body:
        """Stop it."""
        if self._over.is_set() and not self._is_new:
            return {"error": -32602}
        if not self._over.is_set() and self._server.plan.manner != "goes-on":
            self._change("cancelled")
            self._asked.clear()
            if self.work is not None:
                self.work.cancel()
        return {} if self._is_new else self.tell()
