"""The servers of a configuration file, and every session that they are part of.

Lives here: making sessions, taking in a changed file, and a board that says how each server is. Must not: read the file
(`dragoman.config`), or watch it (`watch`). Used by `dragoman.cli`, and by programs.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from dragoman.config.model import Configuration, ServerConfig
from dragoman.config.opening import opener_of
from dragoman.core.negotiation import AUTO, SAME
from dragoman.core.settings import ServerMemory
from dragoman.core.switch.router.member import Member
from dragoman.core.switch.router.names import NameKind, Names
from dragoman.proxy import Proxy, ProxyConfig, know_nothing
from dragoman.router.outages import Outages
from dragoman.router.transport import RouterTransport
from dragoman.status import ProxyStatus, StatusBoard
from dragoman.transports.base import Transport
from dragoman.transports.frame_link import FrameLink

logger = logging.getLogger("dragoman.router")

_LONGEST_DRAIN_S = 1.0
_LONGEST_OPENING_S = 4.0
"""How long a client waits for servers that are slow to start, unless told: some clients give up after five seconds."""


class Router:
    """Several servers as one.

    Args:
        configuration: Which servers, and how names are made.
        config: For the proxy before each server; revisions and names in it are set for each.
        open_server: Gives what opens a transport to a server of the file.
        know: Gives what is remembered of one.

    Attributes:
        configuration: What is used at present.
        board: Says how each server is.
    """

    def __init__(
        self,
        configuration: Configuration,
        config: ProxyConfig | None = None,
        open_server: Callable[[ServerConfig], Callable[[], Transport]] = opener_of,
        know: Callable[[ServerConfig], ServerMemory | None] = know_nothing,
    ) -> None:
        self.configuration = configuration
        self._config = behind_router(config or ProxyConfig())
        self.board = self._config.board or StatusBoard()
        self._config = dataclasses.replace(self._config, board=self.board)
        self._outages = Outages()
        self._open_server = open_server
        self._know = know
        self._sessions: list[RouterTransport] = []
        self._servers: dict[str, ServerConfig] = {}
        self._names = Names(always=configuration.options.prefix == "always", separator=configuration.options.separator)
        self._names.is_guarded = configuration.options.rules is not None
        self._set_servers(configuration, _usable(configuration, {}), ())

    def connect(self) -> Transport:
        """Open a session: a transport to something that speaks whatever revision it is spoken to in."""
        members = [self._make_member(server) for server in self._servers.values()]
        options = self.configuration.options
        identity: dict[str, Any] = {"name": options.name, "version": version("dragoman")}
        session = RouterTransport(
            members,
            self._names,
            self._open_proxy,
            identity,
            options.page_size,
            self._config.open_requests,
            self._config.to_settings().restart,
            self._sessions.remove,
            self.board,
            self._outages,
        )
        self._sessions.append(session)
        return session

    def apply(self, configuration: Configuration) -> None:
        """Take in another configuration: sessions go on, and servers that have not changed in it are not disturbed.

        Args:
            configuration: What is to be served from here on, as `read_config` gives it.
        """
        before, names_before = self._servers, self._names.version
        after = _usable(configuration, before)
        changed = [name for name, server in after.items() if name in before and before[name] != server]
        gone = [name for name in before if name not in after]
        new = [name for name in after if name not in before]
        rules, self.configuration = self.configuration.options.rules, configuration
        for name in (*gone, *changed):
            self._outages.forget_server(name)
        self._set_servers(configuration, after, changed)
        for session in self._sessions:
            if not session.is_over:
                self._change_session(session, [*gone, *changed])
                if self._names.version != names_before or rules != configuration.options.rules:
                    self._tell_names(session)
        said = (("new", new), ("changed", changed), ("removed", gone))
        shown = "; ".join(f"{what}: {', '.join(names)}" for what, names in said if names)
        logger.info("the configuration was read again: %s", shown or "the servers are the same")

    def owner_of(self, kind: str, name: str) -> str | None:
        """Return which server has what clients know by a name; None if none has.

        Args:
            kind: `tool`, `resource`, `template` or `prompt`.
            name: The name, or the URI.
        """
        found = self._names.find(NameKind(kind), name)
        return None if found is None else found.server

    def find(self, kind: str, name: str) -> tuple[str, str] | None:
        """Return which server has what clients know by a name, and what it calls it; None if none is known to.

        Args:
            kind: As for `owner_of`.
            name: As for `owner_of`.
        """
        return self._names.find(NameKind(kind), name)

    @property
    def servers(self) -> Mapping[str, ServerConfig]:
        """The servers that are used, by name."""
        return self._servers

    @property
    def waited_for(self) -> list[str]:
        """The servers for which a session waits."""
        return [name for session in self._sessions for name in session.catalogue.waited_for]

    def status(self) -> ProxyStatus:
        """Say how the servers are that sessions have open."""
        return self.board.read()

    def _set_servers(
        self, configuration: Configuration, servers: dict[str, ServerConfig], changed: Sequence[str]
    ) -> None:
        self._servers = servers
        self.board.expect(self._servers, configuration.left_out)
        options = configuration.options
        self._names.set_policy(always=options.prefix == "always", separator=options.separator)
        prefixes = {name: server.options.prefix or name for name, server in self._servers.items()}
        self._names.set_servers(prefixes, changed)

    def _change_session(self, session: RouterTransport, removed: list[str]) -> None:
        catalogue = session.catalogue
        for name in removed:
            member = catalogue.members.get(name)
            if member is not None:
                catalogue.remove(name)
                session.close_member(member)
        known = catalogue.members
        for member in known.values():
            self._set_timeouts(member)
        catalogue.add({name: known.get(name) or self._make_member(server) for name, server in self._servers.items()})

    def _tell_names(self, session: RouterTransport) -> None:
        for member in session.catalogue.members.values():
            session.catalogue.tell_lists_changed(member)

    def _make_member(self, server: ServerConfig) -> Member:
        member = Member(server.name, only_tools=server.only_tools, without_tools=server.without_tools)
        member.tells = server.options.tell_callers is not None
        self._set_timeouts(member)
        return member

    def _set_timeouts(self, member: Member) -> None:
        options = self.configuration.options
        member.list_timeout_s = self._servers[member.name].options.list_timeout_s or options.list_timeout_s
        member.open_timeout_s = options.open_timeout_s or min(member.list_timeout_s, _LONGEST_OPENING_S)

    def _open_proxy(self, member: Member, link: FrameLink) -> Proxy:
        server = self._servers[member.name]
        config = self._config
        timeout_s = server.options.request_timeout_s or self.configuration.options.request_timeout_s
        inner = dataclasses.replace(
            config,
            server_revision=config.server_revision if server.options.revision == AUTO else server.options.revision,
            request_timeout_s=timeout_s or config.request_timeout_s,
            drain_timeout_s=min(config.drain_timeout_s, _LONGEST_DRAIN_S),
            server_name=server.name,
            trace=None if config.trace is None else config.trace.behind(server.name),
            calls=None if config.calls is None else config.calls.behind_router(server.name),
            spans=None if config.spans is None else config.spans.behind_router(server.url),
            known=self._know(server),
            greets=config.greets and not member.tries,
        )
        return Proxy(inner, link, self._open_server(server))


def _usable(configuration: Configuration, before: Mapping[str, ServerConfig]) -> dict[str, ServerConfig]:
    """Return the servers to use: one whose entry cannot be used any more stays what it was."""
    found = {server.name: before.get(server.name) if server.problems else server for server in configuration.servers}
    return {name: server for name, server in found.items() if server is not None and not server.disabled}


def before_router(config: ProxyConfig) -> ProxyConfig:
    """Return the configuration of the proxy before a client whose server is a router."""
    calls = None if config.calls is None else config.calls.before_router()
    spans = None if config.spans is None else config.spans.before_router()
    return dataclasses.replace(
        config, server_revision=SAME, restarts=0, health_s=None, board=None, calls=calls, spans=spans
    )


def behind_router(config: ProxyConfig) -> ProxyConfig:
    """Give the configuration of the proxies before a router's servers: what is done once is done before the router."""
    return dataclasses.replace(
        config,
        client_revision=AUTO,
        middleware=(),
        notice_middleware=(),
        header_middleware=(),
        says_why=False,
    )
