"""Where the demonstration happens: a client in a process of its own, a server in ours, and the proxy between them.

Lives here: starting the peers and joining them, with the record as its trace. Must not: interpret what was written
down. Called by `dragoman.cli.demo`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys

import dragoman_spec
from dragoman.core.commands import Outcome
from dragoman.demo.client import BRIEF
from dragoman.demo.crossings import Record
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.transports.spawn import spawn
from dragoman.transports.stdio import ChildTransport

PATIENCE_S = 20.0
"""How long the whole demonstration may take; it takes about half a second."""


async def perform(client_revision: str, server_revision: str) -> Record:
    """Let a client and a server of these revisions talk through the proxy.

    Args:
        client_revision: Any revision.
        server_revision: Another, or the same.

    Returns:
        What happened, with the problem if it did not come to its end.
    """
    logging.getLogger("dragoman").addHandler(logging.NullHandler())  # what it warns of, the record has
    record = Record(client_revision, server_revision)
    client = spawn(_client(client_revision, server_revision), stderr=subprocess.PIPE)

    from dragoman.demo.server import make_studio  # the client starts meanwhile

    studio = make_studio(server_revision)

    proxy = Proxy(ProxyConfig(trace=record), ChildTransport(client), studio.connect)
    too_long = f"the conversation did not end within {PATIENCE_S:g} seconds"
    watch = asyncio.get_running_loop().call_later(PATIENCE_S, proxy.stop, too_long)
    finish = await proxy.run()
    watch.cancel()
    words = _last_words(client)
    if finish.outcome is not Outcome.CLIENT_CLOSED:
        record.problem = finish.reason
    elif client.returncode:
        record.problem = words or "the client gave up"
    return record


async def try_directly(client_revision: str, server_revision: str) -> str:
    """Let the same two talk without the proxy.

    Returns:
        Why the client gave up; empty if it did not.
    """
    client = spawn(_client(client_revision, server_revision), stderr=subprocess.PIPE)
    from dragoman.demo.server import make_studio

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE_S):
            await make_studio(server_revision).serve_directly(ChildTransport(client))
    return _last_words(client) or ("the client waits for ever" if client.returncode else "")


def _last_words(client: subprocess.Popen[bytes]) -> str:
    assert client.stderr is not None
    with client.stderr as words:
        return words.read().decode().strip()


def _client(revision: str, server_revision: str) -> list[str]:
    """Return the client's command: across the eras it calls one tool."""
    module = "client" if revision in dragoman_spec.HANDSHAKE_REVISIONS else "stateless_client"
    brief = [] if server_revision in dragoman_spec.HANDSHAKE_REVISIONS else [BRIEF]
    return [sys.executable, "-m", f"dragoman.demo.{module}", revision, *brief]
