"""The results of a session, kept for what clients of older revisions would lose of them.

Lives here: keeping them small, for decoded they take up to eight times as much as JSON, and each only once. Must not:
look into them (`losses`).
"""

from __future__ import annotations

import zlib
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from dragoman.core.exact_json import decode, encode

RESULTS_MOST: Final = 2000
BYTES_MOST: Final = 16 * 1024 * 1024
"""How much of what a server says is kept."""


class HeardResult(NamedTuple):
    """A result that came.

    Attributes:
        method: Of the request that it answers.
        packed: The response as JSON, compressed.
    """

    method: str
    packed: bytes

    def read(self) -> Any:
        """Return the response."""
        return decode(zlib.decompress(self.packed))


class HeardResults:
    """Those of one session.

    Attributes:
        all: Those that are kept, in order.
    """

    def __init__(self) -> None:
        self.all: list[HeardResult] = []
        self._digests: set[bytes] = set()
        self._left_bytes = BYTES_MOST

    def keep(self, method: str, result: dict[str, Any]) -> None:
        """Keep a result, unless the same one is kept already, or too much."""
        line = encode({"jsonrpc": "2.0", "id": 1, "result": result})
        digest = blake2b(method.encode() + line, digest_size=16).digest()
        if digest in self._digests or len(self.all) >= RESULTS_MOST:
            return
        packed = zlib.compress(line, level=1)
        if len(packed) <= self._left_bytes:
            self._digests.add(digest)
            self._left_bytes -= len(packed)
            self.all.append(HeardResult(method, packed))
