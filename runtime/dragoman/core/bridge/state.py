"""What stands in the `requestState` that we give to a client, and whether what comes back is that.

Lives here: writing a state and checking it against the request that brings it. Must not: keep what it stands for
(`core.bridge.to_session.asking`), or follow it (`urls`, `replay`).

"Servers MUST treat `requestState` as an attacker-controlled input" (2026-07-28/basic/patterns/mrtr). So it is sealed,
and it says for which server, caller and request it is, and until when. That it is used once is for whoever keeps what
it stands for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from dragoman.core.bridge.seal import Seal
from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.exact_json import decode, encode
from dragoman.errors import RemoteProtocolError

_NOT_SALIENT: Final = frozenset({"_meta", "inputResponses", "requestState"})
"""The params that may differ between a request and its retry."""


class Reason(Enum):
    """Why a request that goes on from an earlier one is refused; the value stands in the error's data.

    Attributes:
        UNREADABLE: Not sealed by us, or changed, or sealed with a key that is gone.
        EXPIRED: It came too late.
        OTHER_CALLER: It was given to somebody else.
        OTHER_REQUEST: It was given for another server, method or params.
        OTHER_INSTANCE: The call waits in another instance, or waited in one that is gone.
        UNKNOWN: No such call is waiting: it has ended, or was given up.
        GAVE_WAY: It had to give its place to another call.
        USED: Somebody has gone on from it before.
        MALFORMED: An answer is not one to the question.
        OTHER_QUESTION: The server asks something else than it did before.
    """

    UNREADABLE = "state-unreadable"
    EXPIRED = "state-expired"
    OTHER_CALLER = "other-caller"
    OTHER_REQUEST = "other-request"
    OTHER_INSTANCE = "other-instance"
    UNKNOWN = "call-unknown"
    GAVE_WAY = "call-gave-way"
    USED = "state-used"
    MALFORMED = "answer-malformed"
    OTHER_QUESTION = "other-question"


_WORDS: Final = {
    Reason.UNREADABLE: "the state is not one that was given here, or is from before a restart",
    Reason.EXPIRED: "the answer came too late",
    Reason.OTHER_CALLER: "the state was given to somebody else",
    Reason.OTHER_REQUEST: "the state was given for another request",
    Reason.OTHER_INSTANCE: "the call waits in another instance of the proxy, or in one that is gone",
    Reason.UNKNOWN: "no such call is waiting any more",
    Reason.GAVE_WAY: "the call was given up for another one: more calls waited for their clients than may",
    Reason.USED: "the state has been used before",
    Reason.MALFORMED: "an answer is not one to its question",
    Reason.OTHER_QUESTION: "the server asks something else than the first time",
}


@dataclass(frozen=True, slots=True)
class Binding:
    """The request that a state belongs to.

    Attributes:
        server: Which of the upstream servers it goes to, by the name that the user gave it.
        method: Of the request.
        digest: Of the params that must not change, see `digest_params`.
        principal: Whose request it is, as far as that is known; empty otherwise.
    """

    server: str
    method: str
    digest: str
    principal: str = ""


class State(NamedTuple):
    """What a state says.

    Attributes:
        kind: Which module it is for.
        call: Which call it belongs to; empty where none is kept.
        round: Which of the states of this call it is; a new one each time.
        extra: What else there is to carry, as JSON.
    """

    kind: str
    call: str = ""
    round: str = ""
    extra: Any = None


class Keeper(NamedTuple):
    """Writes states and reads them back.

    Attributes:
        seal: Keeps them from being read and changed.
        ttl_s: For how many seconds one may be used.
    """

    seal: Seal
    ttl_s: float = 600.0

    def write(self, state: State, binding: Binding, now_s: float, nonce: bytes) -> str:
        """Return the text for `requestState`.

        Args:
            state: What it says.
            binding: The request that it belongs to.
            now_s: The time, on a clock that all instances share.
            nonce: Random bytes, `NONCE_BYTES` of them.
        """
        bound = [binding.server, binding.method, binding.digest, binding.principal]
        return self.seal.seal(encode([*state, bound, now_s + self.ttl_s]), nonce)

    def name_call(self, text: object) -> str:
        """Return the call that a state names, whoever brings it; empty where it names none."""
        opened = self.seal.open(text) if isinstance(text, str) else None
        return "" if opened is None else str(decode(opened.payload)[1])

    def read(self, text: object, binding: Binding, now_s: float, kept: Container[str] = ()) -> State:
        """Read a state that a request brings.

        Args:
            text: Its `requestState`.
            binding: What that request is.
            now_s: The time, on the same clock.
            kept: The calls that wait in memory: how long, is decided there and by another clock.

        Raises:
            RemoteProtocolError: It may not go on from there (-32602); the data says why.
        """
        opened = self.seal.open(text) if isinstance(text, str) else None
        if opened is None:
            raise refuse(Reason.UNREADABLE)
        kind, call, number, extra, bound, expires_s = decode(opened.payload)
        server, method, digest, principal = bound
        if principal != binding.principal:
            raise refuse(Reason.OTHER_CALLER)
        if (server, method, digest) != (binding.server, binding.method, binding.digest):
            raise refuse(Reason.OTHER_REQUEST)
        if now_s >= expires_s and (call not in kept or opened.instance != self.seal.instance):
            raise refuse(Reason.EXPIRED)
        if call and opened.instance != self.seal.instance:
            raise refuse(Reason.OTHER_INSTANCE, {"instance": opened.instance.hex()})
        return State(kind, call, number, extra)


def refuse(reason: Reason, more: Mapping[str, Any] | None = None) -> RemoteProtocolError:
    """Return the error for a request that may not go on from its state."""
    message = f"Cannot go on with this request: {_WORDS[reason]}"
    return RemoteProtocolError(INVALID_PARAMS, message, {"reason": reason.value, **(more or {})})


def digest_params(params: Mapping[str, Any] | None) -> str:
    """Return a digest of the params that must not change between a request and its retry.

    Raises:
        ValueError: They are nested deeper than can be written.
    """
    salient = {name: value for name, value in (params or {}).items() if name not in _NOT_SALIENT}
    try:
        text = json.dumps(salient, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        raise ValueError("nested too deep") from None
    return hashlib.sha256(text.encode()).hexdigest()
