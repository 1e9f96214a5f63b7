"""From a configuration file to its values, or to everything that is wrong with it.

Lives here: finding the servers in a file, and our own object beside them. Must not: start, connect or print anything.
Called by `dragoman.router`, `dragoman.cli` and programs.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dragoman import system
from dragoman.config.access import read_rules
from dragoman.config.clients import with_local_servers
from dragoman.config.document import Node, NotJson, look, place_of
from dragoman.config.entries import UNUSABLE, Entry
from dragoman.config.expansion import Variables
from dragoman.config.findings import Findings, named, near, plain
from dragoman.config.formats import parse_text
from dragoman.config.keys import OURS, SERVERS, WRAPPERS
from dragoman.config.model import CommandTarget, Configuration, RouterOptions, ServerConfig, ServerOptions
from dragoman.config.own_keys import ROUTER_KEYS, SERVER_KEYS
from dragoman.errors import ConfigError, ConfigProblem
from dragoman.options import Option
from dragoman.values import READERS, word_among

if TYPE_CHECKING:
    from dragoman.signin.settings import SignInSettings
    from dragoman.transports.upstream.inject_headers import InjectHeaders

LIMIT_BYTES: Final = 16 * 1024 * 1024
"""The longest file that is read; settings of editors are long."""

_LONGEST_NAME: Final = 200

_PLAINLY_OURS: Final = {key.key for key in ROUTER_KEYS if not key.key.islower()}
"""Names that are hardly anybody else's; `name`, `prefix` and the like are words of anybody."""


def read_config(path: str | os.PathLike[str], environment: Mapping[str, str] | None = None) -> Configuration:
    """Read a configuration file.

    Args:
        path: Where it is.
        environment: Where variables in it come from; None for that of this process.

    Raises:
        ConfigError: It cannot be used; the error lists everything that is wrong with it.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            raw = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        reason = system.explain(error).lower()
        raise ConfigError(name, [ConfigProblem(0, 0, f"cannot be read: {reason}", "correct the path")]) from error
    if len(raw) > LIMIT_BYTES:
        raise ConfigError(name, [ConfigProblem(0, 0, f"is longer than {LIMIT_BYTES} bytes", "is it the right file?")])
    return parse_config(_decode(raw, name), environment, path=name)


def parse_config(text: str, environment: Mapping[str, str] | None = None, *, path: str = "") -> Configuration:
    """Read the text of a configuration file.

    Args:
        text: What is in it.
        environment: Where variables in it come from; None for that of this process.
        path: Where it is, for errors and relative paths; empty for the current directory.

    Raises:
        ConfigError: It cannot be used; the error lists everything that is wrong with it.
    """
    directory = os.path.dirname(os.path.abspath(path)) if path else os.getcwd()
    try:
        document = with_local_servers(parse_text(text, path))
    except NotJson as error:
        line, column = place_of(text, error.offset)
        raise ConfigError(path, [ConfigProblem(line, column, error.problem, error.remedy)]) from error
    findings = Findings(text, Variables(os.environ if environment is None else environment, directory))
    servers = _read_servers(document, findings)
    options, complete = _read_own(document, findings, servers)
    configuration = Configuration(path, complete, options, tuple(findings.warnings))
    if not configuration.enabled:  # nothing of it can be used
        findings.problems += [problem for server in complete for problem in server.problems]
    if findings.problems:
        raise ConfigError(path, sorted(findings.problems, key=lambda problem: (problem.line, problem.column)))
    return configuration


def _decode(raw: bytes, name: str) -> str:
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        line, column = place_of(raw[: error.start].decode("latin-1"), error.start)
        problem = ConfigProblem(line, column, "expected UTF-8, found other bytes", "save the file as UTF-8")
        raise ConfigError(name, [problem]) from error


# The servers


def _read_servers(document: Node, findings: Findings) -> list[ServerConfig]:
    """Read each entry by itself: one that cannot be used has its problems, and the others go on."""
    path, table = _find_table(document, findings)
    found: dict[str, ServerConfig] = {}
    for name, at, node in _entries(table):
        before = len(findings.problems)
        server = ServerConfig(name, UNUSABLE, line=findings.line_of(at))
        if not name.strip() or len(name) > _LONGEST_NAME:
            findings.add(at, "the name of a server is empty or very long", "give it a short name of letters and digits")
        elif name in found:
            findings.add(at, f"two servers are called {name!r}", "give one of them another name")
            name = f"{name} (line {server.line})"
        elif findings.members(node, f"server {name!r}") is not None:
            server = Entry(name, Node(node.value, at, node.names), findings).read()
        problems = findings.take_problems(before)
        # a server that nobody uses stops nobody
        found[name] = replace(server, name=name, problems=() if server.disabled else problems)
    return _apply_gemini(document, path, list(found.values()), findings)


def _entries(table: Node) -> Iterator[tuple[str, int, Node]]:
    """Yield each server's name, where it begins, and what it is: in an object by name, or in a list (Continue)."""
    if isinstance(table.value, dict):
        for name, node in table.value.items():
            yield name, table.names[name], node
        return
    for number, node in enumerate(table.value, 1):
        given = node.value["name"].value if isinstance(node.value, dict) and "name" in node.value else None
        yield given if isinstance(given, str) else f"number {number}", node.offset, node


