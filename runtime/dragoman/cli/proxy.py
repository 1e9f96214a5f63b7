"""`dragoman proxy`: a client on our stdin and stdout or over HTTP (`cli.listen`), a server as our child or at a URL.

Lives here: flags, logging, signals and exit codes. Must not: proxy; that is `dragoman.proxy`, which is imported, and
asyncio with it, only once the server has been started, so that both start together. Called by `dragoman.cli`.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from dragoman.cli.checks import check_options, check_page
from dragoman.cli.child import Launcher, add_child_arguments
from dragoman.cli.ink import complain
from dragoman.cli.inspecting import CannotShow, open_feed
from dragoman.cli.instances import check_store, make_news
from dragoman.cli.known import know_server
from dragoman.cli.memory import load_without_tls, set_apart
from dragoman.cli.metrics import CannotCount, serve_metrics, watch_calls
from dragoman.cli.middleware import find_middleware
from dragoman.cli.options import add_group, add_options, add_translation_arguments, chosen_rules
from dragoman.cli.otel import open_tracing
from dragoman.cli.signals import EXIT_SIGNAL, held_signals, watch_signals
from dragoman.cli.stderr import ServerWords, free_stderr
from dragoman.cli.trace import open_log, open_trace
from dragoman.cli.upstream import add_upstream_arguments, choose_loop, opener_of_server
from dragoman.errors import TransportClosed
from dragoman.options import (
    ERAS,
    FILE,
    GREETING,
    GUARD,
    KNOWN,
    LISTEN,
    MIDDLEWARE,
    PAGE,
    REVISIONS,
    SCOPE,
    SESSIONS,
    WATCHING,
)

if TYPE_CHECKING:
    from dragoman.cli.parsing import CommandParser
    from dragoman.core.commands import Finish
    from dragoman.proxy import Proxy, ProxyConfig
    from dragoman.router.router import Router
    from dragoman.status import StatusBoard
    from dragoman.trace.trace import Watcher
    from dragoman.transports.base import Transport
    from dragoman.transports.spawn import Process

EXIT_CODES: Final = {
    "CLIENT_CLOSED": 0,
    "INTERNAL_ERROR": 1,
    "SERVER_CLOSED": 3,
    "INITIALIZATION_FAILED": 4,
    "INITIALIZATION_TIMED_OUT": 5,
    "SERVER_NOT_STARTED": 127,
}
"""How a session ended, by the name of `core.commands.Outcome`, and what that is to the shell. argparse has 2."""

EXIT_NOT_EXECUTABLE: Final = 126
EXIT_CANNOT_SHOW: Final = 1

_WAITING: Final = (
    "dragoman proxy: waiting for an MCP client on stdin. It is meant to be started by one: put this command "
    "into the client's configuration, or serve clients over HTTP with --listen."
)
"""What a person is told who starts it at a terminal, where it would seem to hang."""


_USUAL: Final = frozenset(
    {
        *(
            "help",
            "command",
            "url",
            "headers",
            "config",
            "server",
            "variables",
            "listen",
            "scope",
            "auth_token_file",
            "auth_issuer",
        ),
        *("client_revision", "server_revision", "on_loss", "restarts", "log_level", "trace"),
    }
)
"""What most people need, and find in the help."""


def add_arguments(parser: CommandParser) -> None:
    """Describe the command line of `proxy`."""
    parser.usage = "%(prog)s [OPTION ...] (-- COMMAND [ARG ...] | --url URL | --config FILE [--server NAME])"
    parser.epilog = "stdout carries the protocol only; the log and the server's own stderr go to stderr."
    add_options(parser, REVISIONS)
    add_translation_arguments(parser)
    add_options(parser, (*SESSIONS, KNOWN, GREETING, *WATCHING, *PAGE, *MIDDLEWARE))
    listen = add_group(parser, "clients over HTTP", LISTEN, "listen")
    guard = add_group(parser, "clients with tokens of an authorization server", GUARD)
    company = {
        "--listen": [*listen, *guard, *add_group(parser, "servers behind --listen", SCOPE)],
        "--url": add_upstream_arguments(parser),
        "COMMAND": add_child_arguments(parser),
    }
    add_group(parser, "clients without a handshake, with servers that have one", ERAS)
    add_options(parser, FILE)
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the server, with its arguments, after `--`")
    parser.hide(action for action in parser._actions if action.dest not in _USUAL)
    parser.set_defaults(
        usage_error=parser.error,
        company=company,
        owns_process=False,
        early=None,
        stderr=None,
        feed=None,
        metrics=None,
        calls=None,
        spans=None,
        resource=None,
        files=None,
        guard=None,
        access=None,
        tool_filters=(),
        by_path=None,
        notes_origins=False,
        worker=None,
    )


def run(args: argparse.Namespace) -> int:
    """Serve one session, or all that come over HTTP, and give the exit code that says how it ended."""
    check_options(args)
    check_page(args)
    check_store(args)
    if args.server is not None:
        from dragoman.cli.named import take_from_config

        take_from_config(args)
        args.config = None  # as if that one server had been named by its command or URL
    args.around = find_middleware(args)
    _fill_standard_descriptors()
    args.configuration = None
    if args.config is not None:
        from dragoman.cli.routing import EXIT_CONFIG, read_or_explain

        args.configuration = read_or_explain(args.config)
        if args.configuration is None:
            return EXIT_CONFIG
    if args.listen is not None and (code := _begin_service(args)) is not None:
        return code
    if args.owns_process:
        args.stderr = free_stderr()
        if os.isatty(args.stderr):
            args.stderr = ServerWords(is_opening=False).carry(args.stderr)
    if args.listen is not None and sys.platform != "win32":  # where pipes cannot be looked at
        from dragoman.transports.child_words import log_words

        args.child_words = log_words
    args.files = []  # what is opened again at SIGHUP, and closed at the end, the log last
    args.write_log = open_log(args)
    trace = open_trace(args)
    try:
        args.calls = watch_calls(args)
        args.spans = open_tracing(args)
    except CannotCount as error:
        complain(f"dragoman proxy: {error}")
        return EXIT_CANNOT_SHOW
    launcher = Launcher(args)
    watcher: Watcher | None = trace
    try:
        if args.inspect is not None:
            watcher = args.feed = open_feed(args, trace, _describe(args))
        return _listen(args, launcher, watcher) if args.listen is not None else _join(args, launcher, watcher)
    except CannotShow as error:
        complain(f"dragoman proxy: {error}")
        return EXIT_CANNOT_SHOW
    finally:
        if args.feed is not None:
            args.feed.close()
        for file in reversed(args.files):
            file.close()


def _begin_service(args: argparse.Namespace) -> int | None:
    """Hear who started us as a service, and start the workers; None where this process goes on, else the exit code."""
    from dragoman.cli.supervisor import Supervisor

    args.supervisor = Supervisor(os.environ)  # before a server could find its variables
    if args.workers > 1 and sys.platform != "win32":
        from dragoman.cli.workers import work_together

        try:
            return work_together(args)
        except OSError as error:
            complain(f"dragoman proxy: --workers: {error.strerror}")
            return EXIT_CANNOT_SHOW
    return None


def _describe(args: argparse.Namespace) -> dict[str, Any]:
    """Say what is watched, for its page."""
    from dragoman.trace.redact import redact_text

    server = args.url or args.config or " ".join(args.command)
    upstream = "several" if args.config else "stdio" if args.command else args.url.partition(":")[0].lower()
    transports = {"client": "http" if args.listen is not None else "stdio", "server": upstream}
    return {"what": "proxy", "server": redact_text(server), "transports": transports}


def _join(args: argparse.Namespace, launcher: Launcher, trace: Watcher | None) -> int:
    """Serve the client on stdin and stdout."""
    with held_signals() as caught:
        process: Process | None = None
        problem: TransportClosed | None = None
        try:
            process = launcher.start() if args.command else None
        except TransportClosed as error:
            problem = error
        try:
            return _serve(args, launcher, process, problem, caught, trace)
        finally:
            launcher.put_away(process)


def _reaches_nothing(args: argparse.Namespace) -> bool:
    """Whether this process neither opens a connection nor runs code of the user's, who might."""
    return not (args.url or args.config or args.metrics or args.inspect or args.around)


