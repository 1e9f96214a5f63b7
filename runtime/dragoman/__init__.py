"""Dragoman: the interpreter between revisions of the Model Context Protocol.

`dragoman.connect` opens a session with a server; `dragoman.proxy` joins a client and a server of any two revisions;
`dragoman.cli` is the command line; `dragoman_spec`, a package of its own, holds the revisions and the steps between
them. Nothing is imported here before it is asked for, so that commands start quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.client.connect import Target
    from dragoman_spec.clients import Connect

    connect: Connect[Target]

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    if name == "connect":
        from dragoman.client.connect import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
