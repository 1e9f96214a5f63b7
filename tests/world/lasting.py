"""Rules about what outlives the request that asked for it: subscriptions, when a server is started again."""

from __future__ import annotations

from collections.abc import Iterator

from tests.world.plan import Plan
from tests.world.rules import Asked, Talk, rule


@rule("not-again")
def what_has_failed_is_not_asked_again(plan: Plan, talk: Talk) -> Iterator[str]:
    """A server that was started again is not subscribed to what its client was told it is not subscribed to."""
    if plan.hops > 1 or plan.router or plan.instances > 1:
        return
    for peer in talk.servers():
        for again in (one for one in talk.got[peer] if str(one.frame["id"]).startswith("dragoman-again-")):
            uri = again.params.get("uri")
            asked = [one for client in talk.clients() for one in talk.asked[client] if _is_about(one, uri)]
            told = [one for one in asked if one.answers and (one.answers[0].there or 0) < (again.asked.there or 0)]
            if asked and len(told) == len(asked) and all("error" in one.answers[0].frame for one in told):
                yield f"{peer} is asked again for {uri}, and whoever asked for it was told that this has failed"


def _is_about(one: Asked, uri: object) -> bool:
    return bool(one.frame["method"] == "resources/subscribe" and one.params.get("uri") == uri)
