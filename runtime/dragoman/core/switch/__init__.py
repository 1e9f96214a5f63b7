"""Where a call, an answer, a notification or a request of a server goes.

`direct` joins one client to one server, `shared` several clients to one. Both join the same edges (`core.edges`);
neither touches bytes.
"""
