"""What a configuration file says, once it is read: values only.

Lives here: frozen objects, equal if they mean the same, so that a file that was read again can be compared. Must not:
read (`reading`) or open anything (`opening`). Variables are filled in; `repr` shows none of what may be secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from dragoman.errors import ConfigProblem
from dragoman.signin.settings import DEFAULT, SignInSettings
from dragoman.transports.upstream.config import Kind, describe_url

if TYPE_CHECKING:
    from dragoman.transports.upstream.inject_headers import InjectHeaders
    from dragoman.values import StateKeys


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """A server that is started as a child, and spoken to over its stdin and stdout.

    Attributes:
        command: The program and its arguments.
        env: Variables that it finds beside those that are always handed on, in the order of the file.
        cwd: Where it runs; None is where we do.
    """

    command: tuple[str, ...] = field(repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cwd: str | None = None


@dataclass(frozen=True, slots=True)
class UrlTarget:
    """A server on the network.

    Attributes:
        url: Where it is: http, https, ws or wss.
        headers: What to send along with every request.
        kind: Which transport an http URL is; `AUTO` finds out.
    """

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    kind: Kind = Kind.AUTO


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What the file says about a server that only Dragoman understands.

    Attributes:
        prefix: What its names begin with where they need a prefix; None for the server's name.
        revision: `auto`, or the revision to offer first.
        list_timeout_s: How long a merged list waits for this server, in seconds; None as for all.
        request_timeout_s: How long a request may go without an answer or progress, in seconds; None as for all.
        inherit_env: Which of our variables a command gets: `all`, `safe` or `none`; None for what is right where
            it is started from.
        ca_file: Who signs the certificate of a URL, if not who the system trusts.
        client_cert: A file with our own certificate for a URL.
        client_key: A file with its key, if that is not in the same one.
        proxy: The URL of an HTTP proxy on the way to a URL, or `none`; None for what the environment says.
        insecure: Whether the certificate of a URL is not checked at all.
        tell_callers: The keys with which another proxy at a URL is told whose each request is; None: it is not.
        headers: What to send along with every request to a URL, made anew for each.
        sign_in: How to sign in to a URL; None for not at all.
    """

    prefix: str | None = None
    revision: str = "auto"
    list_timeout_s: float | None = None
    request_timeout_s: float | None = None
    inherit_env: Literal["all", "safe", "none"] | None = None
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    proxy: str | None = field(default=None, repr=False)
    insecure: bool = False
    tell_callers: StateKeys | None = field(default=None, repr=False)
    headers: InjectHeaders | None = None
    sign_in: SignInSettings | None = DEFAULT


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server of a file.

    Attributes:
        name: Its name in the file.
        target: How it is reached.
        disabled: Whether the file says that it is not to be used.
        options: What only Dragoman understands.
        only_tools: The tools that the file allows; None for all.
        without_tools: The tools that the file takes away.
        line: Where in the file it stands.
        problems: Why it cannot be used; its target then means nothing.
    """

    name: str
    target: CommandTarget | UrlTarget
    disabled: bool = False
    options: ServerOptions = ServerOptions()
    only_tools: frozenset[str] | None = None
    without_tools: frozenset[str] = frozenset()
    line: int = field(default=0, compare=False)
    problems: tuple[ConfigProblem, ...] = ()

    @property
    def where(self) -> str:
        """Say what it is, for a person: the program, or the URL without what may be secret."""
        return self.target.command[0] if isinstance(self.target, CommandTarget) else describe_url(self.target.url)

    @property
    def url(self) -> str | None:
        """Its URL, which may be secret; None for a command."""
        return self.target.url if isinstance(self.target, UrlTarget) else None


@dataclass(frozen=True, slots=True)
class Things:
    """What a rule is about: patterns, in which `*` stands for anything and `?` for one character.

    Attributes:
        servers: Of which servers; None for all.
        tools: Tools, by the names that their server gives them. Where no kind is named, all of all kinds; else None
            stands for none of this kind.
        prompts: The same for prompts.
        resources: The same for resources and templates, by their URIs.
    """

    servers: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    prompts: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AccessRule:
    """Who may see and use what.

    Attributes:
        principals: Patterns of the names of those that it is for; None for all.
        scopes: What their token has to be good for, all of it.
        claims: What their token has to say: of each claim one of these texts.
        allow: What they may use; None for nothing by this rule.
        deny: What they may not, whatever another rule allows.
    """

    principals: tuple[str, ...] | None = None
    scopes: tuple[str, ...] = ()
    claims: tuple[tuple[str, tuple[str, ...]], ...] = ()
    allow: Things | None = None
    deny: Things | None = None


@dataclass(frozen=True, slots=True)
class RouterOptions:
    """What the file says about all its servers together.

    Attributes:
        name: What clients are told the router is called.
        prefix: `clash`: a name gets a prefix only if two servers have it; `always`: each name has one.
        separator: What stands between prefix and name.
        list_timeout_s: How long a merged list waits for a slow server, in seconds.
        open_timeout_s: How long a client that opens a session waits for servers that are slow to start, in seconds;
            None for as long as a list does, 4 seconds at most.
        request_timeout_s: How long a request may go without an answer or progress, in seconds; None for no limit.
        page_size: How many entries one page of a merged list has.
        rules: Who may see and use what; None: everybody everything, for as long as the process runs.
    """

    name: str = "dragoman"
    prefix: Literal["clash", "always"] = "clash"
    separator: str = "_"
    list_timeout_s: float = 5.0
    open_timeout_s: float | None = None
    request_timeout_s: float | None = None
    page_size: int = 1000
    rules: tuple[AccessRule, ...] | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """A file.

    Attributes:
        path: Where it is; empty for a text.
        servers: All of them, in the order of the file.
        options: About all of them.
        warnings: What is odd about the file, and does not stop anybody.
    """

    path: str
    servers: tuple[ServerConfig, ...]
    options: RouterOptions = RouterOptions()
    warnings: tuple[ConfigProblem, ...] = field(default=(), compare=False)

    @property
    def enabled(self) -> tuple[ServerConfig, ...]:
        """The servers that are to be used, and can be."""
        return tuple(server for server in self.servers if not server.disabled and not server.problems)

    @property
    def left_out(self) -> dict[str, str]:
        """The servers whose entries cannot be used, each with its line and the reason."""
        return {
            server.name: "; ".join(f"line {one.line}, column {one.column}: {one.problem}" for one in server.problems)
            for server in self.servers
            if server.problems
        }

    @property
    def remarks(self) -> list[str]:
        """What a person should be told who uses the file: why servers are left out of it, and what is odd."""
        said = [(one, f"{one}; {server.name!r} is left out") for server in self.servers for one in server.problems]
        said += [(one, str(one)) for one in self.warnings]
        return [text for _, text in sorted(said, key=lambda pair: (pair[0].line, pair[0].column))]

    def choose(self, name: str | None = None) -> ServerConfig:
        """Return one server.

        Args:
            name: Which; None for the only one.

        Raises:
            LookupError: There is no such server, its entry cannot be used, or there are several and none was named; the
                text says which there are.
        """
        if name is not None:
            found = [server for server in self.servers if server.name == name]
            if not found:
                raise LookupError(f"there is no server {name!r} in {self.path}; {_list(self.servers)}")
            if found[0].problems:
                raise LookupError("; ".join(f"{self.path}: {problem}" for problem in found[0].problems))
            return found[0]
        if len(self.enabled) != 1:
            raise LookupError(f"expected the name of a server of {self.path}; {_list(self.enabled)}")
        return self.enabled[0]


def _list(servers: Iterable[ServerConfig]) -> str:
    names = ", ".join(re.sub(r"[\x00-\x1f\x7f]", "?", server.name) for server in servers)
    return f"there are: {names}" if names else "there are none"
