"""How a question in the middle of a per-request client's call is put to it: which of four ways.

Lives here: the choice, when a server with a handshake first asks. Must not: follow it (`replay`, `core.switch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from dragoman.core.methods import CALL_TOOL
from dragoman.core.rules.names import FACTS
from dragoman.core.unchecked import find_object


class Strategy(Enum):
    """A way to put a question.

    Attributes:
        TASK: Answer with a task, and let the question stand in what is told of it: the client polls and answers.
        PARK: Keep the server's call, and ask in a result.
        REPLAY: End the server's call, ask in a result, and make the call again with the recorded answers.
        REFUSE: Ask nobody.
    """

    TASK = "task"
    PARK = "park"
    REPLAY = "replay"
    REFUSE = "refuse"


AUTO: Final = "auto"
SETTINGS: Final = (AUTO, *(strategy.value for strategy in Strategy))
"""What a user can choose for a server."""


def promotes(setting: str) -> bool:
    """Whether a call may become a task because of a question."""
    return setting in (AUTO, Strategy.TASK.value)


def may_keep(setting: str) -> bool:
    """Whether a call goes on with the answer, whatever its client declares: then its question costs it nothing."""
    return setting in (AUTO, Strategy.PARK.value)


def choose_strategy(
    setting: str,
    method: str,
    *,
    tool: Mapping[str, Any] | None = None,
    may_repeat: bool = False,
    can_park: bool = True,
    can_be_task: bool = False,
) -> Strategy:
    """Choose how to put a question.

    Args:
        setting: One of `SETTINGS`; `auto` is the first way that applies, in the order of `Strategy`.
        method: Of the client's request.
        tool: The tool that it calls, as the server listed it.
        may_repeat: Whether the user says that this tool may be run twice.
        can_park: Whether another call may wait here.
        can_be_task: Whether its client takes a task as its answer, and another one may run here.
    """
    may_come_back = method in FACTS.input_required
    if can_be_task and setting in (AUTO, Strategy.TASK.value):
        return Strategy.TASK
    if can_park and may_come_back and setting in (AUTO, Strategy.PARK.value):
        return Strategy.PARK
    can_repeat = may_come_back and setting in (AUTO, Strategy.REPLAY.value)
    return Strategy.REPLAY if can_repeat and (may_repeat or _is_repeatable(method, tool)) else Strategy.REFUSE


def _is_repeatable(method: str, tool: Mapping[str, Any] | None) -> bool:
    """Whether a request may be made twice: what only reads may, and a tool whose server says so of it."""
    if method != CALL_TOOL:
        return True
    hints = find_object(tool, "annotations")
    return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
