"""Who may see and use what, by rules of a configuration file.

Lives here: what rules mean together. Must not: read them (`dragoman.config.access`), or know names of a router.

A rule counts for whoever its principals, scopes and claims fit. What a rule denies is denied. As soon as one rule
allows something to anybody, nobody may use anything but what a rule allows them. What may not be used is not listed,
and to ask for it is the error of a name that nobody has; but where only scopes are missing, the answer names them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from dragoman.config.model import AccessRule, Things
from dragoman.core.codes import INVALID_REQUEST
from dragoman.core.label import teller_of
from dragoman.core.methods import COMPLETE, LISTEN
from dragoman.core.naming import RESOURCE
from dragoman.core.origin import NOWHERE, Origin
from dragoman.middleware import Answer, Direction, Message, Proceed, ProceedNotice
from dragoman.middlewares.lists import Allow, Deny, hide, let_others, refuse, settled, updated_uri
from dragoman.middlewares.named import names_in

FindOwner = Callable[[str, str], tuple[str, str] | None]
"""Gives which server has something that clients know by a kind and a name, and what it calls it; None: nobody knows."""

_TEMPLATE: Final = "template"
_OF_TEMPLATES: Final = frozenset({"resources/templates/list", COMPLETE})


@dataclass(frozen=True, slots=True)
class _Caller:
    """Who asks; of whoever is only told something, the token is not looked at."""

    principal: str
    origin: Origin = NOWHERE
    is_told: bool = False


class _Covered:
    """What a rule is about."""

    def __init__(self, things: Things, *, is_denied: bool) -> None:
        self._servers = things.servers
        kinds = things.tools, things.prompts, things.resources
        named = [kind or () for kind in kinds]
        self._names = None if kinds == (None, None, None) else Deny(*named) if is_denied else Allow(*named)
        self._is_denied = is_denied

    def has(self, kind: str, server: str, name: str) -> bool:
        """Whether it is about this."""
        if self._servers is not None and not any(fnmatchcase(server, one) for one in self._servers):
            return False
        return self._names is None or self._names.shows(kind, name) is not self._is_denied


class _Rule:
    def __init__(self, rule: AccessRule) -> None:
        self._rule = rule
        self.scopes = rule.scopes
        self.looks_at_tokens = bool(rule.scopes or rule.claims)
        self.allowed = None if rule.allow is None else _Covered(rule.allow, is_denied=False)
        self.denied = None if rule.deny is None else _Covered(rule.deny, is_denied=True)

    def lacks(self, caller: _Caller) -> Collection[str] | None:
        """Return the scopes that somebody lacks for this to count; None where it is not about them at all."""
        rule = self._rule
        names = caller.principal, teller_of(caller.principal)
        if rule.principals is not None and not any(fnmatchcase(name, one) for name in names for one in rule.principals):
            return None
        if caller.is_told:
            return ()
        if not all(_says(caller.origin.claims, name, texts) for name, texts in rule.claims):
            return None
        return frozenset(rule.scopes) - caller.origin.scopes


class Rules:
    """Lets clients see and use what rules allow them.

    Args:
        rules: They.
        find_owner: Gives which server has something.
        servers: Gives which servers there are.
    """

    def __init__(
        self, rules: Sequence[AccessRule], find_owner: FindOwner, servers: Callable[[], Collection[str]]
    ) -> None:
        self._find_owner = find_owner
        self._servers = servers
        self.change(rules)

    def change(self, rules: Sequence[AccessRule]) -> None:
        """Let other rules count from now on."""
        self._rules = [_Rule(rule) for rule in rules]
        self._allows_all = all(rule.allowed is None for rule in self._rules)

    async def around_request(self, call: Message, proceed: Proceed) -> Answer:
        """Refuse what may not be used, and leave it out of lists."""
        if call.direction is Direction.TO_CLIENT:
            return await proceed(call)
        caller, spent = _Caller(call.principal, call.origin), 0
        for kind, name in names_in(call.method, call.params):
            spent = await let_others(spent, name)
            owner = self._find_owner(_specify(call.method, kind), name)
            if (owner is not None or call.method == LISTEN) and not self._judge(caller, kind, name, owner):
                return self._refuse(call, caller, kind, name)
            # Whoever finds out whose it is asks; also where that is another server by the time that it is sent.
            call = call.with_origin(call.origin._replace(may=partial(self._may, caller), judged=owner))
        answer, method = await proceed(settled(call)), call.method

        def shows(kind: str, name: str) -> bool:
            owner = self._find_owner(_specify(method, kind), name)
            return owner is not None and self._may(caller, kind, *owner)  # a server's that is gone is of no use

        return await hide(answer, method, shows)

    async def around_notice(self, notice: Message, proceed: ProceedNotice) -> None:
        """Say nothing of resources that may not be used."""
        uri = updated_uri(notice)
        caller = _Caller(notice.principal, is_told=True)
        if uri is None or self._judge(caller, RESOURCE, uri, self._find_owner(RESOURCE, uri)):
            await proceed(notice)

    def _judge(self, caller: _Caller, kind: str, name: str, owner: tuple[str, str] | None) -> bool:
        """Whether somebody may use what clients know by a name; where nobody knows whose it is, of whichever server."""
        if owner is not None:
            return self._may(caller, kind, *owner)
        return all(self._may(caller, kind, server, name) for server in self._servers())

    def _may(self, caller: _Caller, kind: str, server: str, name: str) -> bool:
        kind = RESOURCE if kind == _TEMPLATE else kind
        counting = [rule for rule in self._rules if rule.lacks(caller) in ((), frozenset())]
        denying = [rule for rule in counting if not (caller.is_told and rule.looks_at_tokens)]
        if any(rule.denied and rule.denied.has(kind, server, name) for rule in denying):
            return False
        return self._allows_all or any(rule.allowed and rule.allowed.has(kind, server, name) for rule in counting)

    def _refuse(self, call: Message, caller: _Caller, kind: str, name: str) -> Answer:
        """Refuse a request; say which scopes it takes, where with these it would be allowed."""
        server, own = self._find_owner(kind, name) or ("", name)
        for rule in sorted(self._rules, key=lambda rule: len(rule.lacks(caller) or ())):
            if caller.origin.claims and rule.allowed and rule.lacks(caller) and rule.allowed.has(kind, server, own):
                origin = caller.origin._replace(scopes=caller.origin.scopes.union(rule.scopes))
                if self._may(_Caller(caller.principal, origin), kind, server, own):
                    said = f"to use this {kind} takes a token that is good for {' '.join(rule.scopes)}"
                    return Answer.fail(INVALID_REQUEST, said, {"method": call.method}, scopes=rule.scopes)
        return refuse(call, kind, name)


def _specify(method: str, kind: str) -> str:
    """Return what is named more exactly: a template is known by another name than a resource."""
    return _TEMPLATE if kind == RESOURCE and method in _OF_TEMPLATES else kind


def _says(claims: Mapping[str, Any], name: str, texts: Collection[str]) -> bool:
    """Whether a claim is one of these texts, or has one among others; a dot leads into an object."""
    found: Any = claims.get(name)
    if found is None:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    listed = found if isinstance(found, list) else [found]
    return any(isinstance(one, str) and one in texts for one in listed)
