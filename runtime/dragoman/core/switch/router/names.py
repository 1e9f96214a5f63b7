"""Which server a name belongs to, and what clients know it as.

Lives here: the names of tools, prompts, resources and templates of all servers. Must not: know frames or sessions: all
sessions of a router share one `Names`, so that a name means the same in each.

A name is changed only where it has to be: where two servers have it, or it begins as if another server had it, then it
gets the prefix of its server; or where models do not take it (up to 64 letters, digits, `_` and `-`). What a client was
told once goes on to mean the same: names of a server that is away stay taken, and a name that has got a prefix since is
still understood without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

LONGEST: Final = 64
"""How many characters the name of a tool may have, for the models that take fewest."""

MOST_NAMES: Final = 2_000
"""How many names of a kind are remembered of one server, beside those that it lists at present."""

MOST_SHOWN: Final = 64
"""How many templates of one server, of those that clients know by another name, a URI in its results is compared with:
it may say very many URIs."""

MOST_TEMPLATES: Final = 1_000
"""How many templates of one server a URI is compared with that is on no list; it is asked for at each server else."""

LONGEST_NAME: Final = 8_192
"""How many characters a name may have that is remembered; resources with longer URIs are asked for at each server."""

EXTENSION_SCHEMES: Final = ("skill://", "ui://")
"""How URIs begin whose scheme an extension has given a meaning: clients know it by that, so it stays in front."""

_MOST_EXPRESSIONS: Final = 16
"""How many expressions a template may have that URIs are compared with."""

_HASH: Final = 6
_NOT_FOR_MODELS = re.compile(r"[^A-Za-z0-9_-]")
_NOT_FOR_SCHEMES = re.compile(r"[^a-z0-9.-]")


class NameKind(Enum):
    """What is named."""

    TOOL = "tool"
    PROMPT = "prompt"
    RESOURCE = "resource"
    TEMPLATE = "template"

    __hash__ = object.__hash__

    @property
    def is_uri(self) -> bool:
        """Whether such names are URIs, or templates of URIs."""
        return self in (NameKind.RESOURCE, NameKind.TEMPLATE)


class NameOwner(NamedTuple):
    """Whose something is: the server, and what it calls it."""

    server: str
    name: str


@dataclass(slots=True)
class _Table:
    claims: dict[str, dict[str, None]] = field(default_factory=dict)
    owners: dict[str, NameOwner] = field(default_factory=dict)
    told: dict[str, NameOwner] = field(default_factory=dict)
    shown: dict[str, dict[str, str]] = field(default_factory=dict)
    pieces: dict[str, list[str]] = field(default_factory=dict)
    is_told: bool = False


class Names:
    """The names of all servers of a router.

    Args:
        always: Whether each name has a prefix, rather than those that would clash.
        separator: What stands between prefix and name.

    Attributes:
        version: Counts how often the name of anything has changed.
        is_guarded: Whether there are rules that say who may use what, so that a request whose owner had to be found
            says what it may use.
    """

    def __init__(self, *, always: bool = False, separator: str = "_") -> None:
        self.version = 0
        self.is_guarded = False
        self._always = always
        self._separator = separator
        self._prefixes: dict[str, str] = {}
        self._starts: dict[NameKind, dict[str, str]] = {}
        self._tables = {kind: _Table() for kind in NameKind}

    def set_policy(self, *, always: bool, separator: str) -> None:
        """Change how names are made; takes effect with the next `set_servers`."""
        self._always, self._separator = always, separator

    def set_servers(self, prefixes: Mapping[str, str], changed: Iterable[str] = ()) -> None:
        """Say which servers there are.

        Args:
            prefixes: Of each, in the order in which they count.
            changed: Those whose names so far mean nothing any more.
        """
        unique: dict[str, str] = {}
        schemes: dict[str, str] = {}
        taken: set[str] = set()
        taken_schemes: set[str] = set()
        for server, prefix in prefixes.items():
            fitting = _NOT_FOR_MODELS.sub("_", prefix)[: LONGEST // 2] or "server"
            if fitting in taken:
                fitting = f"{fitting[: LONGEST // 2 - _HASH - 1]}_{_digest(server)}"
            scheme = _fit_scheme(fitting)
            if scheme in taken_schemes:
                scheme = f"{scheme}-{_digest(server)}"
            unique[server], schemes[server] = fitting, scheme
            taken.add(fitting)
            taken_schemes.add(scheme)
        by_prefix = {server: prefix + self._separator for server, prefix in unique.items()}
        by_scheme = {server: f"{scheme}+" for server, scheme in schemes.items()}
        self._starts = {kind: by_scheme if kind.is_uri else by_prefix for kind in NameKind}
        gone = {server for server in self._prefixes if server not in unique} | set(changed)
        self._prefixes = unique
        for kind, table in self._tables.items():
            table.claims = {server: table.claims.get(server, {}) for server in unique if server not in gone}
            table.told = {name: owner for name, owner in table.told.items() if owner.server not in gone}
            self._arrange(kind)

    def learn(self, server: str, kind: NameKind, names: Iterable[str]) -> None:
        """Record what a server has; what it had before stays its own."""
        table = self._tables[kind]
        if server not in self._prefixes:
            return
        claimed = table.claims.setdefault(server, {})
        most = MOST_TEMPLATES if kind is NameKind.TEMPLATE else None
        listed = dict.fromkeys(islice((name for name in names if len(name) <= LONGEST_NAME), most))
        new = [name for name in listed if name not in claimed]
        if new:
            claimed.update(dict.fromkeys(new))
            if len(claimed) > (most or MOST_NAMES):
                for name in [name for name in claimed if name not in listed][: len(claimed) - (most or MOST_NAMES)]:
                    del claimed[name]
                told = table.told.items()
                table.told = {name: owner for name, owner in told if owner.server != server or owner.name in claimed}
            self._arrange(kind)

    def tell(self, kind: NameKind) -> None:
        """Record that a client is told all names of a kind: each goes on to mean what it means now."""
        table = self._tables[kind]
        if not table.is_told:
            table.is_told = True
            for name, owner in table.owners.items():
                table.told.setdefault(name, owner)

    def show(self, server: str, kind: NameKind) -> Mapping[str, str]:
        """Return what clients know the things of a server as: the names that differ alone."""
        return self._tables[kind].shown.get(server, {})

    def has_shown_uris(self, server: str) -> bool:
        """Whether clients know a resource of a server by another URI than its own."""
        return bool(self.show(server, NameKind.RESOURCE) or self.show(server, NameKind.TEMPLATE))

    def show_uri(self, server: str, uri: str) -> str:
        """Return what clients know a resource of a server as: one that it lists, or that is made of its template."""
        shown = self.show(server, NameKind.RESOURCE).get(uri)
        if shown is None and uri.startswith(EXTENSION_SCHEMES) and server in self._prefixes:
            return _put_prefix(self._starts[NameKind.RESOURCE][server], uri)
        if shown is not None or uri in self._tables[NameKind.RESOURCE].claims.get(server, {}):
            return shown or uri
        table = self._tables[NameKind.TEMPLATE]
        for template, known in islice(table.shown.get(server, {}).items(), MOST_SHOWN):
            if _fits(table.pieces[template], uri):
                return known.removesuffix(template) + uri
        return uri

    def find(self, kind: NameKind, name: str) -> NameOwner | None:
        """Return whose a name is that a client used; a URI may be of an extension, or made of a template."""
        table = self._tables[kind]
        found = table.owners.get(name) or table.told.get(name)
        if found is not None or not kind.is_uri:
            return found
        resources = self._tables[NameKind.RESOURCE]
        return resources.owners.get(name) or resources.told.get(name) or self._find_page(name) or self._find_made(name)

    def _find_page(self, uri: str) -> NameOwner | None:
        """Return whose a URI in the scheme of an extension is: it names its server, `ui://SERVER/…`."""
        scheme = next(filter(uri.startswith, EXTENSION_SCHEMES), None)
        if scheme is None:
            return None
        authority, slash, rest = uri.removeprefix(scheme).partition("/")
        start = f"{authority}+"
        server = next((one for one, other in self._starts[NameKind.RESOURCE].items() if other == start), None)
        if server is None or not slash:
            return None
        claimed = self._tables[NameKind.RESOURCE].claims.get(server, {})
        own = scheme + rest
        return NameOwner(server, uri if uri in claimed and own not in claimed else own)

    def _find_made(self, uri: str) -> NameOwner | None:
        """Return whose template a URI fits best: the one that says most of it, as it is known now or was once told."""
        table = self._tables[NameKind.TEMPLATE]
        for known in (table.owners, table.told):
            fitting = [
                (sum(map(len, pieces)), shown)
                for shown in known
                if _fits(pieces := table.pieces.get(shown) or _literals(shown), uri)
            ]
            if fitting:
                shown = max(fitting)[1]
                server, template = known[shown]
                return NameOwner(server, uri.removeprefix(shown.removesuffix(template)))
        return None

    def _arrange(self, kind: NameKind) -> None:
        """Decide anew what everything is called: by the order of servers and of their names, and by nothing else."""
        table = self._tables[kind]
        counts: dict[str, int] = {}
        for claimed in table.claims.values():
            for name in claimed:
                counts[name] = counts.get(name, 0) + 1
        owners: dict[str, NameOwner] = {}
        later: list[NameOwner] = []
        for server in self._prefixes:
            for name in table.claims.get(server, ()):
                plain = _fit(name) if kind is NameKind.TOOL else name
                owner = NameOwner(server, name)
                is_free = plain not in owners and table.told.get(plain, owner) == owner
                is_free = is_free and not self._is_of_other(kind, server, plain)
                is_free = is_free and not (kind.is_uri and name.startswith(EXTENSION_SCHEMES))
                if counts[name] > 1 or (self._always and not kind.is_uri) or not is_free:
                    later.append(owner)
                else:
                    owners[plain] = owner
        for owner in later:
            owners[self._prefixed(kind, owner, owners, table.told)] = owner
        shown: dict[str, dict[str, str]] = {}
        for name, owner in owners.items():
            if name != owner.name:
                shown.setdefault(owner.server, {})[owner.name] = name
        if shown != table.shown:
            self.version += 1
        table.owners, table.shown, table.is_told = owners, shown, False
        if kind is NameKind.TEMPLATE:
            named = (*owners, *(owner.name for owner in owners.values()))
            table.pieces = {template: table.pieces.get(template) or _literals(template) for template in named}

    def _is_of_other(self, kind: NameKind, server: str, name: str) -> bool:
        """Whether a name reads as if another server had it: then nobody else gets it, in whatever order they come."""
        starts = self._starts[kind]
        if not name.startswith(tuple(starts.values())):
            return False
        fitting = [other for other, start in starts.items() if name.startswith(start)]
        return max(fitting, key=lambda other: len(starts[other])) != server

    def _prefixed(
        self, kind: NameKind, owner: NameOwner, taken: Mapping[str, NameOwner], told: Mapping[str, NameOwner]
    ) -> str:
        start = self._starts[kind][owner.server]
        prefixed = _put_prefix(start, owner.name) if kind.is_uri else f"{start}{owner.name}"
        if kind is NameKind.TOOL:
            prefixed = _fit(prefixed)
        number = 0
        free = prefixed
        is_of_other = self._is_of_other(kind, owner.server, prefixed)
        while (is_of_other and number == 0) or free in taken or told.get(free, owner) != owner:
            number += 1
            mark = _digest(f"{owner.server} {owner.name} {number}")
            # A URI stays whole behind its prefix: a template would not fit any more.
            free = (
                _put_prefix(f"{start[:-1]}-{mark}+", owner.name)
                if kind.is_uri
                else f"{prefixed[: LONGEST - _HASH - 1]}_{mark}"
            )
        return free


def _fit(name: str) -> str:
    """Return a name that models take; the same for the same name, and hardly ever that of another."""
    fitting = _NOT_FOR_MODELS.sub("_", name)
    if not fitting:
        return f"tool_{_digest(name)}"
    return fitting if len(fitting) <= LONGEST else f"{fitting[: LONGEST - _HASH - 1]}_{_digest(name)}"


def _put_prefix(start: str, uri: str) -> str:
    """Write the server of a URI before it, `files+file:///x`, or behind the scheme of an extension, `ui://files/x`."""
    scheme = next(filter(uri.startswith, EXTENSION_SCHEMES), None)
    return start + uri if scheme is None else f"{scheme}{start[:-1]}/{uri.removeprefix(scheme)}"


def _fit_scheme(prefix: str) -> str:
    """Return what a URI may begin with: a letter first, and small ones, for clients write schemes in small letters."""
    fitting = _NOT_FOR_SCHEMES.sub("-", prefix.lower())
    return fitting if fitting[0].isalpha() else f"server-{fitting}"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:_HASH]


def _fits(pieces: list[str], uri: str) -> bool:
    """Whether the literal pieces of a template stand in a URI in its order, so that it can be an instance.

    What an expression may become is not looked at: RFC 6570 has many kinds, and a server says itself what it has not.
    """
    at, end = len(pieces[0]), len(uri) - len(pieces[-1])
    if not (uri.startswith(pieces[0]) and uri.endswith(pieces[-1])) or len(uri) > LONGEST_NAME:
        return False
    if len(pieces) == 1:
        return at == len(uri)
    for piece in pieces[1:-1]:
        at = uri.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return at <= end


def _literals(template: str) -> list[str]:
    first, *rest = template.split("{", _MOST_EXPRESSIONS)
    pieces = [first]
    for part in rest:
        _, closed, literal = part.partition("}")
        pieces.append(literal if closed else "{" + part)
    return pieces