def _listen(args: argparse.Namespace, launcher: Launcher, trace: Watcher | None) -> int:
    from dragoman.cli.guard import make_guard
    from dragoman.cli.listen import listen
    from dragoman.cli.logs import LINE_OF_MANY, set_up_logging

    set_up_logging(args.log_level, LINE_OF_MANY, args.log_format, args.write_log)
    if args.url or args.configuration is not None:  # nobody signs in to a command
        from dragoman.signin.invitations import Invitations

        args.invitations = Invitations()
    args.guard, args.notes_origins = make_guard(args), args.otel
    if args.auth_forward:
        given = args.around.get("header_middleware", ())
        args.around["header_middleware"] = (*given, args.guard.headers_to_server)
    config = _configure(args, trace)
    if args.configuration is not None:
        from dragoman.cli.routing import watch_file

        router, outer = _route(args, config, launcher)
        if args.paths:
            from dragoman.cli.listen import make_pool
            from dragoman.cli.paths import ServerPaths

            args.by_path = ServerPaths(args, _behind(args, config), launcher.warden, make_pool)
        config = outer
        begin = functools.partial(watch_file, args, router)
        return listen(args, config, router.connect, begin=begin, board=router.board)
    if args.access is not None:
        from dragoman.cli.routing import guard_server

        config = guard_server(args, config)
    return listen(args, config, opener_of_server(args, launcher, config.limit_bytes), launcher.caution)


def _route(args: argparse.Namespace, config: ProxyConfig, launcher: Launcher) -> tuple[Router, ProxyConfig]:
    """Make a router; give it, and the configuration of the proxies before it."""
    from dragoman.cli.routing import guard_servers, make_router
    from dragoman.router.router import before_router

    router = make_router(args, _behind(args, config), launcher.warden)
    return router, guard_servers(args, router, before_router(config))


