"""`dragoman proxy --listen http://127.0.0.1:PORT`: any number of clients over HTTP, a server for each.

Lives here: putting its options together, and running it until a signal comes. Must not: serve (`transports.http`),
which is imported only once it is wanted: over stdio nobody pays for it.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING, Final

from dragoman.cli.certificate import certificate_of, describe_failure
from dragoman.cli.descriptors import raise_limit
from dragoman.cli.ink import complain
from dragoman.cli.instances import among_others
from dragoman.cli.memory import give_back, set_apart
from dragoman.cli.metrics import read_places, serve_metrics
from dragoman.cli.names import describe_names, is_loopback, own_names
from dragoman.cli.secrets import caution_secrets
from dragoman.cli.signals import EXIT_SIGNAL, held_signals, watch_signals
from dragoman.cli.upstream import choose_loop
from dragoman.errors import TransportClosed
from dragoman.values import StateKeys, state_key_file

if TYPE_CHECKING:
    from dragoman.cli.reloading import Reloading
    from dragoman.pool import UpstreamPool
    from dragoman.proxy import ProxyConfig
    from dragoman.status import StatusBoard
    from dragoman.transports.base import Transport
    from dragoman.transports.http.app import HttpFront
    from dragoman.transports.http.config import Admission, FrontConfig
    from dragoman.transports.http.serve import HttpServer
    from dragoman.transports.http.sessions import Caller, Runner

logger = logging.getLogger("dragoman.http")

TOKEN_VARIABLE: Final = "DRAGOMAN_AUTH_TOKEN"
EXIT_CANNOT_LISTEN: Final = 1
_LISTENING: Final = "listening on {}"


def listen(
    args: argparse.Namespace,
    config: ProxyConfig,
    connect: Callable[[], Transport],
    caution: str | None = None,
    begin: Callable[[Reloading], None] = lambda _: None,
    board: StatusBoard | None = None,
) -> int:
    """Serve until a signal comes, and give the exit code.

    Args:
        args: With the flags above.
        config: For each session.
        connect: Opens a transport to the server.
        caution: What to mind about the server, if anything.
        begin: Called once, in the event loop, with what is read again at SIGHUP.
        board: What the health endpoints and the socket show, if it is not that of `config`.
    """
    import asyncio

    from dragoman.host.board import SocketTaken, told_at
    from dragoman.transports.http.serve import Address, HttpServer, bind, describe

    try:
        where = Address(args.listen[0], args.listen[1], *certificate_of(args.listen, args))
        pool = make_pool(args, connect)
        front = _make_front(args, config, pool, board or config.board)
        listener = args.supervisor.take_listener(where.port) or bind(where, args.worker is not None)
    except (TransportClosed, ValueError, OSError) as error:
        return _fail(str(error), EXIT_CANNOT_LISTEN)

    async def close() -> None:
        await asyncio.gather(pool.close(), *([] if args.by_path is None else [args.by_path.close()]))

    async def serve() -> int:
        try:
            server = HttpServer(front, listener, where)
        except OSError as error:
            return _fail(describe_failure(where.certificate, error), EXIT_CANNOT_LISTEN)
        url = describe(listener, where, args.mcp_path)
        reloading = _watch_files(args, config, front, server)
        _keep_told(args, reloading, url)
        watch_signals(caught, *_ways_to_end(args, front, server), reloading.read_all)
        begin(reloading)
        if args.worker is not None:
            args.worker.watch_parent(server.drain)
        cautions = list(_cautions(args, front, caution))
        try:
            told = told_at(args.status, board or config.board)
            measured = serve_metrics(args, board or config.board, read_places(front, server.site))
            async with told, measured, among_others(args, front), args.supervisor.watched():
                await server.run(lambda: _announce(args, url, pool, cautions), close)
        except (SocketTaken, TransportClosed, RuntimeError) as error:
            return _fail(str(error), EXIT_CANNOT_LISTEN)
        finally:
            await close()  # whatever happened, and what a session opened that was on its way: no child outlives us
        return EXIT_SIGNAL + caught[0] if caught else 0

    with held_signals() as caught, asyncio.Runner(loop_factory=choose_loop()) as runner:
        return runner.run(serve())


def make_pool(args: argparse.Namespace, connect: Callable[[], Transport]) -> UpstreamPool:
    """Make the pool that `--scope` describes, from which client sessions get their transports."""
    from dragoman.pool import Scope, UpstreamPool

    if args.scope == "client":
        return UpstreamPool(Scope.CLIENT, connect)
    from importlib.metadata import version

    from dragoman.core.switch.shared.desk import SharingSettings
    from dragoman.host.shared import PoolConfig

    sharing = SharingSettings(identity={"name": "dragoman", "version": version("dragoman")})
    return UpstreamPool(Scope(args.scope), connect, PoolConfig(sharing=sharing, idle_s=args.server_idle))


def _make_front(
    args: argparse.Namespace, proxy: ProxyConfig, pool: UpstreamPool, board: StatusBoard | None
) -> HttpFront:
    from dragoman.transports.http.app import HttpFront

    def serve(transport: Transport, caller: Caller) -> Runner:
        if caller.server:
            runner: Runner = args.by_path.serve(transport, caller)
            return runner
        return pool.proxy(proxy, transport, caller.principal or None, is_per_request=caller.is_per_request)

    config = _configure(args)
    if args.invitations is not None and args.invitations.paths.intersection(astuple(config.paths)):
        raise ValueError("expected another path in --oauth-redirect-url than those at which clients are served")
    front = HttpFront(serve, config, give_back, board, args.invitations)
    if args.by_path is not None:
        args.by_path.begin(front)
    return front


def _watch_files(args: argparse.Namespace, config: ProxyConfig, front: HttpFront, server: HttpServer) -> Reloading:
    """Have the files that the flags name read again when they change."""
    from dragoman.cli.reloading import Reloading
    from dragoman.transports.callers import callers_of
    from dragoman.transports.http.security import list_secrets

    reloading = Reloading()

    def read_secrets() -> str:
        admission = _read_admission(args)
        for caution in caution_secrets(args.auth_token_file, admission.tokens):
            logger.warning("%s", caution)
        revoked = front.admit(admission)
        number = sum(1 for _ in list_secrets(admission.tokens))
        return f"{number} secrets; of {revoked} names, one from before is not valid any more"

    def read_keys() -> str:
        keys = state_key_file(args.state_key_file.file).keys
        change_state_keys(config, keys)
        if args.event_seal is not None:
            args.event_seal.change_keys(keys)
        return f"states are sealed with the first of {len(keys)} keys"

    def read_caller_keys(option: StateKeys) -> str:
        callers_of(*option).change_keys(state_key_file(option.file).keys)
        return "whose requests are, is sealed with the first of them"

    def read_certificate() -> str:
        server.renew_certificate()
        return "for connections that come from now on"

    if args.auth_token_file is not None:
        reloading.add(read_secrets, args.auth_token_file)
    if args.state_key_file is not None:
        from dragoman.proxy import change_state_keys

        reloading.add(read_keys, args.state_key_file.file)
    for option in filter(None, (args.tell_callers, args.trust_callers)):
        reloading.add(partial(read_caller_keys, option), option.file)
    if args.listen[2] == "https":
        reloading.add(read_certificate, args.tls_cert, args.tls_key)
    for file in args.files:
        reloading.add_at_signal(file.reopen)
    reloading.begin()
    return reloading


def _keep_told(args: argparse.Namespace, reloading: Reloading, url: str) -> None:
    """Tell the service manager when files are read again, and when that is done."""
    reloading.add_at_signal(args.supervisor.say_reloading)
    reloading.after_signal = lambda: args.supervisor.say_ready(_LISTENING.format(url))


def _ways_to_end(
    args: argparse.Namespace, front: HttpFront, server: HttpServer
) -> tuple[Callable[[str], None], Callable[[str], None]]:
    """Return how to stop and how to drain, of which the service manager is told before."""

    def tell(end: Callable[[str], None], patience_s: float) -> Callable[[str], None]:
        def do(reason: str) -> None:
            args.supervisor.say_stopping(reason, patience_s)
            end(reason)

        return do

    closing_s = 2 * front.config.patience.closing_s
    return tell(server.stop, closing_s), tell(
        server.drain, closing_s + (args.shutdown_delay or 0.0) + args.drain_timeout
    )


def _announce(args: argparse.Namespace, url: str, pool: UpstreamPool, cautions: list[str]) -> None:
    """Say where we are, before anything else: programs that start us wait for it."""
    if args.worker is not None:
        args.worker.say_ready()
    else:
        print(_LISTENING.format(url), file=sys.stderr, flush=True)
    args.supervisor.say_ready(_LISTENING.format(url))
    set_apart()
    if args.worker is not None and args.worker.number:
        return  # the first one says what is to be minded
    pool.caution()
    for caution in cautions:
        logger.warning("%s", caution)


def _cautions(args: argparse.Namespace, front: HttpFront, caution: str | None) -> Iterator[str]:
    """Say what to mind about the server, about descriptors, and about who is let in."""
    limits = front.config.limits
    yield from filter(None, (caution, raise_limit(limits.connections + args.max_parked, limits.sessions)))
    admission = front.config.admission
    if not is_loopback(args.listen[0]):
        if "*" not in admission.hosts:
            yield describe_names(args.listen[0], admission.hosts)
        if not admission.tokens and admission.guard is None:
            yield "anybody who reaches this address is let in: no --auth-token-file, and no --auth-issuer"
    yield from caution_secrets(args.auth_token_file, admission.tokens)


def _configure(args: argparse.Namespace) -> FrontConfig:
    from dragoman.transports.http.config import FrontConfig, Limits, Paths, Patience

    return FrontConfig(
        paths=Paths(mcp=args.mcp_path, sse=args.sse_path or None, websocket=args.ws_path or None),
        limits=Limits(
            body_bytes=args.max_body,
            memory_bytes=args.max_memory,
            connections=args.max_connections,
            sessions=args.max_sessions,
            streams=args.max_streams,
        ),
        patience=Patience(
            headers_s=args.header_timeout,
            body_s=args.body_timeout,
            stall_s=args.stall_timeout,
            idle_s=args.session_idle,
            poll_s=args.sse_poll,
            notice_s=args.shutdown_delay or 0.0,
        ),
        admission=_read_admission(args),
        answers=args.answers,
        post_opens_sse=args.post_sse,
        shares_requests=args.scope == "shared",
    )


def _read_admission(args: argparse.Namespace) -> Admission:
    from urllib.parse import urlsplit

    from dragoman.transports.callers import callers_of
    from dragoman.transports.http.config import Admission
    from dragoman.transports.http.security import check_secret, read_tokens

    tokens: dict[str, tuple[str, ...]] = {}
    if args.auth_token_file is not None:
        from pathlib import Path

        try:
            tokens = read_tokens(Path(args.auth_token_file).read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{args.auth_token_file}: {error}") from None
    elif TOKEN_VARIABLE in os.environ:
        # One that is set and empty is a secret that did not arrive: better no proxy than one that lets everybody in.
        tokens = {"environment": (check_secret(os.environ[TOKEN_VARIABLE].strip(), f"${TOKEN_VARIABLE}"),)}
    public = urlsplit(args.resource_url).hostname if args.resource_url else None
    hosts = (*own_names(args.listen[0]), *args.allow_host, *filter(None, (public,)))
    return Admission(
        hosts=hosts,
        origins=tuple(args.allow_origin),
        tokens=tokens,
        guard=args.guard,
        notes_origins=args.guard is not None or args.notes_origins,
        callers=None if args.trust_callers is None else callers_of(*args.trust_callers),
    )


def _fail(reason: str, code: int) -> int:
    complain(f"dragoman proxy: {reason}")
    return code
