"""The side that faces servers over the network: Streamable HTTP, HTTP+SSE and WebSocket clients.

`config.UpstreamConfig` says where to and how; `connect.open_upstream` makes the transport for it. Nothing here knows
the proxy: each is a `transports.base.Transport`, like a child process.
"""
