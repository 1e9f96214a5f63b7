"""How many requests a client may make.

Lives here: one bucket a principal. Must not: know how a refusal travels (`middleware.Answer`).
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from itertools import islice
from typing import Final

from dragoman.middleware import Answer, Direction, Message, Proceed

TOO_MANY: Final = -32000
"""The implementation-defined code for a request that is one too many."""


class RateLimit:
    """Refuses requests of clients that make too many: error -32000, over HTTP with status 429 and `Retry-After`.

    Each principal may make so many requests a minute, and so many at once. Clients without a token are one principal.
    A request is refused before anybody else sees it, and does not count. Who has made none for so long that all of them
    are there again is forgotten: principals come and go, with an issuer without end.

    Args:
        per_minute: How many requests, on average.
        burst: How many at once; as many as in a minute, if it is not said.
        methods: Which requests count, such as `tools/call`; None for all.
        now_s: Reads a clock that never goes back.

    Raises:
        ValueError: A limit that would let nothing through.
    """

    def __init__(
        self,
        per_minute: float,
        burst: int | None = None,
        methods: Collection[str] | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        if per_minute <= 0 or (burst is not None and burst < 1):
            raise ValueError("expected per_minute above 0 and burst of at least 1")
        self._per_s = per_minute / 60
        self._burst = max(1.0, per_minute) if burst is None else float(burst)
        self._methods = None if methods is None else frozenset(methods)
        self._now_s = now_s
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """What is left for each principal, and when that was; who asked longest ago comes first."""

    async def __call__(self, call: Message, proceed: Proceed) -> Answer:
        """Let a request through, or refuse it."""
        if call.direction is Direction.TO_CLIENT or (self._methods is not None and call.method not in self._methods):
            return await proceed(call)
        wait_s = self._take(call.principal)
        if wait_s == 0:
            return await proceed(call)
        retry_after_s = math.ceil(wait_s)
        data = {"method": call.method, "retryAfterSeconds": retry_after_s}
        message = f"too many requests: the next one is served in {retry_after_s} s"
        return Answer.fail(TOO_MANY, message, data, retry_after_s=retry_after_s)

    def _take(self, principal: str) -> float:
        """Take one request out of a bucket; give how many seconds that has to wait, or 0."""
        now_s = self._now_s()
        self._forget(now_s)
        left = self._left(self._buckets.pop(principal, (self._burst, now_s)), now_s)
        is_served = left >= 1
        self._buckets[principal] = (left - 1 if is_served else left, now_s)
        return 0 if is_served else (1 - left) / self._per_s

    def _left(self, bucket: tuple[float, float], now_s: float) -> float:
        left, at_s = bucket
        return min(self._burst, left + (now_s - at_s) * self._per_s)

    def _forget(self, now_s: float) -> None:
        """Forget two buckets at most that are full again: more than one request can add."""
        for principal, bucket in list(islice(self._buckets.items(), 2)):
            if self._left(bucket, now_s) < self._burst:
                return
            del self._buckets[principal]
