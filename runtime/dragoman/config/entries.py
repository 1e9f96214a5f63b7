"""One server of a configuration file: from its members to a `ServerConfig`.

Lives here: what the keys of `keys.SERVER_KEYS` mean together. Must not: look beyond the entry (`reading`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Final

from dragoman.config.document import Node
from dragoman.config.findings import Findings, near
from dragoman.config.keys import KINDS, LEFT_TO_CLIENTS, OURS, SERVER_KEYS
from dragoman.config.model import CommandTarget, ServerConfig, UrlTarget
from dragoman.config.own_keys import SERVER_KEYS as SERVER_OPTIONS
from dragoman.transports.early import OURS as OUR_VARIABLES
from dragoman.transports.upstream.config import Kind, check_url, parse_header

_CANONICAL: Final = {name: key.name for key in SERVER_KEYS for name in (key.name, *key.also)}
_OF_OURS: Final = {one.key for one in SERVER_OPTIONS} - LEFT_TO_CLIENTS
_OF_KIND: Final = {"streamable-http": Kind.STREAMABLE_HTTP, "sse": Kind.SSE}
_COMMAND_ONLY: Final = ("command", "args", "env", "envFile", "env_vars", "cwd")

_ENV_FILE_CHARACTERS: Final = 1024 * 1024

UNUSABLE: Final = CommandTarget(("",))
"""Stands where an entry does not say how its server is reached."""


class Entry:
    """The members of one server.

    Args:
        name: Its name.
        node: The object that it is in the file.
        findings: What is wrong goes there.

    Attributes:
        offset: Where it begins.
        members: Its members, by the names that they have with us.
    """

    def __init__(self, name: str, node: Node, findings: Findings) -> None:
        self.name = name
        self.offset = node.offset
        self.findings = findings
        self.members: dict[str, Node] = {}
        self._written: dict[str, str] = {}
        self._slips: dict[str, tuple[str, int]] = {}
        self._source = ""
        for key, value in node.value.items():
            self._take(key, value, node.names[key])

    def _take(self, key: str, value: Node, at: int) -> None:
        canonical = _CANONICAL.get(key)
        if canonical is None:
            self._take_unknown(key, value, at)
            return
        if canonical in self.members and value.value is not None:
            other = self._written[canonical]
            self.findings.add(
                at, f"server {self.name!r} has both {other} and {key}, which mean the same", "keep one of them"
            )
        elif value.value is not None:  # some editors write null for what is not set
            self.members[canonical] = value
            self._written[canonical] = key

    def _take_unknown(self, key: str, value: Node, at: int) -> None:
        if key == OURS:
            remedy = f'put it beside the servers: "{OURS}": {{"servers": {{"{self.name}": …}}}}'
            self.findings.add(at, f"{key} does not belong into a server", remedy)
        elif key == "source":
            self._source = str(value.value)
        elif key in _OF_OURS:
            remedy = f'write "{OURS}": {{"servers": {{"{self.name}": {{"{key}": …}}}}}} beside the servers'
            self.findings.warn(at, f"server {self.name!r} has the key {key!r}, which means nothing there", remedy)
        elif key not in LEFT_TO_CLIENTS:
            meant = near(key, _CANONICAL)
            if meant is not None:
                self._slips.setdefault(_CANONICAL[meant], (key, at))

    def read(self) -> ServerConfig:
        """Return what it says."""
        disabled = self._read_disabled()
        target = self._read_target()
        for meant, (key, at) in self._slips.items():
            problem = f"server {self.name!r} has the key {key!r}, which means nothing"
            self.findings.warn(at, problem, f"write {meant!r}?")
        only, without = self._texts("includeTools"), self._texts("excludeTools")
        return ServerConfig(
            self.name,
            target or UNUSABLE,
            disabled,
            only_tools=None if only is None else frozenset(only),
            without_tools=frozenset(without or ()),
            line=self.findings.line_of(self.offset),
        )

    def _what(self, key: str) -> str:
        return f"{self._written.get(key, key)} of server {self.name!r}"

    def _text(self, key: str) -> str | None:
        node = self.members.get(key)
        return None if node is None else self.findings.text(node, self._what(key))

    def _texts(self, key: str) -> list[str] | None:
        node = self.members.get(key)
        return None if node is None else self.findings.texts(node, self._what(key))

    def _table(self, key: str) -> dict[str, str]:
        node = self.members.get(key)
        return {} if node is None else self.findings.table(node, self._what(key)) or {}

    def _read_disabled(self) -> bool:
        disabled, enabled = (self.members.get(key) for key in ("disabled", "enabled"))
        if disabled is not None and self.findings.flag(disabled, self._what("disabled")):
            return True
        return enabled is not None and self.findings.flag(enabled, self._what("enabled")) is False

    def _read_target(self) -> CommandTarget | UrlTarget | None:
        kind = self._read_kind()
        if "command" in self.members and "url" in self.members:
            at = self.members["url"]
            self.findings.add(
                at, f"server {self.name!r} has both a command and a url", "keep the one that it is reached by"
            )
        elif "command" in self.members:
            return self._read_command(kind)
        elif "url" in self.members:
            return self._read_url(kind)
        elif self._source == "extension":
            remedy = 'to use it here, write "source": "custom", and its "command" and "args"'
            problem = f"server {self.name!r} comes with an extension of Zed, and only Zed knows its command"
            self.findings.add(self.offset, problem, remedy)
        elif slip := next((name for name in ("command", "url") if name in self._slips), None):
            key, place = self._slips.pop(slip)
            self.findings.add(place, f"server {self.name!r} has the key {key!r}, and no {slip}", f'write "{slip}"')
        else:
            remedy = 'write "command": "program", or "url": "https://host/mcp" for a server on the network'
            self.findings.add(self.offset, f"server {self.name!r} has neither command nor url", remedy)
        return None

    def _read_kind(self) -> str | None:
        text = self._text("type")
        if text is None:
            return None
        kind = KINDS.get(text.lower())
        if kind is None:
            remedy = "write stdio, http, sse or ws, or leave it out"
            self.findings.add(
                self.members["type"], f"{self._what('type')} is {text[:40]!r}, which is not a transport", remedy
            )
        return kind

    # A command

    def _read_command(self, kind: str | None) -> CommandTarget | None:
        if kind not in (None, "stdio"):
            remedy = 'write "url" in place of "command", or leave the type out'
            self.findings.add(
                self.members["type"], f"server {self.name!r} has a command, and a type that needs a url", remedy
            )
        if "headers" in self.members:
            self.findings.warn(
                self.members["headers"], f"{self._what('headers')} mean nothing for a command", "remove them"
            )
        words = self._read_words()
        env = self._read_env()
        cwd = self._read_directory()
        return None if words is None else CommandTarget(tuple(words), tuple(env.items()), cwd)

    def _read_words(self) -> list[str] | None:
        node = self.members["command"]
        args = self._texts("args") if "args" in self.members else []
        if isinstance(node.value, list):
            words = self._texts("command")
            return None if words is None or args is None else self._check_program(node, [*words, *args])
        if isinstance(node.value, dict) and "path" in node.value and node.value["path"].value is not None:
            return self._read_nested(node)  # Zed, until 2025
        program = self._text("command")
        return None if program is None or args is None else self._check_program(node, [program, *args])

    def _read_nested(self, node: Node) -> list[str] | None:
        members = {("command" if key == "path" else key): value for key, value in node.value.items()}
        names = {("command" if key == "path" else key): at for key, at in node.names.items()}
        inner = Entry(self.name, Node(members, node.offset, names), self.findings)
        if "env" in inner.members:
            self.members.setdefault("env", inner.members["env"])
        return inner._read_words()

    def _check_program(self, node: Node, words: list[str]) -> list[str] | None:
        program = words[0].strip() if words else ""
        if not program:
            self.findings.add(node, f"{self._what('command')} is empty", "name the program that is the server")
            return None
        if (
            len(words) == 1
            and len(program.split()) > 1
            and not os.path.exists(program)
            and shutil.which(program) is None
        ):
            written: str = node.value[0].value if isinstance(node.value, list) else node.value
            first, *rest = written.split()  # not what variables stand for, which may be secret
            shown = ", ".join(f'"{word}"' for word in rest[:6])
            remedy = f'write "command": "{first}", "args": [{shown}{", …" if len(rest) > 6 else ""}]'
            self.findings.add(node, f"{self._what('command')} is a program and its arguments in one string", remedy)
            return None
        return [program, *words[1:]]

    def _read_env(self) -> dict[str, str]:
        ours = self.findings.variables.environment
        handed_on = {name: ours[name] for name in self._texts("env_vars") or () if name in ours}
        given = {**handed_on, **self._read_env_file(), **self._table("env")}
        for name in given:
            if not name or "=" in name or name.startswith(OUR_VARIABLES):
                at = next(self.members[key] for key in ("env", "envFile", "env_vars") if key in self.members)
                problem = f"{self._what('env')} has {name[:40]!r}, which cannot be the name of a variable of a server"
                self.findings.add(at, problem, f"take it out: names have no '=', and {OUR_VARIABLES}… are meant for us")
        return given

    def _read_env_file(self) -> dict[str, str]:
        path = self._text("envFile")
        if not path:
            return {}
        full = self.findings.path_of(path)
        try:
            if os.path.exists(full) and not os.path.isfile(full):
                raise IsADirectoryError(0, "it is not a file")  # nor a pipe, which we would wait for
            with open(full, encoding="utf-8-sig") as file:
                lines = file.read(_ENV_FILE_CHARACTERS).splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            self.findings.add(
                self.members["envFile"], f"{self._what('envFile')} cannot be read: {reason}", "correct the path"
            )
            return {}
        pairs = (
            line.strip().removeprefix("export ").partition("=") for line in lines if not line.lstrip().startswith("#")
        )
        return {name.strip(): _unquoted(value.strip()) for name, equals, value in pairs if equals}

    def _read_directory(self) -> str | None:
        path = self._text("cwd")
        if not path:
            return None
        full = os.path.normpath(self.findings.path_of(path))
        if not os.path.isdir(full):
            self.findings.add(
                self.members["cwd"],
                f"{self._what('cwd')}: there is no directory {full!r}",
                "create it or correct the path",
            )
        return full

    # A URL

    def _read_url(self, kind: str | None) -> UrlTarget | None:
        if kind == "stdio":
            remedy = 'write "type": "http", or leave it out'
            self.findings.add(
                self.members["type"], f"server {self.name!r} has a url, and the type of a command", remedy
            )
        for key in _COMMAND_ONLY:
            if key in self.members and self.members[key].value:
                self.findings.warn(self.members[key], f"{self._what(key)} means nothing for a url", "remove it")
        url = self._text("url")
        headers = self._read_headers()
        if url is None:
            return None
        try:
            check_url(url.strip())
        except ValueError as error:
            plain = str(self.members["url"].value).split("?")[0][:60]  # as it is written, without what may be secret
            remedy = f'write "https://{plain}"?' if "://" not in url and "@" not in url else "correct it"
            self.findings.add(self.members["url"], f"{self._what('url')}: {error}", remedy)
            return None
        written = self._written["url"]
        is_sse = kind == "sse" or (kind is None and written == "url" and url.split("?")[0].rstrip("/").endswith("/sse"))
        chosen = Kind.SSE if is_sse else _OF_KIND.get(kind or "", Kind.AUTO)
        return UrlTarget(url.strip(), headers, chosen if url.lower().startswith("http") else Kind.AUTO)

    def _read_headers(self) -> tuple[tuple[str, str], ...]:
        options = self.members.get("requestOptions")
        if options is not None and isinstance(options.value, dict) and "headers" in options.value:
            self.members.setdefault("headers", options.value["headers"])
        given = {name: (value, self.members["headers"].value[name]) for name, value in self._table("headers").items()}
        for name, variable in self._table("env_http_headers").items():
            at = self.members["env_http_headers"].value[name]
            given[name] = self._variable(variable, at, f"{name} of {self._what('env_http_headers')}"), at
        if variable := self._text("bearer_token_env_var") or "":
            at = self.members["bearer_token_env_var"]
            given["Authorization"] = f"Bearer {self._variable(variable, at, self._what('bearer_token_env_var'))}", at
        return self._check_headers(given)

    def _variable(self, name: str, at: Node, what: str) -> str:
        value = self.findings.variables.environment.get(name)
        if value is None:
            self.findings.add(at, f"{what}: the environment has no variable {name[:60]}", "set it")
        return value or ""

    def _check_headers(self, given: Mapping[str, tuple[str, Node]]) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for name, (value, at) in given.items():
            try:
                found.append(parse_header(f"{name}:{value.replace('$', '$$')}" if ":" not in name else "", {}))
            except ValueError as error:
                remedy = "remove it" if "itself" in str(error) else "correct name or value"
                self.findings.add(at, f"header {name[:60]!r} of server {self.name!r}: {error}", remedy)
        return tuple(found)


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value.split(" #")[0].rstrip()
