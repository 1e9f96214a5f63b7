"""What a revision says about one wire method: the type of every entry of its `METHODS`. Imports no pydantic."""

from __future__ import annotations

from typing import Literal

from dragoman_spec.record import record

Side = Literal["client", "server"]


@record
class Method:
    """One method of one revision, with the names of the definitions that its frames are made of.

    Args:
        name: The wire name, `tools/call`.
        kind: Whether it is answered.
        sender: Who may send it.
        frame: The definition of the request or notification itself.
        params: The definition of `params`; None where frames have none.
        result: The definition of the usual result; None for notifications.
        results: Every definition the result can be, the usual one first.
        capability: The capability that must have been declared: by the side that answers, for notifications by the side
            that sends (`notifications/elicitation/complete`: by the client); None where none is needed. Dots part
            levels: `tools.listChanged`.
        summary: What it does, in a sentence or two; empty where nobody has said it yet.
    """

    name: str
    kind: Literal["request", "notification"]
    sender: frozenset[Side]
    frame: str
    params: str | None
    result: str | None
    results: tuple[str, ...]
    capability: str | None
    summary: str
