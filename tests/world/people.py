"""People of a world, who sign in: at this machine, or far away, by links that their clients show them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from dragoman.signin.invitations import InvitedPage
from dragoman.signin.settings import SignInSettings
from tests.world.http_bytes import Message, Reader, write_request
from tests.world.network import Network
from tests.world.peers.authority import PERSON
from tests.world.peers.words import chance_of
from tests.world.plan import ClientPlan, Plan
from tests.world.record import Record
from tests.world.streams import End

_THINKS_S: Final = {"yes": (0.0, 1.0, 5.0), "slow": (20.0, 60.0), "no": (1.0, 5.0), "late": (700.0,)}
"""How long who signs in takes, by what they are like; others never do."""


class _Reading:
    """Reads one answer."""

    def __init__(self, end: End) -> None:
        self.answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self._end = end
        self._reader = Reader(False, lambda _: None, lambda _: None, self._take)
        end.start(self)

    def _take(self, message: Message) -> None:
        if not self.answer.done():
            self.answer.set_result(message)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)

    def ended(self, reason: str) -> None:
        self._end.close()
        if not self.answer.done():
            self.answer.set_result(None)

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class Browser:
    """Somebody's browser, with its cookies."""

    def __init__(self, network: Network, wants: str) -> None:
        self._network = network
        self._wants = wants
        self._cookies: dict[str, str] = {}

    async def go(self, url: str, form: dict[str, str] | None = None) -> int:
        """Get a page, or send a form, and follow where that leads; give the status of the last one, 0 for none."""
        parts = urlsplit(url)
        headers = {PERSON: self._wants, "cookie": "; ".join(f"{one}={value}" for one, value in self._cookies.items())}
        body = b""
        if form is not None:
            headers |= {"origin": f"http://{parts.netloc}", "content-type": "application/x-www-form-urlencoded"}
            body = urlencode(form).encode()
        try:
            end, _ = self._network.dial((str(parts.hostname), parts.port or 80), "person")
        except ConnectionRefusedError:
            return 0
        reading = _Reading(end)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        headers["host"] = parts.netloc
        end.write(write_request("GET" if form is None else "POST", target, headers, body))
        answer = await reading.answer
        end.close()
        if answer is None:
            return 0
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].split(";")[0].partition("=")
            self._cookies[name] = value
        if answer.status in (302, 303):
            return await self.go(answer.headers["location"])
        return answer.status


class AtHome:
    """Who sits at the machine of the proxy: goes where they are sent, and does there what the plan says.

    Args:
        plan: Of the world.
        network: Where the pages are.
        record: Where it is noted what is shown.

    Attributes:
        tasks: What people are doing.
    """

    goes_on = False

    def __init__(self, plan: Plan, network: Network, record: Record) -> None:
        self.tasks: dict[asyncio.Task[Any], None] = {}  # in their order
        self._plan = plan
        self._network = network
        self._record = record
        self._chance = chance_of(plan.seed, "people")
        self._pages: dict[str, tuple[str, int]] = {}  # the latest of each server: its state, and where one comes back

    def reach(self) -> bool:
        return bool(self._plan.signin["person"] != "nobody")

    def make_page(self, settings: SignInSettings) -> None: ...

    async def invite(self, peer: str) -> None: ...

    async def show_code(self, peer: str, url: str, code: str) -> None: ...

    async def paste(self, fault: str = "") -> str:
        return await asyncio.Future[str]()

    async def show(self, peer: str, url: str) -> None:
        query = parse_qs(urlsplit(url).query)
        state, port = query["state"][0], urlsplit(query["redirect_uri"][0]).port or 0
        self._record.add("person", "is shown a page", {"server": peer, "state": state})
        before, place = self._pages.get(peer, ("", 0))
        if before not in ("", state) and place != port and self._network.listens(("127.0.0.1", place)):
            self._record.note("one-sign-in", f"a second page is shown for {peer} while the first is open")
        self._pages[peer] = state, port
        self.begin(self._sign_in(peer, url))

    def begin(self, work: Any) -> None:
        """Let somebody do something."""
        task = asyncio.ensure_future(work)
        self.tasks[task] = None
        task.add_done_callback(self.tasks.pop)

    async def _sign_in(self, peer: str, url: str) -> None:
        person = self._plan.signin["person"]
        if person not in _THINKS_S:
            return
        await asyncio.sleep(self._chance.choice(_THINKS_S[person]))
        status = await Browser(self._network, "no" if person == "no" else "yes").go(url)
        self._record.add("person", "has come back", {"server": peer, "status": status})

    def stop(self) -> None:
        """Nobody does anything any more."""
        for task in list(self.tasks):
            task.cancel()


class FarAway:
    """Whoever is behind a client, and gets links from it.

    Args:
        at_home: Keeps what they do.
        network: Where the pages are.
        record: Where it is noted what they see.
        secret_of: What a principal shows the proxy.
        pages: To which there are links now.
    """

    def __init__(
        self,
        at_home: AtHome,
        plan: Plan,
        network: Network,
        record: Record,
        secret_of: Callable[[str], str],
        pages: list[InvitedPage],
    ) -> None:
        self._at_home = at_home
        self._plan = plan
        self._network = network
        self._record = record
        self._secret_of = secret_of
        self._chance = chance_of(plan.seed, "far away")
        self._pages = pages
        self._opened: set[str] = set()

    def open(self, client: ClientPlan, link: str) -> None:
        """Somebody sees a link for the first time, and opens it, or hands it on."""
        owner = next((one.owner for page in self._pages for one in page.invitations if one.url == link), "")
        self._record.add("person", "sees a link", {"of": client.name, "good for": owner})
        if link in self._opened or client.visits not in ("goes", "hands on"):
            return
        self._opened.add(link)
        others = sorted({one.principal for one in self._plan.clients} - {client.principal})
        is_foreign = client.visits == "hands on" and bool(others)
        owner = others[0] if is_foreign else client.principal
        self._at_home.begin(self._visit(client.name, owner, is_foreign, link))

    async def _visit(self, client: str, principal: str, is_foreign: bool, link: str) -> None:
        await asyncio.sleep(self._chance.choice((0.1, 2.0, 15.0)))
        person = self._plan.signin["person"]
        browser = Browser(self._network, "no" if person == "no" else "yes")
        page, _, token = link.partition("?token=")
        status = await browser.go(link)
        if status == 200:
            status = await browser.go(page, {"token": token, "secret": self._secret_of(principal)})
        self._record.add("person", "opens a link", {"of": client, "status": status, "foreign": is_foreign})
        if is_foreign and status == 200:
            self._record.note("own-link", f"{principal} signs in by a link of {client}, who is somebody else")
