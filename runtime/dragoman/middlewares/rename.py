"""Other names and descriptions for the tools and prompts of a server.

Lives here: both directions of a name. Must not: know where names stand (`named`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.naming import PROMPT, TOOL
from dragoman.middleware import Answer, Direction, Message, Proceed
from dragoman.middlewares.named import LISTS, names_in, rename_in

logger = logging.getLogger("dragoman.middleware")


class Rename:
    """Gives tools and prompts other names and descriptions; clients see and use only the new ones.

    Args:
        tools: The new name of each tool, by the name that the server has for it.
        prompts: The same for prompts.
        tool_descriptions: The new description of each tool, by the name that the server has for it.
        prompt_descriptions: The same for prompts.

    Raises:
        ValueError: Two get the same name.
    """

    def __init__(
        self,
        tools: Mapping[str, str] | None = None,
        prompts: Mapping[str, str] | None = None,
        tool_descriptions: Mapping[str, str] | None = None,
        prompt_descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self._to_client = {TOOL: dict(tools or {}), PROMPT: dict(prompts or {})}
        self._descriptions = {TOOL: dict(tool_descriptions or {}), PROMPT: dict(prompt_descriptions or {})}
        self._to_server = {kind: {new: old for old, new in names.items()} for kind, names in self._to_client.items()}
        for kind, names in self._to_client.items():
            if len(self._to_server[kind]) < len(names):
                raise ValueError(f"expected a name of its own for each {kind}, found one for several")

    async def __call__(self, call: Message, proceed: Proceed) -> Answer:
        """Change names on the way to the server, and in lists on the way back."""
        if call.direction is Direction.TO_CLIENT:
            return await proceed(call)
        for kind, name in names_in(call.method, call.params):
            if name in self._to_client.get(kind, {}) and name not in self._to_server[kind]:
                return Answer.fail(INVALID_PARAMS, f"unknown {kind}: {name}", {"method": call.method})
            if name in self._to_server.get(kind, {}):
                call = call.with_params(rename_in(call.method, call.params, self._name_for_server))
        answer = await proceed(call)
        if call.method not in LISTS or answer.result is None:
            return answer
        kind, member, _ = LISTS[call.method]
        listed = answer.result.get(member)
        if kind not in self._to_client or not isinstance(listed, list):
            return answer
        return Answer.succeed({**answer.result, member: [one for old in listed for one in self._show(kind, old)]})

    def _name_for_server(self, kind: str, name: str) -> str:
        return self._to_server.get(kind, {}).get(name, name)

    def _show(self, kind: str, listed: Any) -> list[Any]:
        """Return what a client sees of a tool or prompt; nothing, if another one has taken its name."""
        name = listed.get("name") if isinstance(listed, dict) else None
        if not isinstance(name, str):
            return [listed]
        new = self._to_client[kind].get(name)
        if new is None and name in self._to_server[kind]:
            taker = self._to_server[kind][name]
            logger.warning("%s %s of the server is hidden: %s is called so here", kind, name, taker)
            return []
        shown = {**listed, "name": name if new is None else new}
        if name in self._descriptions[kind]:
            shown["description"] = self._descriptions[kind][name]
        return [shown]
