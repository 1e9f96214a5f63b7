"""A repair rule is on or off on every path: one client with one server, a shared server, a server for each request."""

from __future__ import annotations

import pytest

from dragoman.pool import Scope
from dragoman_spec import DEFAULT_RULES
from tests.proxy.conversation import READY, initialize, initialized, request, result
from tests.support.waiting import run
from tests.transports.house import House, hear, say, settle


def answers_as_text(scope: Scope, rules: frozenset[str]) -> bool:
    """Whether a client hears the answer of a server that answers the id 7 as "7"."""

    async def main() -> bool:
        house = House(scope)
        try:
            guest = await house.enter(rules=rules)
            guest.say(initialize("2025-11-25"))
            await settle()
            say(house.servers[0], initialized("2025-11-25", (await hear(house.servers[0]))["id"]))
            assert (await hear(guest))["id"] == 0
            guest.say(READY)
            guest.say(request(7, "tools/list"))
            await settle()
            server = house.servers[-1]
            while (asked := await hear(server)).get("method") != "tools/list":
                if asked.get("method") == "initialize":
                    say(server, initialized("2025-11-25", asked["id"]))
            say(server, result(str(asked["id"]), {"tools": []}))
            await settle(30)
            return not guest.lines.empty() and await hear(guest) == result(7, {"tools": []})
        finally:
            await house.close()

    return run(main())


@pytest.mark.parametrize("scope", Scope)
def test_an_id_that_came_back_as_text_is_restored_in_every_scope(scope: Scope) -> None:
    assert answers_as_text(scope, DEFAULT_RULES)


@pytest.mark.parametrize("scope", Scope)
def test_it_is_not_without_the_rule(scope: Scope) -> None:
    assert not answers_as_text(scope, DEFAULT_RULES - {"restore-id-type"})
