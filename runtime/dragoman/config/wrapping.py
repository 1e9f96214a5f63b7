"""The proxy put before servers in the text of a configuration file, and taken out again.

Only the entries of these servers change; comments, order and white space around them stay as they are. An entry that
is taken out is as it was before, character by character, if the text from before is at hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dragoman.config.clients import find_folder, local_servers
from dragoman.config.document import Node, NotJson, look, measure, parse_document
from dragoman.config.keys import SERVER_KEYS, WRAPPERS
from dragoman.transports.upstream.config import check_url, describe_url

_NAMES: Final = {name: key.name for key in SERVER_KEYS for name in (key.name, *key.also)}
_OF_URLS: Final = frozenset({"url", "headers", "type"})
_VARIABLE: Final = "WRAPPED_HEADER_"
_URL_VARIABLE: Final = "WRAPPED_URL"
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
        folder: The one it is for, in the file of Claude Code; empty for all.
    """

    name: str
    start: int
    text: str
    indent: str
    folder: str = ""

    @property
    def title(self) -> str:
        """Its name, for a person."""
        return f"{self.name} of {self.folder}" if self.folder else self.name

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
    """Find the entries of the servers in a text that count in the current folder.

    Raises:
        NotJson: It cannot be read.
    """
    return _select(find_all(text))


def find_all(text: str) -> dict[tuple[str, str], Written]:
    """Find the entries for all folders, by folder and name; those that are for every folder come first.

    Raises:
        NotJson: It cannot be read.
    """
    document = parse_document(text)
    found = (look(document, wrapper.path) for wrapper in WRAPPERS)
    tables = {"": next((one for one in found if one and isinstance(one.value, dict)), Node({}, 0))}
    return {
        (folder, name): _written(name, member, text, folder)
        for folder, table in {**tables, **local_servers(document)}.items()
        for name, member in table.value.items()
    }


def _select(entries: Mapping[tuple[str, str], Written]) -> dict[str, Written]:
    here = find_folder({folder for folder, _ in entries})
    return {name: entry for (folder, name), entry in entries.items() if folder in ("", here)}


def wrap(text: str, program: Sequence[str], names: Collection[str] | None = None) -> Edit:
    """Put the proxy before servers.

    Args:
        text: Of a configuration file.
        program: The command that is `dragoman`.
        names: Of which servers that count in the current folder; None for all, of all folders.

    Raises:
        NotJson: The text cannot be read.
    """
    return _edit(text, names, lambda entry: entry.write(_wrap(entry.read(), program)))


def unwrap(text: str, before: str | None, names: Collection[str] | None = None) -> Edit:
    """Take the proxy out again.

    Args:
        text: Of a configuration file.
        before: The text before the proxy was put in; None where there is none.
        names: Of which servers that count in the current folder; None for all, of all folders.

    Raises:
        NotJson: The text cannot be read.
    """
    try:
        originals = {} if before is None else find_all(before)
    except NotJson:
        originals = {}

    def take_out(entry: Written) -> str:
        value = entry.read()
        parts = _split(value)
        if parts is None:
            raise NotWrapped("the proxy is not before it")
        program, words = parts
        original = originals.get((entry.folder, entry.name))
        if original is not None and _comes_from(value, original, program):
            return original.text
        return entry.write(_unwrap(value, words))

    return _edit(text, names, take_out)


def show_wrapped(document: Node, program: Sequence[str]) -> str:
    """Say what the first entry with a command becomes with the proxy before it, in words that TOML and YAML read, too.

    Args:
        document: A configuration in any notation.
        program: The command that is `dragoman`.
    """
    for table in filter(None, (look(document, wrapper.path) for wrapper in WRAPPERS)):
        found = _plain(table)
        for entry in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
            with contextlib.suppress(NotWrapped):
                if isinstance(entry, dict) and isinstance(entry.get("command"), str):
                    pairs = [(one["command"], one.get("args") or []) for one in (_wrap(entry, program), entry)]
                    said = [f"command {json.dumps(one)} with args {json.dumps(rest)}" for one, rest in pairs]
                    return f", as {said[0]} in the place of {said[1]}"
    return ""


