"""The sans-IO core: no asyncio, no sockets, no files, no clock. `session` is the way in."""
