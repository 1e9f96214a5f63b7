"""Opening the right transport to a server by its URL.

Lives here: one function. Must not: import the HTTP library before it is called. Called by `dragoman.cli.proxy` and by
whoever embeds the proxy.
"""

from __future__ import annotations

import dataclasses
from urllib.parse import urlsplit

from dragoman.core.label import PRINCIPAL
from dragoman.transports.base import Transport
from dragoman.transports.upstream.config import UpstreamConfig


def open_upstream(config: UpstreamConfig) -> Transport:
    """Return the transport to a server; nothing is sent before it is started."""
    if config.tells is not None and config.caller is None:
        config = dataclasses.replace(config, caller=PRINCIPAL.get())
    if urlsplit(config.url).scheme in ("ws", "wss"):
        from dragoman.transports.upstream.websocket import WebSocketUpstream

        return WebSocketUpstream(config)
    from dragoman.transports.upstream.transport import HttpTransport

    return HttpTransport(config)