def _edit(text: str, names: Collection[str] | None, change: Callable[[Written], str]) -> Edit:
    done: list[str] = []
    left: dict[str, str] = {}
    entries = find_all(text)
    here = _select(entries)
    for entry in sorted(entries.values(), key=lambda entry: entry.start, reverse=True):
        chosen = here.get(entry.name)
        if names is not None and (entry.name not in names or (entry.folder and entry is not chosen)):
            continue
        try:
            if names is not None and chosen is not None and chosen is not entry:
                raise NotWrapped(f"in this folder, {chosen.title} counts")
            changed = change(entry)
        except NotWrapped as reason:
            left[entry.title] = str(reason)
            continue
        text = text[: entry.start] + changed + text[entry.start + len(entry.text) :]
        done.append(entry.title)
    return Edit(text, tuple(reversed(done)), dict(reversed(left.items())))


def _written(name: str, node: Node, text: str, folder: str) -> Written:
    line = text[text.rfind("\n", 0, node.offset) + 1 : node.offset]
    indent = line[: len(line) - len(line.lstrip())]
    return Written(name, node.offset, text[node.offset : measure(text, node.offset)], indent, folder)


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
    if _split(entry) is not None:
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
        url = check_url(said["url"])
    except ValueError as error:
        raise NotWrapped(str(error)) from None
    variables = {} if describe_url(url) == url else {_URL_VARIABLE: url}
    words = ["--url", f"${_URL_VARIABLE}" if variables else url]
    transport = _TRANSPORTS.get(str(said.get("type")).lower())
    words += [] if transport is None else ["--upstream", transport]
    for number, (name, value) in enumerate(_mapped(said, "headers").items(), 1):
        variable = f"{_VARIABLE}{number}"
        words += ["--header", f"{name}: ${variable}"]
        variables[variable] = str(value)
    return words, variables


def _with_command(entry: Mapping[str, Any], words: Sequence[str], without: Collection[str]) -> dict[str, Any]:
    """An entry that starts this command, at the place where it said how its server is reached."""
    takes_all = isinstance(entry.get("command"), list)
    command = {"command": list(words)} if takes_all else {"command": words[0], "args": list(words[1:])}
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
    given = {option: value for option, value in _pairs(words) if option != "--header"}
    url, env = given.pop("--url", ""), dict(_mapped(entry, "env"))
    url = env.pop(url[1:], "") if url.startswith("$") else url
    transport = given.pop("--upstream", None)
    headers = {}
    for line in [one for option, one in _pairs(words) if option == "--header"]:
        name, _, variable = line.partition(": $")
        if variable not in env:
            raise NotWrapped(f"a header of the proxy is not one that was put there: {name}")
        headers[name] = env.pop(variable)
    if not url or given:
        raise NotWrapped(f"the proxy has options there that would be lost: {' '.join(words)}")
    bare: dict[str, Any] = {}
    for key, value in entry.items():
        if key == "command":
            bare.update({"url": url, "headers": headers} if headers else {"url": url})
        elif key == "type":
            bare[key] = transport or "http"
        elif key == "env":
            bare.update({"env": env} if env else {})
        elif key != "args":
            bare[key] = value
    return bare | ({"type": transport} if transport and "type" not in bare else {})


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    if len(words) % 2:
        raise NotWrapped(f"the proxy has options there that would be lost: {' '.join(words)}")
    return zip(words[::2], words[1::2], strict=True)


def _split(entry: Mapping[str, Any]) -> tuple[list[str], list[str]] | None:
    """The command that is `dragoman`, and the words behind `proxy`; None if the entry starts something else."""
    words = [*_listed(entry.get("command") or []), *_listed(entry.get("args") or [])]
    at = words.index("proxy") if "proxy" in words[:4] else 0
    if not at or os.path.basename(words[at - 1]) not in ("dragoman", "dragoman.exe"):
        return None
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
