"""An authorization server of a world: it gives tokens, says by which keys it signs, and is asked about tokens.

Its keys come from the seed, and sign so that the same token is the same bytes each time (Ed25519).
"""

from __future__ import annotations

import json
import time
import warnings
from functools import lru_cache
from typing import Any, Final
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from joserfc import jwk, jwt
from joserfc.util import urlsafe_b64encode

from tests.world.http_bytes import Message, Reader, write_answer
from tests.world.network import Address, Network
from tests.world.peers.words import chance_of
from tests.world.plan import Act, ClientPlan, Plan
from tests.world.record import Record
from tests.world.streams import RESET, End

ADDRESS: Final[Address] = ("127.0.0.1", 9000)
URL: Final = "http://127.0.0.1:9000"
OURS: Final = "http://127.0.0.1:8080/mcp"
"""Whom tokens are for."""

RENEWED_S: Final = 60.0
"""How long before the end of a token who takes care gets another one."""

_JSON: Final = {"content-type": "application/json"}


@lru_cache(maxsize=16)
def _make_key(name: str) -> Any:
    """Make a key of its name alone; a few are enough for all worlds."""
    private = Ed25519PrivateKey.from_private_bytes(chance_of(name, "key").randbytes(32))
    raw = urlsafe_b64encode(private.private_bytes_raw()).decode()
    public = urlsafe_b64encode(private.public_key().public_bytes_raw()).decode()
    return jwk.OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "kid": name, "x": public, "d": raw, "use": "sig"})


class Issuer:
    """Gives tokens, and knows which of them count.

    Args:
        plan: Of the world.
        network: Where it listens.
        record: Where it is noted what is asked.

    Attributes:
        given: Every token that somebody has got, with who that is.
    """

    def __init__(self, plan: Plan, network: Network, record: Record) -> None:
        self.given: dict[str, str] = {}
        self._plan = plan
        self._network = network
        self._record = record
        self._keys = [_make_key("key-0")]
        self._tokens: dict[str, tuple[str, float]] = {}  # the latest of each client, and until when it counts
        self._withdrawn: set[str] = set()
        self.is_ill = False
        self.start()

    def start(self) -> None:
        """Listen."""
        self._network.listen(ADDRESS, self._accept)

    def _accept(self, end: End, source: Address) -> None:
        _Connection(self, end)

    def stop(self) -> None:
        """Listen to nobody."""
        self._network.stop(ADDRESS)

    # What clients get

    def token_for(self, client: ClientPlan) -> str:
        """Give what a client shows: its token, which it renews in time if it takes care of that."""
        token, until_s = self._tokens.get(client.name, ("", 0.0))
        is_careful = client.shows == "token" and client.name not in self._withdrawn
        if not token or (is_careful and until_s - RENEWED_S < time.time()):
            token, until_s = self._give(client)
            self._tokens[client.name] = token, until_s
        return token

    def _give(self, client: ClientPlan) -> tuple[str, float]:
        now_s = int(time.time())
        until_s = now_s + self._plan.guard["lives_s"]
        key = self._keys[-1]
        claims: Act = {"iss": URL, "aud": OURS, "sub": client.principal, "client_id": "world", "exp": until_s}
        claims |= {"jti": f"{client.name}-{len(self.given)}", "iat": now_s}
        match client.shows:
            case "foreign":
                claims["aud"] = "http://somebody.else"
            case "forged":
                key = _make_key("key-of-nobody")
            case "elsewhere":
                claims["iss"] = "http://other.example"
        head = {"alg": "Ed25519", "kid": self._keys[-1].kid, "typ": "at+jwt"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a new name of Ed25519
            token = jwt.encode(head, claims, key, algorithms=["Ed25519"])
        self.given[token] = client.name
        self._record.add("issuer", "gives", {"whom": client.name, "for_s": until_s - time.time()})
        return token, until_s

    # What goes wrong

    def withdraw(self, client: str) -> None:
        """Let the token of a client count no more; it gets no other one."""
        self._record.add("issuer", "withdraws", client)
        self._withdrawn.add(client)

    def rotate(self) -> None:
        """Sign with another key from now on; the one before stays known, those before that do not."""
        self._record.add("issuer", "has another key")
        self._keys = [self._keys[-1], _make_key(f"key-{len(self.given) % 5 + 1}")]

    # What it is asked

    def answer(self, message: Message) -> bytes:
        """Answer one request."""
        self._record.add("issuer", "is asked", {"path": message.path})
        if self.is_ill:
            return write_answer(500, {}, b"")
        match message.path:
            case "/.well-known/oauth-authorization-server":
                return _tell({"issuer": URL, "jwks_uri": f"{URL}/keys"})
            case "/keys":
                return _tell({"keys": [key.as_dict(private=False) for key in self._keys]})
            case "/introspect":
                return _tell(self._look_at(dict(parse_qsl(message.body.decode()))["token"]))
        return write_answer(404, {}, b"")

    def _look_at(self, token: str) -> Act:
        whose = self.given.get(token)
        client = next((one for one in self._plan.clients if one.name == whose), None)
        self._record.add("issuer", "is asked about", {"whom": whose})
        if client is None or client.shows == "forged" or whose in self._withdrawn:
            return {"active": False}
        until_s = next((until_s for known, until_s in self._tokens.values() if known == token), 0.0)
        if until_s < time.time():
            return {"active": False}
        audience = "http://somebody.else" if client.shows == "foreign" else OURS
        issuer = "http://other.example" if client.shows == "elsewhere" else URL
        said = {"active": True, "iss": issuer, "aud": audience, "exp": int(until_s)}
        return {**said, "sub": client.principal, "client_id": "world"}


def _tell(said: Act) -> bytes:
    return write_answer(200, _JSON, json.dumps(said).encode())


class _Connection:
    """One connection of the proxy."""

    def __init__(self, issuer: Issuer, end: End) -> None:
        self._issuer = issuer
        self._end = end
        self._reader = Reader(True, lambda _: None, lambda _: None, self._take)
        end.start(self)

    def _take(self, message: Message) -> None:
        self._end.write(self._issuer.answer(message))

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)

    def ended(self, reason: str) -> None:
        if reason != RESET:
            self._end.close()

    def broken(self, reason: str) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...
