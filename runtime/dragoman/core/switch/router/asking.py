"""What servers ask the client: under ids that name the server, and with the name of who asks where a person reads it.

Lives here: such ids, and names for people. Must not: decide who may ask: each server's own proxy does that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from dragoman.core.calls import TOO_MANY, cancellation
from dragoman.core.envelope import Frame, decoded, error_frame, id_of, key_of, read_params, rewrite
from dragoman.core.exact_json import encode
from dragoman.core.methods import ELICITATION
from dragoman.core.peek import with_id
from dragoman.core.switch.router.common import Common
from dragoman.core.switch.router.member import Member
from dragoman.core.switch.router.tasks import name_related, name_task, own_prefix, restore_related
from dragoman.core.tally import deserves_a_line
from dragoman.core.unchecked import find, with_meta

logger = logging.getLogger("dragoman.router")

INPUT_REQUESTS: Final = "inputRequests"
ELICITATIONS: Final = "elicitations"
_ELICITATION_ID: Final = "elicitationId"


class MemberQuestions:
    """The questions of all servers to one client.

    The client gets each as `SERVER:NUMBER:ID`, and a progress token in the same form: so an answer says whose it is,
    and which of two questions it is about for which a server has used one id.

    Args:
        common: What all parts know.
        most: How many may be unanswered; each server has its share, so that none takes that of the others.
    """

    def __init__(self, common: Common, most: int) -> None:
        self._common = common
        self._most = most
        self._refused = 0
        self._last = 0

    def put(self, member: Member, frame: Frame) -> None:
        """Hand on a question of a server."""
        assert frame.key is not None
        share = max(1, self._most // max(1, len(self._common.members)))
        if len(member.asked) >= share:
            self._refuse(member, frame, share)
            return
        self._last += 1
        member.asked[frame.key] = self._last
        body = {**decoded(frame).body, "id": _lend(member, self._last, frame.key)}
        params = body.get("params")
        if isinstance(params, dict):
            params = name_asker(member.name, frame.method, name_related(params, partial(name_task, member)))
            token = key_of(find(params, "_meta", "progressToken"))
            if token is not None:
                params = with_meta(params, "progressToken", _lend(member, self._last, token))
            body["params"] = params
        self._common.outside.tell_client(rewrite(frame, body)._replace(key=key_of(body["id"])))

    def _refuse(self, member: Member, frame: Frame, share: int) -> None:
        reason = f"more than {share} requests of {member.name} are unanswered"
        self._refused += 1
        if deserves_a_line(self._refused):
            logger.warning("%s of %s refused: %s (%d so far)", frame.method, member.name, reason, self._refused)
        data = {"method": frame.method, "limit": share}
        self._common.outside.tell_member(member, error_frame(frame.key, TOO_MANY, reason, data))

    def take_answer(self, frame: Frame) -> None:
        """Take the client's answer to its server; one that nobody waits for is dropped."""
        found = None if frame.key is None else self._read_lent(id_of(frame.key))
        if found is not None:
            member, number, key = found
            if member.asked.get(key) == number:
                del member.asked[key]
                frame = restore_related(member, frame)
                answer = frame._replace(raw=with_id(frame, key), key=key, body=None)
                self._common.outside.tell_member(member, answer)

    def take_progress(self, frame: Frame) -> None:
        """Take what the client says of its progress to who asked, while that is waited for."""
        found = self._read_lent(read_params(frame).get("progressToken"))
        if found is not None and found[1] in found[0].asked.values():
            member, _, token = found
            body = decoded(frame).body
            said = {**body, "params": {**body["params"], "progressToken": id_of(token)}}
            self._common.outside.tell_member(member, rewrite(frame, said))

    def cancel(self, member: Member, frame: Frame, key: bytes | None) -> None:
        """Tell the client that a server does not wait any more."""
        if key is not None and key in member.asked:
            # The client need not answer, and the server may use the id again.
            lent = _lend(member, member.asked.pop(key), key)
            body = decoded(frame).body
            said = {**body, "params": {**body["params"], "requestId": lent}}
            self._common.outside.tell_client(rewrite(frame, said))

    def complete(self, member: Member, frame: Frame) -> None:
        """Tell the client that a person has done what a server asked for elsewhere."""
        body = decoded(frame).body
        params = body.get("params")
        if isinstance(params, dict):
            frame = rewrite(frame, {**body, "params": name_elicitation(member.name, params)})
        self._common.outside.tell_client(frame)

    def forget(self, member: Member) -> None:
        """Take back what a server asked that is gone."""
        asked, member.asked = member.asked, {}
        for key, number in asked.items():
            lent = encode(_lend(member, number, key))
            self._common.outside.tell_client(cancellation(lent, f"{member.name} is gone"))

    def _read_lent(self, lent: object) -> tuple[Member, int, bytes] | None:
        """Return whose an id or a progress token is that the client has used, and what its server calls it."""
        if isinstance(lent, str):
            for name in sorted(self._common.members, key=len, reverse=True):  # `a:1` before `a`
                number, separator, key = lent.removeprefix(f"{name}:").partition(":")
                if lent.startswith(f"{name}:") and separator and number.isdecimal():
                    return self._common.members[name], int(number), key.encode()
        return None


def _lend(member: Member, number: int, key: bytes) -> str:
    return f"{member.name}:{number}:{key.decode()}"


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
    return {**params, _ELICITATION_ID: own_prefix(server) + identity} if isinstance(identity, str) else params


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
