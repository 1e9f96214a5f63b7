"""An authorization server of a world, at which the proxy signs in for a server that wants tokens, and people do so.

It registers clients, shows people a page, trades codes for tokens (with PKCE), and refreshes those; it forgets, is
away, and may be hostile. Everything that it gives has its name in it, so that it is known wherever it turns up.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64decode, urlsafe_b64encode
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from tests.world.http_bytes import Message, Reader, write_answer
from tests.world.network import Address, Network
from tests.world.peers.words import chance_of
from tests.world.plan import Act, Plan
from tests.world.record import Record
from tests.world.streams import RESET, End

HERE: Final = "127.0.0.1"
PERSON: Final = "x-person"
"""The header by which a person says what they want: `yes`, or `no`."""

_JSON: Final = {"content-type": "application/json"}
_LONG_S: Final = 45.0
"""How long an answer takes that nobody waits for."""


class Authority:
    """Gives tokens for one server.

    Args:
        plan: Of the world.
        number: Of the server.
        network: Where it listens.
        record: Where it is noted what is asked.

    Attributes:
        name: `a0`, for the server `s0`.
        url: Its name for others.
        resource: The server that its tokens are for.
        given: Everything secret that it has given to somebody.
        is_ill: Whether it answers with errors.
    """

    def __init__(self, plan: Plan, number: int, network: Network, record: Record) -> None:
        self.name = f"a{number}"
        self.address: Address = HERE, 9100 + number
        self.url = f"http://{HERE}:{9100 + number}"
        self.resource = f"http://{HERE}:{7000 + number}/mcp"
        self.given: dict[str, None] = {}
        self.is_ill = False
        self.others: list[Authority] = []
        self._told = plan.signin
        self._network = network
        self._record = record
        self._chance = chance_of(plan.seed, self.name)
        self._clients: dict[str, Act] = {}
        self._codes: dict[str, Act] = {}
        self._tokens: dict[str, tuple[float, str]] = {}  # until when each counts, and for which scopes
        self._refresh: dict[str, str] = {}  # whose each is
        self._used: set[str] = set()
        self._asked_steps = 0
        self.start()

    @property
    def hostile(self) -> str:
        """How it, or its server, does not behave."""
        return str(self._told.get("hostile", ""))

    def start(self) -> None:
        """Listen."""
        self._network.listen(self.address, lambda end, _: _keep(_Connection(self, end)))

    def stop(self) -> None:
        """Listen to nobody."""
        self._network.stop(self.address)

    def note(self, what: str, about: Any = None) -> None:
        """Note that something happens here."""
        self._record.add(self.name, what, about)

    def make(self, kind: str) -> str:
        """Make something that nobody else may read."""
        made = f"{kind}-{self.name}-{self._chance.randbytes(9).hex()}"
        self.given[made] = None
        self.note("makes", made)
        return made

    # What goes wrong

    def withdraw(self) -> None:
        """Let no token count any more that was given until now."""
        self.note("takes back")
        self._tokens.clear()

    def forget(self) -> None:
        """Know no client any more, and none of what it was given."""
        self.note("forgets its clients")
        for known in (self._clients, self._codes, self._tokens, self._refresh):
            known.clear()

    # What the server asks

    def find_scopes(self, authorization: str) -> set[str] | None:
        """Give what a token is good for; None where it does not count."""
        token = authorization.removeprefix("Bearer ")
        self.look_for_others(authorization, "its server")
        until_s, scopes = self._tokens.get(token, (0.0, ""))
        counts = until_s > time.time() and self.hostile != "refuses"
        return set(scopes.split()) if counts else None

    def wanted_scope(self, has: set[str]) -> str:
        """Give the scope that is missing; empty where nothing is."""
        if self.hostile == "steps":
            self._asked_steps += 1
            return f"scope-{self._asked_steps}"
        return "" if "calls" in has or not self._told.get("steps") else "calls"

    def look_for_others(self, said: str, where: str) -> None:
        """See that nothing comes here that another one has given."""
        for other in self.others:
            for one in other.given:
                if one in said:
                    self._record.note("own-token", f"{where} of {self.name} got what {other.name} gave: {one}")

    # What it is asked itself

    async def answer(self, message: Message) -> bytes:
        """Answer one request."""
        path, query = urlsplit(message.path).path, urlsplit(message.path).query
        self.note("is asked", {"path": path, "by": "person" if PERSON in message.headers else "proxy"})
        self.look_for_others(f"{message.path} {message.body.decode()} {message.headers}", "it")
        if self.is_ill:
            return write_answer(500, {}, b"")
        match path:
            case "/.well-known/oauth-authorization-server":
                return _tell(200, self._describe())
            case "/register":
                return self._register(json.loads(message.body))
            case "/authorize":
                return self._authorize(dict(parse_qsl(query)), message.headers.get(PERSON, ""))
            case "/token":
                if self.hostile == "late":
                    await asyncio.sleep(_LONG_S)
                return self._trade(message)
        return write_answer(404, {}, b"")

    def _describe(self) -> Act:
        places = {f"{name}_endpoint": f"{self.url}/{path}" for name, path in _PLACES.items()}
        told: Act = {"issuer": self.url, **places, "code_challenge_methods_supported": ["S256"]}
        told["authorization_response_iss_parameter_supported"] = True
        if self._told.get("secret"):
            told["token_endpoint_auth_methods_supported"] = [self._told["secret"]]
        match self.hostile:
            case "other-issuer":
                told["issuer"] = "https://somebody.example"
            case "leads-away":
                told["token_endpoint"] = "http://10.9.9.9/token"
            case "no-endpoints":
                told = {"issuer": self.url, "token_endpoint": 7}
        return told

    def _register(self, asked: Act) -> bytes:
        if self.hostile == "no-register":
            return _tell(403, {"error": "access_denied", "error_description": "nobody"})
        key = f"client-{self.name}-{len(self._clients) + 1}-{self._chance.randrange(1000)}"
        told = {"client_id": key, "redirect_uris": asked["redirect_uris"]}
        if self._told.get("secret"):
            told |= {"client_secret": self.make("secret"), "token_endpoint_auth_method": self._told["secret"]}
        self._clients[key] = told
        self.note("registers", key)
        return _tell(201, told)

    def _authorize(self, asked: Act, wants: str) -> bytes:
        client = self._clients.get(asked.get("client_id", ""))
        if client is None or asked["redirect_uri"] not in client["redirect_uris"]:
            return write_answer(400, {}, b"who are you?")
        if not wants:
            return write_answer(200, {"content-type": "text/html"}, b"<p>Who are you?")
        brought = {"state": asked["state"], "iss": self.url}
        if wants == "no":
            brought["error"] = "access_denied"
        else:
            brought["code"] = self.make("code")
            self._codes[brought["code"]] = asked
        if self.hostile == "wrong-state":
            brought["state"] = "state-of-nobody"
        if self.hostile == "wrong-iss":
            brought["iss"] = "https://somebody.example"
        return write_answer(302, {"location": f"{asked['redirect_uri']}?{urlencode(brought)}"}, b"")

    def _trade(self, message: Message) -> bytes:
        asked = dict(parse_qsl(message.body.decode()))
        if "code_verifier" in asked:
            self.given[asked["code_verifier"]] = None
            self.note("makes", asked["code_verifier"])
        key, shown = asked.get("client_id", ""), asked.get("client_secret", "")
        if message.headers.get("authorization", "").startswith("Basic "):
            pair = b64decode(message.headers["authorization"].removeprefix("Basic ")).decode()
            key, _, shown = (unquote(part) for part in pair.partition(":"))
        client = self._clients.get(key)
        if client is None or client.get("client_secret", "") != shown:
            return _tell(401, {"error": "invalid_client"})
        if self.hostile == "html":
            return write_answer(200, {"content-type": "text/html"}, b"<p>Welcome")
        if self.hostile == "repeats":
            return _tell(400, {"error": "server_error", "error_description": f"not good: {message.body.decode()}"})
        if asked["grant_type"] == "refresh_token":
            return self._take_refresh(key, asked["refresh_token"])
        return self._take_code(key, asked)

    def _take_code(self, key: str, asked: Act) -> bytes:
        code = self._codes.pop(asked["code"], None)
        digest = urlsafe_b64encode(sha256(asked["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if code is None or code["client_id"] != key or code["redirect_uri"] != asked["redirect_uri"]:
            return _tell(400, {"error": "invalid_grant"})
        if code["code_challenge"] != digest:
            self._record.note("proof", f"a code came to {self.name} without its proof")
            return _tell(400, {"error": "invalid_grant"})
        self.note("trades", "for a code")
        return self._give(key, code.get("scope", ""))

    def _take_refresh(self, key: str, refresh: str) -> bytes:
        if refresh in self._used:
            self.note("is shown again", refresh)
        if self._refresh.get(refresh) != key or not self._told.get("refreshes", True):
            return _tell(400, {"error": "invalid_grant"})
        if self._told.get("rotates"):
            del self._refresh[refresh]
            self._used.add(refresh)
        self.note("trades", "for a refresh token")
        return self._give(key, "calls" if self._told.get("steps") else "", refresh)

    def _give(self, key: str, scopes: str, before: str = "") -> bytes:
        lives_s = self._told["lives_s"]
        token, refresh = self.make("token"), before
        self._tokens[token] = time.time() + lives_s, scopes
        if self._told.get("refresh") and (not before or self._told.get("rotates")):
            refresh = self.make("refresh")
            self._refresh[refresh] = key
        more = {"refresh_token": refresh} if refresh else {}
        return _tell(200, {"access_token": token, "token_type": "Bearer", "expires_in": lives_s, **more})


_PLACES: Final = {"authorization": "authorize", "token": "token", "registration": "register"}


def _tell(status: int, said: Act) -> bytes:
    return write_answer(status, _JSON, json.dumps(said).encode())


def _keep(connection: object) -> None:
    """A connection is kept by its end."""


class _Connection:
    """One connection, of the proxy or of a person."""

    def __init__(self, authority: Authority, end: End) -> None:
        self._authority = authority
        self._end = end
        self._reader = Reader(True, lambda _: None, lambda _: None, self._take)
        self._tasks: dict[asyncio.Task[None], None] = {}  # in their order
        end.start(self)

    def _take(self, message: Message) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(message))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _answer(self, message: Message) -> None:
        self._end.write(await self._authority.answer(message))

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)

    def ended(self, reason: str) -> None:
        for task in list(self._tasks):
            task.cancel()
        if reason != RESET:
            self._end.close()

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
