"""The HTTP side that faces clients: Streamable HTTP, HTTP+SSE and WebSocket on one port, as one ASGI application.

`app.HttpFront` is what an embedder mounts; `serve` runs it for the command line. Nothing here knows the proxy: whoever
makes a front says what to run for each session.
"""
