"""Tokens that only we can read and nobody can change: what a client carries for us from one request to the next.

Lives here: sealing and opening. Must not: know what is sealed (`state`), or make keys and random bytes, which come in.

Theory of operation. AES-256-GCM of the `cryptography` package: whoever changes a token, or has another key, cannot
make one that opens. Each instance of the proxy derives a key of its own from the common one, so that the random
nonces of one key are those of one process: 2^32 of them may be used (NIST SP 800-38D, 8.3), and no process makes as
many. The instance stands in the token in clear, where a router can read it; it is authenticated with the rest.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

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
    """

    __slots__ = ("_cipher", "_keys", "instance")

    def __init__(self, keys: bytes | tuple[bytes, ...], instance: bytes) -> None:
        self.instance = instance
        self.change_keys(keys)

    def change_keys(self, keys: bytes | tuple[bytes, ...]) -> None:
        """Seal and open with other keys from now on."""
        self._keys = (keys,) if isinstance(keys, bytes) else keys
        if {len(key) for key in self._keys} != {KEY_BYTES} or len(self.instance) != INSTANCE_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes and an instance {INSTANCE_BYTES}")
        self._cipher = _derive(self._keys[0], self.instance)

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
            cipher = self._cipher if not number and instance == self.instance else _derive(key, instance)
            with contextlib.suppress(InvalidTag):
                return Opened(instance, cipher.decrypt(nonce, sealed, raw[:_HEAD_BYTES]))
        return None


def _derive(key: bytes, instance: bytes) -> AESGCM:
    # Imported here: it takes 30 ms and 11 MB, which only some paths need.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

    return AESGCM(HKDFExpand(SHA256(), KEY_BYTES, b"dragoman request state" + instance).derive(key))


def _decode(token: str) -> bytes | None:
    """Read the one way in which a token is spelled: another spelling of the same bytes is not ours."""
    if len(token) > LONGEST_TOKEN or not token.isascii():
        return None
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == token else None
