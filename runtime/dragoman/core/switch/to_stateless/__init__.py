"""A client with a handshake at a server that has none.

`switch` joins them over a `hop`, `running` is one call, `tasking` its tasks, `subscriptions` what is heard outside of
calls.
"""
