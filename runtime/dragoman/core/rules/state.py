"""What stands in the `requestState` that we give to a client, and whether what comes back is that.

Lives here: sealing, writing a state, and checking it against the request that brings it. Must not: keep what it stands
for (`core.switch.to_session.asking`), follow it (`urls`, `replay`), or make keys and random bytes, which come in.

"Servers MUST treat `requestState` as an attacker-controlled input" (2026-07-28/basic/patterns/mrtr). So it is sealed,
and it says for which server, caller and request it is, and until when. That it is used once is for whoever keeps what
it stands for.

The seal is AES-256-GCM of the `cryptography` package: whoever changes a token, or has another key, cannot make one that
opens. Each instance of the proxy derives a key of its own from the common one, so that the random nonces of one key are
those of one process: 2^32 of them may be used (NIST SP 800-38D, 8.3), and no process makes as many. The instance stands
in the token in clear, where a router can read it; it is authenticated with the rest.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
from collections.abc import Container, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.exact_json import decode, encode
from dragoman.errors import RemoteProtocolError
from dragoman_spec.record import record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES: Final = 32
INSTANCE_BYTES: Final = 16
NONCE_BYTES: Final = 12

_VERSION: Final = b"\x01"
_HEAD_BYTES: Final = len(_VERSION) + INSTANCE_BYTES
LONGEST_TOKEN: Final = 1024 * 1024
"""How long a token may be: more is not ours, and is not looked at."""


class Opened(NamedTuple):
    """What was sealed, and by which instance."""

    instance: bytes
    payload: bytes


class Seal:
    """Seals for one instance; opens what any instance with the same key has sealed.

    Args:
        keys: Each `KEY_BYTES` random bytes, kept secret; the first one seals, all of them open. The same for instances
            that shall read each other's tokens.
        instance: `INSTANCE_BYTES` random bytes, made anew at each start.
        purpose: What is sealed: what was sealed for another purpose does not open.
    """

    __slots__ = ("_cipher", "_keys", "_purpose", "instance")

    def __init__(
        self, keys: bytes | tuple[bytes, ...], instance: bytes, purpose: bytes = b"dragoman request state"
    ) -> None:
        self.instance = instance
        self._purpose = purpose
        self.change_keys(keys)

    def change_keys(self, keys: bytes | tuple[bytes, ...]) -> None:
        """Seal and open with other keys from now on."""
        self._keys = (keys,) if isinstance(keys, bytes) else keys
        if {len(key) for key in self._keys} != {KEY_BYTES} or len(self.instance) != INSTANCE_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes and an instance {INSTANCE_BYTES}")
        self._cipher = self._derive(self._keys[0], self.instance)

    def seal(self, payload: bytes, nonce: bytes) -> str:
        """Seal bytes.

        Args:
            payload: What to seal.
            nonce: `NONCE_BYTES` random bytes, never used before by this instance.

        Returns:
            A token of letters, digits, `-` and `_`.
        """
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
        head = _VERSION + self.instance
        sealed = self._cipher.encrypt(nonce, payload, head)
        return base64.urlsafe_b64encode(head + nonce + sealed).rstrip(b"=").decode()

    def open(self, token: str) -> Opened | None:
        """Open a token; None for anything that was not sealed with one of our keys, or was changed since."""
        from cryptography.exceptions import InvalidTag

        raw = _decode(token)
        if raw is None or raw[:1] != _VERSION or len(raw) < _HEAD_BYTES + NONCE_BYTES + 16:
            return None
        instance = raw[1:_HEAD_BYTES]
        nonce, sealed = raw[_HEAD_BYTES : _HEAD_BYTES + NONCE_BYTES], raw[_HEAD_BYTES + NONCE_BYTES :]
        for number, key in enumerate(self._keys):
            cipher = self._cipher if not number and instance == self.instance else self._derive(key, instance)
            with contextlib.suppress(InvalidTag):
                return Opened(instance, cipher.decrypt(nonce, sealed, raw[:_HEAD_BYTES]))
        return None

    def _derive(self, key: bytes, instance: bytes) -> AESGCM:
        # Imported here: it takes 30 ms and 11 MB, which only some paths need.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

        return AESGCM(HKDFExpand(SHA256(), KEY_BYTES, self._purpose + instance).derive(key))


def _decode(token: str) -> bytes | None:
    """Read the one way in which a token is spelled: another spelling of the same bytes is not ours."""
    if len(token) > LONGEST_TOKEN or not token.isascii():
        return None
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == token else None


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


@record
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
