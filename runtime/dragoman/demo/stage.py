"""Where the demonstration happens: a client and a server of our own libraries, and the proxy between them.

Lives here: starting the peers and joining them, with the record as its trace. Must not: interpret what was written
down. Called by `dragoman.cli.demo`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from dragoman.core.commands import Outcome
from dragoman.demo.client import DemoClient, GivenUp
from dragoman.demo.crossings import Record
from dragoman.demo.server import make_studio
from dragoman.proxy import Proxy, ProxyConfig
from dragoman.trace.trace import Watcher
from dragoman_spec import HANDSHAKE_REVISIONS

PATIENCE_S = 20.0
"""How long the whole demonstration may take; it takes about half a second."""


async def perform(
    client_revision: str, server_revision: str, watch: Callable[[Watcher], Watcher] = lambda record: record
) -> Record:
    """Let a client and a server of these revisions talk through the proxy.

    Args:
        client_revision: Any revision.
        server_revision: Another, or the same.
        watch: Gives who is told of what crosses, and tells the record, which it is given.

    Returns:
        What happened, with the problem if it did not come to its end.
    """
    logging.getLogger("dragoman").addHandler(logging.NullHandler())  # what it warns of, the record has
    record = Record(client_revision, server_revision)
    client = _make_client(client_revision, server_revision)
    proxy = Proxy(ProxyConfig(trace=watch(record)), client.session.transport, make_studio(server_revision).connect)
    running = asyncio.create_task(proxy.run())
    record.problem = await _hear_out(client)
    finish = await running
    if finish.outcome is not Outcome.CLIENT_CLOSED:
        record.problem = finish.reason
    return record


async def try_directly(client_revision: str, server_revision: str) -> str:
    """Let the same two talk without the proxy.

    Returns:
        Why the client gave up; empty if it did not.
    """
    client = _make_client(client_revision, server_revision)
    serving = asyncio.create_task(make_studio(server_revision).serve_directly(client.session.transport))
    why = await _hear_out(client)
    await serving
    return why


def _make_client(revision: str, server_revision: str) -> DemoClient:
    """Across the eras it calls one tool."""
    return DemoClient(revision, is_brief=server_revision not in HANDSHAKE_REVISIONS)


async def _hear_out(client: DemoClient) -> str:
    """Let a client say what it has to say; give why it did not come to the end, if so."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await client.converse()
    except TimeoutError:
        return f"the conversation did not end within {PATIENCE_S:g} seconds"
    except GivenUp as error:
        return f"the client gives up: {error}"
    finally:
        client.session.transport.end()
    return ""
