"""Several servers behind one front.

Lives here: what a catalogue (`core.switch.router`) needs of the world: the proxies before its servers, timers, and
the configuration file, which may change. Must not: route, merge or translate. To everybody else a router is a server
that speaks every revision: what opens a transport to it stands where what opens one to a server would.

    router = Router(read_config("mcp.json"))
    proxy = Proxy(ProxyConfig(server_revision=SAME), front, router.connect)
"""

from dragoman.router.router import Router

__all__ = ["Router"]
