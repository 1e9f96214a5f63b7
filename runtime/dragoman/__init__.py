"""Dragoman: the interpreter between revisions of the Model Context Protocol.

`dragoman.connect` opens a session with a server, and `dragoman.connect_sync` the same without an event loop;
`dragoman.proxy` joins a client and a server of any two revisions; `dragoman.cli` is the command line; `dragoman_spec`,
a package of its own, holds the revisions and the steps between them. Nothing is imported here before it is asked for,
so that commands start quickly.
"""

from __future__ import annotations

from dragoman_spec.version import VERSION

TYPE_CHECKING = False  # as checkers take it; `typing` itself takes time, and a server is started before

if TYPE_CHECKING:
    from typing import Any

    from dragoman.client.connect import Target
    from dragoman_spec.clients import Connect, SyncConnect

    connect: Connect[Target]
    connect_sync: SyncConnect[Target]

__all__ = ["connect", "connect_sync"]

_BINDINGS = "0.1.0"

if VERSION != _BINDINGS:  # the distribution `dragoman-spec` has the same files
    raise ImportError(
        f"this version of dragoman has dragoman_spec {_BINDINGS} in it, and {VERSION} was installed over it: install "
        f"dragoman again, or dragoman-spec=={_BINDINGS}"
    )


if not TYPE_CHECKING:  # a checker would take any name for one that is here

    def __getattr__(name: str) -> Any:
        if name == "connect":
            from dragoman.client.connect import connect

            return connect
        if name == "connect_sync":
            from dragoman.client.sync import connect_sync

            return connect_sync
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"TYPE_CHECKING", "VERSION", "annotations"})
