"""The proxy put before servers in the text of a configuration file, and taken out again.

Only the entries of these servers change; comments, order and white space around them stay as they are. An entry that
is taken out is as it was before, character by character, if the text from before is at hand.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman.config.document import Node, NotJson, measure, parse_document
from dragoman.config.keys import SERVER_KEYS, WRAPPERS
from dragoman.transports.upstream.config import check_url

_NAMES: Final = {name: key.name for key in SERVER_KEYS for name in (key.name, *key.also)}
_OF_URLS: Final = frozenset({"url", "headers", "type"})
_VARIABLE: Final = "DRAGOMAN_HEADER_"
_TRANSPORTS: Final = {"sse": "sse", "streamable-http": "streamable-http"}


class NotWrapped(Exception):
    """An entry stays as it is; the text says why."""


@dataclass(frozen=True, slots=True)
class Written:
    """The entry of one server in a text.

    Attributes:
        name: The server's.
        start: Where its object begins, in characters.
        text: The object, as it is written.
        indent: The white space before the line in which it begins.
    """

    name: str
    start: int
    text: str
    indent: str

    def read(self) -> dict[str, Any]:
        """Return what it says.

        Raises:
            NotWrapped: It is not an object.
        """
        value = _plain(parse_document(self.text))
        if not isinstance(value, dict):
            raise NotWrapped("its entry is not an object")
        return value

    def write(self, value: Mapping[str, Any]) -> str:
        """Return another value, laid out like this one.

        Raises:
            NotWrapped: JSON has no way to write it.
        """
        inner = re.match(r"\{[^\n]*\n([ \t]*)", self.text)
        unit = (inner[1] if inner else "").removeprefix(self.indent) or "  "
        end = "\r\n" if "\r\n" in self.text else "\n"
        try:
            text = json.dumps(value, ensure_ascii=False, indent=unit if "\n" in self.text else None, allow_nan=False)
            text.encode()
        except ValueError:  # 1e400, half of a pair of surrogates
            raise NotWrapped("it has a number that is too large, or text that is not Unicode") from None
        return text.replace("\n", f"{end}{self.indent}")


@dataclass(frozen=True, slots=True)
class Edit:
    """What became of a text.

    Attributes:
        text: The text now.
        done: The servers whose entries are other ones now.
        left: Why the others stay as they are, by server.
    """

    text: str
    done: tuple[str, ...]
    left: Mapping[str, str]


def find_entries(text: str) -> dict[str, Written]:
    """Find the entries of the servers in a text.

    Raises:
        NotJson: It cannot be read.
    """
    document = parse_document(text)
    for wrapper in WRAPPERS:
        node: Node | None = document
        for name in wrapper.path:
            node = node.value.get(name) if node is not None and isinstance(node.value, dict) else None
        if node is not None and isinstance(node.value, dict):
            return {name: _written(name, member, text) for name, member in node.value.items()}
    return {}


def wrap(text: str, program: Sequence[str], names: Collection[str] | None = None) -> Edit:
    """Put the proxy before servers.

    Args:
        text: Of a configuration file.
        program: The command that is `dragoman`.
        names: Of which servers; None for all.

    Raises:
        NotJson: The text cannot be read.
    """
    return _edit(text, names, lambda entry: entry.write(_wrap(entry.read(), program)))


def unwrap(text: str, before: str | None, names: Collection[str] | None = None) -> Edit:
    """Take the proxy out again.

    Args:
        text: Of a configuration file.
        before: The text before the proxy was put in; None where there is none.
        names: Of which servers; None for all.

    Raises:
        NotJson: The text cannot be read.
    """
    try:
        originals = {} if before is None else find_entries(before)
    except NotJson:
        originals = {}

    def take_out(entry: Written) -> str:
        value = entry.read()
        program, words = _split(value)
        original = originals.get(entry.name)
        if original is not None and _comes_from(value, original, program):
            return original.text
        return entry.write(_unwrap(value, words))

    return _edit(text, names, take_out)


def _edit(text: str, names: Collection[str] | None, change: Callable[[Written], str]) -> Edit:
    done: list[str] = []
    left: dict[str, str] = {}
    entries = find_entries(text)
    for entry in sorted(entries.values(), key=lambda entry: entry.start, reverse=True):
        if names is not None and entry.name not in names:
            continue
        try:
            changed = change(entry)
        except NotWrapped as reason:
            left[entry.name] = str(reason)
            continue
        text = text[: entry.start] + changed + text[entry.start + len(entry.text) :]
        done.append(entry.name)
    return Edit(text, tuple(reversed(done)), dict(reversed(left.items())))


def _written(name: str, node: Node, text: str) -> Written:
    line = text[text.rfind("\n", 0, node.offset) + 1 : node.offset]
    indent = line[: len(line) - len(line.lstrip())]
    return Written(name, node.offset, text[node.offset : measure(text, node.offset)], indent)


def _plain(node: Node) -> Any:
    match node.value:
        case dict(members):
            return {name: _plain(member) for name, member in members.items()}
        case list(items):
            return [_plain(item) for item in items]
        case value:
            return value


# One entry


def _comes_from(value: dict[str, Any], original: Written, program: Sequence[str]) -> bool:
    """Whether an entry is what another one becomes with the proxy before it: nobody has changed it since."""
    try:
        return _wrap(original.read(), program) == value
    except NotWrapped:
        return False


def _wrap(entry: dict[str, Any], program: Sequence[str]) -> dict[str, Any]:
    if _is_wrapped(entry):
        raise NotWrapped("the proxy is before it already")
    said = {_NAMES.get(key, key): value for key, value in entry.items()}
    if "command" in said:
        words = [*_listed(said["command"]), *_listed(said.get("args") or [])]
        return _with_command(entry, [*program, "proxy", "--", *words], frozenset())
    if isinstance(said.get("url"), str):
        words, variables = _reach(said)
        wrapped = _with_command(entry, [*program, "proxy", *words], _OF_URLS)
        return wrapped | ({"env": {**_mapped(said, "env"), **variables}} if variables else {})
    raise NotWrapped("it has neither command nor url")


def _reach(said: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The options that reach a URL, and the variables that hold what other users of the machine must not see."""
    try:
        words = ["--url", check_url(said["url"])]
    except ValueError as error:
        raise NotWrapped(str(error)) from None
    transport = _TRANSPORTS.get(str(said.get("type")).lower())
    if transport is not None:
        words += ["--upstream", transport]
    variables = {}
    for number, (name, value) in enumerate(_mapped(said, "headers").items(), 1):
        variable = f"{_VARIABLE}{number}"
        words += ["--header", f"{name}: ${variable}"]
        variables[variable] = str(value)
    return words, variables


