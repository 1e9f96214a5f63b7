"""Where a call, an answer, a notification or a request of a server goes.

`direct` joins one client to one server; `shared` several clients to one; `per_call` one client to a server for each of
its requests. All of them join the same edges (`core.edges`); none touches bytes.
"""
