"""The servers of a configuration file, and every session that they are part of.

Lives here: making sessions, taking in a changed file, and saying how each server is. Must not: read the file
(`dragoman.config`), or watch it (`watch`). Used by `dragoman.cli`, and by programs.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import dragoman_spec
from dragoman.config.model import Configuration, ServerConfig
from dragoman.config.opening import opener_of
from dragoman.core.negotiation import AUTO, SAME
from dragoman.core.switch.catalogue.member import Member, MemberState
from dragoman.core.switch.catalogue.names import Names
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.router.link import MemberLink
from dragoman.router.transport import RouterTransport
from dragoman.transports.base import Transport

logger = logging.getLogger("dragoman.router")

_LONGEST_DRAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is.

    Attributes:
        name: Its name in the file.
        state: `off` where the file disables it, `idle` where no session needs it, else that of the session in which it
            is best: `waiting`, `opening`, `open` or `failed`.
        revision: What it speaks, as far as that is known.
        era: `handshake` or `per_request`, as far as that is known.
        sessions: How many sessions have it open.
        restarts: How often it was started again.
        reason: Why it failed, if it did.
    """

    name: str
    state: Literal["off", "idle", "waiting", "opening", "open", "failed"]
    revision: str | None = None
    era: str | None = None
    sessions: int = 0
    restarts: int = 0
    reason: str = ""


class Router:
    """Several servers as one.

    Args:
        configuration: Which servers, and how names are made.
        config: For the proxy before each server; revisions and names in it are set for each.
        open_server: Gives what opens a transport to a server of the file.
    """

    def __init__(
        self,
        configuration: Configuration,
        config: ProxyConfig | None = None,
        open_server: Callable[[ServerConfig], Callable[[], Transport]] = opener_of,
    ) -> None:
        self.configuration = configuration
        self.restarts: dict[str, int] = {}
        self._config = behind_router(config or ProxyConfig())
        self._open_server = open_server
        self._sessions: list[RouterTransport] = []
        self._servers: dict[str, ServerConfig] = {}
        self._names = Names(always=configuration.options.prefix == "always", separator=configuration.options.separator)
        self._set_servers(configuration, ())

    def connect(self) -> Transport:
        """Open a session: a transport to something that speaks whatever revision it is spoken to in."""
        members = [self._make_member(server) for server in self._servers.values()]
        options = self.configuration.options
        identity: dict[str, Any] = {"name": options.name, "version": version("dragoman")}
        session = RouterTransport(
            members, self._names, self._open_proxy, identity, options.page_size, self._sessions.remove
        )
        self._sessions.append(session)
        return session

    def apply(self, configuration: Configuration) -> None:
        """Take in another configuration: sessions go on, and servers that have not changed in it are not disturbed."""
        before = self._servers
        after = {server.name: server for server in configuration.enabled}
        changed = [name for name, server in after.items() if name in before and before[name] != server]
        gone = [name for name in before if name not in after]
        new = [name for name in after if name not in before]
        self.configuration = configuration
        self._set_servers(configuration, changed)
        for session in self._sessions:
            self._change_session(session, [*gone, *changed])
        said = (("new", new), ("changed", changed), ("removed", gone))
        shown = "; ".join(f"{what}: {', '.join(names)}" for what, names in said if names)
        logger.info("the configuration was read again: %s", shown or "the servers are the same")

    def status(self) -> list[ServerStatus]:
        """Say how each server of the file is."""
        return [self._describe(server) for server in self.configuration.servers]

    def _set_servers(self, configuration: Configuration, changed: list[str] | tuple[str, ...]) -> None:
        self._servers = {server.name: server for server in configuration.enabled}
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
        catalogue.add({name: known.get(name) or self._make_member(server) for name, server in self._servers.items()})

    def _make_member(self, server: ServerConfig) -> Member:
        timeout_s = server.options.list_timeout_s or self.configuration.options.list_timeout_s
        return Member(server.name, timeout_s, server.only_tools, server.without_tools)

    def _open_proxy(self, member: Member, link: MemberLink) -> Proxy:
        server = self._servers[member.name]
        config = self._config
        timeout_s = server.options.request_timeout_s or self.configuration.options.request_timeout_s
        inner = dataclasses.replace(
            config,
            server_revision=config.server_revision if server.options.revision == AUTO else server.options.revision,
            request_timeout_s=timeout_s or config.request_timeout_s,
            drain_timeout_s=min(config.drain_timeout_s, _LONGEST_DRAIN_S),
            server_name=server.name,
        )
        return Proxy(inner, link, self._open_server(server))

    def _describe(self, server: ServerConfig) -> ServerStatus:
        if server.disabled:
            return ServerStatus(server.name, "off")
        found = [
            (member, session.proxies.get(member))
            for session in self._sessions
            if (member := session.catalogue.members.get(server.name)) is not None
        ]
        if not found:
            return ServerStatus(server.name, "idle")
        order = [MemberState.OPEN, MemberState.OPENING, MemberState.WAITING, MemberState.FAILED]
        member, proxy = min(found, key=lambda one: order.index(one[0].state))
        revision = None if proxy is None else proxy.server_revision
        return ServerStatus(
            server.name,
            member.state.value,
            revision,
            None if revision is None else dragoman_spec.era(revision),
            sum(one.state is MemberState.OPEN for one, _ in found),
            self.restarts.get(server.name, 0),
            member.reason,
        )


def before_router(config: ProxyConfig) -> ProxyConfig:
    """Give the configuration of the proxy before a client whose server is a router."""
    return dataclasses.replace(config, server_revision=SAME, restarts=0, health_s=None)


def behind_router(config: ProxyConfig) -> ProxyConfig:
    """Give the configuration of the proxies before a router's servers: what is done once is done before the router."""
    return dataclasses.replace(
        config, client_revision=AUTO, trace=None, middleware=(), notice_middleware=(), names_server=True
    )
