"""The links by which people far away sign in, and the page of the proxy that they come back to.

Theory of operation. Whoever's call needs a sign-in gets a link: an invitation. It leads to the proxy, never to the
authorization server, because a link can be handed on, and who signs in must be who has asked. The page behind it says
who that is, and wants their secret where clients have secrets. Then it marks the browser by a cookie and sends it on.
Who comes back has to bring the `state` and that cookie: an address of the authorization server that was handed on leads
to a browser without it. All invitations to one sign-in lead to the same page; who comes back first ends it.

Source: 2025-11-25 and 2026-07-28, client/elicitation, Phishing: "The MCP Server MUST verify the identity of the user
who opens the URL before accepting information".
"""

from __future__ import annotations

import asyncio
import html
import logging
import re
import secrets
from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from dragoman.core.label import LABEL, PRINCIPAL, teller_of
from dragoman.core.places import find_giver
from dragoman.errors import SignInFailed
from dragoman.signin.people import DECLINED, HEADERS, PATH, ask_for, write_page
from dragoman.signin.settings import SignInSettings
from dragoman.transports.http.pages import PageAnswer, PageVisit
from dragoman.transports.upstream.config import describe_url, origin_of
from dragoman.transports.upstream.visits import COME_BACK, VISITOR

if TYPE_CHECKING:
    from dragoman.signin.authority import SignIn

logger = logging.getLogger("dragoman.signin")

_TOKEN: Final = "token"
"""What it is called in a link: by this name traces leave it out."""

_MARK: Final = f"?{_TOKEN}=".encode()
"""What is in every text with a link."""

_LINK: Final = re.compile(re.escape(_MARK) + rb"([\w-]+)")

_COOKIE: Final = "dragoman-"
_COOKIE_S: Final = 600
_FAULTS: Final = 5
"""How often a wrong secret may be typed on one page."""

_OF_ONE: Final = 8
"""How many invitations of one session count, the latest."""

_MOST: Final = 1000
"""How many count in all, and of how many sessions is known what they said."""

_ACCEPTED_S: Final = 120.0
"""How long a client that shows the page is not asked again."""

_GONE: Final = "This link is not good any more", "Let your client ask again: it gets another link."
_LATE: Final = "Nobody waits for this", "Somebody has signed in already, or it took too long."
_FOREIGN: Final = (
    "This is not yours to finish",
    "Another browser began this sign-in, or somebody sent you its address. Open the link that your own client shows.",
)
_ELSEWHERE: Final = "This page was not asked for here", "Open the link that your own client shows."
_FORM: Final = (
    '<form method="post" action="{action}"><input type="hidden" name="token" value="{token}">{field}'
    '<button type="submit">{button}</button></form>'
)
_FIELD: Final = '<label>{0}<input name="{1}" type="{2}" autocomplete="off" required autofocus></label>'


@dataclass(slots=True)
class Invitation:
    """A link for one person.

    Attributes:
        page: What it leads to.
        owner: The principal whose call needs it; empty where nobody has a name.
        asker: That session, for people.
        token: What is in the link.
        cookie: What the browser has that opened it; empty before.
        faults: How often a wrong secret was typed.
    """

    page: InvitedPage
    owner: str
    asker: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    cookie: str = field(default="", repr=False)
    faults: int = 0

    @property
    def holder(self) -> str:
        """With whose it is counted: those of all sessions of a principal are one's."""
        return self.owner or self.asker

    @property
    def url(self) -> str:
        """The link."""
        return f"{self.page.address}?{urlencode({_TOKEN: self.token})}"

    @property
    def cookie_name(self) -> str:
        """What the cookie is called: a browser may sign in to several servers at once."""
        return _COOKIE + self.token[:8]

    def knows(self, cookies: str) -> bool:
        """Whether a browser is the one that opened it."""
        pairs = (one.strip().partition("=") for one in cookies.split(";"))
        brought = next((value for name, _, value in pairs if name == self.cookie_name), "")
        return bool(self.cookie) and _is_same(brought, self.cookie)


