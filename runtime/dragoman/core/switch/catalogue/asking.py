"""What servers ask the client: under ids of ours, and with the name of who asks where a person reads it.

Lives here: the table of these questions. Must not: decide who may ask: each server's own proxy does that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dragoman.core.calls import TOO_MANY, cancellation
from dragoman.core.envelope import Frame, decoded, error_frame, key_of, rewrite
from dragoman.core.exact_json import decode, encode_line
from dragoman.core.methods import ELICITATION
from dragoman.core.peek import with_id
from dragoman.core.switch.catalogue.common import Common
from dragoman.core.switch.catalogue.member import Member
from dragoman.core.tally import deserves_a_line
from dragoman.core.unchecked import find

logger = logging.getLogger("dragoman.router")

INPUT_REQUESTS: Final = "inputRequests"
ELICITATIONS: Final = "elicitations"
_ELICITATION_ID: Final = "elicitationId"


@dataclass(frozen=True, slots=True)
class _Question:
    member: Member
    key: bytes
    token: Any


class MemberQuestions:
    """The questions of all servers to one client.

    Args:
        common: What all parts know.
        most: How many may be unanswered; each server has its share, so that none takes that of the others.
    """

    def __init__(self, common: Common, most: int) -> None:
        self._common = common
        self._most = most
        self._questions: dict[bytes, _Question] = {}
        self._counts: dict[Member, int] = {}
        self._refused = 0
        self._last = 0

    def put(self, member: Member, frame: Frame) -> None:
        """Hand on a question of a server."""
        assert frame.key is not None
        share = max(1, self._most // max(1, len(self._common.members)))
        if self._counts.get(member, 0) >= share:
            self._refuse(member, frame, share)
            return
        self._last += 1
        key = b"%d" % self._last
        body = dict(decoded(frame).body)
        params = body.get("params")
        token = None
        if isinstance(params, dict):
            params = name_asker(member.name, frame.method, params)
            token = find(params, "_meta", "progressToken")
            if token is not None:
                params = {**params, "_meta": {**params["_meta"], "progressToken": self._last}}
            body["params"] = params
        body["id"] = self._last
        self._questions[key] = _Question(member, frame.key, token)
        self._counts[member] = self._counts.get(member, 0) + 1
        self._common.outside.tell_client(frame._replace(raw=encode_line(body), key=key, body=body))

    def _refuse(self, member: Member, frame: Frame, share: int) -> None:
        reason = f"more than {share} requests of {member.name} are unanswered"
        self._refused += 1
        if deserves_a_line(self._refused):
            logger.warning("%s of %s refused: %s (%d so far)", frame.method, member.name, reason, self._refused)
        data = {"method": frame.method, "limit": share}
        self._common.outside.tell_member(member, error_frame(frame.key, TOO_MANY, reason, data))

    def take_answer(self, frame: Frame) -> bool:
        """Take the client's answer to its server; False where nobody asked."""
        question = None if frame.key is None else self._questions.get(frame.key)
        if question is None or frame.key is None:
            return False
        self._drop(frame.key)
        answer = frame._replace(raw=with_id(frame, question.key), key=question.key, body=None)
        self._common.outside.tell_member(question.member, answer)
        return True

    def take_progress(self, frame: Frame) -> None:
        """Take what the client says of its progress to who asked."""
        body = decoded(frame).body
        params = body.get("params")
        if not isinstance(params, dict):
            return
        question = self._questions.get(key_of(params.get("progressToken")) or b"")
        if question is not None and question.token is not None:
            said = {**body, "params": {**params, "progressToken": question.token}}
            self._common.outside.tell_member(question.member, rewrite(frame, said))

    def cancel(self, member: Member, frame: Frame, key: bytes | None) -> None:
        """Tell the client that a server does not wait any more."""
        for ours, question in self._questions.items():
            if question.member is member and question.key == key:
                self._drop(ours)  # the client need not answer, and the server may use the id again
                body = decoded(frame).body
                said = {**body, "params": {**body["params"], "requestId": decode(ours)}}
                self._common.outside.tell_client(rewrite(frame, said))
                return

    def complete(self, member: Member, frame: Frame) -> None:
        """Tell the client that a person has done what a server asked for elsewhere."""
        body = decoded(frame).body
        params = body.get("params")
        if isinstance(params, dict):
            frame = rewrite(frame, {**body, "params": name_elicitation(member.name, params)})
        self._common.outside.tell_client(frame)

    def _drop(self, key: bytes) -> None:
        member = self._questions.pop(key).member
        self._counts[member] -= 1
        if not self._counts[member]:
            del self._counts[member]

    def forget(self, member: Member) -> None:
        """Take back what a server asked that is gone."""
        for key in [key for key, question in self._questions.items() if question.member is member]:
            self._drop(key)
            self._common.outside.tell_client(cancellation(key, f"{member.name} is gone"))


def name_asker(server: str, method: str | None, params: dict[str, Any]) -> dict[str, Any]:
    """Say in a question to a person which server asks; two servers may know their questions by one id."""
    if method != ELICITATION:
        return params
    told = params
    if isinstance(message := params.get("message"), str):
        told = {**told, "message": f"{server}: {message}"}
    return name_elicitation(server, told)


def name_elicitation(server: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return params in which the id of an elicitation is no other server's."""
    identity = params.get(_ELICITATION_ID)
    return {**params, _ELICITATION_ID: f"{server}:{identity}"} if isinstance(identity, str) else params


def name_elicitations(server: str, frame: Frame) -> Frame:
    """Say which server asks in an error that names pages which a person has to visit first."""
    try:
        body = decoded(frame).body
    except ValueError:
        return frame
    wanted = find(body, "error", "data", ELICITATIONS)
    if not isinstance(wanted, list):
        return frame
    error = body["error"]
    named = [name_asker(server, ELICITATION, one) if isinstance(one, dict) else one for one in wanted]
    return rewrite(frame, {**body, "error": {**error, "data": {**error["data"], ELICITATIONS: named}}})


def name_askers(server: str, result: dict[str, Any]) -> dict[str, Any]:
    """Say the same in a result that asks for input."""
    asked = result.get(INPUT_REQUESTS)
    if not isinstance(asked, dict):
        return result
    return {**result, INPUT_REQUESTS: {key: _name(server, request) for key, request in asked.items()}}


def _name(server: str, request: Any) -> Any:
    if not isinstance(request, Mapping) or not isinstance(request.get("params"), dict):
        return request
    return {**request, "params": name_asker(server, request.get("method"), request["params"])}
