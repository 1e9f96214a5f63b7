"""Requests of a shared server: which session each one goes to, and which answer counts.

Lives here: the choice, and the refusals. Must not: send, or guess whom to ask. One for each `desk`, by which
`from_server`, `from_clients` and `switch` reach it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.core.codes import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND
from dragoman.core.declared import find_missing
from dragoman.core.envelope import Frame, error_frame, key_of, result_frame
from dragoman.core.methods import ROOTS
from dragoman.core.places import has_place
from dragoman.core.serving.attribution import NAME_BYTES, Attribution
from dragoman.core.serving.sessions import ClientSession
from dragoman.core.unchecked import find


class SharedQuestions:
    """The requests of the server that are with sessions.

    Args:
        attribution: Who is the reason for what.
        limit: How many may be unanswered; where principals share the server, each has half of them at most.
    """

    def __init__(self, attribution: Attribution, limit: int) -> None:
        self._attribution = attribution
        self._limit = limit
        self._asked: dict[bytes, tuple[ClientSession, Any]] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def pose(self, frame: Frame, params: dict[str, Any], reasons: set[ClientSession | None]) -> ClientSession | Frame:
        """Choose whom to ask.

        Args:
            frame: The request.
            params: Its params.
            reasons: Who may be the reason for it; None in it is nobody who is there.

        Returns:
            The session, or the frame that answers the server at once.
        """
        assert frame.key is not None
        method = frame.method or ""
        if frame.key in self._asked:  # the answer carries no id: it would end the request that rightly holds it
            return error_frame(None, INVALID_REQUEST, "the id of this request belongs to one that is not answered yet")
        session = next(iter(reasons)) if len(reasons) == 1 else None
        taken = len(self._asked)
        code, reason = METHOD_NOT_FOUND, None
        if reasons == {None}:
            code, reason = CONNECTION_CLOSED, "the client that this is about has closed or does not wait any more"
        elif session is None:
            code, reason = INTERNAL_ERROR, _explain_ambiguity(len(reasons))
        elif (missing := find_missing(method, params, session.declared)) is not None:
            reason = f"the client did not declare the capability {missing}"
        elif not has_place(session.sender, self._senders(), taken, self._limit):
            reason = f"too many requests of the server are unanswered: {taken}, with {self._limit} places for all"
            code = CONNECTION_CLOSED
        elif len(frame.key) > NAME_BYTES or is_too_long(token_of(params)):
            code, reason = INVALID_REQUEST, f"the id or the progress token is longer than {NAME_BYTES} bytes"
        if reason is not None and method == ROOTS and (session is None or code == METHOD_NOT_FOUND):
            return result_frame(frame.key, {"roots": []})  # true of nobody in particular, and what servers cope with
        if reason is not None or session is None:
            return error_frame(frame.key, code, reason or "", {"method": method})
        self._asked[frame.key] = session, token_of(params)
        if method == "elicitation/create":
            self._attribution.add_elicitation(params.get("elicitationId"), session)
        return session

    def _senders(self) -> Iterator[str]:
        """Return whose place each request has that is not answered."""
        return (session.sender for session, _ in self._asked.values())

    def take_answer(self, key: bytes | None, session: ClientSession) -> bool:
        """Take a session's answer; False when it was not asked that."""
        if key is None or self._asked.get(key, (None, None))[0] is not session:
            return False
        del self._asked[key]
        return True

    def withdraw(self, key: bytes | None) -> ClientSession | None:
        """Record that the server does not wait any more; give who was asked."""
        return None if key is None else self._asked.pop(key, (None, None))[0]

    def has_token(self, token: Any, session: ClientSession) -> bool:
        """Whether a session was asked with this progress token."""
        return token is not None and any(
            asked is session and known == token and type(known) is type(token) for asked, known in self._asked.values()
        )

    def withdraw_all(self) -> dict[bytes, ClientSession]:
        """Record that the server waits for nothing any more; give who was asked what."""
        asked = {key: session for key, (session, _) in self._asked.items()}
        self._asked.clear()
        return asked

    def forget(self, session: ClientSession) -> list[bytes]:
        """Forget a session that has gone; give the ids of what it owes answers to."""
        keys = [key for key, (asked, _) in self._asked.items() if asked is session]
        for key in keys:
            del self._asked[key]
        return keys


def is_too_long(token: Any) -> bool:
    """Whether a progress token is longer than may be kept, or neither text nor number."""
    return token is not None and len(key_of(token) or bytes(NAME_BYTES + 1)) > NAME_BYTES


def _explain_ambiguity(reasons: int) -> str:
    if not reasons:
        return "no client is there to be asked"
    return f"this cannot be asked of one client: it may be about any of {reasons} sessions that use the server, or did"


def token_of(params: dict[str, Any]) -> Any:
    """Return the progress token that a request carries, whatever it is; None without one."""
    return find(params, "_meta", "progressToken")