def _behind(args: argparse.Namespace, config: ProxyConfig) -> ProxyConfig:
    return dataclasses.replace(config, shares_server=args.scope == "shared")


def _serve(
    args: argparse.Namespace,
    launcher: Launcher,
    process: Process | None,
    problem: TransportClosed | None,
    caught: list[int],
    trace: Watcher | None,
) -> int:
    if _reaches_nothing(args):
        load_without_tls()
    import asyncio

    from dragoman.cli.logs import LINE, LINE_OF_MANY, set_up_logging
    from dragoman.proxy import Proxy
    from dragoman.transports.defects import log_defects
    from dragoman.transports.stdio import take_standard_streams

    line = LINE if args.config is None and args.log_file is None else LINE_OF_MANY
    set_up_logging(args.log_level, line, args.log_format, args.write_log)
    if os.isatty(0):
        print(_WAITING, file=sys.stderr)
    config = _configure(args, trace)
    board = config.board
    router: Router | None = None
    args.company = args.usage_error = None  # with all that the options were made of
    if args.configuration is not None:
        router, config = _route(args, config, launcher)
    reach = router.connect if router is not None else opener_of_server(args, launcher, config.limit_bytes, process)

    def connect() -> Transport:
        if problem is not None:
            raise problem
        return reach()

    async def serve() -> int:
        set_apart()
        log_defects(asyncio.get_running_loop())
        proxy = Proxy(config, take_standard_streams(config.limit_bytes), connect)
        reloading = None
        if router is not None:
            from dragoman.cli.reloading import Reloading
            from dragoman.cli.routing import watch_file

            reloading = Reloading()
            watch_file(args, router, reloading)
            reloading.begin()
        watch_signals(caught, proxy.stop, reload=None if reloading is None else reloading.read_all)
        async with serve_metrics(args, board):
            finish = await (proxy.run() if args.status is None else _run_told(proxy, args.status, board))
        if finish is not None and caught:
            return EXIT_SIGNAL + caught[0]
        if finish is not None and problem is not None and not isinstance(problem.__cause__, FileNotFoundError):
            return EXIT_NOT_EXECUTABLE
        return 1 if finish is None else EXIT_CODES.get(finish.outcome.name, 1)

    from dragoman.transports.poller import make_loop

    with asyncio.Runner(loop_factory=choose_loop() if args.url or args.config else make_loop) as runner:
        return runner.run(serve())


async def _run_told(proxy: Proxy, path: str, board: StatusBoard | None) -> Finish | None:
    """Run a proxy, and tell at a socket how it is; None where there is no socket to be had."""
    from dragoman.host.board import SocketTaken, told_at

    try:
        async with told_at(path, board):
            return await proxy.run()
    except SocketTaken as error:
        complain(f"dragoman proxy: {error}")
        return None


def _configure(args: argparse.Namespace, trace: Watcher | None) -> ProxyConfig:
    from dragoman.core.translate import OnLoss
    from dragoman.proxy import ProxyConfig

    return ProxyConfig(
        client_revision=args.client_revision,
        server_revision=args.server_revision,
        profile=args.profile,
        rules=chosen_rules(args),
        on_loss=OnLoss(args.on_loss),
        retry_older=not args.no_retry_older,
        init_timeout_s=args.init_timeout,
        drain_timeout_s=args.drain_timeout,
        request_timeout_s=args.request_timeout,
        request_ceiling_s=args.request_ceiling,
        restarts=args.restarts,
        health_s=args.health_interval,
        trace=trace,
        calls=args.calls,
        spans=args.spans,
        known=know_server(args) if args.config is None else None,
        greets=not args.no_greeting,
        board=_make_board(args),
        names_server=args.listen is None,
        news=make_news(args),
        **args.around,
        **chosen_bridging(args),
    )


def chosen_bridging(args: argparse.Namespace) -> dict[str, Any]:
    """Return the part of `ProxyConfig` that the flags decide."""
    return {
        "questions": args.questions,
        "repeatable": frozenset(args.repeatable),
        "parked_s": args.answer_timeout,
        "most_parked": args.max_parked,
        "task_s": args.task_ttl,
        "roots_ttl_s": args.roots_ttl or 0.0,
        "state_key": None if args.state_key_file is None else args.state_key_file.keys,
        "server_name": args.server_name or "",
    }


def _make_board(args: argparse.Namespace) -> StatusBoard | None:
    if args.listen is None and args.status is None and args.inspect is None and args.metrics is None:
        return None
    from dragoman.status import StatusBoard  # nobody else pays for it

    board = StatusBoard()
    if args.feed is not None:
        args.feed.board = board
    return board


def _fill_standard_descriptors() -> None:
    """Put /dev/null where stdin, stdout or stderr is missing, so that no pipe of ours takes its number."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
