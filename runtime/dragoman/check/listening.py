"""Listening to a server: each message is judged as it comes, and answers go to who asked.

Lives here: the receiver at the transport's end; what is wrong with envelopes, ids, capabilities and progress. Must not:
decide what is asked (`visit`), or how (`talk`). Nothing is repaired on the way here, and nothing is let pass.

What is broken is taken for what it was meant to be, wherever that can be told: one defect must not hide the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import dragoman_spec
from dragoman.check.findings import FindingLog
from dragoman.check.heard import HeardResults
from dragoman.check.judging import FrameJudge, find_repeated
from dragoman.check.patience import CheckPatience
from dragoman.core.declared import declares
from dragoman.core.envelope import Frame, Malformed, decoded, key_of, twin_of
from dragoman.core.exact_json import decode, encode
from dragoman.core.lines import Overlong, show
from dragoman.core.methods import LOG, PROGRESS
from dragoman.core.unchecked import find, find_object

NOTICES_MOST: Final = 1000
"""How many of them are kept."""

UNASKED_MOST: Final = 1000
"""How many messages that answer nothing are looked at between two requests of ours."""


@dataclass(slots=True)
class CheckedRequest:
    """A request that is under way.

    Attributes:
        method: Of it.
        about: What it was, in words.
        answer: The whole response; None where there is none.
        token: Its progress token.
        progress: How far it has come.
        on_progress: Called when that is told.
        repeats: Whether the same was asked before: what was wrong with that answer is not told again.
        is_heard: Whether something came that was meant for an answer.
        failure: Why the transport has given it up.
    """

    method: str
    about: str
    answer: asyncio.Future[dict[str, Any] | None]
    token: str | int | None = None
    progress: float | None = None
    on_progress: Callable[[], None] = lambda: None
    repeats: bool = False
    is_heard: bool = False
    failure: str = ""


class CheckListener:
    """The receiver of a transport to a server under check.

    Args:
        findings: Where rules that are broken are written down.
        reply: Says something to the server that answers its request.
        patience: How long the check goes on.

    Attributes:
        asked: The requests under way, by their ids.
        is_open: Whether the session is open, and the server may ask.
        capabilities: What the server declared; None as long as it has not.
        log_level: Which level was set, and who may hear of what is below; None if none was.
        wants_logs: Whether a request under way has asked for log messages.
        is_silence_due: Whether we have sent a notification that nobody knows, and nothing that could be unreadable.
        is_late: Whether an answer has come that we had not waited for long enough.
        over: Why nothing more comes; None as long as something may.
        heard: Each result that came, each once.
        notices: The methods of the last notifications that came.
    """

    def __init__(self, findings: FindingLog, reply: Callable[[bytes, str], None], patience: CheckPatience) -> None:
        self._findings = findings
        self._judge = FrameJudge(findings, patience)
        self._reply = reply
        self._revision = findings.revision
        self._facts = dragoman_spec.facts(findings.revision)
        self._methods: Mapping[str, Any] = dragoman_spec.load(findings.revision).METHODS
        self._done: set[bytes] = set()
        self._their_ids: set[int] = set()  # as hashes: an id may be long
        self._given_up: dict[bytes, tuple[str, float]] = {}
        self._unasked = 0
        self.asked: dict[bytes, CheckedRequest] = {}
        self.is_open = False
        self.capabilities: Mapping[str, Any] | None = None
        self.log_level: str | None = None
        self.wants_logs = False
        self.is_silence_due = False
        self.is_late = False
        self.over: str | None = None
        self.heard = HeardResults()
        self.notices: deque[str] = deque(maxlen=NOTICES_MOST)

    def expect(self, key: bytes, asked: CheckedRequest) -> None:
        """Wait for an answer."""
        self.asked[key] = asked
        self._unasked = 0

    def give_up(self, key: bytes, more_s: float) -> None:
        """Wait for it no longer; if it comes, it is nobody's.

        Args:
            key: The id of the request.
            more_s: For how much longer an answer would not have been late, if we had waited.
        """
        asked = self.asked.pop(key, None)
        if asked is not None:
            self._given_up[key] = f"the request {asked.about}", asyncio.get_running_loop().time() + more_s

    # What the transport calls

    def received(self, frames: Sequence[Frame | Malformed]) -> None:
        """Messages came, and what is not one."""
        for frame in frames:
            is_asked = frame.key is not None and frame.key in self.asked
            if not is_asked and self._is_one_too_many():
                continue  # nobody looks at it
            if isinstance(frame, Malformed):
                self._take_malformed(frame)
                continue
            try:
                body = decoded(frame).body
            except ValueError as error:
                self._take_unreadable(frame.raw, str(error))
                self._settle_broken(frame.key if frame.method is None else None)
                continue
            self._look_for_repeated(frame.raw, body)
            self._take(body)

    def _is_one_too_many(self) -> bool:
        """Count a message that answers nothing; whether there are too many of them."""
        self._unasked += 1
        if self._unasked <= UNASKED_MOST:
            return False
        found = f"more than {UNASKED_MOST} between two requests"
        self._findings.note("flood", "messages that answer nothing", "few", found)
        return True

    def failed(self, frame: Frame) -> None:
        """The transport gives up a request: what it says of the reason is all that there is."""
        asked = self.asked.pop(frame.key or b"", None)
        if asked is not None:
            asked.failure = str(decoded(frame).body["error"]["message"])
            self._findings.note("answered", f"the request {asked.about}", "a response", asked.failure)
            _settle(asked, None)

    def session_lost(self, frame: Frame | None, error: Frame | None, renewed: bool) -> None:
        """The server has forgotten the session."""
        if error is not None:
            self.failed(error)

    def unsent(self, frames: Sequence[Frame]) -> None:
        """Nothing is sent in a session before another."""

    def ended(self, reason: str) -> None:
        """The server says no more."""
        self.over = reason
        under_way, self.asked = list(self.asked.values()), {}
        for asked in under_way:
            _settle(asked, None)

    def broken(self, reason: str) -> None:
        """The server does not read any more."""
        self.ended(reason)

    def pause_writing(self) -> None:
        """We say little."""

    def resume_writing(self) -> None:
        """We say little."""

    # What is no message

    def _take_malformed(self, malformed: Malformed) -> None:
        line = malformed.line
        if isinstance(line, Overlong):
            self._findings.note("frame-shape", "a message", f"at most {line.limit_bytes} bytes", malformed.reason)
            self._settle_broken(malformed.key)
            return
        try:
            body = decode(line)
        except ValueError as error:
            self._take_unreadable(line, str(error))
            if malformed.is_response:
                self._settle_broken(malformed.key)
            return
        self._look_for_repeated(line, body)
        self._take(body)

    def _look_for_repeated(self, line: bytes, body: Any) -> None:
        name = find_repeated(line, body)
        if name is not None:
            self._findings.note("one-member", "a message", "each member once", f"{name[:60]!r} twice in {show(line)}")

    def _take_unreadable(self, line: bytes, reason: str) -> None:
        if self._findings.over == "stdio":
            found = f"{show(line)} ({reason})" if line.lstrip()[:1] in (b"{", b"[") else show(line)
            self._findings.note("stdout-messages", "a line on stdout", "a message", found)
        else:
            self._findings.note("frame-shape", "a message", "JSON", f"{show(line)} ({reason})")

    def _settle_broken(self, key: bytes | None) -> None:
        asked = self.asked.pop(key or b"", None)
        if asked is not None:
            asked.is_heard = True
            _settle(asked, None)

    # What is one

    def _take(self, body: Any) -> None:
        if isinstance(body, list):
            if not self._facts.batches:
                self._findings.note("no-batches", "a message", "an object", "an array")
            for one in body:
                key = key_of(one.get("id")) if isinstance(one, dict) else None
                if key in self.asked or not self._is_one_too_many():
                    self._take_one(one)
        else:
            self._take_one(body)

    def _take_one(self, body: Any) -> None:
        if not isinstance(body, dict) or body.keys().isdisjoint(("method", "result", "error")):
            rule = "stdout-messages" if self._findings.over == "stdio" and not isinstance(body, dict) else "frame-shape"
            found = show(encode(body))
            self._findings.note(rule, "a message", "an object with method, result or error", found)
            return
        if body.get("jsonrpc") != "2.0":
            found = f"the value {body['jsonrpc']!r}" if "jsonrpc" in body else "nothing"
            self._findings.note("jsonrpc-version", "a message", '"2.0"', found, pointer="/jsonrpc")
        if not isinstance(body.get("method", ""), str):
            found = show(encode(body["method"]))
            self._findings.note("frame-shape", "a message", "a string", found, pointer="/method")
        elif "method" not in body:
            self._take_answer(body)
        elif "id" in body:
            self._take_request(body)
        else:
            self._take_notice(body)

    def _take_answer(self, body: dict[str, Any]) -> None:
        key = key_of(body.get("id"))
        asked = None if key is None else self.asked.pop(key, None)
        if asked is None:
            asked = self._find_asked(key, body)
        if asked is None:
            return
        about = f"the answer to {asked.about}"
        if "result" in body and "error" in body:
            self._findings.note("result-or-error", about, "a result or an error", "both")
            body = {name: member for name, member in body.items() if name != "error"}
        self._done.add(key or b"")
        self._judge.judge(
            body, "result-model" if "result" in body else "error-model", about, asked.method, asked.repeats
        )
        self._look_for_questions(body.get("result"), about)
        if isinstance(body.get("result"), dict) and not asked.repeats:
            self.heard.keep(asked.method, body["result"])
        asked.is_heard = True
        _settle(asked, body)

    def _find_asked(self, key: bytes | None, body: dict[str, Any]) -> CheckedRequest | None:
        """Find the request that a response is meant for, although its id does not say so."""
        what = "a response"
        if key is not None and key in self._given_up:
            about, end = self._given_up.pop(key)
            if asyncio.get_running_loop().time() <= end:
                self.is_late = True
                self._findings.withdraw("answered", about)
            return None
        twin = None if key is None else twin_of(key)
        if twin is not None and twin in self.asked:
            asked = self.asked.pop(twin)
            found = f"{(key or b'').decode()}, of another type"
            self._findings.note("answer-id", f"the answer to {asked.about}", twin.decode(), found, pointer="/id")
            return asked
        if key is not None and key in self._done:
            found = f"another response to {key.decode()}"
            self._findings.note("answer-once", what, "one response to each request", found)
            return None
        if key is None and "error" in body and self.is_silence_due:
            found = f"the error {str(body['error'])[:80]}"
            self._findings.note("notification-silence", "a response", "no answer to a notification", found)
            return None
        if key is None and len(self.asked) == 1:
            (wanted,) = self.asked
            asked = self.asked.pop(wanted)
            found = "null" if "id" in body else "nothing"
            self._findings.note("answer-id", f"the answer to {asked.about}", wanted.decode(), found, pointer="/id")
            return asked
        found = "null" if key is None else key.decode()
        self._findings.note("answer-id", what, "the id of a request", found, pointer="/id")
        return None

    def _look_for_questions(self, result: Any, about: str) -> None:
        """See whether a result asks for what no client has declared."""
        for name, one in find_object(result, "inputRequests").items():
            method = find(one, "method")
            needed = self._facts.asked.get(str(method))
            if needed is not None:
                pointer = f"/result/inputRequests/{name}"
                self._findings.note(
                    "client-declared", about, f"nothing that needs {needed}", str(method), pointer=pointer
                )

    def _take_request(self, body: dict[str, Any]) -> None:
        method, about = body["method"], f"the server's request {body['method']}"
        key = key_of(body["id"])
        if self._facts.era == "per_request":
            self._findings.note("no-requests", about, "no request of the server", f"a request {method}")
            return
        if not self._is_known(method, "request", about):
            pass
        elif not self.is_open and method not in self._facts.local:
            found = f"a request {method}"
            self._findings.note("quiet-before-open", about, "nothing before the session is open", found)
        if key is not None and hash(key) in self._their_ids:
            self._findings.note("request-id-fresh", about, "another id for each request", f"{key.decode()} again")
        self._judge.judge(body, "request-model", about, method)
        if key is None:
            return
        self._their_ids.add(hash(key))
        needed = self._facts.asked.get(method)
        if needed is not None:
            self._findings.note("client-declared", about, f"nothing that needs {needed}", f"a request {method}")
        self._reply(key, method)

    def _take_notice(self, body: dict[str, Any]) -> None:
        method, about = body["method"], f"the notification {body['method']}"
        if not self._is_known(method, "notification", about):
            return
        self._judge.judge(body, "notification-model", about, method)
        params = find_object(body, "params")
        needed = self._methods[method].capability
        is_theirs = needed is not None and needed not in self._facts.client_capabilities
        if is_theirs and self.capabilities is not None and not declares(self.capabilities, needed):
            self._findings.note("notices-declared", about, f"the capability {needed}", "a server without it")
        if method == PROGRESS:
            self._take_progress(params, about)
        elif method == LOG:
            self._take_log(params, about)
        self.notices.append(method)

    def _is_known(self, method: str, kind: str, about: str) -> bool:
        entry = self._methods.get(method)
        if entry is not None and entry.kind == kind and "server" in entry.sender:
            return True
        more = self.capabilities or {}
        if entry is not None or not ("experimental" in more or "extensions" in more):
            expected = f"a {kind} that a server of {self._revision} sends"
            self._findings.note("method-known", about, expected, method, pointer="/method")
        return False

    def _take_progress(self, params: Mapping[str, Any], about: str) -> None:
        token, progress = params.get("progressToken"), params.get("progress")
        asked = next((one for one in self.asked.values() if one.token == token and one.token is not None), None)
        if asked is None:
            found = f"the token {token!r}"
            self._findings.note("progress-token", about, "the token of a request under way", found)
            return
        asked.on_progress()
        if isinstance(progress, int | float):
            if asked.progress is not None and progress <= asked.progress:
                found = f"{progress} after {asked.progress}"
                self._findings.note("progress-grows", about, "more than before", found, pointer="/params/progress")
            asked.progress = progress

    def _take_log(self, params: Mapping[str, Any], about: str) -> None:
        if not self.wants_logs:
            self._findings.note("log-asked-for", about, "none without a log level in the request", "a log message")
        levels, level = self._facts.log_levels, params.get("level")
        if self.log_level is not None and level in levels and levels.index(level) < levels.index(self.log_level):
            found = f"one of {level}"
            self._findings.note("log-level-kept", about, f"none below {self.log_level}", found, pointer="/params/level")


def _settle(asked: CheckedRequest, body: dict[str, Any] | None) -> None:
    if not asked.answer.done():
        asked.answer.set_result(body)
