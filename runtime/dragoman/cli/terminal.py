"""A person at the terminal whom a server asks something.

Lives here: filling in a form line by line. Must not: know who asks (`session`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import dragoman_spec
from dragoman.cli.screen import tell
from dragoman.cli.values import read_value

_LONGEST_LINE_BYTES: Final = 64 * 1024


class Questions:
    """Answers what a server asks a person: at the terminal, or by declining where nobody is there.

    Args:
        revision: Whose models go in and come out.
        is_attended: Whether somebody is at the terminal.
        clear: Makes room for a question on the line of the terminal.
    """

    def __init__(self, revision: str, is_attended: bool, clear: Callable[[], None]) -> None:
        self._result = dragoman_spec.load(revision).ElicitResult
        self._is_attended = is_attended
        self._clear = clear
        self._turn = asyncio.Lock()

    async def answer(self, params: Any) -> Any:
        """Answer one question."""
        self._clear()
        form = params.model_dump()
        schema = form.get("requestedSchema")
        if not self._is_attended or not isinstance(schema, Mapping):
            tell(f"declined, as nobody can be asked: {form['message']}")
            return self._result(action="decline")
        async with self._turn:
            return await self._fill_in(form["message"], schema)

    async def _fill_in(self, message: str, schema: Mapping[str, Any]) -> Any:
        tell(f"The server asks: {message}")
        content: dict[str, Any] = {}
        required = schema.get("required", [])
        for name, member in schema.get("properties", {}).items():
            while True:
                tell(describe(name, member, name in required), end=" ")
                line = await read_line()
                if line is None:
                    return self._result(action="cancel")
                if line:
                    content[name] = read_value(line, member)
                elif "default" in member:
                    content[name] = member["default"]
                elif name in required:
                    continue
                break
        tell("Send this? [y/N]", end=" ")
        line = await read_line()
        if line is not None and line.lower() in ("y", "yes"):
            return self._result(action="accept", content=content)
        return self._result(action="decline")


def describe(name: str, member: Mapping[str, Any], is_required: bool) -> str:
    """Say in one line what is asked for."""
    said = [str(member.get("title") or name)]
    if member.get("description"):
        said.append(f"({member['description']})")
    if isinstance(member.get("enum"), list):
        said.append(f"({' | '.join(map(str, member['enum']))})")
    elif member.get("type") not in (None, "string"):
        said.append(f"({member['type']})")
    if "default" in member:
        said.append(f"[{member['default']}]")
    elif not is_required:
        said.append("[none]")
    return f"{' '.join(said)}:"


async def read_line() -> str | None:
    """Read a line of the terminal without a thread, which could not be stopped; None at its end.

    On Windows there is no other way: what somebody types whom nobody asks any more is lost there.
    """
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    if sys.platform == "win32":
        lines: list[bytes] = []

        def read() -> None:
            lines.append(os.read(0, _LONGEST_LINE_BYTES))
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ready.set)

        threading.Thread(target=read, name="dragoman-terminal", daemon=True).start()
        await ready.wait()
        line = lines[0]
    else:
        loop.add_reader(0, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(0)
        line = os.read(0, _LONGEST_LINE_BYTES)
    return line.decode(errors="replace").strip() if line else None
