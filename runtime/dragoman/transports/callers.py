"""Whose a request is, as one proxy tells another one behind it: two people of the first are two to the second, too.

Lives here: what is told, how it is sealed, and for how long it is good. Must not: decide whose a request is
(`http.security`), or send (`upstream`).

What is told is no name: it is made of one with the key, and leads back to none. It counts beside what whoever tells it
shows of its own, so it is worth nothing to anybody else. It is sealed as states are, with keys that are derived for
this alone, once a minute for each caller.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from dragoman.core.exact_json import decode, encode
from dragoman.core.places import keep_latest
from dragoman.core.rules.state import INSTANCE_BYTES, NONCE_BYTES, Seal

HEADER: Final = "Dragoman-Caller"

_PURPOSE: Final = b"dragoman caller"
_FRESH_S: Final = 60.0
_GOOD_S: Final = 150.0
"""How long after it was sealed it still counts: a minute more than it is sent, and half of one for clocks."""

_AHEAD_S: Final = 30.0
_KEPT: Final = 4096
_NO_NAME: Final = re.compile(r"session [0-9]+")
"""What stands for a client without a name where several share a server; names have another form."""


class ToldCaller(NamedTuple):
    """Whose a request is said to be, and until when that counts, by the clock on the wall."""

    tag: str
    until_s: float


class Callers:
    """Tells whose requests are, and reads what was told.

    Args:
        keys: As `core.rules.state.Seal` has them: the first one seals, all of them open.
        now_s: The clock on the wall.
    """

    def __init__(self, keys: tuple[bytes, ...], now_s: Callable[[], float] = time.time) -> None:
        self._seal = Seal(keys, os.urandom(INSTANCE_BYTES), _PURPOSE)
        self._now_s = now_s
        self.change_keys(keys)

    def change_keys(self, keys: tuple[bytes, ...]) -> None:
        """Use other keys from now on."""
        self._seal.change_keys(keys)
        self._key = keys[0]
        self._told: dict[str, tuple[float, Mapping[str, str]]] = {}
        self._read: dict[str, ToldCaller] = {}

    def tell(self, principal: str) -> Mapping[str, str]:
        """Return the header that says whose a request is; none where nobody has a name."""
        if not principal or _NO_NAME.fullmatch(principal):
            return {}
        now_s = self._now_s()
        made_s, told = self._told.get(principal, (-math.inf, {}))
        if not 0 <= now_s - made_s < _FRESH_S:
            tag = hashlib.blake2b(principal.encode(), digest_size=8, key=self._key, person=_PURPOSE).hexdigest()
            told = {HEADER: self._seal.seal(encode([tag, now_s]), os.urandom(NONCE_BYTES))}
            keep_latest(self._told, principal, (now_s, told), _KEPT)
        return told

    def read(self, token: str) -> ToldCaller:
        """Read what another proxy has told.

        Raises:
            ValueError: It does not count; the text says why, and what to do.
        """
        told = self._read.get(token)
        if told is None:
            opened = self._seal.open(token)
            if opened is None:
                raise ValueError("it is not sealed with a key of --trust-callers: both proxies need the same one")
            tag, made_s = decode(opened.payload)
            told = ToldCaller(tag, made_s + _GOOD_S)
            keep_latest(self._read, token, told, _KEPT)
        left_s = told.until_s - self._now_s()
        if not 0 < left_s <= _GOOD_S + _AHEAD_S:
            how = f"{_GOOD_S - left_s:.0f} s ago" if left_s <= 0 else f"{left_s - _GOOD_S:.0f} s from now"
            raise ValueError(f"it was sealed {how}, by the clock of this machine: set the clocks of both")
        return told


@lru_cache(maxsize=64)
def callers_of(file: str, keys: tuple[bytes, ...]) -> Callers:
    """Return what tells and reads with the keys of a file: the same, however many servers are told."""
    return Callers(keys)
