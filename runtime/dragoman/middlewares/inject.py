"""Tokens and other values from the environment, put into calls where clients neither see nor give them.

Lives here: arguments and `_meta`. Must not: write headers, which go to a server from its opening on
(`transports.upstream.inject_headers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from dragoman.core.repeats import read_widely
from dragoman.core.unchecked import find_object
from dragoman.middleware import Answer, Direction, Message, Proceed
from dragoman.transports.live_values import fill_in


class Inject:
    """Adds arguments to calls of tools, and members to the `_meta` of every request, with values from the environment.

    `$NAME` and `${NAME}` in a value are variables of the environment, `${file:PATH}` is what is in a file, without the
    white space around it, `$$` a dollar; they are read anew for each request. What a client gives for such an argument
    is replaced, in another case, too: some servers do not tell cases apart. The input schemas that it sees have none.

    Args:
        arguments: The value of each argument.
        tools: Patterns of the names of the tools that get them.
        meta: What is added to `_meta`.
        environment: Where variables are looked up; None for that of this process.

    Raises:
        ValueError: There is no such variable or file, or it is empty.
    """

    def __init__(
        self,
        arguments: Mapping[str, str] | None = None,
        tools: Iterable[str] = ("*",),
        meta: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._arguments = dict(arguments or {})
        self._meta = dict(meta or {})
        self._environment = environment
        self._tools = tuple(tools)
        self._read(self._arguments)  # what is wrong is said before there is a request
        self._read(self._meta)

    async def __call__(self, call: Message, proceed: Proceed) -> Answer:
        """Add what is to be added, and hide from lists what a client need not give."""
        if call.direction is Direction.TO_CLIENT:
            return await proceed(call)
        given = params = call.params
        if self._meta:
            params = self._add(params, "_meta", self._meta)
        if call.method == "tools/call" and self._arguments and self._concerns(params.get("name")):
            params = self._add(params, "arguments", self._arguments)
        answer = await proceed(call if params is given else call.with_params(params))
        if call.method != "tools/list" or not self._arguments or answer.result is None:
            return answer
        listed = answer.result.get("tools")
        if not isinstance(listed, list):
            return answer
        return Answer.succeed({**answer.result, "tools": [self._hide(tool) for tool in listed]})

    def _read(self, templates: Mapping[str, str]) -> dict[str, str]:
        return {name: fill_in(template, self._environment) for name, template in templates.items()}

    def _add(self, params: Mapping[str, Any], member: str, templates: Mapping[str, str]) -> dict[str, Any]:
        own = {name: value for name, value in params.items() if name == member or read_widely(name) != member}
        left = _without(find_object(params, member), templates)
        return {**own, member: {**left, **self._read(templates)}}

    def _concerns(self, name: object) -> bool:
        return isinstance(name, str) and any(fnmatchcase(name, pattern) for pattern in self._tools)

    def _hide(self, tool: Any) -> Any:
        if not isinstance(tool, dict) or not self._concerns(tool.get("name")):
            return tool
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict):
            return tool
        properties, required = schema.get("properties"), schema.get("required")
        if isinstance(properties, dict):
            schema = {**schema, "properties": _without(properties, self._arguments)}
        if isinstance(required, list):
            named = [name for name in required if isinstance(name, str)]
            schema = {**schema, "required": list(_without(dict.fromkeys(named), self._arguments))}
        return {**tool, "inputSchema": schema}


def _without(members: Mapping[str, Any], added: Iterable[str]) -> dict[str, Any]:
    """Return members but for those that some servers read as one of these: one in Go takes `Key` for `key`."""
    taken = {read_widely(name) for name in added}
    return {name: value for name, value in members.items() if read_widely(name) not in taken}
