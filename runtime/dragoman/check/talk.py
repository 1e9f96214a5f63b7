"""Talking to a server under check: requests in the manner of one revision, straight to its transport.

Lives here: ids, metadata and headers of what we say, and how long an answer is waited for. Must not: judge answers
(`listening`; what a rule wants of one, whoever asks says), or choose what to ask (`visit`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Final

import dragoman_spec
from dragoman.check.findings import FindingLog
from dragoman.check.listening import CheckedRequest, CheckListener
from dragoman.check.plan import VisitPlan
from dragoman.core.codes import METHOD_NOT_FOUND
from dragoman.core.envelope import Frame, error_frame, result_frame
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import PING
from dragoman.core.rules.headers import make_headers
from dragoman.core.rules.metadata import Metadata, stamp
from dragoman.transports.base import Transport

PROGRESS_MOST: Final = 30
"""How many times as long as without progress an answer may take with it."""

UNANSWERED_MOST: Final = 3
"""After how many requests without an answer it is asked whether the server is still there."""

EVERYDAY: Final = frozenset({"tools/list", "resources/list", "prompts/list", PING, "server/discover"})
"""What can be asked again without params."""


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """What a request came to.

    Attributes:
        about: What was asked, in words.
        body: The whole response; None where there was none.
        reason: Why there was none.
        is_silence: Whether it is only that nothing came in time.
    """

    about: str
    body: dict[str, Any] | None
    reason: str = ""
    is_silence: bool = False

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, if it is one."""
        found = None if self.body is None else self.body.get("result")
        return found if isinstance(found, dict) else None

    @property
    def error(self) -> dict[str, Any] | None:
        """The error, if it is one."""
        found = None if self.body is None else self.body.get("error")
        return found if isinstance(found, dict) else None

    @property
    def code(self) -> int | None:
        """The code of the error, if it is one."""
        found = None if self.error is None else self.error.get("code")
        return found if isinstance(found, int) else None

    @property
    def told(self) -> str:
        """What it was, for a person."""
        if self.error is not None:
            said = " ".join(str(self.error.get("message")).split())
            return f"the error {self.error.get('code')}: {said[:80]}"
        if self.result is not None and self.result.get("isError") is True:
            return "a result that says isError"
        return "no answer" if self.body is None else "a result"


