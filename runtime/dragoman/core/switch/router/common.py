"""What all parts of a catalogue know and use: the servers of one client's session, and the ways to both sides.

Lives here: that, and what several parts do with it. Must not: know the parts (`catalogue`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.core.calls import cancellation
from dragoman.core.codes import CONNECTION_CLOSED
from dragoman.core.envelope import Frame, decoded, error_frame, request_frame
from dragoman.core.switch.router.member import Member, MemberState, Outside, TakeAnswer
from dragoman.core.switch.router.names import Names
from dragoman.core.switch.router.tokens import CallTokens


class Common:
    """What the parts share.

    Args:
        mark: Is in the ids of our own requests, so that no request of the client has one of them.

    Attributes:
        members: The servers by name.
        identity: Name and version that the client is told.
        is_per_request: Whether each request of the client speaks for itself.
        inspects: Whether answers are looked into: some ask for input, name tasks, or have URIs that
            are known otherwise.
        initialized: What the client said when it was ready; None before.
        try_again: Opens a server that has failed.
    """

    try_again: Callable[[Member], None]

    def __init__(
        self, outside: Outside, names: Names, members: Iterable[Member], identity: Mapping[str, Any], mark: str
    ) -> None:
        self.outside = outside
        self.names = names
        self.members = {member.name: member for member in members}
        self.identity = dict(identity)
        self.tokens = CallTokens()
        self.is_per_request = False
        self.inspects = False
        self.initialized: Frame | None = None
        self._mark = mark.encode()
        self._last = 0

    def opened_members(self) -> list[Member]:
        """Return the servers that are open."""
        return [member for member in self.members.values() if member.state is MemberState.OPEN]

    def set_state(self, member: Member, state: MemberState, reason: str = "") -> None:
        """Record how far a server is."""
        member.state, member.reason = state, reason
        self.outside.note_state(member)

    def fail(self, member: Member, reason: str) -> None:
        """Record that a server cannot be used, though it is there."""
        if member.state is not MemberState.FAILED:
            self.set_state(member, MemberState.FAILED, reason)

    def meta_of(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the metadata for requests of our own that a request of the client leads to."""
        if not self.is_per_request:
            return None
        from dragoman.core.rules.names import META_LOG_LEVEL

        return {key: value for key, value in params["_meta"].items() if key not in ("progressToken", META_LOG_LEVEL)}

    def has_failed(self, member: Member) -> bool:
        """Whether a server cannot be asked; one at which somebody may have signed in meanwhile is opened for that."""
        if member.wants_person and member.state is MemberState.FAILED:
            self.try_again(member)
        return member.state is MemberState.FAILED

    def forward(self, member: Member, frame: Frame) -> None:
        """Hand a request of the client to a server."""
        key = frame.key or b"null"
        if self.has_failed(member):
            self.reply(error_frame(key, CONNECTION_CLOSED, f"{member.name} cannot be used: {member.reason}"))
            return
        member.owed[key] = None
        self.tokens.note(member, frame)
        self.outside.tell_member(member, frame)

    def next_key(self) -> bytes:
        """Return an id for a request of our own, which was never used."""
        self._last += 1
        return b'"dragoman/%b/%d"' % (self._mark, self._last)

    def ask(
        self,
        member: Member,
        method: str,
        params: Mapping[str, Any],
        then: TakeAnswer,
        meta: Mapping[str, Any] | None = None,
        key: bytes | None = None,
        sender: str = "",
    ) -> None:
        """Ask a server something of our own, under this id or the next, in the name of whoever has sent this.

        The answer may come before this returns.
        """
        key = key or self.next_key()
        member.owed[key] = then
        asked = dict(params) if meta is None else {**params, "_meta": dict(meta)}
        frame = request_frame(key, method, asked)
        self.outside.tell_member(member, frame._replace(sender=sender) if sender else frame)

    def withdraw(self, member: Member, key: bytes, reason: str) -> None:
        """Take back a request of our own, if it is not answered yet."""
        if member.owed.pop(key, None) is not None:
            self.outside.tell_member(member, cancellation(key, reason))

    def reply(self, frame: Frame) -> None:
        """Answer the client."""
        self.outside.tell_client(frame)

    def complete(self, result: Mapping[str, Any], is_partial: bool) -> dict[str, Any]:
        """Return a result of our own with what the client's era asks for besides."""
        if not self.is_per_request:
            return dict(result)
        from dragoman.core.rules.metadata import put_identity

        held = {"ttlMs": 0, "cacheScope": "private"}
        kept = {name: result.get(name, default) for name, default in held.items()}
        return put_identity({**result, **(held if is_partial else kept), "resultType": "complete"}, self.identity)


def read_error(frame: Frame) -> dict[str, Any]:
    """Return the error of an answer, whatever stands there in its place."""
    try:
        error = decoded(frame).body["error"]
    except ValueError as fault:
        return {"message": f"an error that cannot be read: {fault}"}
    return error if isinstance(error, dict) else {"message": "an error that is not an object"}
