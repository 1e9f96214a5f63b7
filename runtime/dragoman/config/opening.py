"""Connections to the servers that a configuration file names.

Lives here: one function. Must not: import HTTP, asyncio or processes before it is called. Called by `dragoman.router`,
`dragoman.client` and `dragoman.cli`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from dragoman.config.model import CommandTarget, ServerConfig
from dragoman.core.lines import DEFAULT_LIMIT_BYTES
from dragoman.signin.authority import sign_in_for
from dragoman.transports.upstream.config import UpstreamConfig

if TYPE_CHECKING:
    from dragoman.signin.invitations import Invitations
    from dragoman.transports.base import Transport
    from dragoman.transports.spawn import Stderr
    from dragoman.transports.warden import Warden


def opener_of(
    server: ServerConfig,
    *,
    inherit_env: str = "all",
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
    parked_requests: int = 256,
    restore_ids: bool = True,
    renews_sessions: bool = True,
    warden: Warden | None = None,
    stderr: Stderr = None,
    hides_url: bool = False,
    invitations: Invitations | None = None,
    caller: str | None = None,
) -> Callable[[], Transport]:
    """Return what opens a transport to a server, each time it is called; nothing is started before.

    Args:
        server: Of a configuration file.
        inherit_env: Which of our variables a command gets where the file does not say: `all`, `safe` or `none`.
        limit_bytes: The longest frame accepted from it.
        parked_requests: How many requests over HTTP may wait for answers of clients, beside those under way.
        restore_ids: Whether an answer over HTTP counts whose id came back as another type.
        renews_sessions: Whether a server over HTTP may say otherwise than by 404 that it has forgotten the session.
        warden: Told of each child, and ends it should we be killed.
        stderr: Where the stderr of a child goes: a descriptor, or what gives one by its name; None for ours.
        hides_url: Whether errors call it by its name in the file, rather than by URL.
        invitations: Where people far away are invited to, to sign in; None where they cannot come.
        caller: Whose connections these are, for a proxy that is told; None: of whoever opens one.

    Raises:
        TransportClosed: Raised by what is given: there is no such command, or it may not be run.
    """
    target, options = server.target, server.options
    if isinstance(target, CommandTarget):
        return lambda: _start(target, options.inherit_env or inherit_env, limit_bytes, warden, stderr, server.name)
    named = (*(name for name, _ in target.headers), *(() if options.headers is None else options.headers.headers))
    config = UpstreamConfig(
        target.url,
        target.headers,
        target.kind,
        options.ca_file,
        options.client_cert,
        options.client_key,
        options.proxy,
        not options.insecure,
        limit_bytes=limit_bytes,
        parked_requests=parked_requests,
        restore_ids=restore_ids,
        renews_sessions=renews_sessions,
        name=server.name if hides_url else None,
        header_middleware=() if options.headers is None else (options.headers.headers_to_server,),
        authority=sign_in_for(target.url, named, options.sign_in, invitations=invitations),
        tells=None if options.tell_callers is None else _make_telling(*options.tell_callers),
        caller=caller,
    )
    return lambda: _connect(config)


def _start(
    target: CommandTarget,
    mode: str,
    limit_bytes: int,
    warden: Warden | None,
    stderr: Stderr,
    name: str,
) -> Transport:
    from dragoman.transports.spawn import spawn, taken
    from dragoman.transports.stdio import ChildTransport
    from dragoman.transports.surroundings import make_environment

    environment = make_environment(mode, os.environ, dict(target.env))
    with taken(stderr, name) as descriptor:
        process = spawn(target.command, environment, target.cwd, warden, descriptor)
    return ChildTransport(process, warden=warden, limit_bytes=limit_bytes, checks_texts=True)


def _make_telling(file: str, keys: tuple[bytes, ...]) -> Callable[[str], Mapping[str, str]]:
    from dragoman.transports.callers import callers_of  # brings what seals

    return callers_of(file, keys).tell


def _connect(config: UpstreamConfig) -> Transport:
    from dragoman.transports.upstream.connect import open_upstream

    return open_upstream(config)