class InvitedPage:
    """Waits for a person who is invited. Close it with what they are to read.

    Args:
        host: Whose way here it is.
        address: The page on the proxy.
        url: Where people come back to: the same, or one on their own machine, whose address they paste.
    """

    def __init__(self, host: ByInvitation, address: str, url: str) -> None:
        self.host = host
        self.address = address
        self.url = url
        self.target = ""
        self.state = ""
        self.invitations: list[Invitation] = []
        self.asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.said: dict[str, tuple[str, float]] = {}  # by clients, whether they show it, and when
        self.found: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self.outcome: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()

    async def wait(self, state: str) -> dict[str, str]:
        """Wait for the person who brings this state; give all that they bring."""
        self.state = state
        return await self.found

    async def close(self, title: str, text: str) -> None:
        """Tell whoever came back, and take no one else."""
        self.outcome.set_result((title, text))
        self.found.cancel()
        self.host.take_down(self)

    def invite(self, owner: str, asker: str) -> Invitation:
        """Return a link for somebody: the same until it is opened."""
        own = [one for one in self.invitations if (one.owner, one.asker) == (owner, asker)]
        for one in own:
            if not one.cookie:
                return one
        if len(own) >= _OF_ONE:
            self.invitations.remove(own[0])
        elif len(self.invitations) >= _MOST:
            self.invitations.remove(self._find_given(owner or asker))
        self.invitations.append(Invitation(self, owner, asker))
        return self.invitations[-1]

    def _find_given(self, holder: str) -> Invitation:
        """Return the one that is given up for another of this holder's: of who has most, the oldest unopened one."""
        giver = find_giver(holder, Counter[Hashable](one.holder for one in self.invitations))
        theirs = [one for one in self.invitations if one.holder == giver] or self.invitations
        return next((one for one in theirs if not one.cookie), theirs[0])

    def forget(self) -> None:
        """Keep nothing of sessions that are not being asked, once there are many."""
        if len(self.asking) >= _MOST:
            for key in [key for key, lock in self.asking.items() if not lock.locked()]:
                del self.asking[key]
                self.said.pop(key, None)


class Invitations:
    """All pages of one proxy that people may be invited to.

    Attributes:
        paths: Where they are.
        pages: Those that somebody may come to now.
        sign_ins: What has tokens for a server, by its URL and how to sign in: sessions and routers that each had their
            own would wait for each other, and only the first one would have a link.
    """

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.pages: list[InvitedPage] = []
        self.sign_ins: dict[tuple[str, SignInSettings], SignIn] = {}

    async def answer(self, visit: PageVisit) -> PageAnswer:
        """Show a person the page that they come to."""
        if visit.method == "POST":
            try:
                return await self._take(visit, _read(visit.form))
            except ValueError:  # an origin or an address that is no URL
                return _show(400, *_ELSEWHERE)
        said = _read(visit.query)
        if _TOKEN not in said:
            return await self._come_back(said, visit)
        invitation = self._find(said[_TOKEN])
        return _show(404, *_GONE) if invitation is None else _ask(invitation, visit)

    def address(self, data: bytes, principal: str) -> bytes:
        """Return what a client is told with links of its own, where a server that several share told the first of them.

        Args:
            data: JSON, or events with JSON.
            principal: Who the client is; empty where nobody has a name.
        """
        if not self.pages or _MARK not in data:
            return data
        asker, named = LABEL.get(), {one[1] for one in _LINK.finditer(data)}
        for page in self.pages:
            for one in [one for one in page.invitations if one.token.encode() in named]:
                if one.owner != principal or (asker and one.asker != asker):
                    own = page.invite(principal, asker or principal or "a client")
                    data = data.replace(one.token.encode(), own.token.encode())
        return data

    def _find(self, token: str) -> Invitation | None:
        every = (one for page in self.pages for one in page.invitations)
        return next((one for one in every if _is_same(one.token, token)), None)

    async def _take(self, visit: PageVisit, form: dict[str, str]) -> PageAnswer:
        """Take what a person says on the page."""
        invitation = self._find(form.get(_TOKEN, ""))
        if invitation is None:
            return _show(404, *_GONE)
        # A page of somebody else could send it in a visitor's name.
        if not visit.origin or origin_of(visit.origin) != origin_of(invitation.page.address):
            return _show(403, *_ELSEWHERE)
        if "address" in form:
            return await self._come_back(_read(urlsplit(form["address"].strip()).query), visit)
        if invitation.cookie and not invitation.knows(visit.cookie):
            return _show(403, *_FOREIGN)
        named = visit.identify(form.get("secret", "").strip())
        if named is None or (named and invitation.owner and named != teller_of(invitation.owner)):
            return self._refuse(invitation, visit)
        invitation.cookie = invitation.cookie or secrets.token_urlsafe(24)
        parts = urlsplit(invitation.page.address)
        rules = (
            f"Path={parts.path}; Max-Age={_COOKIE_S}; HttpOnly; SameSite=Lax{'; Secure' * (parts.scheme == 'https')}"
        )
        logger.info("%s: the link of %s has been opened", invitation.page.host.peer, invitation.asker)
        there = (b"set-cookie", f"{invitation.cookie_name}={invitation.cookie}; {rules}".encode())
        return 303, (*HEADERS, there, (b"location", invitation.page.target.encode())), b""

    def _refuse(self, invitation: Invitation, visit: PageVisit) -> PageAnswer:
        invitation.faults += 1
        peer, asker = invitation.page.host.peer, invitation.asker
        logger.warning("%s: somebody opened the link of %s without its secret", peer, asker)
        if invitation.faults >= _FAULTS and invitation in invitation.page.invitations:
            invitation.page.invitations.remove(invitation)
            return _show(403, *_GONE)
        return _ask(invitation, visit, 403)

    async def _come_back(self, brought: dict[str, str], visit: PageVisit) -> PageAnswer:
        """Take what a person brings from the authorization server."""
        state = brought.get("state", "")
        page = next((one for one in self.pages if one.state and _is_same(one.state, state)), None)
        if page is None:
            return _show(404, *_LATE)
        if not any(one.knows(visit.cookie) for one in page.invitations):
            return _show(403, *_FOREIGN)
        if page.found.done():
            return _show(409, *_LATE)
        page.found.set_result(brought)
        return _show(200, *await asyncio.shield(page.outcome))


