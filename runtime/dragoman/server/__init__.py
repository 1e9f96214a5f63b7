"""A small server: Python functions in the place of a server program, behind the proxy.

    server = Server("notes", "1.0", revision="2025-06-18")

    @server.on(v.ListToolsRequest)
    def list_tools(params: v.PaginatedRequestParams | None, context: Context) -> v.ListToolsResult: ...

    server.run()

Lives here: handlers by method and what follows from them (`server`), one session (`session`), what a handler can do
(`context`), and questions in a revision without server requests (`parking`). Must not: translate, negotiate or move
bytes: a server speaks one revision, and `dragoman.proxy` stands before it. No framework: nothing is made of signatures
or docstrings.
"""

from dragoman.server.context import Context
from dragoman.server.server import Server

__all__ = ["Context", "Server"]