class Talk:
    """A conversation with one server in one revision.

    Args:
        transport: To the server, not started.
        findings: Where rules that are broken are written down.
        plan: How long an answer may take, and who is told what is asked.

    Attributes:
        listener: Who hears what it says.
        patience: How long it is waited for.
        methods: Those of the revision.
        codes: The error codes that the revision has a name for, by their names.
        asked: How many requests were sent.
        capabilities: What the server declared.
        server: How it names itself.
        is_deaf: Whether it has stopped to answer, so that nothing more is asked.
    """

    def __init__(self, transport: Transport, findings: FindingLog, plan: VisitPlan) -> None:
        self.findings = findings
        self.revision = findings.revision
        self.facts = dragoman_spec.facts(findings.revision)
        self.patience = plan.patience
        self.listener = CheckListener(findings, self._answer, plan.patience)
        self.asked = 0
        self.capabilities: Mapping[str, Any] = {}
        self.server = ""
        self.is_deaf = False
        self._on_step = plan.on_step
        self._unanswered = 0
        self._is_doubtful = False
        self._answered_method: str | None = None
        package = dragoman_spec.load(findings.revision)
        self.methods: Mapping[str, Any] = package.METHODS
        self.codes: Mapping[str, int] = {name: code for code, name in package.ERROR_CODES.items()}
        self._transport = transport
        self._metadata = Metadata(self.revision, {}, client_info()) if self.facts.era == "per_request" else None

    @property
    def is_over(self) -> bool:
        """Whether the server is gone."""
        return self.listener.over is not None

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        about: str = "",
        key: bytes | None = None,
        token: str | None = None,
        patience_s: float | None = None,
        metadata: Metadata | None = None,
        stamped: bool = True,
        quietly: bool = False,
        repeats: bool = False,
    ) -> CheckedAnswer:
        """Ask, and wait for the answer.

        Args:
            method: Of the request.
            params: Of the request, without metadata.
            about: What it is, for a person; the method if nothing is said.
            key: Its id; a fresh number if none is given.
            token: Its progress token.
            patience_s: How long to wait; as the conversation says, if nothing is said.
            metadata: What it says of the client in a revision without a handshake; the usual if nothing is said.
            stamped: Whether it says that at all.
            quietly: Whether no answer is nothing to tell of.
            repeats: Whether the same was asked before.
        """
        about = about or method
        if self.is_over or self.is_deaf:
            return CheckedAnswer(about, None)
        self._on_step(self.revision, about)
        self.asked += 1
        key = key or b"%d" % self.asked
        asked = CheckedRequest(method, about, asyncio.get_running_loop().create_future(), token, repeats=repeats)
        self.listener.expect(key, asked)
        self._transport.send([self._write(key, method, params, token, metadata or self._metadata, stamped)])
        if self.listener.is_late:
            self._is_doubtful, self._unanswered, self.listener.is_late = False, 0, False
        waits_s = patience_s or self.patience.for_answer(self._is_doubtful)
        body = await self._wait(asked, waits_s)
        reply = CheckedAnswer(about, body, asked.failure, not asked.answer.done())
        if reply.is_silence:
            reply = replace(reply, reason=f"nothing within {waits_s:g} s")
            self.listener.give_up(key, self.patience.timeout_s - waits_s)
            if not quietly:
                self.findings.note("answered", f"the request {about}", "a response", reply.reason)
        elif body is None and self.is_over:
            reply = replace(reply, reason=str(self.listener.over))
            if not quietly:
                self.findings.note("alive", f"the request {about}", "a response", reply.reason)
        if patience_s is None:
            await self._look_for_life(method, is_answered=asked.is_heard)
        return reply

    async def _look_for_life(self, method: str, is_answered: bool) -> None:
        """Where several requests in a row came to nothing, ask what was answered before; if in vain, ask no more."""
        if is_answered:
            self._unanswered = 0
            if method in EVERYDAY:
                self._answered_method = method
            return
        self._is_doubtful = True
        self._unanswered += 1
        if self._unanswered < UNANSWERED_MOST or self.is_over:
            return
        self._unanswered = 0
        usual = PING if PING in self.facts.local else self.facts.lifecycle["discover"]
        method = self._answered_method or usual
        waits_s = self.patience.for_answer(is_doubtful=True)
        about = f"{method}, after {UNANSWERED_MOST} requests without an answer"
        reply = await self.request(method, about=about, patience_s=waits_s, quietly=True, repeats=True)
        if reply.body is None and not self.is_over and not self.listener.is_late:
            self.is_deaf = True
            self.patience.note_deafness()
            found = f"nothing within {waits_s:g} s, so that nothing more was asked"
            self.findings.note("answered", f"the request {about}", "a response", found)

    def note(self, rule: str, reply: CheckedAnswer, expected: str) -> None:
        """Write down that an answer breaks a rule."""
        self.findings.note(rule, f"the answer to {reply.about}", expected, reply.told)

    def expect_error(self, rule: str, reply: CheckedAnswer, *codes: int) -> None:
        """Write down that a rule is broken, if there is an answer and it is not an error with one of these codes."""
        if reply.body is not None and reply.code not in codes:
            self.note(rule, reply, f"the error {' or '.join(map(str, codes))}")

    def send(self, frame: Frame) -> None:
        """Send a frame as it is."""
        if not self.is_over:
            self._transport.send([frame])

    async def _wait(self, asked: CheckedRequest, patience_s: float) -> dict[str, Any] | None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        end = began + patience_s

        def go_on() -> None:
            nonlocal end
            end = min(loop.time() + patience_s, began + patience_s * PROGRESS_MOST)

        asked.on_progress = go_on
        while not asked.answer.done() and (left_s := end - loop.time()) > 0:
            await asyncio.wait([asked.answer], timeout=left_s)
        return asked.answer.result() if asked.answer.done() else None

    def _write(
        self,
        key: bytes,
        method: str,
        params: Mapping[str, Any] | None,
        token: str | None,
        metadata: Metadata | None,
        stamped: bool,
    ) -> Frame:
        said = dict(params or {})
        if metadata is not None and stamped:
            said = stamp(said, metadata)
        if token is not None:
            said["_meta"] = {**said.get("_meta", {}), "progressToken": token}
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": decode(key), "method": method}
        if said or metadata is not None:
            body["params"] = said
        frame = Frame(encode_line(body), "request", key, method)
        if metadata is None:
            return frame
        # They say the revision also of a request that does not.
        return frame._replace(headers=tuple(make_headers({**body, "params": stamp(said, metadata)})))

    def _answer(self, key: bytes, method: str) -> None:
        """Answer a request of the server: a client that has declared nothing can do nothing."""
        if method in self.facts.local:
            answer = result_frame(key, {})
        else:
            answer = error_frame(key, METHOD_NOT_FOUND, f"the client has not declared {method}")
        self._transport.send([answer])


def client_info() -> dict[str, Any]:
    """Return how a check names itself."""
    return {"name": "dragoman-check", "version": version("dragoman")}
