"""Variables in the strings of a configuration file, filled in as desktop clients do.

Lives here: which forms there are, and what each means. Must not: decide in which strings they count (`reading`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

INPUT_VARIABLE: Final = "DRAGOMAN_INPUT_"
"""With what the name of the variable begins that stands in for a question of VS Code, `${input:…}`."""

_FORM = re.compile(r"(\$?)\$\{(?:(env|input|command|config):)?([A-Za-z_/][\w./-]*?)(?::-([^}]*))?\}")
_SECRET = re.compile(r"\$\{\{\s*(?:secrets|inputs)\.([A-Za-z_][\w.-]*)\s*\}\}")
_OURS_LAST: Final = frozenset({".vscode", ".cursor"})


class NotSet(Exception):
    """A variable has no value.

    Args:
        problem: Which, in words.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Variables:
    """What forms stand for.

    Attributes:
        environment: Of this process.
        directory: Where the file is.
    """

    environment: Mapping[str, str]
    directory: str

    def expand(self, text: str) -> str:
        """Fill in the variables of a string: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${userHome}` and others.

        Continue's `${{ secrets.NAME }}` is a variable as well.

        `$${` gives `${`. A form that is none of these stays as it is.

        Raises:
            NotSet: A variable has no value and no default.
        """
        if "${" not in text:
            return text
        end = text.rfind("}") + 1  # each form that is not closed would be read to the end
        closed = _SECRET.sub(lambda found: f"${{env:{found[1]}}}", text[:end])
        return _FORM.sub(self._replace, closed) + text[end:]

    def _replace(self, found: re.Match[str]) -> str:
        dollar, kind, name, default = found.groups()
        if dollar:
            return found[0][1:]
        if kind == "input":
            return self._read_input(name)
        if kind in ("command", "config"):
            raise NotSet(
                f"${{{kind}:{name}}} can only be filled in by VS Code", f"write ${{env:{_variable(name)}}} instead"
            )
        if kind is None and name in (
            "workspaceFolder",
            "workspaceFolderBasename",
            "userHome",
            "cwd",
            "pathSeparator",
            "/",
        ):
            return self._read_place(name)
        value = self.environment.get(name)
        if value:
            return value
        if default is not None:
            return default
        if value is not None:
            return value
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            return found[0]
        raise NotSet(f"the environment has no variable {name}", f"set it, or write ${{{name}:-}} for an empty one")

    def _read_input(self, name: str) -> str:
        variable = f"{INPUT_VARIABLE}{_variable(name)}"
        if variable not in self.environment:
            raise NotSet(
                f"${{input:{name}}} is a question that VS Code asks", f"put the answer into the variable {variable}"
            )
        return self.environment[variable]

    def _read_place(self, name: str) -> str:
        match name:
            case "userHome":
                return self.environment.get("HOME") or os.path.expanduser("~")
            case "pathSeparator" | "/":
                return os.sep
            case "cwd":
                return os.getcwd()
        above, last = os.path.split(self.directory)
        workspace = above if last in _OURS_LAST else self.directory
        return os.path.basename(workspace) if name == "workspaceFolderBasename" else workspace


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()
