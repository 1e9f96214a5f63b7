"""A client with a handshake at a server that has none.

`switch` joins them, `running` is one call, `hearing` what the client hears outside of calls, `tools` the tools' headers.
"""
