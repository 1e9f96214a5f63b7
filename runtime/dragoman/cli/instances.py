"""`--store`: this proxy is one of several instances, of which any takes a request for what another one has.

Lives here: its options. Must not: be on the way where a proxy is alone: what it does is imported only once it is wanted
(`dragoman.instances`). Called by `cli.listen`.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import logging
import os
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.config import Configuration
    from dragoman.host.settings import NewsDesk
    from dragoman.instances.directory import Directory
    from dragoman.transports.http.app import HttpFront

logger = logging.getLogger("dragoman.http")

_URL: Final = re.compile(r"(rediss?|unix)://")


def check_store(args: argparse.Namespace) -> None:
    """Refuse options that do not go together; ends the process."""
    if args.workers > 1 and args.inspect is not None:
        args.usage_error("--inspect shows one process; use it without --workers, or --trace FILE with it")
    if args.workers > 1 and not hasattr(os, "fork"):
        args.usage_error("--workers needs a system that can fork")
    if args.store_events and args.workers == 1 and (args.store is None or args.state_key_file is None):
        args.usage_error(
            "--store-events is for instances that read what the others kept: add --store, --state-key-file"
        )
    if args.store is None:
        if args.instance_listen is not None:
            args.usage_error("--instance-listen is for instances that find each other: add --store redis://HOST")
        return
    if not _URL.match(args.store):
        if "://" in args.store:
            args.usage_error(f"--store: expected a folder, redis://, rediss:// or unix://, found {args.store!r}")
        if args.instance_listen is not None:
            args.usage_error("--instance-listen is for --store redis://HOST; in a folder, instances have sockets")
    elif args.instance_listen is None:
        args.usage_error(
            "--store redis://HOST needs --instance-listen http://HOST:PORT, where the others reach this one"
        )
    elif args.instance_listen[2] != "http":
        args.usage_error("--instance-listen serves no https; expected http://HOST:PORT")


def make_news(args: argparse.Namespace) -> NewsDesk | None:
    """Make what has news of servers for other instances, and from them; None where there are none."""
    args.news = args.event_seal = None
    if args.store is None:
        return None
    from dragoman.instances.news import News

    args.news = news = News()
    return news


@contextlib.asynccontextmanager
async def among_others(args: argparse.Namespace, front: HttpFront) -> AsyncIterator[None]:
    """Be one of several instances as long as this is open, if that is wanted.

    Raises:
        TransportClosed: There is no socket to be had.
        RuntimeError: The library for the store is not installed.
    """
    if args.store is None:
        yield
        return
    from dragoman.instances.door import taken_at
    from dragoman.instances.relay import InstanceRelay, name_instance
    from dragoman.proxy import instance_of_process

    name = name_instance(instance_of_process())
    directory = _find_directory(args, name)
    listener = directory.listen()
    adopts = functools.partial(_adopts, args)
    events = None
    if args.store_events:
        from dragoman.core.rules.state import Seal
        from dragoman.instances.events import EventLog

        args.event_seal = Seal(args.state_key_file.keys, instance_of_process(), b"dragoman events")
        events = EventLog(directory, args.event_seal, os.urandom, 2 * front.config.patience.idle_s)
    front.sessions.relay = relay = InstanceRelay(name, directory, front, adopts, events)
    directory.on_return = relay.adoption.end_inherited
    args.news.begin(directory)
    logger.debug("this is instance %s", name)
    try:
        async with taken_at(listener, front, directory):
            await directory.announce()
            relay.adoption.begin()
            try:
                yield
            finally:
                await args.news.end()
                await relay.adoption.end()
                await directory.withdraw()
                await relay.close()
    finally:
        listener.close()


def _adopts(args: argparse.Namespace) -> bool:
    """Whether sessions can go on elsewhere: no server is a process of one instance alone, or may be another one."""
    file: Configuration | None = args.configuration
    if args.url is not None or args.restarts > 0:
        return True
    return file is not None and all(server.url is not None for server in file.enabled)


def _find_directory(args: argparse.Namespace, name: str) -> Directory:
    if not _URL.match(args.store):
        from dragoman.instances.directory import Folder

        return Folder(args.store, name)
    import importlib.util

    from dragoman.instances.store import Store

    if importlib.util.find_spec("redis") is None:
        raise RuntimeError("--store needs the package redis: pip install 'dragoman[redis]'")
    host, port, _ = args.instance_listen
    return Store(args.store, name, host, port)
