"""Opening a shared server: one `initialize` for everybody.

Lives here: what the server is offered, what it answered, and who waits for that. Must not: send. Called by `hub`.

Theory of operation. The first member's `initialize` decides which revision is offered; identity and capabilities are
the proxy's own. Whoever comes meanwhile waits, and whoever comes later is answered with what the server said, whatever
revision it asks for: "otherwise, the server MUST respond with another protocol version it supports" (lifecycle). When
the server refuses, all who offered the same hear it, and the next offer of any of them goes to the server.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dragoman.core.envelope import Frame, encode_error, encode_result
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.sharing.calls import Call, Calls, Member
from dragoman.core.sharing.declared import read_declared
from dragoman_spec import HANDSHAKE_REVISIONS, facts

IDENTITY: Final = {"name": "dragoman", "version": "0"}
"""Who a shared server is told that its client is, unless the caller knows better: no member stands for the others."""

Answers = list[tuple[Member, bytes]]


class Answered(NamedTuple):
    """What to tell whom; and, if the server has to be asked again, for whom."""

    answers: Answers
    next: Member | None = None


class Opening:
    """The handshake with a shared server.

    Args:
        calls: Where ids come from.
        identity: The `clientInfo` for the server.
    """

    def __init__(self, calls: Calls, identity: dict[str, Any]) -> None:
        self._calls = calls
        self._identity = identity
        self._waiting: dict[Member, None] = {}
        self._call: Call | None = None
        self._offered: Any = None
        self._result: Any = None
        self._declared: dict[frozenset[str], frozenset[str]] = {}  # most clients declare what others have declared

    @property
    def is_open(self) -> bool:
        """Whether the server has agreed."""
        return self._result is not None

    @property
    def revision(self) -> Any:
        """What the server agreed to, if it did."""
        return self._result.get("protocolVersion") if isinstance(self._result, dict) else None

    @property
    def is_under_way(self) -> bool:
        """Whether an answer of the server is awaited."""
        return self._call is not None

    def ask(self, member: Member, frame: Frame) -> bytes | None:
        """Take a member's `initialize`; give the line for the server, if it is to be asked."""
        params = frame.body.get("params")
        params = params if isinstance(params, dict) else {}
        declared = read_declared(params.get("capabilities"))
        member.declared = self._declared.setdefault(declared, declared)
        member.initialize, member.offered = frame.key, params.get("protocolVersion")
        self._waiting[member] = None
        return None if self.is_open or self.is_under_way else self.offer(member)

    def offer(self, member: Member) -> bytes:
        """Give the line that offers the server what a member offers."""
        self._call = self._calls.add("initialize")
        self._offered = member.offered
        known = member.offered if member.offered in HANDSHAKE_REVISIONS else HANDSHAKE_REVISIONS[-1]
        capabilities = facts(known).shared_capabilities
        params = {"protocolVersion": member.offered, "capabilities": capabilities, "clientInfo": self._identity}
        return encode_line({"jsonrpc": "2.0", "id": decode(self._call.key), "method": "initialize", "params": params})

    def is_answer(self, frame: Frame) -> bool:
        """Whether a response answers the offer; an error without id can be about nothing else."""
        if self._call is None or frame.kind not in ("result", "error"):
            return False
        return frame.key is None or self._calls.find(frame.key) is self._call

    def take_answer(self, frame: Frame) -> Answered:
        """Take the server's response to the offer."""
        try:
            body = decode(frame.raw) if frame.body is None else frame.body
        except ValueError as error:
            return self.fail(-32603, f"the server's answer to initialize cannot be read: {error}")
        if frame.kind == "result":
            self._end_call()
            self._result = body["result"]
            return Answered(self.answer_waiting())
        return self._refuse(body["error"])

    def fail(self, code: int, message: str) -> Answered:
        """Take note that the answer to the offer is none."""
        return self._refuse({"code": code, "message": message})

    def answer_waiting(self) -> Answers:
        """Give everybody who waits what the server said, if it said so."""
        if not self.is_open:
            return []
        answers = [(member, encode_result(member.initialize or b"null", self._result)) for member in self._waiting]
        self._waiting.clear()
        return answers

    def forget(self, member: Member) -> None:
        """Forget a member that has gone."""
        self._waiting.pop(member, None)

    def _refuse(self, error: Any) -> Answered:
        self._end_call()
        error = error if isinstance(error, dict) else {}
        code, message = error.get("code", -32603), str(error.get("message", ""))
        refused = [member for member in self._waiting if member.offered == self._offered]
        answers = [(member, encode_error(member.initialize, code, message, error.get("data"))) for member in refused]
        for member in refused:
            del self._waiting[member]
        return Answered(answers, next(iter(self._waiting), None))

    def _end_call(self) -> None:
        assert self._call is not None, "only an answer to the offer ends it"
        self._calls.forget(self._call)
        self._call = None