def _apply_gemini(
    document: Node, path: tuple[str, ...], servers: list[ServerConfig], findings: Findings
) -> list[ServerConfig]:
    """Leave out the servers that Gemini CLI would: `mcp` beside `mcpServers` has lists `allowed` and `excluded`."""
    beside = look(document, ("mcp",))
    if path != ("mcpServers",) or beside is None or not isinstance(beside.value, dict):
        return servers
    lists = {
        key: findings.texts(beside.value[key], f"mcp.{key}") for key in ("allowed", "excluded") if key in beside.value
    }
    allowed, excluded = lists.get("allowed"), lists.get("excluded") or []
    return [
        replace(one, disabled=True, problems=())
        if one.name in excluded or (allowed is not None and one.name not in allowed)
        else one
        for one in servers
    ]


def _find_table(document: Node, findings: Findings) -> tuple[tuple[str, ...], Node]:
    """Find the object that has the servers as its members, and the way to it."""
    nothing = Node({}, 0)
    if not isinstance(document.value, dict):
        findings.add(document, f"expected an object, found {named(document)}", 'begin with {"mcpServers": {')
        return (), nothing
    found = {one.path: node for one in WRAPPERS if (node := look(document, one.path)) is not None}
    if len(found) > 1:
        found.pop(("mcp",), None)
    if not found:
        _explain_missing(document, findings)
        return (), nothing
    if len(found) > 1:
        names = " and ".join(".".join(path) for path in found)
        at = list(found.values())[1]
        findings.add(at, f"expected one object of servers, found {names}", "move all servers into one of them")
    path, table = next(iter(found.items()))
    if isinstance(table.value, list) or findings.members(table, ".".join(path)) is not None:
        return path, table
    return path, nothing


def _explain_missing(document: Node, findings: Findings) -> None:
    known = [wrapper.path[0] for wrapper in WRAPPERS]
    for name, node in document.value.items():
        meant = near(name, known)
        if meant is not None:
            findings.add(document.names[name], f"expected mcpServers, found {name!r}", f'write "{meant}"')
            return
        if isinstance(node.value, dict) and not {"command", "url"}.isdisjoint(node.value):
            problem = f"the server {name!r} stands at the top of the file"
            findings.add(document.names[name], problem, 'put all servers into {"mcpServers": { … }}')
            return
    if not {"command", "url"}.isdisjoint(document.value):
        findings.add(document, "the file is one server without a name", 'write {"mcpServers": {"name": { … }}}')
        return
    findings.add(document, "there is no mcpServers in the file", 'begin with {"mcpServers": {')


# Our own object


def _read_own(
    document: Node, findings: Findings, listed: Sequence[ServerConfig]
) -> tuple[RouterOptions, tuple[ServerConfig, ...]]:
    """Read what is said about all servers together, and add to each what is said about it."""
    _find_misplaced(document, findings)
    node = document.value.get(OURS) if isinstance(document.value, dict) else None
    members = None if node is None else findings.members(node, OURS)
    if node is None or members is None:
        return RouterOptions(), tuple(listed)
    rest = {key: value for key, value in members.items() if key != SERVERS}
    given = _read_keys(findings, Node(rest, node.offset, node.names), OURS, ROUTER_KEYS, (SERVERS,))
    known = {server.name: server for server in listed}
    servers = members.get(SERVERS)
    table = None if servers is None else findings.members(servers, f"{OURS}.{SERVERS}")
    for name, value in (table or {}).items():
        if name in known:
            known[name] = _read_options(known[name], value, findings)
        elif known:
            assert servers is not None
            meant = near(name, known)
            remedy = f"write {meant!r}" if meant else "use a name that stands among the servers of this file"
            findings.add(servers.names[name], f"there is no server {name!r} that this could be about", remedy)
    return RouterOptions(**given), tuple(known.values())


