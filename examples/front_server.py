"""A server of your own before somebody else's: front -> middleware -> external server.

    python examples/front_server.py PORT URL

Clients of any revision use http://127.0.0.1:PORT/mcp. They see the tools of the server at URL, but for those that
remove something, make at most 60 calls a minute, and find how long each call took in its result.
"""

from __future__ import annotations

import asyncio
import sys
import time

from dragoman.middleware import Answer, Message, Proceed
from dragoman.middlewares import Deny, RateLimit
from dragoman.pool import Scope, UpstreamPool
from dragoman.proxy import ProxyConfig
from dragoman.transports.http.app import HttpFront
from dragoman.transports.http.serve import Address, HttpServer, bind
from dragoman.transports.upstream.config import UpstreamConfig
from dragoman.transports.upstream.connect import open_upstream


async def take_the_time(call: Message, proceed: Proceed) -> Answer:
    """Say how long the external server took for a call."""
    began = time.monotonic()
    answer = await proceed(call)
    if call.method != "tools/call" or answer.result is None:
        return answer
    meta = {**answer.result.get("_meta", {}), "example.com/seconds": round(time.monotonic() - began, 3)}
    return Answer.succeed({**answer.result, "_meta": meta})


async def main(port: int, url: str) -> None:
    """Serve until somebody stops it."""
    deny = Deny(tools=["remove_*"])
    limit = RateLimit(per_minute=60, methods=["tools/call"])
    config = ProxyConfig(middleware=(limit, deny.around_request, take_the_time))
    pool = UpstreamPool(Scope.CLIENT, lambda: open_upstream(UpstreamConfig(url)))
    front = HttpFront(
        lambda transport, caller: pool.proxy(
            config, transport, caller.principal or None, is_per_request=caller.is_per_request
        )
    )
    address = Address("127.0.0.1", port)
    server = HttpServer(front, bind(address), address)
    await server.run(lambda: print(f"http://127.0.0.1:{port}/mcp", flush=True), pool.close)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
