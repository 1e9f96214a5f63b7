"""Requests of a shared server: which member each one goes to, and which answer is taken.

Lives here: the choice and its refusals. Must not: send, or ask anybody on a guess. Called by `server_side`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.core.envelope import Frame, encode_error, encode_result
from dragoman.core.failures import CONNECTION_CLOSED
from dragoman.core.sharing.attribution import Attribution, related_task
from dragoman.core.sharing.calls import Member
from dragoman.core.sharing.declared import find_missing

METHOD_NOT_FOUND: Final = -32601
INTERNAL_ERROR: Final = -32603

ROOTS: Final = "roots/list"


class Questions:
    """The requests of the server that are with members.

    Args:
        attribution: Who is the reason for what.
        limit: How many may be unanswered.
    """

    def __init__(self, attribution: Attribution, limit: int) -> None:
        self._attribution = attribution
        self._limit = limit
        self._asked: dict[bytes, tuple[Member, Any]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def pose(
        self, frame: Frame, params: dict[str, Any], members: dict[Member, None], related: bytes | None
    ) -> Member | bytes:
        """Choose whom to ask.

        Returns:
            The member, or the line that answers the server at once.
        """
        assert frame.key is not None
        method = frame.method or ""
        named = self.certain_owner(params, related)
        suspects = {named} if named is not None else self._attribution.suspects(members)
        member = next(iter(suspects)) if len(suspects) == 1 else None
        code, reason = METHOD_NOT_FOUND, None
        if member is None:
            code, reason = INTERNAL_ERROR, _explain_ambiguity(len(suspects))
        elif not member.present:
            code, reason = CONNECTION_CLOSED, "the client has closed"
        elif (missing := find_missing(method, params, member.declared)) is not None:
            reason = f"the client did not declare the capability {missing}"
        elif len(self._asked) >= self._limit:
            code, reason = CONNECTION_CLOSED, f"more than {self._limit} requests of the server are unanswered"
        if reason is not None and method == ROOTS and code != CONNECTION_CLOSED:
            return encode_result(frame.key, {"roots": []})  # true of nobody in particular, and what servers cope with
        if reason is not None or member is None:
            return encode_error(frame.key, code, reason or "", {"method": method})
        self._asked[frame.key] = member, _token_of(params)
        if method == "elicitation/create":
            self._attribution.add_elicitation(params.get("elicitationId"), member)
        return member

    def certain_owner(self, params: dict[str, Any], related: bytes | None) -> Member | None:
        """Give whom a frame of the server names, by its stream or by its task."""
        return self._attribution.of_stream(related) or self._attribution.task_owner(related_task(params))

    def answer(self, key: bytes | None, member: Member) -> bool:
        """Take a member's answer; False when it was not asked that."""
        if key is None or self._asked.get(key, (None, None))[0] is not member:
            return False
        del self._asked[key]
        return True

    def withdraw(self, key: bytes | None) -> Member | None:
        """Take note that the server does not wait any more; give who was asked."""
        return None if key is None else self._asked.pop(key, (None, None))[0]

    def has_token(self, token: Any, member: Member) -> bool:
        """Whether a member was asked with this progress token."""
        return token is not None and any(
            asked is member and known == token and type(known) is type(token) for asked, known in self._asked.values()
        )

    def forget(self, member: Member) -> list[bytes]:
        """Forget a member that has gone; give the ids of what it owes answers to."""
        keys = [key for key, (asked, _) in self._asked.items() if asked is member]
        for key in keys:
            del self._asked[key]
        return keys


def _explain_ambiguity(suspects: int) -> str:
    if not suspects:
        return "no client is there to be asked"
    return f"this cannot be asked of one client: it may be about any of {suspects} sessions that share the server"


def _token_of(params: dict[str, Any]) -> Any:
    meta = params.get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None
