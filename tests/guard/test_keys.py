"""When the keys of an issuer are fetched, and which of them count."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from joserfc import jwk

from dragoman.errors import TransportError
from dragoman.guard.keys import FRESH_S, PAUSE_S, Keys, read_keys
from dragoman.transports.http.bearer import TokenRefused
from tests.guard.issuer import Issuer, guard_of, guarded, issuer
from tests.support.waiting import until
from tests.transports.http.stage import initialize, on_loop


class Source:
    """A set of keys, and a clock; counts who asks."""

    def __init__(self, one: Issuer) -> None:
        self.one = one
        self.now_s = 1000.0
        self.fetched = 0
        self.is_away = False
        self.keys = Keys(self.fetch, lambda: self.now_s)

    async def fetch(self) -> Any:
        self.fetched += 1
        if self.is_away:
            raise TransportError("the issuer", "no connection")
        return {"keys": [*self.one.more, *(key.as_dict(private=False) for key in self.one.keys)]}

    async def counts(self, token: str) -> bool:
        try:
            return bool(await self.keys.verify(token))
        except TokenRefused as refused:
            if refused.is_away:
                raise
            return False


@pytest.fixture
def source() -> Source:
    one = Issuer("https://auth.example")
    one.add_key()
    return Source(one)


@on_loop
async def test_a_new_key_is_fetched_when_a_token_names_it() -> None:
    one = Issuer("https://auth.example")
    one.add_key()
    source = Source(one)
    assert await source.counts(one.give())
    for fetched in (2, 3):
        one.add_key()
        assert await source.counts(one.give())
        assert source.fetched == fetched
        one.add_key()
        assert not await source.counts(one.give())
        source.now_s += PAUSE_S


@on_loop
async def test_tokens_that_name_unknown_keys_fetch_once_in_a_while() -> None:
    one = Issuer("https://auth.example")
    one.add_key()
    source = Source(one)
    assert await source.counts(one.give())
    own = jwk.ECKey.generate_key("P-256")
    for number in range(500):
        assert not await source.counts(one.give(own, {"kid": f"made-up-{number}"}))
    assert source.fetched == 2
    source.now_s += PAUSE_S
    tokens = [one.give(own, {"kid": f"made-up-{number}"}) for number in range(50)]
    assert not any(await asyncio.gather(*map(source.counts, tokens)))
    assert source.fetched == 3
    assert await source.counts(one.give())


@on_loop
async def test_old_keys_count_while_the_issuer_is_away() -> None:
    one = Issuer("https://auth.example")
    one.add_key()
    source = Source(one)
    assert await source.counts(one.give())
    source.is_away = True
    for _ in range(10):
        source.now_s += 100 * FRESH_S
        assert await source.counts(one.give())
        await until(lambda: source.keys._fetching is None)
    assert source.fetched == 11
    source.is_away = False
    source.now_s += PAUSE_S
    withdrawn, _ = one.give(), one.keys.clear()
    one.add_key(kid="later")
    assert await source.counts(one.give())
    assert not await source.counts(withdrawn)


@on_loop
async def test_nobody_waits_for_keys_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.guard.keys.WAIT_S", 0.2)
    one = Issuer("https://auth.example")
    one.add_key()
    never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def hang() -> Any:
        return await never

    keys = Keys(hang)
    with pytest.raises(TokenRefused) as refused:
        await keys.verify(one.give())
    assert refused.value.is_away
    never.cancel()
    await until(lambda: keys._fetching is None)


ODD: list[Any] = [
    "text",
    None,
    {},
    {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"},
    {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"},
    {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
    {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
    {"kty": "EC", "crv": ["P-256"]},
    {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    {"kty": "RSA"},
    {"kty": "OKP", "crv": "X25519", "x": "AA"},
]


@on_loop
async def test_keys_of_unknown_kinds_are_left_out() -> None:
    one = Issuer("https://auth.example")
    one.more = [*ODD, {**jwk.ECKey.generate_key("P-256").as_dict(private=False), "kid": "key-0", "use": "enc"}]
    one.add_key()
    source = Source(one)
    assert await source.counts(one.give())
    assert len(read_keys(await source.fetch())) == 1


@on_loop
async def test_a_key_counts_for_its_own_algorithm_alone() -> None:
    one = Issuer("https://auth.example")
    one.add_key("RSA", alg="RS256")
    source = Source(one)
    assert await source.counts(one.give())
    loose = jwk.RSAKey.import_key({**one.keys[0].as_dict(private=True), "alg": "PS256"})
    assert not await source.counts(one.give(loose, {"alg": "PS256"}))


@on_loop
async def test_a_token_without_the_name_of_a_key_is_tried_with_few() -> None:
    one = Issuer("https://auth.example")
    for _ in range(30):
        one.add_key()
    source = Source(one)
    assert await source.counts(one.give(one.keys[0], {"kid": None}))
    assert not await source.counts(one.give(one.keys[29], {"kid": None}))


@on_loop
async def test_keys_come_by_the_metadata_of_the_issuer_once() -> None:
    async with issuer() as one, guarded(one) as stage:
        for number in range(5):
            reply = await stage.post(
                {"jsonrpc": "2.0", "method": "x"}, authorization=f"Bearer {one.give(jti=str(number))}"
            )
            assert reply.status == 400
        assert one.asked == ["/.well-known/oauth-authorization-server", "/keys"]


@on_loop
async def test_keys_may_be_in_a_file(tmp_path: Any) -> None:
    import json

    one = Issuer("https://auth.example")
    one.add_key()
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [one.keys[0].as_dict(private=False)]}))
    async with guarded(one, jwks=str(file)) as stage:
        assert (await stage.open(authorization=f"Bearer {one.give()}")).status == 200
    file.write_text("{")
    async with guarded(one, jwks=str(file)) as stage:
        assert (await stage.post(initialize(), authorization=f"Bearer {one.give()}")).status == 503


@on_loop
async def test_a_name_of_the_issuer_with_another_end_counts_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async with issuer() as one:
        one.metadata = {"issuer": f"{one.url}/"}
        guard = guard_of(one)
        assert (await guard.examine(one.give())).principal.endswith(one.url)
    assert f"the issuer writes its name {one.url}/" in caplog.text
