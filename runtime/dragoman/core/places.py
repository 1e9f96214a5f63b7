"""Whether somebody gets one more of places that several share: not while it has as many as are left, so one is left."""

from __future__ import annotations

from collections.abc import Iterable


def has_place(sender: str, senders: Iterable[str], taken: int, most: int) -> bool:
    """Whether one more may be taken.

    Args:
        sender: Who wants it; empty where nobody has a share.
        senders: Who has the others.
        taken: How many these are.
        most: How many there are.
    """
    left = most - taken
    return taken < left or (left > 0 and not (sender and sum(one == sender for one in senders) >= left))
