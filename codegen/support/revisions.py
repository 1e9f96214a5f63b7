"""The revisions at hand, and the way to their packages. Imports no pydantic.

Source: schema/pins.toml; which era a revision belongs to is recorded there when it is pulled.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, NewType, Protocol, cast

from dragoman_spec._tables import ERAS, STEPS

from .errors import UnsupportedRevision
from .method import Method

if TYPE_CHECKING:
    from dragoman_spec.protocol import Era, Facts

Revision = NewType("Revision", str)
"""The name of a revision, for type checkers: `convert` takes one where it is not written in the code."""

REVISIONS: tuple[Revision, ...] = tuple(map(Revision, ERAS))
"""Every revision, oldest first."""

HANDSHAKE_REVISIONS: tuple[Revision, ...] = tuple(one for one in REVISIONS if ERAS[one] == "handshake")
"""The revisions that open a session with `initialize`, oldest first."""

PER_REQUEST_REVISIONS: tuple[Revision, ...] = tuple(one for one in REVISIONS if ERAS[one] == "per_request")
"""The revisions in which each request speaks for itself, oldest first."""

LATEST: Revision = REVISIONS[-1]
"""The newest revision."""


def era(revision: str) -> Era:
    """How a session of a revision opens: with a handshake, or not at all, every request speaking for itself.

    Raises:
        UnsupportedRevision: There is no such revision here.
    """
    if revision not in ERAS:
        raise UnsupportedRevision(revision, REVISIONS)
    return ERAS[revision]


def steps_between(source: str, target: str) -> list[tuple[Revision, Revision]]:
    """The pairs of neighbours that lead from one revision to another, in their order; none if they are the same.

    Revisions of one era are neighbours of each other, and one step joins the eras: a newer revision with a handshake
    is reached from the last one before it, whatever came between.

    Raises:
        UnsupportedRevision: There is no such revision here.
    """
    lines = [[one] for one in (source, target) if era(one)]
    for line in lines:
        while line[-1] in STEPS:
            line.append(STEPS[line[-1]])
    down, up = lines
    meet = next(one for one in down if one in up)
    line = [*down[: down.index(meet) + 1], *reversed(up[: up.index(meet)])]
    return [(Revision(one), Revision(other)) for one, other in pairwise(line)]


def facts(revision: str) -> Facts:
    """What a revision has beside its methods and models: transports, headers, capabilities, log levels and so on.

    Raises:
        UnsupportedRevision: There is no such revision here.
    """
    era(revision)
    return _table_of_facts()[revision]


@cache
def _table_of_facts() -> Mapping[str, Facts]:
    from dragoman_spec._facts import FACTS

    return FACTS


class RevisionPackage(Protocol):
    """What the package of every revision has; beyond that, a model under each of its names."""

    @property
    def __name__(self) -> str: ...

    @property
    def REVISION(self) -> Revision:
        """The revision."""

    @property
    def DEFINITIONS(self) -> tuple[str, ...]:
        """The names that the schema itself defines."""

    @property
    def METHODS(self) -> Mapping[str, Method]:
        """Every method, by wire name."""

    @property
    def INPUT_METHODS(self) -> Mapping[str, Method]:
        """The requests that a server makes inside a result, by wire name."""

    @property
    def ENVELOPES(self) -> Mapping[str, str]:
        """The definition of the bare JSON-RPC object, by kind of frame."""

    @property
    def ERROR_CODES(self) -> Mapping[int, str]:
        """The JSON-RPC error codes that the revision names."""

    @property
    def models(self) -> ModuleType:
        """The module of the models."""

    def __getattr__(self, name: str) -> Any: ...


def load(revision: str) -> RevisionPackage:
    """Return the package of a revision, `dragoman_spec.v2025_06_18` and so on; its models load when first asked for.

    Raises:
        UnsupportedRevision: There is no such revision here.
    """
    era(revision)
    return cast(RevisionPackage, import_module("dragoman_spec.v" + revision.replace("-", "_")))