class ByInvitation:
    """People far away, who come by links that their clients show them.

    Args:
        invitations: All pages of the proxy.
        settings: With the address of the page.
        url: Of the server that it is for.

    Attributes:
        peer: The server, as people know it.
    """

    goes_on = True

    def __init__(self, invitations: Invitations, settings: SignInSettings, url: str) -> None:
        invitations.paths.add(urlsplit(settings.redirect_url or "").path)
        self.peer = urlsplit(url).netloc
        self._invitations = invitations
        self._page: InvitedPage | None = None
        self._shown = asyncio.Event()

    def reach(self) -> bool:
        """Whether anybody can be asked: whoever calls."""
        return True

    def make_page(self, settings: SignInSettings) -> InvitedPage:
        """Return the page that people come back to."""
        address, port = settings.redirect_url or "", settings.redirect_port
        back = f"http://{settings.redirect_host}:{port}{PATH}" if port else address
        self._page = InvitedPage(self, address, back)
        self._invitations.pages.append(self._page)
        return self._page

    def take_down(self, page: InvitedPage) -> None:
        """Invite nobody any more."""
        self._invitations.pages.remove(page)
        self._shown.clear()

    async def show(self, peer: str, url: str) -> None:
        """Let the page lead to another one; who needs it is invited."""
        assert self._page is not None
        self._page.target = url
        self._shown.set()

    async def show_code(self, peer: str, url: str, code: str) -> None:
        """Nobody has a device code to type here."""
        raise SignInFailed(peer, "a device code needs no address to come back to")

    async def paste(self, fault: str = "") -> str:
        """Nobody can type anything into a proxy."""
        return await asyncio.Future[str]()

    async def invite(self, peer: str) -> None:
        """Give whoever calls a link, through their client if that shows pages.

        Raises:
            SignInFailed: They do not want it, or have to open it by hand and to ask again.
        """
        await self._shown.wait()
        assert self._page is not None
        page, clock, asker = self._page, asyncio.get_running_loop().time, LABEL.get() or "a client"
        key, came_at, visitor = f"{asker}\n{PRINCIPAL.get()}", clock(), VISITOR.get()
        page.forget()
        async with page.asking[key]:
            invitation = page.invite(PRINCIPAL.get(), asker)
            action, at = page.said.get(key, ("", -_ACCEPTED_S))
            if at < came_at - (_ACCEPTED_S if action == "accept" else 0):
                about, come_back = (invitation.url, ask_for(peer, asker)), COME_BACK.get()
                action = "" if visitor is None else await visitor(*about)
                action = action if come_back is None else come_back(*about)
                page.said[key] = action, clock()
        if action == "accept":
            return
        why = f"it wants a sign-in: open {invitation.url} in a browser, and then try again"
        error = SignInFailed(peer, DECLINED if action in ("decline", "cancel") else why)
        error.was_asked = True
        raise error


def _read(query: str) -> dict[str, str]:
    return dict(parse_qsl(query, keep_blank_values=True))


def _is_same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())


def _ask(invitation: Invitation, visit: PageVisit, status: int = 200) -> PageAnswer:
    """Write the page that says for whom it is."""
    page = invitation.page
    wants_secret = visit.identify("") is None
    own = html.escape(teller_of(invitation.owner) or "your client")
    fields = _FIELD.format(f"The secret of {own} at this proxy", "secret", "password") if wants_secret else ""
    about = {"action": html.escape(urlsplit(page.address).path), "token": html.escape(invitation.token)}
    forms = _FORM.format(**about, field=fields, button=f"Sign in at {html.escape(urlsplit(page.target).netloc)}")
    if page.url != page.address:
        pasted = "If the last page cannot be shown, come back here, and paste its address:"
        forms += _FORM.format(**about, field=_FIELD.format(pasted, "address", "text"), button="Done")
    text = (
        f"A call of {invitation.asker} needs this. Go on only if it is yours: everybody who uses this proxy will act "
        f"as you at {page.host.peer}."
    )
    title = "That is not the secret" if status != 200 else f"Sign in to {page.host.peer}?"
    return status, HEADERS, write_page(title, text, f"Dragoman at {describe_url(page.address)}", forms)


def _show(status: int, title: str, text: str) -> PageAnswer:
    return status, HEADERS, write_page(title, text, "Dragoman")
