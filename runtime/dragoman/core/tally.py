"""Counting what may come as a flood, so that its log does not.

Lives here: which of many alike events gets a line. Must not: log, or read a clock. Called wherever a peer chooses how
often something is refused.
"""

from __future__ import annotations


def deserves_a_line(count: int) -> bool:
    """Whether the event with this number is logged: the 1st, the 10th, the 100th and so on."""
    return str(count).rstrip("0") == "1"
