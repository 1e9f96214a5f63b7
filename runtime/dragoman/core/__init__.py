"""The sans-IO core: no asyncio, no sockets, no files, no clock. `edges` and `switch` are the way in."""