def _find_misplaced(document: Node, findings: Findings) -> None:
    """Note keys of ours that stand beside our own object: ignored, they would be rules that do not count."""
    for name, node in document.value.items() if isinstance(document.value, dict) else ():
        first, _, key = name.partition(".")
        is_ours = first.lower() == OURS
        if name == OURS or not (is_ours or name in _PLAINLY_OURS or _has_rules(name, node)):
            continue
        key = key if is_ours else name
        remedy = f'write "{OURS}": {{"{key}": … }}' if key else f'write "{OURS}"'
        note = findings.warn if name in _PLAINLY_OURS else findings.add  # it may be a client's own, by chance
        note(document.names[name], f"{name!r} means nothing at the top of the file", remedy)


def _has_rules(name: str, node: Node) -> bool:
    """Whether this can only be our rules: Continue has others, which are texts."""
    items = node.value if name == "rules" and isinstance(node.value, list) else ()
    return any(isinstance(item.value, dict) and not {"allow", "deny"}.isdisjoint(item.value) for item in items)


def _read_options(server: ServerConfig, node: Node, findings: Findings) -> ServerConfig:
    """Return a server with its options; what is wrong with them is wrong with it."""
    what, before = f"{OURS}.{SERVERS}.{server.name}", len(findings.problems)
    options = server.options
    if findings.members(node, what) is not None:
        options = ServerOptions(**_read_keys(findings, node, what, SERVER_KEYS))
        is_command = isinstance(server.target, CommandTarget) and server.target is not UNUSABLE
        if options.headers is not None and is_command:
            remedy = "remove them; a command gets its secrets by env"
            findings.add(node.names["headers"], f"{what}.headers mean nothing for a command", remedy)
    problems = findings.take_problems(before)
    return replace(server, options=options, problems=() if server.disabled else (*server.problems, *problems))


def _read_keys(
    findings: Findings, node: Node, where: str, keys: tuple[Option, ...], also: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return what an object with keys of ours says, by the names of fields; keys that nobody knows are errors."""
    by_name = {key.key: key for key in keys}
    found: dict[str, Any] = {}
    for name, value in node.value.items():
        key = by_name.get(name)
        if key is None:
            known = (*by_name, *also)
            meant = near(name, known)
            remedy = f"write {meant!r}" if meant else f"there are: {', '.join(known)}"
            findings.add(node.names[name], f"{where} has no key {name!r}", remedy)
            continue
        read = _read_value(findings, value, f"{where}.{name}", key.kind)
        if read is not None or key.kind == "sign-in":  # where None says that nobody signs in
            found[key.setting] = read
    return found


def _read_value(findings: Findings, node: Node, what: str, kind: str | tuple[str, ...]) -> Any:
    match kind:
        case "switch":
            return findings.flag(node, what)
        case "pairs":
            return tuple((findings.table(node, what) or {}).items())
        case "headers":
            return _read_headers(findings, node, what)
        case "sign-in":
            return _read_sign_in(findings, node, what)
        case "rules":
            return read_rules(findings, node, what)
        case "seconds" | "count" | "port":
            text: str | None = plain(node)
            if not text:
                findings.add(node, f"expected {what} to be a number, found {named(node)}", "such as 5")
        case _:
            text = findings.text(node, what)
            if text is not None and not text.strip():
                findings.add(node, f"{what} is empty", "write something, or leave it out")
    if not text or not text.strip():
        return None
    if kind in ("file", "certificates", "state-keys"):
        text = findings.path_of(text)
    try:
        read = word_among(kind) if isinstance(kind, tuple) else READERS[kind]
        return read(text)
    except ValueError as error:
        findings.add(node, f"{what}: {error}", "correct it")
        return None


def _read_sign_in(findings: Findings, node: Node, what: str) -> SignInSettings | None:
    """Read how to sign in; None is not at all, as for a value that cannot be used."""
    from dragoman.signin.settings import OPTIONS, SignInSettings

    if node.value is False:
        return None
    if findings.members(node, what) is None:
        return None
    settings = SignInSettings(**_read_keys(findings, node, what, OPTIONS))
    if fault := settings.find_fault():
        findings.add(node, f"{what}: {fault}", "correct it")
    return settings


def _read_headers(findings: Findings, node: Node, what: str) -> InjectHeaders | None:
    from dragoman.transports.upstream.inject_headers import InjectHeaders

    headers = findings.table(node, what, expands=False)
    try:
        return InjectHeaders(headers, findings.variables.environment, findings.variables.directory) if headers else None
    except ValueError as error:
        findings.add(node, f"{what}: {error}", "correct it")
        return None
