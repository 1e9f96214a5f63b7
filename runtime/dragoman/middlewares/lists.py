"""Which tools, prompts and resources of a server clients can see and use.

Lives here: patterns, and what becomes of what they hide. Must not: know where names stand (`named`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from dragoman.core.codes import INVALID_PARAMS
from dragoman.core.methods import UPDATED
from dragoman.core.naming import NAMING, PROMPT, RESOURCE, TOOL
from dragoman.middleware import Answer, Direction, Message, Proceed, ProceedNotice
from dragoman.middlewares.named import LISTS, names_in
from dragoman.middlewares.spellings import fold, read_loosely, read_strictly, settle

_AT_ONCE: Final = 32 * 1024
_A_NAME: Final = 64
"""How many characters of names are looked at before others have a turn, and what a name counts beside its own: a
request or a list may have a hundred thousand, and a URI takes 15 µs or more."""


class _Lists:
    """What `Allow` and `Deny` have in common: what is not seen is not listed, and to ask for it is an error.

    Attributes:
        shows: Whether something of a kind and name is seen.
    """

    def __init__(self, shows: Callable[[str, str], bool]) -> None:
        self.shows = shows

    async def around_request(self, call: Message, proceed: Proceed) -> Answer:
        """Refuse what names something hidden, and leave out what is hidden."""
        if call.direction is Direction.TO_CLIENT:
            return await proceed(call)
        spent = 0
        for kind, name in names_in(call.method, call.params):
            spent = await let_others(spent, name)
            if not self.shows(kind, name):
                return refuse(call, kind, name)
        return await hide(await proceed(settled(call)), call.method, self.shows)

    async def around_notice(self, notice: Message, proceed: ProceedNotice) -> None:
        """Say nothing of resources that are hidden."""
        uri = updated_uri(notice)
        if uri is None or self.shows(RESOURCE, uri):
            await proceed(notice)


def refuse(call: Message, kind: str, name: str) -> Answer:
    """Answer as a server does that has nothing of this name."""
    return Answer.fail(INVALID_PARAMS, f"unknown {kind}: {name[:500]}", {"method": call.method})


def settled(call: Message) -> Message:
    """Return a request as it was looked at: an object may have a member twice, and a server may read the other one."""
    return call.with_params(call.params) if call.method in NAMING else call


async def hide(answer: Answer, method: str, shows: Callable[[str, str], bool]) -> Answer:
    """Return the answer to a request without what is not seen, if it is a list."""
    if method not in LISTS or answer.result is None:
        return answer
    kind, member, named_by = LISTS[method]
    listed = answer.result.get(member)
    if not isinstance(listed, list):
        return answer
    seen, spent = [], 0
    for one in listed:
        name = str(one.get(named_by)) if isinstance(one, dict) else ""
        spent = await let_others(spent, name)
        if isinstance(one, dict) and shows(kind, name):
            seen.append(one)
    return answer if len(seen) == len(listed) else Answer.succeed({**answer.result, member: seen})


async def let_others(spent: int, name: str) -> int:
    """Give others a turn, if so many names were looked at since they had one; return how much that now is."""
    spent += _A_NAME + len(name)
    if spent < _AT_ONCE:
        return spent
    await asyncio.sleep(0)
    return 0


def updated_uri(notice: Message) -> str | None:
    """Return the resource that a notification says has changed; None of any other."""
    uri = notice.params.get("uri") if notice.method == UPDATED else None
    return uri if isinstance(uri, str) else None


class Allow(_Lists):
    """Shows only the tools, prompts and resources that match a pattern, and lets only those be used.

    A kind without patterns is left alone. In a pattern `*` stands for anything, `?` for one character; resources match
    by their URI, templates by theirs, in every spelling that a server may read: `file:///srv/%2e%2e/etc` matches
    `file:///srv/*` and `file:///etc/*`, and is allowed where both are.

    Args:
        tools: Patterns of names; None to leave tools alone, an empty list for none at all.
        prompts: The same for prompts.
        resources: Patterns of URIs.
    """

    def __init__(
        self,
        tools: Iterable[str] | None = None,
        prompts: Iterable[str] | None = None,
        resources: Iterable[str] | None = None,
    ) -> None:
        patterns = _by_kind(tools, prompts, resources, settle)

        def is_seen(kind: str, name: str) -> bool:
            given = patterns[kind]
            if given is None:
                return True
            forms = read_strictly(name) if kind == RESOURCE else {name}
            return bool(forms) and all(_matches(form, given) for form in forms)

        super().__init__(is_seen)


class Deny(_Lists):
    """Hides the tools, prompts and resources that match a pattern, and refuses their use.

    For resources, `Allow` is the list to trust: a server may have ways to write a URI that nobody foresees, and links
    in its files. URIs match here in any spelling that common servers read, without regard to case.

    Args:
        tools: Patterns of names, as for `Allow`.
        prompts: The same for prompts.
        resources: Patterns of URIs.
    """

    def __init__(self, tools: Iterable[str] = (), prompts: Iterable[str] = (), resources: Iterable[str] = ()) -> None:
        patterns = _by_kind(tools, prompts, resources, lambda pattern: map(fold, settle(pattern)))

        def is_seen(kind: str, name: str) -> bool:
            given = patterns[kind]
            if not given:
                return True
            forms = read_loosely(name) if kind == RESOURCE else {name}
            return bool(forms) and not any(_matches(form, given) for form in forms)

        super().__init__(is_seen)


def _by_kind(
    tools: Iterable[str] | None,
    prompts: Iterable[str] | None,
    resources: Iterable[str] | None,
    spell: Callable[[str], Iterable[str]],
) -> Mapping[str, tuple[str, ...] | None]:
    given: dict[str, Any] = {TOOL: tools, PROMPT: prompts, RESOURCE: resources}
    for kind, patterns in given.items():
        if isinstance(patterns, str):
            raise ValueError(f"expected a list of patterns for {kind}s, found the string {patterns!r}")
    if resources is not None:
        given[RESOURCE] = [form for pattern in resources for form in spell(pattern)]
    return {kind: None if patterns is None else tuple(patterns) for kind, patterns in given.items()}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