def _with_command(entry: Mapping[str, Any], words: Sequence[str], without: Collection[str]) -> dict[str, Any]:
    """An entry that starts this command, at the place where it said how its server is reached."""
    command: dict[str, Any] = {"command": words[0], "args": list(words[1:])}
    if isinstance(entry.get("command"), list):
        command = {"command": list(words)}
    wrapped: dict[str, Any] = {}
    for key, value in entry.items():
        name = _NAMES.get(key, key)
        if name in ("command", "args", "url"):
            wrapped.update(command)
        elif name == "type" and name in without:
            wrapped[key] = "stdio"
        elif name not in without:
            wrapped[key] = value
    return wrapped


def _unwrap(entry: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    if "--" not in words:
        return _without_url_options(entry, words)
    at = words.index("--")
    if at:
        raise NotWrapped(f"the proxy has options there that would be lost: {' '.join(words[:at])}")
    if not words[1:]:
        raise NotWrapped("there is no command behind the proxy")
    return _with_command(entry, words[1:], frozenset())


def _without_url_options(entry: Mapping[str, Any], words: Sequence[str]) -> dict[str, Any]:
    given = dict(_pairs(words))
    url, env = given.pop("--url", None), dict(_mapped(entry, "env"))
    transport = given.pop("--upstream", None)
    headers = {}
    for line in [one for option, one in _pairs(words) if option == "--header"]:
        name, _, variable = line.partition(": $")
        if variable not in env:
            raise NotWrapped(f"a header of the proxy is not one that was put there: {name}")
        headers[name] = env.pop(variable)
    given.pop("--header", None)
    if url is None or given:
        raise NotWrapped(f"the proxy has options there that would be lost: {' '.join(words)}")
    bare: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "command":
            bare["url"] = url
            if headers:
                bare["headers"] = headers
        elif key == "type":
            bare[key] = transport or "http"
        elif key == "env":
            bare.update({"env": env} if env else {})
        elif key != "args":
            bare[key] = value
    if transport and "type" not in bare:
        bare["type"] = transport
    return bare


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(words) % 2:
        raise NotWrapped(f"the proxy has options there that would be lost: {' '.join(words)}")
    return zip(words[::2], words[1::2], strict=True)


def _is_wrapped(entry: Mapping[str, Any]) -> bool:
    try:
        _split(entry)
    except NotWrapped:
        return False
    return True


def _split(entry: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The command that is `dragoman`, and the words behind `proxy`.

    Raises:
        NotWrapped: The entry starts something else.
    """
    words = [*_listed(entry.get("command") or []), *_listed(entry.get("args") or [])]
    at = words.index("proxy") if "proxy" in words[:4] else 0
    if not at or os.path.basename(words[at - 1]) not in ("dragoman", "dragoman.exe"):
        raise NotWrapped("the proxy is not before it")
    return words[:at], words[at + 1 :]


def _mapped(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = said.get(name) or {}
    if not isinstance(value, dict):
        raise NotWrapped(f"its {name} is not an object")
    return value


def _listed(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return value
    raise NotWrapped("its command is not a string, or its arguments are not strings")
